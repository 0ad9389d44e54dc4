//! Invisible characters: terminal escapes, controls, bidi and zero-width characters.

use std::borrow::Cow;

/// The text without anything that a person would not see. Line feed and tab stay, a carriage
/// return before a line feed goes.
///
/// ```
/// use faultwire_contract::strip;
///
/// assert_eq!(strip("\u{1b}[31mred\u{1b}[0m pass\u{200b}word"), "red password");
/// ```
#[must_use]
pub fn strip(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_invisible) {
        return Cow::Borrowed(text);
    }
    // A zero-width character inside an escape must not keep it from being seen as one.
    let joined: String = text.chars().filter(|c| !is_invisible(*c) || steers(*c)).collect();
    let mut out = String::with_capacity(joined.len());
    let mut rest = joined.as_str();
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '\u{1b}' => rest = after_escape(rest),
            '\u{9b}' => rest = after_control_sequence(rest),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => rest = after_string(rest),
            c if is_invisible(c) => {}
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// What begins or ends an escape.
fn steers(c: char) -> bool {
    matches!(c, '\u{7}' | '\u{1b}' | '\u{90}' | '\u{98}' | '\u{9b}'..='\u{9f}')
}

fn is_invisible(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' => true,
        // Soft hyphen, combining grapheme joiner, Arabic letter mark, Hangul and Khmer fillers.
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' => true,
        // Mongolian separators, zero-width, bidi marks and embeddings, separators of lines.
        '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' => true,
        // Word joiner, invisible operators, bidi isolates, deprecated controls.
        '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' => true,
        '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}

/// What follows ESC: a control sequence, a string, or a short escape.
fn after_escape(rest: &str) -> &str {
    match rest.chars().next() {
        Some('[') => after_control_sequence(&rest[1..]),
        Some(']' | 'P' | 'X' | '^' | '_') => after_string(&rest[1..]),
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

/// A string ends with BEL or ST. One that never ends is not swallowed: only its introducer goes.
fn after_string(rest: &str) -> &str {
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
