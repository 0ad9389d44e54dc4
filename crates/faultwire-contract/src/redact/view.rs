//! A text as its reader would see it: escaped white space, quotes and signs undone, every byte in
//! its place, so that what is found in the view is where it is in the text.

/// `None` when the text has nothing of the kind.
pub(super) fn unescaped(text: &str) -> Option<Vec<u8>> {
    let has = |needle: &[u8]| memchr::memmem::find(text.as_bytes(), needle).is_some();
    if !has(b"\\") && !has(NO_BREAK_SPACE) && !has(FULL_WIDTH) {
        return None;
    }
    let mut view = text.as_bytes().to_vec();
    let mut i = 0;
    let mut changed = false;
    while i < view.len() {
        let Some((length, sign)) = escape(&view[i..]) else {
            i += 1;
            continue;
        };
        // The sign stands last, so that what follows it follows it still.
        view[i..i + length].fill(b' ');
        view[i + length - 1] = sign;
        i += length;
        changed = true;
    }
    changed.then_some(view)
}

const NO_BREAK_SPACE: &[u8] = "\u{a0}".as_bytes();
/// The first bytes of `：` and `＝`.
const FULL_WIDTH: &[u8] = b"\xef\xbc";

/// How long an escape is, and what it stands for.
fn escape(bytes: &[u8]) -> Option<(usize, u8)> {
    match bytes {
        [b'\\', b'n' | b'r', ..] => Some((2, b'\n')),
        [b'\\', b't', ..] => Some((2, b'\t')),
        [b'\\', b'u', b'0', b'0', high, low, ..] => {
            let digit = |b: u8| char::from(b).to_digit(16).and_then(|d| u8::try_from(d).ok());
            let sign = digit(*high)? * 16 + digit(*low)?;
            sign.is_ascii_punctuation().then_some((6, sign))
        }
        [0xc2, 0xa0, ..] => Some((2, b' ')),
        [0xef, 0xbc, 0x9a, ..] => Some((3, b':')),
        [0xef, 0xbc, 0x9d, ..] => Some((3, b'=')),
        _ => None,
    }
}
