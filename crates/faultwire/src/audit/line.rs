//! The head that every line begins with: version, place, time, log, the hash of the line before.

use crate::audit::hash::Hash;

/// The version that this build writes and reads.
pub const VERSION: u64 = 1;

/// No line of a log is longer, its newline included.
pub const LONGEST_LINE: usize = 1024 * 1024;

/// How many hexadecimal digits name a log.
pub const LOG_ID: usize = 32;

/// The members that stand first in every line, in this order and without blanks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head<'a> {
    /// The line's number in the log, from 0.
    pub seq: u64,
    /// When it was written.
    pub ts: &'a str,
    /// The log it belongs to.
    pub log: &'a str,
    /// The hash of the line before; zeros for the first.
    pub prev: Hash,
    /// How many lines were on disk when this one was written. A crash can only damage lines after
    /// these; other damage is not from a crash.
    pub synced: u64,
    /// What the line is.
    pub kind: &'a str,
}

/// Why a line has no head.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadHead {
    /// It is of another format.
    #[error("not a record: it does not begin with {expected}")]
    Shape {
        /// The bytes that were expected.
        expected: &'static str,
    },
    /// It is of another version.
    #[error("a record of version {0}, but this program reads version {VERSION}; use a newer one")]
    Version(u64),
}

impl<'a> Head<'a> {
    /// Writes the head up to `type`; the rest of the record follows, and begins with that.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"v\":1,\"seq\":");
        number(self.seq, out);
        out.extend_from_slice(b",\"ts\":\"");
        out.extend_from_slice(self.ts.as_bytes());
        out.extend_from_slice(b"\",\"log\":\"");
        out.extend_from_slice(self.log.as_bytes());
        out.extend_from_slice(b"\",\"prev\":\"");
        out.extend_from_slice(&self.prev.hex());
        out.extend_from_slice(b"\",\"synced\":");
        number(self.synced, out);
        out.push(b',');
    }

    /// Reads the head of a line, and returns the bytes after it.
    pub fn read(line: &'a [u8]) -> Result<(Self, &'a [u8]), BadHead> {
        let mut rest = Rest(line);
        rest.literal("{\"v\":")?;
        match rest.number("\"v\"")? {
            VERSION => {}
            other => return Err(BadHead::Version(other)),
        }
        rest.literal(",\"seq\":")?;
        let seq = rest.number("\"seq\"")?;
        rest.literal(",\"ts\":\"")?;
        let ts = rest.text(MOMENT.len(), is_moment, "\"ts\"")?;
        rest.literal("\",\"log\":\"")?;
        let log = rest.text(LOG_ID, is_hex, "\"log\"")?;
        rest.literal("\",\"prev\":\"")?;
        let prev = rest.take(64).and_then(Hash::from_hex);
        let prev = prev.ok_or(BadHead::Shape { expected: "\"prev\"" })?;
        rest.literal("\",\"synced\":")?;
        let synced = rest.number("\"synced\"")?;
        rest.literal(",")?;
        let body = rest.0;
        rest.literal("\"type\":\"")?;
        let end = rest.0.iter().position(|b| *b == b'"').unwrap_or(0);
        let kind = rest.text(end, is_word, "\"type\"")?;
        Ok((Self { seq, ts, log, prev, synced, kind }, body))
    }
}

/// The form of a moment: a digit wherever it has one.
const MOMENT: &[u8] = b"0000-00-00T00:00:00.000Z";

fn is_moment(text: &[u8]) -> bool {
    let same = |(b, form): (&u8, &u8)| if *form == b'0' { b.is_ascii_digit() } else { b == form };
    text.iter().zip(MOMENT).all(same)
}

fn is_hex(text: &[u8]) -> bool {
    text.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_word(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|b| matches!(b, b'a'..=b'z' | b'_'))
}

/// Writes a whole number.
pub(crate) fn number(n: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut from = digits.len();
    let mut left = n;
    loop {
        from -= 1;
        digits[from] = b'0' + u8::try_from(left % 10).unwrap_or(0);
        left /= 10;
        if left == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[from..]);
}

struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn literal(&mut self, expected: &'static str) -> Result<(), BadHead> {
        self.0 = self.0.strip_prefix(expected.as_bytes()).ok_or(BadHead::Shape { expected })?;
        Ok(())
    }

    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }

    /// Text of this length and form, in which nothing has to be escaped.
    fn text(
        &mut self,
        n: usize,
        form: fn(&[u8]) -> bool,
        expected: &'static str,
    ) -> Result<&'a str, BadHead> {
        let text = self.take(n).filter(|text| form(text));
        text.and_then(|text| str::from_utf8(text).ok()).ok_or(BadHead::Shape { expected })
    }

    /// A whole number as JSON has it: no sign, no leading zero.
    fn number(&mut self, what: &'static str) -> Result<u64, BadHead> {
        let end = self.0.iter().position(|b| !b.is_ascii_digit()).unwrap_or(self.0.len());
        let (digits, rest) = self.0.split_at(end);
        let canonical = digits.len() == 1 || !digits.starts_with(b"0");
        let text = str::from_utf8(digits).ok().filter(|_| canonical);
        let number = text.and_then(|d| d.parse().ok()).ok_or(BadHead::Shape { expected: what })?;
        self.0 = rest;
        Ok(number)
    }
}
