//! Text on its way to a terminal. Names, paths and messages come from outside and may hold
//! characters that steer it: C1 controls (U+009B begins a sequence as ESC does) and marks that turn
//! the direction of text. They are written as escapes.

use std::borrow::Cow;
use std::io::{self, Write};

use faultwire_contract::shorten_home;

/// The text without what steers a terminal. ESC itself stays: our own colours begin with it, and the
/// log's formatter escapes it in foreign text.
pub fn calm(text: &str) -> Cow<'_, str> {
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut calm = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if steers(c) { calm.extend(c.escape_unicode()) } else { calm.push(c) }
    }
    Cow::Owned(calm)
}

fn steers(c: char) -> bool {
    matches!(c, '\u{80}'..='\u{9f}' | '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2028}'..='\u{2029}' | '\u{2066}'..='\u{2069}' | '\u{7f}' | '\u{8}' | '\u{7}')
}

/// Stderr for log lines, each of which comes whole. Home directories in them are shortened (U2).
pub struct Stderr;

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let text = shorten_home(&text, crate::edge::home());
        io::stderr().lock().write_all(calm(&text).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().lock().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_escaped() {
        assert_eq!(calm("a\u{9b}31mb\u{202e}c\u{85}"), "a\\u{9b}31mb\\u{202e}c\\u{85}");
        assert_eq!(calm("\u{8}\u{7}\u{2066}"), "\\u{8}\\u{7}\\u{2066}");
        for plain in ["", "plain\n", "\u{1b}[31mred\u{1b}[0m", "größer 日本 👩‍👩‍👧"]
        {
            assert!(matches!(calm(plain), Cow::Borrowed(_)), "{plain}");
        }
    }
}
