//! Identifiers of several words, read as words.

/// The names of several words that stand in a text, as words: `LDAPNoSuchObjectResult`.
pub(super) fn names_in(text: &str) -> Option<String> {
    const MOST: usize = 16;
    let is_inner = |w: &[u8]| {
        w[0] == b'_' || w[1] == b'_' || w[0].is_ascii_lowercase() && w[1].is_ascii_uppercase()
    };
    // Few texts have one.
    if !text.as_bytes().windows(2).any(is_inner) {
        return None;
    }
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_name = |word: &&str| {
        if !word.bytes().skip(1).any(|b| b == b'_' || b.is_ascii_uppercase()) {
            return false;
        }
        let humps = word.as_bytes().windows(2).filter(|w| {
            w[0].is_ascii_lowercase() && w[1].is_ascii_uppercase()
                || w[0] == b'_' && w[1].is_ascii_alphabetic()
        });
        (6..=64).contains(&word.len()) && humps.take(2).count() > 0
    };
    let names = text.split(|c: char| !is_part(c)).filter(is_name).take(MOST).map(spaced);
    let names: Vec<String> = names.collect();
    (!names.is_empty()).then(|| names.join("\n"))
}

/// `userNotFound` and `user_not_found` as words.
pub(super) fn spaced(name: &str) -> String {
    let mut words = String::with_capacity(name.len() + 8);
    let mut before = '_';
    for c in name.chars() {
        if c.is_ascii_uppercase() && before.is_ascii_lowercase() {
            words.push(' ');
        }
        words.push(if matches!(c, '_' | '-') { ' ' } else { c });
        before = c;
    }
    words
}
