//! Text as JSON. A failure is written while its client waits, and nearly all of it is text in which
//! nothing has to be escaped: that is found out many bytes at a time.

/// Appends the text as a JSON string, as `serde_json` writes it.
///
/// ```
/// let mut json = Vec::new();
/// faultwire_contract::quote("say hello\n", &mut json);
/// assert_eq!(json, br#""say hello\n""#);
/// ```
pub fn quote(text: &str, out: &mut Vec<u8>) {
    if !is_plain(text.as_bytes()) {
        // A text is always JSON, and there is always room in memory.
        let _ = serde_json::to_writer(out, text);
        return;
    }
    out.reserve(text.len() + 2);
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

/// Whether nothing in it has to be escaped. Looking at every byte of a stride, without a branch, is
/// what the compiler does many at a time.
fn is_plain(text: &[u8]) -> bool {
    let special = |b: &u8| *b < b' ' || *b == b'"' || *b == b'\\';
    let any = |bytes: &[u8]| bytes.iter().fold(false, |found, b| found | special(b));
    let (strides, rest) = text.as_chunks::<32>();
    let (words, last) = rest.as_chunks::<8>();
    !strides.iter().any(|stride| any(stride)) && !words.iter().any(|word| any(word)) && !any(last)
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
            for n in [0, 1, 7, 8, 31, 32, 33, 41, 63, 70] {
                let text = format!("{}{c}{}", "x".repeat(n), "é".repeat(n % 5));
                assert_eq!(quoted(&text), serde_json::to_string(&text).unwrap());
            }
        }
        assert_eq!(quoted(""), "\"\"");
    }
}
