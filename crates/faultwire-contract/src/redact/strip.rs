//! Invisible characters: terminal escapes, controls, bidi and zero-width characters.

use std::borrow::Cow;

use super::joins;

/// The text without invisible characters. Line feeds and tabs are kept; other line ends become line
/// feeds.
///
/// ```
/// use faultwire_contract::strip;
///
/// assert_eq!(strip("\u{1b}[31mred\u{1b}[0m pass\u{200b}word"), "red password");
/// ```
#[must_use]
pub fn strip(text: &str) -> Cow<'_, str> {
    let plain = |b: u8| matches!(b, b' '..=b'~' | b'\n' | b'\t');
    if text.bytes().all(plain) || !text.chars().any(is_invisible) {
        return Cow::Borrowed(text);
    }
    // A zero-width character inside an escape must not hide it.
    let text = text.replace("\r\n", "\n").replace(ends_line, "\n");
    let joined = visible(&text);
    let mut out = String::with_capacity(joined.len());
    let mut rest = joined.as_str();
    // Where no terminator is left, none is looked for: the time stays linear.
    let tail = joined.rfind(ends_string).map_or(usize::MAX, |last| joined.len() - last);
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '\u{1b}' => rest = after_escape(rest, tail),
            '\u{9b}' => rest = after_control_sequence(rest),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => {
                rest = after_string(rest, tail);
            }
            c if is_control(c) => {}
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

fn ends_line(c: char) -> bool {
    matches!(c, '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn ends_string(c: char) -> bool {
    matches!(c, '\u{7}' | '\u{1b}' | '\u{9c}')
}

/// What begins or ends an escape.
fn steers(c: char) -> bool {
    matches!(c, '\u{7}' | '\u{1b}' | '\u{90}' | '\u{98}' | '\u{9b}'..='\u{9f}')
}

/// The text without hidden characters, but for those that hold a visible one together.
fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (i, c) in text.char_indices() {
        if !is_invisible(c) || steers(c) || joins::stays(&out, c, &text[i + c.len_utf8()..]) {
            out.push(c);
        }
    }
    out
}

fn is_control(c: char) -> bool {
    matches!(c, '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}') && c != '\n' && c != '\t'
}

pub(super) fn is_invisible(c: char) -> bool {
    is_control(c) || HIDDEN.iter().any(|(from, to)| (*from..=*to).contains(&c))
}

/// Characters without width, or that control the direction of text.
const HIDDEN: [(char, char); 16] = [
    ('\u{ad}', '\u{ad}'),       // soft hyphen
    ('\u{34f}', '\u{34f}'),     // combining grapheme joiner
    ('\u{61c}', '\u{61c}'),     // Arabic letter mark
    ('\u{115f}', '\u{1160}'),   // Hangul fillers
    ('\u{17b4}', '\u{17b5}'),   // Khmer inherent vowels
    ('\u{180b}', '\u{180f}'),   // Mongolian separators
    ('\u{200b}', '\u{200f}'),   // zero-width, direction marks
    ('\u{2028}', '\u{202e}'),   // line separators, direction embeddings
    ('\u{2060}', '\u{206f}'),   // word joiner, invisible operators, direction isolates
    ('\u{3164}', '\u{3164}'),   // Hangul filler
    ('\u{fe00}', '\u{fe0f}'),   // variation selectors
    ('\u{feff}', '\u{feff}'),   // byte order mark
    ('\u{ffa0}', '\u{ffa0}'),   // half-width Hangul filler
    ('\u{fff0}', '\u{fffb}'),   // interlinear annotation
    ('\u{1d173}', '\u{1d17a}'), // musical formatting
    ('\u{e0000}', '\u{e0fff}'), // tags, variation selectors
];

/// What follows ESC: a control sequence, a string, or a short escape.
fn after_escape(rest: &str, tail: usize) -> &str {
    match rest.chars().next() {
        Some('[') => after_control_sequence(&rest[1..]),
        Some(']' | 'P' | 'X' | '^' | '_') => after_string(&rest[1..], tail),
        Some(' '..='/') => {
            let end = rest.trim_start_matches(|c| matches!(c, ' '..='/'));
            skip_one(end, |c| matches!(c, '0'..='~'))
        }
        _ => skip_one(rest, |c| matches!(c, '0'..='~')),
    }
}

fn after_control_sequence(rest: &str) -> &str {
    let rest = rest.trim_start_matches(|c| matches!(c, ' '..='?'));
    skip_one(rest, |c| matches!(c, '@'..='~'))
}

/// A string ends with BEL or ST. Of an unterminated one, only the introducer is removed.
fn after_string(rest: &str, tail: usize) -> &str {
    if rest.len() < tail {
        return rest;
    }
    let end = rest.char_indices().find(|(_, c)| matches!(c, '\u{7}' | '\u{1b}' | '\u{9c}'));
    match end {
        Some((i, '\u{1b}')) => skip_one(&rest[i + 1..], |c| c == '\\'),
        Some((i, c)) => &rest[i + c.len_utf8()..],
        None => rest,
    }
}

fn skip_one(rest: &str, wanted: impl Fn(char) -> bool) -> &str {
    match rest.chars().next() {
        Some(c) if wanted(c) => &rest[c.len_utf8()..],
        _ => rest,
    }
}
