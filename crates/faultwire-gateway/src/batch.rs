//! Batches, which one version of the protocol has: several messages in one line.

use serde_json::value::RawValue;

use crate::link::Verdict;

/// The messages of a batch; none if it is no list, or an empty one.
pub(crate) fn members(line: &[u8]) -> Option<Vec<&RawValue>> {
    let text = std::str::from_utf8(line).ok()?;
    serde_json::from_str::<Vec<&RawValue>>(text).ok().filter(|members| !members.is_empty())
}

/// Whether it is the beginning of a list that may go on in the next line.
pub(crate) fn is_cut_off(line: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(line).is_err_and(|e| e.is_eof())
}

/// What becomes of a batch, given what becomes of each message: it passes as it is if all do,
/// else with those that do. For who does not speak in batches, each message is a line of its own.
pub(crate) fn judged(
    line: &[u8],
    members: &[&RawValue],
    as_list: bool,
    mut judge: impl FnMut(&[u8]) -> Verdict,
) -> Verdict {
    let (mut passed, mut beside) = (Vec::new(), Vec::new());
    for member in members {
        let mut alone = member.get().replace(['\n', '\r'], " ");
        alone.push('\n');
        match judge(alone.as_bytes()) {
            Verdict::Pass => passed.push(alone),
            Verdict::Instead(other) => beside.extend_from_slice(&other),
            Verdict::Drop | Verdict::Unfinished => {}
        }
    }
    let one_line = !line.trim_ascii_end().contains(&b'\n');
    if as_list && passed.len() == members.len() && one_line {
        return Verdict::Pass;
    }
    let mut instead = match (as_list, passed.is_empty()) {
        (_, true) => String::new(),
        (true, _) => format!("[{}]\n", passed.join(",").replace('\n', "")),
        (false, _) => passed.concat(),
    }
    .into_bytes();
    instead.append(&mut beside);
    if instead.is_empty() { Verdict::Drop } else { Verdict::Instead(instead) }
}
