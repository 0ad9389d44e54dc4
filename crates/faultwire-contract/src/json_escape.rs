//! Writes text as JSON strings. A failure is written while its client waits, and most of its text
//! needs no escapes, so many bytes are checked at a time.

/// Appends the text as a JSON string, as `serde_json` writes it.
///
/// ```
/// let mut json = Vec::new();
/// faultwire_contract::quote("say hello\n", &mut json);
/// assert_eq!(json, br#""say hello\n""#);
/// ```
pub fn quote(text: &str, out: &mut Vec<u8>) {
    if !is_plain(text.as_bytes()) {
        // A string is always valid JSON, and writing to memory does not fail.
        let _ = serde_json::to_writer(out, text);
        return;
    }
    out.reserve(text.len() + 2);
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

/// Whether the text needs no escapes. Most texts are short, so the end is not checked byte by byte:
/// the last stride overlaps the one before.
pub(crate) fn is_plain(text: &[u8]) -> bool {
    if let Some(last) = text.last_chunk::<16>() {
        let (strides, _) = text.as_chunks::<16>();
        return !strides.iter().any(any_special) && !any_special(last);
    }
    if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        return !has_special(u64::from_ne_bytes(*first)) && !has_special(u64::from_ne_bytes(*last));
    }
    let mut word = [b' '; 8];
    for (place, byte) in word.iter_mut().zip(text) {
        *place = *byte;
    }
    !has_special(u64::from_ne_bytes(word))
}

/// Without a branch, so that the compiler looks at all of them at once.
fn any_special(stride: &[u8; 16]) -> bool {
    let special = |b: &u8| *b < b' ' || *b == b'"' || *b == b'\\';
    stride.iter().fold(false, |found, b| found | special(b))
}

/// The same for eight bytes in a register.
fn has_special(word: u64) -> bool {
    special(word) != 0
}

/// The position of the first of eight bytes that needs an escape in a JSON string.
pub(crate) fn first_special(word: [u8; 8]) -> Option<usize> {
    let found = special(u64::from_le_bytes(word));
    (found != 0).then(|| found.trailing_zeros() as usize / 8)
}

/// Not zero if any of eight bytes is special: taking `n` from a byte that is less sets its high
/// bit. That borrows from the byte above, so of the bits that are set only the lowest is sure.
fn special(word: u64) -> u64 {
    const EACH: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = EACH << 7;
    let less = |word: u64, than: u8| word.wrapping_sub(EACH * u64::from(than)) & !word;
    let is = |byte: u8| less(word ^ (EACH * u64::from(byte)), 1);
    (less(word, b' ') | is(b'"') | is(b'\\')) & HIGH
}

/// Appends JSON as the inside of a JSON text.
pub(crate) fn escape(json: &[u8], out: &mut Vec<u8>) {
    if let [b'"', inside @ .., b'"'] = json
        && is_plain(inside)
    {
        out.reserve(inside.len() + 4);
        out.extend_from_slice(br#"\""#);
        out.extend_from_slice(inside);
        out.extend_from_slice(br#"\""#);
    } else if is_plain(json) {
        out.extend_from_slice(json);
    } else {
        let from = out.len();
        let _ = serde_json::to_writer(&mut *out, &String::from_utf8_lossy(json));
        out.remove(from);
        out.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_what_serde_json_writes() {
        let quoted = |text: &str| {
            let mut out = Vec::new();
            quote(text, &mut out);
            String::from_utf8(out).unwrap()
        };
        for c in (0_u32..0x180).chain([0x2028, 0x1_f98a]).filter_map(char::from_u32) {
            for n in (0..20).chain([31, 32, 33, 41, 63, 70]) {
                let text = format!("{}{c}{}", "x".repeat(n), "é".repeat(n % 5));
                assert_eq!(quoted(&text), serde_json::to_string(&text).unwrap());
            }
        }
        assert_eq!(quoted(""), "\"\"");
    }

    #[test]
    fn json_in_a_text_is_the_same_json() {
        for json in [
            r#""""#,
            "12",
            "null",
            r#""word""#,
            r#""a\nb""#,
            r#"{"a":["\\","\""]}"#,
            "[\n]",
            r#"""#,
            r#""no ASCII at all: ééé""#,
            r#""long enough for two strides, and plain""#,
        ] {
            let mut text = b"\"".to_vec();
            escape(json.as_bytes(), &mut text);
            text.push(b'"');
            assert_eq!(text, serde_json::to_vec(json).unwrap());
        }
    }
}
