//! A text as its reader would see it: with escapes, percent signs, entities and letters of other
//! widths decoded, and with the position of every byte in the original, so that findings can be
//! replaced there.

use std::borrow::Cow;

use super::fold;

/// Bytes to search, and the position of each in the text.
pub(crate) struct View<'t> {
    pub bytes: Cow<'t, [u8]>,
    /// One entry for each byte and one for the end; empty when the view is the text itself.
    at: Vec<u32>,
}

impl<'t> View<'t> {
    /// The text itself.
    pub fn plain(text: &'t str) -> Self {
        Self { bytes: Cow::Borrowed(text.as_bytes()), at: Vec::new() }
    }

    /// The text with everything undone; `None` when there is nothing to undo.
    pub fn decoded(text: &str) -> Option<View<'static>> {
        let bytes = text.as_bytes();
        if memchr::memchr3(b'\\', b'%', b'&', bytes).is_none() && text.is_ascii() {
            return None;
        }
        let mut decoder = Decoder { text, out: Vec::with_capacity(text.len()), at: Vec::new() };
        if !decoder.run() {
            return None;
        }
        Some(View { bytes: Cow::Owned(decoder.out), at: decoder.at })
    }

    /// The range in the text for a range of the view.
    pub fn source(&self, from: usize, mut to: usize) -> (usize, usize) {
        if self.at.is_empty() {
            return (from, to);
        }
        // One escape may stand for several bytes: it is taken whole.
        while to > from && to + 1 < self.at.len() && self.at[to] == self.at[to - 1] {
            to += 1;
        }
        (self.at[from] as usize, self.at[to] as usize)
    }
}

struct Decoder<'t> {
    text: &'t str,
    out: Vec<u8>,
    at: Vec<u32>,
}

impl Decoder<'_> {
    /// Whether anything was undone.
    fn run(&mut self) -> bool {
        let bytes = self.text.as_bytes();
        let mut i = 0;
        let mut changed = false;
        while i < bytes.len() {
            let (length, decoded) = match bytes[i] {
                b'\\' => backslash(&bytes[i..]),
                b'%' => percent(&bytes[i..]),
                b'&' => entity(&bytes[i..]),
                b if b.is_ascii() => (1, Decoded::Same),
                _ => self.letter(i),
            };
            self.put(i, length, &decoded);
            changed |= !matches!(decoded, Decoded::Same);
            i += length;
        }
        self.at.push(place(bytes.len()));
        changed
    }

    fn letter(&self, i: usize) -> (usize, Decoded) {
        let Some(c) = self.text[i..].chars().next() else { return (1, Decoded::Same) };
        let length = c.len_utf8();
        let bytes = self.text.as_bytes();
        let is_letter = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphabetic);
        let in_latin = is_letter(i.checked_sub(1).and_then(|i| bytes.get(i)))
            || is_letter(bytes.get(i + length));
        if fold::is_mark(c) {
            return (length, Decoded::Nothing);
        }
        (length, fold::letter(c, in_latin).map_or(Decoded::Same, Decoded::Char))
    }

    fn put(&mut self, i: usize, length: usize, decoded: &Decoded) {
        let mut buffer = [0; 4];
        match decoded {
            Decoded::Same => {
                self.out.extend_from_slice(&self.text.as_bytes()[i..i + length]);
                self.at.extend((i..i + length).map(place));
                return;
            }
            Decoded::Nothing => return,
            Decoded::Byte(byte) => self.out.push(*byte),
            Decoded::Char(c) => self.out.extend_from_slice(c.encode_utf8(&mut buffer).as_bytes()),
        }
        self.at.resize(self.out.len(), place(i));
    }
}

/// The meaning of an escape.
enum Decoded {
    /// It is not an escape.
    Same,
    /// A character that is not seen.
    Nothing,
    Byte(u8),
    Char(char),
}

impl Decoded {
    fn of(c: char) -> Self {
        match c {
            '\r' => Self::Byte(b'\n'),
            '\n' | '\t' => Self::Char(c),
            c if super::strip::is_invisible(c) || fold::is_mark(c) => Self::Nothing,
            c => Self::Char(fold::letter(c, false).unwrap_or(c)),
        }
    }
}

/// Longer texts are never processed as a whole, so the position always fits.
fn place(i: usize) -> u32 {
    u32::try_from(i).unwrap_or(u32::MAX)
}

/// `\n`, `\t`, `\u0077`, `\u{77}`, `\x77`, `\167`, with any number of backslashes.
fn backslash(bytes: &[u8]) -> (usize, Decoded) {
    let run = bytes.iter().take_while(|b| **b == b'\\').count();
    let rest = &bytes[run..];
    let of = |length: usize, c: u32| char::from_u32(c).map(|c| (run + length, Decoded::of(c)));
    let found = match rest {
        [b'n' | b'r', ..] => of(1, 10),
        [b't', ..] => of(1, 9),
        [b'u', b'{', ..] => braced(&rest[2..]).and_then(|(n, c)| of(n + 2, c)),
        [b'u', ..] => number(rest.get(1..5), 16).and_then(|c| of(5, c)),
        [b'x', ..] => number(rest.get(1..3), 16).and_then(|c| of(3, c)),
        [b'0'..=b'3', ..] => number(rest.get(..3), 8).and_then(|c| of(3, c)),
        _ => None,
    };
    found.unwrap_or((run, Decoded::Same))
}

fn braced(bytes: &[u8]) -> Option<(usize, u32)> {
    let end = bytes.iter().take(8).position(|b| *b == b'}')?;
    Some((end + 1, number(bytes.get(..end), 16)?))
}

/// `%77`, and `%2577`, which was encoded more than once.
fn percent(bytes: &[u8]) -> (usize, Decoded) {
    let mut i = 1;
    while bytes.get(i..i + 2) == Some(b"25") && number(bytes.get(i + 2..i + 4), 16).is_some() {
        i += 2;
    }
    match number(bytes.get(i..i + 2), 16).and_then(|n| u8::try_from(n).ok()) {
        Some(b'\r' | b'\n') => (i + 2, Decoded::Byte(b'\n')),
        Some(byte @ (b'\t' | b' '..=b'~' | 0x80..)) => (i + 2, Decoded::Byte(byte)),
        _ => (1, Decoded::Same),
    }
}

/// `&#119;`, `&#x77;`, `&equals;`, and `&amp;#119;`, which was encoded more than once.
fn entity(bytes: &[u8]) -> (usize, Decoded) {
    let mut i = 1;
    while bytes[i..].starts_with(b"amp;") {
        i += 4;
    }
    let rest = &bytes[i..bytes.len().min(i + 12)];
    let Some(end) = rest.iter().position(|b| *b == b';') else {
        return if i > 1 { (i, Decoded::Byte(b'&')) } else { (1, Decoded::Same) };
    };
    let c = match &rest[..end] {
        [b'#', b'x' | b'X', hex @ ..] => number(Some(hex), 16).and_then(char::from_u32),
        [b'#', digits @ ..] => number(Some(digits), 10).and_then(char::from_u32),
        name => fold::ENTITIES.iter().find(|(n, _)| n.as_bytes() == name).map(|(_, c)| *c),
    };
    match c {
        Some(c) => (i + end + 1, Decoded::of(c)),
        None if i > 1 => (i, Decoded::Byte(b'&')),
        None => (1, Decoded::Same),
    }
}

fn number(digits: Option<&[u8]>, radix: u32) -> Option<u32> {
    let digits = digits.filter(|d| d.iter().all(u8::is_ascii_alphanumeric))?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()
}
