//! The segments of a log in order, also while it is being written.

use std::io::{self, Read};

use serde::Deserialize;

use crate::audit::line::Head;
use crate::audit::lines::Lines;
use crate::audit::record::Before;
use crate::audit::segment::{self, LIVE};
use crate::audit::storage::Storage;

/// A segment that is open for reading.
pub struct Segment {
    /// Its number, from 1.
    pub number: u64,
    /// Its file.
    pub name: String,
    /// From the place on that was asked for.
    pub file: Box<dyn Read + Send>,
}

impl Segment {
    /// Whether it is the one that is written to.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.name == LIVE
    }
}

/// The type of a segment's first line.
pub(crate) const SEGMENT: &str = "segment";

/// What a segment's first line says.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct SegmentLine {
    pub segment: u64,
    /// It may be null, but must be there.
    #[serde(deserialize_with = "Option::deserialize")]
    pub before: Option<Before>,
}

impl SegmentLine {
    /// What the line says, if it is one.
    pub fn read(head: &Head<'_>, body: &[u8]) -> Option<Self> {
        if head.kind != SEGMENT {
            return None;
        }
        let line: Self = serde_json::from_slice(&[b"{", body].concat()).ok()?;
        // Only the first segment has no lines before it.
        ((line.segment == 1) == line.before.is_none()).then_some(line)
    }
}

/// The numbers of the existing segments, in order, the live one last. Full segments with the live
/// one's number, a later one or 0 do not belong to the log and are left out.
pub fn present(storage: &dyn Storage) -> io::Result<Vec<u64>> {
    let mut live = live_number(storage)?;
    for _ in 0..ATTEMPTS {
        let names = storage.names()?;
        let now = live_number(storage)?;
        // A segment that is closed between the two looks would be missed.
        if now != live {
            live = now;
            continue;
        }
        let mut numbers = segment::numbers(&names);
        numbers.retain(|number| *number > 0 && live.is_none_or(|live| *number < live));
        let last = numbers.last().copied().unwrap_or(0);
        if names.iter().any(|name| name == LIVE) {
            numbers.push(live.unwrap_or(last.saturating_add(1)));
        }
        return Ok(numbers);
    }
    Err(io::Error::other("the log's segments changed while they were being listed; try again"))
}

/// How often a directory is looked at again that changes meanwhile.
const ATTEMPTS: usize = 64;

/// Opens the segment with this number.
pub fn open(storage: &dyn Storage, number: u64) -> io::Result<Option<Segment>> {
    open_at(storage, number, 0)
}

/// Opens the segment with this number at a place in it. A segment that is closed meanwhile
/// changes its name, so it is looked for again. Where the live one has the number, a full one under
/// it is not the writer's.
pub fn open_at(storage: &dyn Storage, number: u64, offset: u64) -> io::Result<Option<Segment>> {
    for _ in 0..ATTEMPTS {
        let live_file = if_there(storage.read_from(LIVE, offset))?;
        let live = live_number(storage)?;
        let is_live = |file| Some(Segment { number, name: LIVE.to_owned(), file });
        match live {
            Some(live) if live == number && live_file.is_some() => {
                return Ok(live_file.and_then(is_live));
            }
            Some(live) if live <= number => return Ok(None),
            _ => {}
        }
        let full = segment::full(number);
        if let Some(file) = if_there(storage.read_from(&full, offset))? {
            return Ok(Some(Segment { number, name: full, file }));
        }
        // A first line that cannot be read is for the caller to judge.
        if live.is_none() && live_file.is_some() {
            return Ok(live_file.and_then(is_live));
        }
    }
    Ok(None)
}

pub(crate) fn live_number(storage: &dyn Storage) -> io::Result<Option<u64>> {
    let Some(file) = if_there(storage.read(LIVE))? else { return Ok(None) };
    let mut lines = Lines::new(file);
    let first = lines.next_line()?;
    let head = first.and_then(|line| Head::read(line.raw).ok());
    Ok(head.and_then(|(head, body)| SegmentLine::read(&head, body)).map(|line| line.segment))
}

fn if_there<T>(opened: io::Result<T>) -> io::Result<Option<T>> {
    match opened {
        Ok(file) => Ok(Some(file)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}
