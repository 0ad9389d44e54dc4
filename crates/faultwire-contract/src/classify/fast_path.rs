//! The usual line, read in one go: every request and every reply comes by here.
//!
//! A name with an escape in it, a result that is no object, an unusual depth, and whatever
//! is wrong, are left to a closer look. What is taken here is read as it would be read there.

use super::names::Names;
use super::peek::{Found, Judged, Peek, SHALLOW, Scanned, Seen, TOP, Top};
use crate::json_escape::first_special;
use crate::protocol::{BLOCK, Object, PARAMS, RESULT};

/// Deeper values are looked at more closely.
const DEEPEST: u32 = 32;

// A block stands in a list, in a result, in the message.
const _: () = assert!((DEEPEST as usize) + 4 < SHALLOW);

/// The members of a message that matter; none if it needs a closer look.
pub(super) fn top(text: &str) -> Option<Top<'_>> {
    let mut scan = Scan { text, at: 0, clear: true };
    let mut top = Top::default();
    let mut version = None;
    let (mut seen, mut judged) = (Seen::default(), Judged::default());
    scan.object(|scan, name| {
        let place = match name {
            "jsonrpc" => &mut version,
            "id" => &mut top.id,
            "method" => &mut top.method,
            "params" => {
                top.twice |= top.params.replace(scan.params()?).is_some();
                return Some(());
            }
            "error" => {
                scan.clear = false;
                &mut top.error
            }
            "result" => {
                scan.clear = false;
                let found = Found::Object(scan.result()?);
                top.twice |= top.result.replace(found).is_some();
                return Some(());
            }
            other => {
                scan.clear = false;
                seen.plain(other.as_bytes(), &TOP, &mut judged)?;
                return scan.skip(DEEPEST);
            }
        };
        top.twice |= place.replace(scan.value()?).is_some();
        Some(())
    })?;
    top.judge(judged);
    top.scanned = Scanned { shallow: true, clear: scan.clear };
    (scan.at == text.len()).then_some(top)
}

struct Scan<'a> {
    text: &'a str,
    at: usize,
    /// Whether two parsers find the same members, as far as was read. Only the params are looked at
    /// for that; what else a message has, and what cannot be told in passing, is not clear.
    clear: bool,
}

impl<'a> Scan<'a> {
    /// The params of a request, as they are written.
    fn params(&mut self) -> Option<&'a str> {
        self.next()?;
        let from = self.at;
        self.apart(&PARAMS, DEEPEST)?;
        self.text.get(from..self.at)
    }

    /// Skips a value, and compares the names in it with each other and with the protocol's.
    fn apart(&mut self, object: &'static Object, depth: u32) -> Option<()> {
        match self.next()? {
            b'{' => {
                let below = depth.checked_sub(1)?;
                let mut names = Names::default();
                self.object(|scan, name| {
                    let is_new = names.insert(name.as_bytes());
                    match object.inner(name) {
                        Ok(inner) if is_new => scan.apart(inner, below),
                        _ => {
                            scan.clear = false;
                            scan.skip(below)
                        }
                    }
                })
            }
            b'[' => {
                let below = depth.checked_sub(1)?;
                self.list(|scan| scan.apart(object, below))
            }
            _ => self.skip(depth),
        }
    }

    fn result(&mut self) -> Option<Peek<'a>> {
        let mut peek = Peek::default();
        let mut seen = Seen::default();
        let from = self.at;
        self.object(|scan, name| {
            seen.plain(name.as_bytes(), &RESULT, &mut peek.names)?;
            match name {
                "isError" => peek.is_error = scan.truth()?,
                "content" => {
                    peek.has_content = true;
                    scan.list(|scan| scan.block(&mut peek))?;
                }
                "structuredContent" => peek.structured = Some(scan.value()?),
                "is_error" => peek.says_error |= scan.value()? == "true",
                _ => scan.skip(DEEPEST)?,
            }
            Some(())
        })?;
        let is_bare = !peek.has_content && peek.structured.is_none();
        peek.bare = is_bare.then(|| self.text[from..self.at].trim_ascii_start());
        Some(peek)
    }

    /// A block of the content, into the peek.
    fn block(&mut self, peek: &mut Peek<'a>) -> Option<()> {
        let mut text = None;
        let mut seen = Seen::default();
        self.object(|scan, name| {
            seen.plain(name.as_bytes(), &BLOCK, &mut peek.names)?;
            match name {
                "text" => text = Some(scan.value()?),
                "error" | "isError" => peek.says_error |= scan.value()? == "true",
                _ => scan.skip(DEEPEST)?,
            }
            Some(())
        })?;
        match text.filter(|raw: &&str| raw.starts_with('"')) {
            Some(text) => peek.push_text(text),
            None => peek.other_blocks = true,
        }
        Some(())
    }

    fn truth(&mut self) -> Option<bool> {
        match self.next()? {
            b't' => self.word("true").map(|()| true),
            b'f' => self.word("false").map(|()| false),
            _ => None,
        }
    }

    /// A value, as it is written.
    fn value(&mut self) -> Option<&'a str> {
        self.next()?;
        let from = self.at;
        self.skip(DEEPEST)?;
        self.text.get(from..self.at)
    }

    fn skip(&mut self, depth: u32) -> Option<()> {
        match self.next()? {
            b'"' => {
                self.at += 1;
                self.string()
            }
            b'{' => {
                let below = depth.checked_sub(1)?;
                self.object(|scan, _| scan.skip(below))
            }
            b'[' => {
                let below = depth.checked_sub(1)?;
                self.list(|scan| scan.skip(below))
            }
            b't' => self.word("true"),
            b'f' => self.word("false"),
            b'n' => self.word("null"),
            _ => self.number(),
        }
    }

    fn object(&mut self, mut member: impl FnMut(&mut Self, &'a str) -> Option<()>) -> Option<()> {
        let mut open = self.opens(b'{', b'}')?;
        while open {
            let name = self.name()?;
            member(self, name)?;
            open = self.goes_on(b'}')?;
        }
        Some(())
    }

    fn list(&mut self, mut item: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        let mut open = self.opens(b'[', b']')?;
        while open {
            item(self)?;
            open = self.goes_on(b']')?;
        }
        Some(())
    }

    /// Whether there is anything between the brackets.
    fn opens(&mut self, open: u8, close: u8) -> Option<bool> {
        self.take(open)?;
        let empty = self.next()? == close;
        self.at += usize::from(empty);
        Some(!empty)
    }

    /// Whether a comma follows, and not the end.
    fn goes_on(&mut self, close: u8) -> Option<bool> {
        let next = self.next()?;
        self.at += 1;
        match next {
            b',' => Some(true),
            _ => (next == close).then_some(false),
        }
    }

    /// A member's name, and the colon after it. None if it is escaped.
    fn name(&mut self) -> Option<&'a str> {
        self.take(b'"')?;
        let from = self.at;
        self.at = self.special()?;
        let name = self.text.get(from..self.at)?;
        if self.byte() != Some(b'"') {
            return None;
        }
        self.at += 1;
        self.take(b':')?;
        Some(name)
    }

    /// The rest of a string, whose first quote is taken.
    fn string(&mut self) -> Option<()> {
        loop {
            self.at = self.special()?;
            match self.byte()? {
                b'"' => {
                    self.at += 1;
                    return Some(());
                }
                b'\\' => {
                    self.at += 1;
                    self.escaped()?;
                }
                _ => return None,
            }
        }
    }

    fn escaped(&mut self) -> Option<()> {
        let escape = self.byte()?;
        self.at += 1;
        match escape {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(()),
            b'u' => {
                let digits = self.text.as_bytes().get(self.at..self.at + 4)?;
                self.at += 4;
                digits.iter().all(u8::is_ascii_hexdigit).then_some(())
            }
            _ => None,
        }
    }

    /// The first place from here on where a string ends, is escaped, or has what none may hold.
    fn special(&self) -> Option<usize> {
        let mut at = self.at;
        let bytes = self.text.as_bytes();
        while let Some(word) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
            if let Some(place) = first_special(*word) {
                return Some(at + place);
            }
            at += 8;
        }
        let is_special = |b: &u8| *b < b' ' || *b == b'"' || *b == b'\\';
        bytes.get(at..)?.iter().position(is_special).map(|place| at + place)
    }

    fn number(&mut self) -> Option<()> {
        if self.byte()? == b'-' {
            self.at += 1;
        }
        if self.byte()? == b'0' {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.byte() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.byte() {
                self.at += 1;
            }
            self.digits()?;
        }
        Some(())
    }

    fn digits(&mut self) -> Option<()> {
        let from = self.at;
        while self.byte().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > from).then_some(())
    }

    fn word(&mut self, word: &str) -> Option<()> {
        self.text.as_bytes().get(self.at..)?.strip_prefix(word.as_bytes())?;
        self.at += word.len();
        Some(())
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.next()? == byte).then(|| self.at += 1)
    }

    /// The next byte that is no blank. It is not taken.
    #[inline]
    fn next(&mut self) -> Option<u8> {
        match self.byte()? {
            byte if byte > b' ' => Some(byte),
            _ => self.after_blanks(),
        }
    }

    #[cold]
    fn after_blanks(&mut self) -> Option<u8> {
        while let b' ' | b'\n' | b'\r' | b'\t' = self.byte()? {
            self.at += 1;
        }
        self.byte()
    }

    #[inline]
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}
