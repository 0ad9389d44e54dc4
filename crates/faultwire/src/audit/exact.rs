//! JSON that every reader reads alike: integers beyond 2^53 are strings, since many readers keep
//! numbers as doubles and would change the last digits without a word.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::{CompactFormatter, Formatter};

/// The largest integer up to which a double tells all integers apart.
const LARGEST: u64 = 1 << 53;

/// Appends the value to `out`.
pub fn write<T: Serialize + ?Sized>(value: &T, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    value.serialize(&mut Serializer::with_formatter(out, Exact))
}

struct Exact;

impl Formatter for Exact {
    fn write_u64<W: Write + ?Sized>(&mut self, writer: &mut W, value: u64) -> io::Result<()> {
        match value {
            0..=LARGEST => CompactFormatter.write_u64(writer, value),
            large => write!(writer, "\"{large}\""),
        }
    }

    fn write_i64<W: Write + ?Sized>(&mut self, writer: &mut W, value: i64) -> io::Result<()> {
        match value.unsigned_abs() {
            0..=LARGEST => CompactFormatter.write_i64(writer, value),
            _ => write!(writer, "\"{value}\""),
        }
    }
}
