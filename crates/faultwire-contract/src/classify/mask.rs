//! The parts of a text that do not describe the failure: the client's own words, quotations,
//! paths, URLs, code. Rules that read prose do not see it (U1).

use std::borrow::Cow;
use std::ops::Range;

use super::own_words::OwnWords;

/// Why a stretch is not read for words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaskKind {
    /// The client said it itself.
    Argument,
    /// It stands in quotation marks.
    Quotation,
    /// A path, a file name or a mail address.
    Path,
    /// A URL.
    Url,
    /// Code, a frame of a stack trace, or an echo of a statement.
    Code,
}

impl MaskKind {
    /// The name in the output of `classify --why`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Argument => "argument",
            Self::Quotation => "quotation",
            Self::Path => "path",
            Self::Url => "url",
            Self::Code => "code",
        }
    }
}

pub(super) type Mask = (Range<usize>, MaskKind);

/// What stands for a masked stretch: a word that no rule knows.
const PLACEHOLDER: &str = "_";
/// A longer stretch between two quotation marks is no quotation.
const LONGEST_QUOTATION: usize = 400;

/// The masks of a text, in order and apart from each other.
pub(super) fn masks(text: &str, own: Option<&OwnWords>) -> Vec<Mask> {
    let mut found: Vec<Mask> = Scanner { text, bytes: text.as_bytes(), found: Vec::new() }.scan();
    let arguments = own.map(|own| own.find(text)).unwrap_or_default();
    // Where the server quotes what the client said, the same words outside of the quotation are the
    // server's: `Project 'not found' not found`.
    let is_quoted = |range: &Range<usize>| {
        found.iter().any(|(mask, _)| mask.start <= range.start && range.end <= mask.end)
    };
    let quoted: Vec<String> = arguments
        .iter()
        .filter(|range| is_quoted(range))
        .filter_map(|range| text.get(range.clone()).map(str::to_lowercase))
        .collect();
    let is_own = |range: &Range<usize>| {
        let same = |words: &str| quoted.iter().any(|quoted| *quoted == words.to_lowercase());
        is_quoted(range) || !text.get(range.clone()).is_some_and(same)
    };
    let own: Vec<Range<usize>> = arguments.into_iter().filter(is_own).collect();
    found.extend(own.into_iter().map(|range| (range, MaskKind::Argument)));
    found.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
    found
}

/// The text with masked stretches of some kinds replaced.
pub(super) fn masked<'t>(
    text: &'t str,
    masks: &[Mask],
    takes: impl Fn(MaskKind) -> bool,
) -> Cow<'t, str> {
    let mut out: Option<String> = None;
    let mut done = 0;
    for (range, kind) in masks.iter().filter(|(_, kind)| takes(*kind)) {
        let out = out.get_or_insert_with(|| String::with_capacity(text.len()));
        let (start, end) =
            (text.floor_char_boundary(range.start), text.ceil_char_boundary(range.end));
        if start >= done {
            out.push_str(&text[done..start]);
            // Line ends stay, so that a rule can still tell where a line begins.
            out.push_str(if *kind == MaskKind::Code && text[start..end].contains('\n') {
                "_\n"
            } else {
                PLACEHOLDER
            });
        }
        done = done.max(end);
    }
    match out {
        None => Cow::Borrowed(text),
        Some(mut out) => {
            out.push_str(&text[done..]);
            Cow::Owned(out)
        }
    }
}

struct Scanner<'t> {
    text: &'t str,
    bytes: &'t [u8],
    found: Vec<Mask>,
}

impl Scanner<'_> {
    fn scan(mut self) -> Vec<Mask> {
        let mut at = 0;
        let mut line_begins = true;
        while at < self.bytes.len() {
            if line_begins && let Some(end) = self.echo(at) {
                self.found.push((at..end, MaskKind::Code));
                at = end;
                continue;
            }
            let byte = self.bytes[at];
            line_begins = byte == b'\n';
            at = match byte {
                b'`' => self.code(at),
                b'"' => self.quotation(at, b'"', b'"'),
                b'\'' => self.quotation(at, b'\'', b'\''),
                0xE2 if self.bytes[at..].starts_with("“".as_bytes()) => self.curly(at, "”"),
                0xE2 if self.bytes[at..].starts_with("‘".as_bytes()) => self.curly(at, "’"),
                b if self.begins_token(at, b) => self.token(at),
                _ => at + 1,
            };
        }
        self.found
    }

    fn begins_token(&self, at: usize, byte: u8) -> bool {
        is_part(byte) && (at == 0 || !is_part(self.bytes[at - 1]))
    }

    /// A line that repeats code: a frame, or a statement that the server was given.
    fn echo(&self, at: usize) -> Option<usize> {
        let line = self.text.get(at..)?.lines().next()?;
        let inner = line.trim_start();
        let is_frame =
            inner.len() < line.len() && (inner.starts_with("at ") || inner.starts_with("File \""));
        let is_statement = [
            "[SQL:",
            "[parameters:",
            "LINE 1:",
            "LINE 2:",
            "cmdline:",
            "SQL:",
            "Query:",
            "Statement:",
        ]
        .iter()
        .any(|mark| inner.starts_with(mark));
        (is_frame || is_statement).then_some(at + line.len())
    }

    /// `code` or a fenced block. A text that is one block says what it says there.
    fn code(&mut self, at: usize) -> usize {
        let rest = &self.text[at..];
        if let Some(inner) = rest.strip_prefix("```") {
            let length = inner.find("```").map_or(rest.len(), |end| end + 6);
            if self.text.len() - length >= 40 {
                self.found.push((at..at + length, MaskKind::Code));
                return at + length;
            }
            return at + 3;
        }
        let line = rest[1..].lines().next().unwrap_or_default();
        match line.find('`').filter(|end| *end <= LONGEST_QUOTATION) {
            Some(end) if end > 0 => {
                self.found.push((at + 1..at + 1 + end, MaskKind::Code));
                at + end + 2
            }
            _ => at + 1,
        }
    }

    fn curly(&mut self, at: usize, close: &str) -> usize {
        let rest = &self.text[at + 3..];
        let line = rest.lines().next().unwrap_or_default();
        match line.find(close).filter(|end| *end <= LONGEST_QUOTATION) {
            Some(end) => {
                self.found.push((at + 3..at + 3 + end, MaskKind::Quotation));
                at + 3 + end + close.len()
            }
            None => at + 3,
        }
    }

    /// A quotation, unless the marks stand around what is said: `KeyError: 'no such task'`.
    fn quotation(&mut self, at: usize, open: u8, close: u8) -> usize {
        let escaped = at > 0 && self.bytes[at - 1] == b'\\';
        let before = at.checked_sub(1 + usize::from(escaped)).map(|i| self.bytes[i]);
        // An apostrophe.
        if open == b'\'' && before.is_some_and(|b| b.is_ascii_alphanumeric()) {
            return at + 1;
        }
        let limit = self.bytes.len().min(at + LONGEST_QUOTATION);
        let is_end = |i: &usize| {
            self.bytes[*i] == close
                && self.bytes.get(i + 1).is_none_or(|b| !b.is_ascii_alphanumeric())
        };
        let Some(end) = (at + 1..limit).take_while(|i| self.bytes[*i] != b'\n').find(is_end) else {
            return at + 1;
        };
        let inner = self.text.get(at + 1..end).unwrap_or_default();
        // Another quotation begins inside: the outer marks enclose a whole statement.
        let bytes = inner.as_bytes();
        let nests = bytes.windows(3).any(|w| {
            matches!(w[0], b' ' | b'(' | b'=' | b':')
                && w[1] == open
                && w[2].is_ascii_alphanumeric()
        });
        let words = inner.split_whitespace().count();
        let leads = self.text[..at].trim_end_matches(['\\', ' ', '\n']).as_bytes().last();
        let is_said =
            words >= 4 && leads.is_none_or(|b| matches!(b, b':' | b'=' | b'(' | b',' | b'['));
        if nests || is_said {
            return at + 1;
        }
        if end > at + 1 {
            self.found.push((at + 1..end, MaskKind::Quotation));
        }
        end + 1
    }

    /// A URL, a path, a file name, a mail address; or a word, which is left.
    fn token(&mut self, at: usize) -> usize {
        let rest = &self.bytes[at..];
        let kinds = rest.iter().map(|byte| KINDS[usize::from(*byte)]);
        let (mut length, mut has_sign) = (0, false);
        for kind in kinds.take_while(|kind| *kind != Byte::End) {
            length += 1;
            has_sign |= kind == Byte::Sign;
        }
        let word = || rest.iter().take_while(|byte| is_part(**byte)).count();
        // Most words have none of the signs of a place.
        if !has_sign {
            return at + word().max(1);
        }
        let mut end = at + length;
        let token = &self.text[at..end];
        let url = token.contains(':').then(|| token.find("://")).flatten();
        let is_url = url.is_some_and(|i| {
            i > 0 && token[..i].bytes().all(|b| b.is_ascii_alphanumeric() || b"+.-(".contains(&b))
        });
        let cut: &[char] = if is_url {
            &['.', ',', ':', ';', ')', ']', '}', '!', '?']
        } else {
            &['.', ',', ':', ';', ')', ']', '}', '!', '?', '(']
        };
        let trimmed = token.trim_end_matches(cut);
        end = at + trimmed.len();
        let kind =
            if is_url { Some(MaskKind::Url) } else { is_path(trimmed).then_some(MaskKind::Path) };
        match kind {
            Some(kind) if end > at => {
                self.found.push((at..end, kind));
                end
            }
            // Only its first word is decided; a mark inside may begin another token.
            _ => at + word().max(1),
        }
    }
}

/// What a byte means for the token that it stands in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Byte {
    /// It is a part of a word.
    Part,
    /// It is a part of a word that may be a place.
    Sign,
    /// It stands between two words of one token.
    Other,
    /// It ends the token.
    End,
}

const KINDS: [Byte; 256] = {
    let mut kinds = [Byte::Other; 256];
    let mut byte = 0;
    while byte < kinds.len() {
        #[allow(clippy::cast_possible_truncation, reason = "256 is not reached")]
        let same = byte as u8;
        kinds[byte] = match same {
            b'/' | b'\\' | b'.' | b'~' | b'@' | b':' => Byte::Sign,
            b' ' | b'\t' | b'\n' | b'\r' | b'\x0C' | b'"' | b'\'' | b'`' | b'<' | b'>' | b'|' => {
                Byte::End
            }
            b'_' | b'-' | 0x80.. | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => Byte::Part,
            _ => Byte::Other,
        };
        byte += 1;
    }
    kinds
};

fn is_part(byte: u8) -> bool {
    match KINDS[usize::from(byte)] {
        Byte::Part => true,
        Byte::Sign => byte != b'@' && byte != b':',
        Byte::Other | Byte::End => false,
    }
}

/// Whether a token is a place in a file system, a file's name or a mail address.
fn is_path(token: &str) -> bool {
    // Most words have none of the signs of a place.
    if !token.bytes().any(|b| matches!(b, b'/' | b'\\' | b'.' | b'@' | b'~')) {
        return false;
    }
    // `file.ts:12:3`, `(src/a.rs`
    let token = token.trim_start_matches(['(', '[', '{']);
    let place = token.trim_end_matches(|c: char| c.is_ascii_digit() || c == ':');
    let place = if place.is_empty() { token } else { place };
    let has_name = |s: &str| s.contains(|c: char| c.is_alphanumeric());
    if !has_name(place) || place.contains("://") {
        return false;
    }
    if let Some((user, host)) = place.split_once('@') {
        return has_name(user) && host.contains('.');
    }
    let begins = |marks: &[&str]| marks.iter().any(|mark| place.starts_with(mark));
    if begins(&["./", "../", "~/", ".\\", "..\\"]) {
        return true;
    }
    if place.starts_with('/') {
        return place.len() > 2;
    }
    let bytes = place.as_bytes();
    if bytes.len() > 3
        && bytes[0].is_ascii_alphabetic()
        && bytes[1] == b':'
        && matches!(bytes[2], b'\\' | b'/')
    {
        return true;
    }
    let slashes = place.matches(['/', '\\']).count();
    let name = place.rsplit(['/', '\\']).next().unwrap_or(place);
    let has_extension = name.rsplit_once('.').is_some_and(|(stem, extension)| {
        has_name(stem)
            && (1..=5).contains(&extension.len())
            && extension.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
            && extension.bytes().any(|b| b.is_ascii_lowercase())
    });
    // `HTTP/1.1`, `and/or` and `tools/call` are words.
    slashes >= 2 && !place.starts_with("HTTP") || has_extension && !place.contains("..")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, left: &str) {
        let found = masks(text, None);
        assert_eq!(masked(text, &found, |_| true), left);
    }

    #[test]
    fn u1_quotations_paths_urls_and_code_are_not_read() {
        check("ENOENT: no such file, open '/srv/rate-limit.ts'", "ENOENT: no such file, open '_'");
        check("Issue \"Retry when unavailable\" is closed", "Issue \"_\" is closed");
        check("GET http://localhost:8080/api?timeout=32s: refused", "GET _: refused");
        check(
            "cannot find type `RateLimited` in this scope\n --> src/unavailable.rs:9:14",
            "cannot find type `_` in this scope\n --> _",
        );
        check("The file rate-limit.ts, or and/or tools/call.", "The file _, or and/or tools/call.");
        check("it doesn't match the user's 'token'", "it doesn't match the user's '_'");
        check(
            "stderr: 'fatal: pathspec 'a' did not match'",
            "stderr: 'fatal: pathspec '_' did not match'",
        );
        check(
            "Error: \"Blob or Tree named 'deadlock.py' not found\"",
            "Error: \"Blob or Tree named '_' not found\"",
        );
        check("x: y\n    at timeout (a.js:1:2)\nnext", "x: y\n_\nnext");
        check("550 5.1.1 <timeout@example.org>: no such user", "550 5.1.1 <_>: no such user");
        check("HTTP/1.1 503 Service Unavailable", "HTTP/1.1 503 Service Unavailable");
    }
}
