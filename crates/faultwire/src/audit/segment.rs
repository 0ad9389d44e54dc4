//! The files of a log: the live segment, full segments, and other files.

use crate::audit::hash::Hash;

/// The segment that is written to.
pub const LIVE: &str = "audit-log.jsonl";
/// The signed checkpoints.
pub const CHECKPOINTS: &str = "audit-log.checkpoints";
/// The signing key, for its owner's eyes.
pub const KEY: &str = "audit-log.key";
/// The public half of the key.
pub const PUBLIC_KEY: &str = "audit-log.pub";
/// Held by the one writer.
pub const LOCK: &str = "audit-log.lock";
/// The derived index. It may be deleted at any time.
pub const INDEX: &str = "audit-index.sqlite";

/// The name of a full segment.
#[must_use]
pub fn full(number: u64) -> String {
    format!("audit-log.{number:06}.jsonl")
}

/// The number of a full segment, if this is the name of one.
#[must_use]
pub fn number(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("audit-log.")?.strip_suffix(".jsonl")?;
    let number = digits.parse().ok()?;
    (full(number) == name).then_some(number)
}

/// Whether a file with this name has records.
#[must_use]
pub fn is_record_file(name: &str) -> bool {
    name == LIVE || number(name).is_some()
}

/// Whether only the writer of a signed log makes files with this name. A lock is left also where a
/// log of another format was refused.
#[must_use]
pub fn is_own(name: &str) -> bool {
    let named = [CHECKPOINTS, KEY, PUBLIC_KEY, INDEX].contains(&name);
    named || number(name).is_some() || name.starts_with("audit-log.torn-")
}

/// The numbers of the full segments among these names, in order.
#[must_use]
pub fn numbers(names: &[String]) -> Vec<u64> {
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| number(name)).collect();
    numbers.sort_unstable();
    numbers
}

/// Where bytes go that a crash left behind. The same bytes go to the same name, so that a
/// recovery which is itself cut short can be done again.
#[must_use]
pub fn torn(seq: u64, hash: &Hash) -> String {
    format!("audit-log.torn-{seq}-{}", &hash.to_string()[..12])
}

/// The same for a checkpoint.
#[must_use]
pub fn torn_note(hash: &Hash) -> String {
    format!("audit-log.torn-checkpoint-{}", &hash.to_string()[..12])
}
