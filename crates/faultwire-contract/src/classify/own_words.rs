//! What the client said in its call, and where a text repeats it: whole, escaped, or cut (U1).

use std::cell::LazyCell;
use std::hash::BuildHasher;
use std::ops::Range;

use foldhash::fast::RandomState;
use memchr::memmem;
use serde_json::Value;

use crate::redact::view::View;

/// A stretch of this length that stands in the call and in the text is a repetition.
const STRETCH: usize = 16;
/// Stretches of the call are remembered at every so manieth byte.
const STRIDE: usize = 4;
/// So much of a call is remembered.
const LONGEST_CALL: usize = 64 * 1024;
/// So many short words of a call are looked for.
const MOST_WORDS: usize = 256;

/// The words of a call.
#[derive(Default)]
pub(super) struct OwnWords {
    /// Values that are looked for whole.
    words: Vec<Vec<u8>>,
    stretches: Stretches,
    /// Values that name something: paths, URLs, ids.
    names: Vec<String>,
    /// Short values, and the names of arguments.
    values: Vec<String>,
    keys: Vec<String>,
    /// How much was taken in.
    bytes: usize,
}

/// Stretches of a call: a table of where they stand in its texts, open to the next free entry.
#[derive(Default)]
struct Stretches {
    /// The texts, one after the other.
    texts: Vec<u8>,
    /// Where each text begins.
    begins: Vec<usize>,
    /// One more than the place of a stretch; 0 is free. At most half of it is taken.
    table: Vec<u32>,
    hasher: RandomState,
}

impl Stretches {
    fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    fn remember(&mut self, text: &[u8]) {
        self.begins.push(self.texts.len());
        self.texts.extend_from_slice(text);
    }

    /// Makes the table, when all texts are there.
    fn index(&mut self) {
        if self.is_empty() {
            return;
        }
        self.table = vec![0; (self.texts.len() / STRIDE * 2).next_power_of_two()];
        let ends = self.begins[1..].iter().copied().chain([self.texts.len()]);
        for (begin, end) in self.begins.iter().copied().zip(ends) {
            for place in (begin..end).step_by(STRIDE).take_while(|at| at + STRETCH <= end) {
                let stretch = &self.texts[place..place + STRETCH];
                let (slot, known) = self.look_up(stretch);
                if !known {
                    self.table[slot] = u32::try_from(place + 1).unwrap_or(0);
                }
            }
        }
    }

    fn has(&self, stretch: &[u8]) -> bool {
        self.look_up(stretch).1
    }

    /// The entry of a stretch, or the free one where it would stand; and whether it is there.
    fn look_up(&self, stretch: &[u8]) -> (usize, bool) {
        let mask = self.table.len() - 1;
        let whole = stretch.first_chunk::<STRETCH>().map_or(0, |s| u128::from_le_bytes(*s));
        let mut slot = usize::try_from(self.hasher.hash_one(whole)).unwrap_or(0) & mask;
        loop {
            let Some(place) = self.table[slot].checked_sub(1).map(|place| place as usize) else {
                return (slot, false);
            };
            if self.texts[place..place + STRETCH] == *stretch {
                return (slot, true);
            }
            slot = (slot + 1) & mask;
        }
    }
}

/// The last part of a path or URL, where it is a name of its own.
fn last_part(name: &str) -> Option<&str> {
    let (_, part) = name.trim_end_matches('/').rsplit_once('/')?;
    let is_name = part.len() > 5 && part.contains(['.', '-', '_']) && !part.contains(['?', '=']);
    is_name.then_some(part)
}

impl OwnWords {
    /// The words of a request's `params`.
    pub fn of(params: &str) -> Self {
        let mut own = Self::default();
        match serde_json::from_str(params) {
            Ok(Value::Object(members)) => {
                for (name, value) in &members {
                    match (name.as_str(), value) {
                        ("_meta", _) => {}
                        // A tool has a name that stands in many messages.
                        ("name", Value::String(tool)) => own.name(tool),
                        (_, value) => own.value(value),
                    }
                }
            }
            Ok(value) => own.value(&value),
            // Too deep to be read: its text is what the client said.
            Err(_) => own.text(params),
        }
        own.stretches.index();
        own
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.text(text),
            Value::Array(items) => items.iter().for_each(|item| self.value(item)),
            Value::Object(members) => members.iter().for_each(|(name, value)| {
                self.name(name);
                self.key(name);
                self.value(value);
            }),
            Value::Number(number) => self.word(&number.to_string()),
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// `paragraph_index` and `paragraphIndex` are told as "paragraph index".
    fn key(&mut self, name: &str) {
        if self.keys.len() >= MOST_WORDS || name.len() < 5 {
            return;
        }
        let mut words = String::new();
        for c in name.chars() {
            match c {
                '_' | '-' => words.push(' '),
                c if c.is_ascii_uppercase() => words.extend([' ', c.to_ascii_lowercase()]),
                c => words.push(c),
            }
        }
        if words.contains(' ') {
            self.keys.push(words);
            self.keys.push(name.to_owned());
        }
    }

    /// A name is looked for only if no sentence would use it as a word.
    fn name(&mut self, name: &str) {
        if !name.bytes().all(|b| b.is_ascii_alphabetic()) {
            self.word(name);
        }
    }

    fn word(&mut self, word: &str) {
        let word = folded(word.trim().as_bytes());
        let is_status = word.len() <= 3 && word.iter().all(u8::is_ascii_digit);
        if word.len() >= 3 && !is_status && self.words.len() < MOST_WORDS {
            self.words.push(word);
        }
    }

    fn text(&mut self, text: &str) {
        if self.bytes + text.len() > LONGEST_CALL {
            return;
        }
        self.bytes += text.len();
        if (2..=64).contains(&text.len()) && self.values.len() < MOST_WORDS {
            self.values.push(text.to_owned());
        }
        let is_name = (4..=512).contains(&text.len()) && !text.contains('\n');
        if is_name && is_identifier(text) && self.names.len() < MOST_WORDS {
            self.names.push(text.to_owned());
        }
        if text.len() < STRETCH + STRIDE {
            return self.word(text);
        }
        self.stretches.remember(&folded(text.as_bytes()));
        // Identifiers, file names and the like are repeated on their own.
        let ends = |byte: &u8| byte.is_ascii() && ENDS[usize::from(*byte)];
        for part in text.as_bytes().split(ends).filter(|part| part.len() < STRETCH + STRIDE) {
            if !is_plain(part) && str::from_utf8(part).is_ok_and(is_identifier) {
                self.word(str::from_utf8(part).unwrap_or_default());
            }
        }
    }

    /// Whether the text repeats a value of the call that names something.
    pub fn is_named_whole(&self, text: &str) -> bool {
        let begins = |word: &Vec<u8>| {
            let at = text.as_bytes().get(..word.len());
            at.is_some_and(|b| b.eq_ignore_ascii_case(word)) && text[word.len()..].starts_with(": ")
        };
        let is_quoted = |at: usize, end: usize| {
            let mark = text.as_bytes()[..at].last();
            matches!(mark, Some(b'\'' | b'"' | b'`')) && text.as_bytes().get(end) == mark
        };
        let quotes = |value: &String| {
            memmem::find_iter(text.as_bytes(), value).any(|at| is_quoted(at, at + value.len()))
        };
        // "Session not found: one"
        let ends = |value: &String| {
            let is_end = |at: usize| {
                let rest = &text[at + value.len()..];
                text[..at].ends_with(": ")
                    && (rest.is_empty() || rest.starts_with(['\'', '"', '`', '.', ',', ')', '\n']))
            };
            value.len() > 2 && memmem::find_iter(text.as_bytes(), value).any(is_end)
        };
        let lower = text.to_lowercase();
        let has = |part: &str| memmem::find(text.as_bytes(), part.as_bytes()).is_some();
        self.names.iter().any(|name| has(name))
            || self.names.iter().filter_map(|name| last_part(name)).any(has)
            || self.words.iter().any(begins)
            || self.values.iter().any(|value| quotes(value) || ends(value))
            || self.keys.iter().any(|key| lower.contains(key.as_str()))
    }

    /// Where the text repeats the call.
    pub fn find(&self, text: &str) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        if self.words.is_empty() && self.stretches.is_empty() {
            return found;
        }
        self.find_in(&View::plain(text), &mut found);
        if let Some(view) = View::decoded(text) {
            self.find_in(&view, &mut found);
        }
        found
    }

    fn find_in(&self, view: &View<'_>, found: &mut Vec<Range<usize>>) {
        let lower = folded(&view.bytes);
        // Most texts repeat nothing.
        let places = LazyCell::new(|| kept(&view.bytes));
        let mut add = |from: usize, to: usize| {
            let (from, to) = view.source(places[from], places[to - 1] + 1);
            match found.last_mut() {
                Some(last) if last.start <= from && from <= last.end => last.end = last.end.max(to),
                _ => found.push(from..to),
            }
        };
        if !self.stretches.is_empty() {
            // The repetition begins up to a stride earlier, and ends as much later.
            let more = |bytes: &mut dyn Iterator<Item = &u8>| {
                bytes.take(STRIDE - 1).take_while(|byte| is_word(**byte)).count()
            };
            for (at, stretch) in lower.windows(STRETCH).enumerate() {
                if self.stretches.has(stretch) {
                    let end = at + STRETCH;
                    let from = at - more(&mut lower[..at].iter().rev());
                    add(from, end + more(&mut lower[end..].iter()));
                }
            }
        }
        for word in &self.words {
            for at in memmem::find_iter(&lower, word) {
                let end = at + word.len();
                let begins = at == 0 || !is_word(lower[at - 1]) || !is_word(lower[at]);
                let ends = end == lower.len() || !is_word(lower[end]) || !is_word(lower[end - 1]);
                if begins && ends {
                    add(at, end);
                }
            }
        }
    }
}

/// Where an identifier ends.
const ENDS: [bool; 128] = {
    let mut table = [false; 128];
    let ends = b" \t\n\r\x0B\x0C\"'`()[]{},;=<>";
    let mut at = 0;
    while at < ends.len() {
        table[ends[at] as usize] = true;
        at += 1;
    }
    table
};

/// What each byte is folded to. No text has the byte that stands for nothing.
const FOLDED: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < table.len() {
        #[allow(clippy::cast_possible_truncation, reason = "256 is not reached")]
        let same = byte as u8;
        table[byte] = match same {
            b'"' | b'\'' | b'\\' => NOTHING,
            b'\n' | b'\r' | b'\t' => b' ',
            other => other.to_ascii_lowercase(),
        };
        byte += 1;
    }
    table
};
const NOTHING: u8 = 0xFF;

/// A text in lower case, without quotation marks and backslashes, which escaping adds and quoting
/// changes.
fn folded(bytes: &[u8]) -> Vec<u8> {
    let mut lower = vec![0; bytes.len()];
    let (mut length, mut last) = (0, NOTHING);
    for byte in bytes {
        let byte = FOLDED[usize::from(*byte)];
        lower[length] = byte;
        if byte != NOTHING && (byte != b' ' || last != b' ') {
            length += 1;
            last = byte;
        }
    }
    lower.truncate(length);
    lower
}

/// The places of the bytes that [`folded`] keeps.
fn kept(bytes: &[u8]) -> Vec<usize> {
    let mut last = NOTHING;
    let mut is_kept = |byte: &u8| {
        let byte = FOLDED[usize::from(*byte)];
        let is_kept = byte != NOTHING && (byte != b' ' || last != b' ');
        last = if is_kept { byte } else { last };
        is_kept
    };
    bytes.iter().enumerate().filter(|(_, byte)| is_kept(byte)).map(|(place, _)| place).collect()
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

/// Most words of a sentence are lower-case letters and nothing else.
fn is_plain(part: &[u8]) -> bool {
    part.iter().skip(1).all(u8::is_ascii_lowercase)
}

/// Whether a part of a text is a name that no sentence would use as a word.
fn is_identifier(part: &str) -> bool {
    if is_plain(part.as_bytes()) {
        return false;
    }
    let inner = part.trim_matches(|c: char| !c.is_alphanumeric());
    let mixed = |c: char| "_-./@:".contains(c) || c.is_ascii_digit();
    let humps =
        || inner.chars().skip(1).any(char::is_uppercase) && inner.contains(char::is_lowercase);
    inner.len() >= 3 && inner.contains(char::is_alphabetic) && (inner.contains(mixed) || humps())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::mask::{MaskKind, masked};

    fn check(params: &str, text: &str, left: &str) {
        let mut found: Vec<_> = OwnWords::of(params)
            .find(text)
            .into_iter()
            .map(|range| (range, MaskKind::Argument))
            .collect();
        found.sort_by_key(|(range, _)| range.start);
        assert_eq!(masked(text, &found, |_| true), left, "{params}");
    }

    #[test]
    fn u1_what_the_call_contains_is_found_whole_escaped_and_cut() {
        let path = r#"{"name":"read","arguments":{"path":"src/rate-limit.ts"}}"#;
        check(path, "File not found: src/rate-limit.ts", "File not found: _");
        let deep = r#"{"arguments":{"a":[{"b":{"c":"deadlock"}}]}}"#;
        check(deep, "no such table: deadlock (deadlocks)", "no such table: _ (deadlocks)");
        let quoted = r#"{"arguments":{"q":"say \"too many requests\" and go home"}}"#;
        check(quoted, r#"bad: say \"too many requests\" and go home"#, "bad: _");
        check(quoted, "bad: too many requests, go home", "bad: _, go home");
        check(quoted, "bad: say%20%22too%20many%20requests...", "bad: _...");
        let sql = r#"{"arguments":{"sql":"select * from unauthorized_429 where id = 7"}}"#;
        check(sql, "relation \"unauthorized_429\" does not exist", "relation \"_\" does not exist");
        check(r#"{"arguments":{"status":"404"}}"#, "status code 404", "status code 404");
    }
}
