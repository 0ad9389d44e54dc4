//! Patterns of schemas are those of ECMA-262; this writes them in the syntax of the regex crates,
//! in one pass. What has the same meaning in both is not changed.

use std::borrow::Cow;
use std::iter::Peekable;
use std::str::Chars;

const DIGITS: &str = "0-9";
const WORD: &str = "A-Za-z0-9_";
const SPACE: &str =
    r"\t-\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}";

/// The same pattern for the regex crates. What they cannot express they refuse.
pub(super) fn translated(pattern: &str) -> Cow<'_, str> {
    if !pattern.contains(['\\', '[']) {
        return Cow::Borrowed(pattern);
    }
    let mut out = String::with_capacity(pattern.len() * 2);
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => outside_class(chars.next(), &mut out),
            '[' => class(&mut chars, &mut out),
            _ => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// An escape outside of classes. Word boundaries are those of ASCII there.
fn outside_class(escaped: Option<char>, out: &mut String) {
    match escaped {
        Some('b') => out.push_str(r"(?-u:\b)"),
        Some('B') => out.push_str(r"(?-u:\B)"),
        Some('/') => out.push('/'),
        Some(c) => match perl(c) {
            Some(set) if c.is_ascii_uppercase() => out.extend(["[^", set, "]"]),
            Some(set) => out.extend(["[", set, "]"]),
            None => out.extend(['\\', c]),
        },
        None => out.push('\\'),
    }
}

/// A class, from behind its bracket.
fn class(chars: &mut Peekable<Chars<'_>>, out: &mut String) {
    let negated = chars.next_if_eq(&'^').is_some();
    // An empty class matches nothing, or anything; in the other syntax it would not be closed.
    if chars.next_if_eq(&']').is_some() {
        let anything = if negated { r"[\x{0}-\x{10ffff}]" } else { r"[^\x{0}-\x{10ffff}]" };
        return out.push_str(anything);
    }
    out.push_str(if negated { "[^" } else { "[" });
    while let Some(c) = chars.next() {
        match c {
            ']' => return out.push(']'),
            '\\' => match chars.next() {
                Some('b') => out.push_str(r"\x08"),
                Some('/') => out.push('/'),
                Some(c) => in_class(c, chars, out),
                None => out.push('\\'),
            },
            // Classes in classes, and sets of them, are written with these.
            '[' | '&' | '~' => out.extend(['\\', c]),
            '-' if out.ends_with('-') || chars.peek() == Some(&'-') => out.push_str(r"\-"),
            _ => out.push(c),
        }
    }
}

fn in_class(c: char, chars: &mut Peekable<Chars<'_>>, out: &mut String) {
    let Some(set) = perl(c) else { return out.extend(['\\', c]) };
    if c.is_ascii_uppercase() {
        out.extend(["[^", set, "]"]);
    } else {
        out.push_str(set);
    }
    // No range begins with a set.
    if chars.next_if_eq(&'-').is_some() {
        out.push_str(r"\-");
    }
}

fn perl(c: char) -> Option<&'static str> {
    match c {
        'd' | 'D' => Some(DIGITS),
        'w' | 'W' => Some(WORD),
        's' | 'S' => Some(SPACE),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, expected: &str) {
        assert_eq!(translated(pattern), expected, "{pattern}");
    }

    #[test]
    fn x7_patterns_are_translated_in_one_pass() {
        check("^abc$", "^abc$");
        check(r"^\d+\.\w$", r"^[0-9]+\.[A-Za-z0-9_]$");
        check(r"\D", "[^0-9]");
        check(r"[\w.-]", "[A-Za-z0-9_.-]");
        check(r"[\w-.]", r"[A-Za-z0-9_\-.]");
        check(r"[^\W\d]", "[^[^A-Za-z0-9_]0-9]");
        check(r"[[&&--~]", r"[\[\&\&\-\-\~]");
        check(r"^\/a\b", r"^/a(?-u:\b)");
        check("a[]b[^]", r"a[^\x{0}-\x{10ffff}]b[\x{0}-\x{10ffff}]");
        check(r"[\b]", r"[\x08]");
        check("\\", "\\");
        check("[", "[");
    }
}
