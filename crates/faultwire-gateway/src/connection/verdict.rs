//! What becomes of a line, for the one who has read it.

use serde_json::value::RawValue;

use crate::batch;
use crate::call::Comparison;

/// What becomes of a line.
pub(crate) enum Verdict {
    /// It goes on, its own bytes.
    Pass,
    /// It goes no further.
    Drop,
    /// This goes on in its place.
    Instead(Vec<u8>),
    /// It may be the beginning of a message.
    Unfinished,
    /// This has to be made before the line is looked at again.
    Later(Comparison),
}

/// What becomes of a batch, given what becomes of each message: it passes as it is if all do,
/// else with those that do. For who does not speak in batches, each message is a line of its own.
pub(crate) fn of_batch(
    line: &[u8],
    members: &[&RawValue],
    as_list: bool,
    mut judge: impl FnMut(&[u8]) -> Verdict,
) -> Verdict {
    let (mut passed, mut beside) = (Vec::new(), Vec::new());
    for member in members {
        let alone = batch::alone(member);
        match judge(alone.as_bytes()) {
            Verdict::Pass => passed.push(alone),
            Verdict::Instead(other) => beside.extend_from_slice(&other),
            Verdict::Drop | Verdict::Unfinished | Verdict::Later(_) => {}
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
