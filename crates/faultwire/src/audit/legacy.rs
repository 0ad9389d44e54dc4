//! The older line format, which can be checked but not written: members `timestamp`, `sessionId`,
//! `type`, `tool`, `diagnostic`, `prevHash`, `hash`, each line linked to the one before by its
//! `prevHash`.

use std::fmt;
use std::io::{self, Read};

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::audit::hash::Hash;
use crate::audit::line::LONGEST_LINE;
use crate::audit::lines::{Lines, Shape};

/// What the first line names as the hash before it.
pub const GENESIS: &str = "GENESIS";

/// A valid log of the older format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LegacyVerified {
    /// How many lines there are.
    pub records: u64,
    /// How many bytes.
    pub bytes: u64,
}

/// The first line that is wrong, and why.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct LegacyFinding {
    /// The line, from 1.
    pub line: u64,
    /// What is wrong.
    pub why: LegacyWrong,
}

/// What can be wrong with a line.
#[derive(Debug, thiserror::Error)]
pub enum LegacyWrong {
    /// The line is not a JSON object.
    #[error("not a JSON object: {0}")]
    Json(String),
    /// A member is missing or no string.
    #[error("the string {0:?} is missing")]
    Member(&'static str),
    /// It does not follow the line before it.
    #[error("its prevHash is {found:?}, but the hash of the line before is {expected:?}")]
    Link {
        /// The hash of the line before.
        expected: String,
        /// What it names.
        found: String,
    },
    /// Its members are not those that were hashed.
    #[error("its hash is {found}, but the hash of its members is {expected}")]
    Hash {
        /// What the members hash to.
        expected: Hash,
        /// What it claims.
        found: String,
    },
    /// It does not end, or has no end within reason.
    #[error("the line is incomplete or longer than {LONGEST_LINE} bytes")]
    Unfinished,
    /// It cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Whether a first line is one of the older format.
#[must_use]
pub fn is_legacy(line: &[u8]) -> bool {
    let members = serde_json::from_slice::<Members<'_>>(line);
    members.is_ok_and(|m| m.text("prevHash").is_some() && m.text("hash").is_some())
}

/// Verifies a file of the older format. `progress` gets the number of bytes that were read.
pub fn verify(
    file: impl Read,
    progress: &mut dyn FnMut(u64),
) -> Result<LegacyVerified, LegacyFinding> {
    let mut lines = Lines::new(file);
    let mut expected = GENESIS.to_owned();
    let mut verified = LegacyVerified::default();
    loop {
        let at = verified.records + 1;
        let wrong = |why| LegacyFinding { line: at, why };
        let line = lines.next_line().map_err(|e| wrong(e.into()))?;
        let Some(line) = line else { return Ok(verified) };
        // The older writer may have been stopped right after the last brace.
        let whole = line.shape == Shape::Whole || line.raw.ends_with(b"}");
        if line.shape == Shape::TooLong || !whole {
            return Err(wrong(LegacyWrong::Unfinished));
        }
        expected = check(line.raw, &expected).map_err(wrong)?;
        verified.records += 1;
        let read = line.raw.len() as u64 + 1;
        verified.bytes += read;
        progress(read);
    }
}

/// The hash of the line, if it is correct and the line follows the one before.
fn check(raw: &[u8], expected: &str) -> Result<String, LegacyWrong> {
    let members: Members<'_> =
        serde_json::from_slice(raw).map_err(|e| LegacyWrong::Json(e.to_string()))?;
    let prev = members.text("prevHash").ok_or(LegacyWrong::Member("prevHash"))?;
    let claimed = members.text("hash").ok_or(LegacyWrong::Member("hash"))?;
    if prev != expected {
        return Err(LegacyWrong::Link { expected: expected.to_owned(), found: prev });
    }
    let hash = Hash::of(members.without("hash").as_bytes());
    if hash.to_string() != claimed {
        return Err(LegacyWrong::Hash { expected: hash, found: claimed });
    }
    Ok(claimed)
}

/// The members of an object, in their order, with their values as they are written.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl Members<'_> {
    fn text(&self, name: &str) -> Option<String> {
        let (_, value) = self.0.iter().find(|(key, _)| key == name)?;
        serde_json::from_str(value.get()).ok()
    }

    /// The object without one member, written without blanks between members.
    fn without(&self, name: &str) -> String {
        let kept = self.0.iter().filter(|(key, _)| key != name);
        let member = |(key, value): &(String, &RawValue)| {
            format!("{}:{}", serde_json::Value::from(key.as_str()), value.get())
        };
        let members: Vec<String> = kept.map(member).collect();
        format!("{{{}}}", members.join(","))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}
