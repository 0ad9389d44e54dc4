//! Batches, which one version of the protocol has: several messages in one line.

use serde_json::value::RawValue;

/// The messages of a batch; none if it is no list, or an empty one.
pub(crate) fn members(line: &[u8]) -> Option<Vec<&RawValue>> {
    let text = std::str::from_utf8(line).ok()?;
    serde_json::from_str::<Vec<&RawValue>>(text).ok().filter(|members| !members.is_empty())
}

/// Whether it is the beginning of a list that may go on in the next line.
pub(crate) fn is_cut_off(line: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(line).is_err_and(|e| e.is_eof())
}

/// A message of a batch, as a line of its own.
pub(crate) fn alone(member: &RawValue) -> String {
    let mut alone = member.get().replace(['\n', '\r'], " ");
    alone.push('\n');
    alone
}
