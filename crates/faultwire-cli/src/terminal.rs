//! Text for a terminal. Names, paths and messages come from outside and may contain characters that
//! control it: C1 controls (U+009B begins a sequence as ESC does) and marks that change the
//! direction of text. They are written as escapes.

use std::borrow::Cow;

/// Escapes characters that control a terminal. ESC itself stays: Faultwire's own colours begin with
/// it, and the log's formatter escapes it in foreign text.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(calm("a\u{9b}31mb\u{202e}c\u{85}"), "a\\u{9b}31mb\\u{202e}c\\u{85}");
        assert_eq!(calm("\u{8}\u{7}\u{2066}"), "\\u{8}\\u{7}\\u{2066}");
        for plain in ["", "plain\n", "\u{1b}[31mred\u{1b}[0m", "größer 日本 👩‍👩‍👧"]
        {
            assert!(matches!(calm(plain), Cow::Borrowed(_)), "{plain}");
        }
    }
}
