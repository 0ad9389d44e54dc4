//! Examines a log before it is opened: where it ends, and whether it matches what was signed.

use std::io::{self, Read};
use std::path::PathBuf;

use serde::de::IgnoredAny;

use crate::audit::chain::{Broken, Chain};
use crate::audit::checkpoint::Checkpoints;
use crate::audit::error::OpenError;
use crate::audit::key::PublicKey;
use crate::audit::line::{BadHead, Head};
use crate::audit::lines::{Lines, Shape};
use crate::audit::segment::{self, CHECKPOINTS, LIVE};
use crate::audit::segments::{SEGMENT, SegmentLine};
use crate::audit::storage::Storage;

/// Where a log ends.
pub(crate) struct Found {
    /// The end of the chain; none if there is no log yet.
    pub chain: Option<Chain>,
    /// The number of the last segment that has a first line.
    pub segment: u64,
    /// When that segment began.
    pub born: String,
    /// Whether the live segment has its first line.
    pub live: bool,
    /// How many records precede that segment.
    pub base: u64,
    /// Where in the live file the last batch begins that was written to it.
    pub batch: u64,
    /// How many bytes of the live file are good.
    pub good: u64,
    /// Whether there are more that are not.
    pub torn: bool,
    /// What was signed.
    pub checkpoints: Checkpoints,
    /// Whether the file of checkpoints ends in a note that breaks off.
    pub torn_checkpoint: bool,
}

/// Finds the end of the log. Only the last segment is read: its first line has the tree over all
/// lines before it, and a checkpoint covers that tree.
pub(crate) fn examine(storage: &dyn Storage, key: Option<&PublicKey>) -> Result<Found, OpenError> {
    let names = storage.names().map_err(OpenError::io(storage.place(), "", "list it"))?;
    let (checkpoints, torn_checkpoint) = read_checkpoints(storage, &names)?;
    let fulls = segment::numbers(&names);
    let has_live = names.iter().any(|name| name == LIVE);
    let live =
        if has_live { scan(storage, LIVE, &checkpoints)? } else { Scan::Empty { torn: false } };
    let found = match live {
        // Two segments under one number, or full ones after the live one.
        Scan::Segment(end) if fulls.last().is_some_and(|last| *last >= end.segment) => {
            let last = fulls.last().copied().unwrap_or_default();
            return Err(OpenError::Stray(storage.place().join(segment::full(last))));
        }
        Scan::Segment(end) => Found {
            live: true,
            base: end.base,
            batch: end.batch,
            good: end.good,
            torn: end.torn,
            ..end.found(checkpoints, torn_checkpoint)
        },
        Scan::Empty { torn } => match fulls.last() {
            Some(&last) => {
                let end = scan_full(storage, last, &checkpoints)?;
                Found { torn, ..end.found(checkpoints, torn_checkpoint) }
            }
            None => Found {
                chain: None,
                segment: 0,
                born: String::new(),
                live: false,
                base: 0,
                batch: 0,
                good: 0,
                torn,
                checkpoints,
                torn_checkpoint,
            },
        },
    };
    // The older ones are for a whole verification to check.
    if let Some(key) = key {
        let path = storage.place().join(CHECKPOINTS);
        let checked = found.checkpoints.check_from(found.base, key);
        checked.map_err(|why| OpenError::Checkpoints { path, why })?;
    }
    let have = found.chain.as_ref().map_or(0, Chain::next);
    let sealed = found.checkpoints.sealed();
    if have < sealed {
        return Err(OpenError::Shrunk { path: storage.place().to_owned(), sealed, have });
    }
    Ok(found)
}

fn read_checkpoints(
    storage: &dyn Storage,
    names: &[String],
) -> Result<(Checkpoints, bool), OpenError> {
    if !names.iter().any(|name| name == CHECKPOINTS) {
        return Ok((Checkpoints::default(), false));
    }
    let mut bytes = Vec::new();
    let read = storage.read(CHECKPOINTS).and_then(|mut file| file.read_to_end(&mut bytes));
    read.map_err(OpenError::io(storage.place(), CHECKPOINTS, "read it"))?;
    let path = storage.place().join(CHECKPOINTS);
    let checkpoints =
        Checkpoints::read(bytes, None).map_err(|why| OpenError::Checkpoints { path, why })?;
    let torn = checkpoints.is_torn();
    Ok((checkpoints, torn))
}

/// What was found in a file.
enum Scan {
    /// No first line, and perhaps bytes that are not one.
    Empty {
        torn: bool,
    },
    Segment(End),
}

/// The end of a segment.
struct End {
    chain: Chain,
    segment: u64,
    born: String,
    base: u64,
    batch: u64,
    good: u64,
    torn: bool,
}

impl End {
    fn found(self, checkpoints: Checkpoints, torn_checkpoint: bool) -> Found {
        let Self { chain, segment, born, base, .. } = self;
        Found {
            chain: Some(chain),
            segment,
            born,
            live: false,
            base,
            batch: 0,
            good: 0,
            torn: false,
            checkpoints,
            torn_checkpoint,
        }
    }
}

/// A full segment was on disk before it got its name: all of it must be good.
fn scan_full(storage: &dyn Storage, number: u64, sealed: &Checkpoints) -> Result<End, OpenError> {
    let name = segment::full(number);
    let path = storage.place().join(&name);
    match scan(storage, &name, sealed)? {
        Scan::Segment(end) if !end.torn => Ok(end),
        _ => Err(OpenError::Damaged { path, line: 1, why: UNFINISHED }),
    }
}

fn scan(storage: &dyn Storage, name: &str, sealed: &Checkpoints) -> Result<Scan, OpenError> {
    let pass = Pass { storage, name, sealed };
    let mut stop = u64::MAX;
    let mut doubt = true;
    loop {
        let torn = stop != u64::MAX;
        match pass.run(stop, doubt)? {
            Run::Empty { torn } => return Ok(Scan::Empty { torn }),
            Run::Whole(end) => return Ok(Scan::Segment(End { torn, ..end })),
            Run::Torn { at, vouched } => (stop, doubt) = (at, !vouched),
        }
    }
}

/// One reading of a segment.
struct Pass<'a> {
    storage: &'a dyn Storage,
    name: &'a str,
    sealed: &'a Checkpoints,
}

enum Run {
    /// The first line is missing.
    Empty { torn: bool },
    /// All lines are good.
    Whole(End),
    /// The offset of bytes that a crash may have left.
    Torn {
        at: u64,
        /// Whether the line before it is known to be whole.
        vouched: bool,
    },
}

impl Pass<'_> {
    /// Reads the lines that begin before `stop`. The last one is looked at more closely if there
    /// is doubt about it.
    fn run(&self, stop: u64, doubt: bool) -> Result<Run, OpenError> {
        let mut lines = Lines::new(self.storage.read(self.name).map_err(self.io())?);
        let Some(mut end) = self.first_line(&mut lines)? else {
            return Ok(Run::Empty { torn: lines.offset() > 0 });
        };
        let mut last = Last::default();
        while let Some(line) = lines.next_line().map_err(self.io())? {
            if line.offset >= stop {
                break;
            }
            let taken = match line.shape {
                Shape::Whole => end.chain.take(line.raw).map(|(head, _)| head),
                Shape::Unfinished | Shape::TooLong => Err(UNFINISHED),
            };
            match taken {
                Ok(head) if head.kind == SEGMENT => {
                    let (path, line, why) = (self.path(), line.number, UNFINISHED);
                    return Err(OpenError::Damaged { path, line, why });
                }
                Ok(head) => {
                    // The first line of a batch is the first that was not on disk.
                    if head.synced == head.seq {
                        end.batch = line.offset;
                    }
                    last.keep(line.raw, line.offset);
                }
                Err(why) => {
                    // A line that names another hash shows that the one before it is bad.
                    let before = u64::from(why == Broken::Prev);
                    let bad = Bad {
                        seq: end.chain.next() - before,
                        line: line.number - before,
                        at: if before == 1 { last.offset } else { line.offset },
                        synced: Head::read(line.raw).map_or(0, |(head, _)| head.synced),
                        why,
                    };
                    return self.judge(&bad, &mut lines);
                }
            }
            end.good = lines.offset();
            self.compare(&end.chain)?;
        }
        // Each line vouches for the one before it. The last has none after it yet.
        if doubt && !last.is_whole() {
            return Ok(Run::Torn { at: last.offset, vouched: true });
        }
        Ok(Run::Whole(end))
    }

    /// The segment's first line, and the chain after it.
    fn first_line(&self, lines: &mut FileLines) -> Result<Option<End>, OpenError> {
        let Some(line) = lines.next_line().map_err(self.io())? else { return Ok(None) };
        let damaged = |why| OpenError::Damaged { path: self.path(), line: 1, why };
        let (head, body) = match (line.shape, Head::read(line.raw)) {
            (Shape::Whole, Ok(read)) => read,
            (_, Err(BadHead::Version(v))) => return Err(damaged(BadHead::Version(v).into())),
            _ if may_be_torn(line.raw) => return self.nothing_follows(lines),
            _ => return Err(OpenError::Foreign(self.path())),
        };
        if head.kind != SEGMENT {
            return Err(damaged(UNFINISHED));
        }
        let Some(SegmentLine { segment, before }) = SegmentLine::read(&head, body) else {
            return self.nothing_follows(lines);
        };
        let contradiction = Broken::Head(BadHead::Shape { expected: "what came before it" });
        let Some(mut chain) = Chain::resume(&head, before.as_ref()) else {
            return Err(damaged(contradiction));
        };
        self.compare(&chain)?;
        if before.is_some() && self.sealed.root_at(chain.next()).is_none() {
            return Err(OpenError::Unsealed { path: self.path(), size: chain.next() });
        }
        let (born, base) = (head.ts.to_owned(), chain.next());
        chain.take(line.raw).map_err(damaged)?;
        let good = lines.offset();
        self.compare(&chain)?;
        Ok(Some(End { chain, segment, born, base, batch: 0, good, torn: false }))
    }

    /// A first line is on disk before other lines are written, so if lines follow, a crash did not
    /// damage the first one.
    fn nothing_follows(&self, lines: &mut FileLines) -> Result<Option<End>, OpenError> {
        while let Some(line) = lines.next_line().map_err(self.io())? {
            if Head::read(line.raw).is_ok() {
                return Err(OpenError::Damaged { path: self.path(), line: 1, why: UNFINISHED });
            }
        }
        Ok(None)
    }

    /// Whether the root is the one that was signed for this length.
    fn compare(&self, chain: &Chain) -> Result<(), OpenError> {
        match self.sealed.root_at(chain.next()) {
            Some(root) if root != chain.root() => {
                Err(OpenError::Forked { path: self.path(), size: chain.next() })
            }
            _ => Ok(()),
        }
    }

    /// A crash only damages what was not yet on disk. If a later line says that the bad one was on
    /// disk, or a signature covers it, the damage is not from a crash.
    fn judge(&self, bad: &Bad, lines: &mut FileLines) -> Result<Run, OpenError> {
        let mut synced = bad.synced.max(self.sealed.sealed());
        while let Some(line) = lines.next_line().map_err(self.io())? {
            let later = Head::read(line.raw).map_or(0, |(head, _)| head.synced);
            synced = synced.max(later);
        }
        if synced > bad.seq {
            let (line, why) = (bad.line, bad.why.clone());
            return Err(OpenError::Damaged { path: self.path(), line, why });
        }
        Ok(Run::Torn { at: bad.at, vouched: false })
    }

    fn path(&self) -> PathBuf {
        self.storage.place().join(self.name)
    }

    fn io(&self) -> impl FnOnce(io::Error) -> OpenError {
        OpenError::io(self.storage.place(), self.name, "read it")
    }
}

type FileLines = Lines<Box<dyn Read + Send>>;

/// Where a segment stops being good.
struct Bad {
    seq: u64,
    line: u64,
    at: u64,
    /// What the line says that showed it.
    synced: u64,
    why: Broken,
}

/// The last good line.
#[derive(Default)]
struct Last {
    raw: Vec<u8>,
    offset: u64,
}

impl Last {
    fn keep(&mut self, raw: &[u8], offset: u64) {
        self.raw.clear();
        self.raw.extend_from_slice(raw);
        self.offset = offset;
    }

    fn is_whole(&self) -> bool {
        let text = str::from_utf8(&self.raw);
        let json = text.is_ok_and(|text| serde_json::from_str::<IgnoredAny>(text).is_ok());
        self.raw.is_empty() || json
    }
}

const UNFINISHED: Broken = Broken::Head(BadHead::Shape { expected: "a whole record" });

/// Whether these may be the remains of a first line after a crash: a part of it, or zero bytes.
fn may_be_torn(raw: &[u8]) -> bool {
    const START: &[u8] = b"{\"v\":";
    let part = !raw.is_empty() && START.starts_with(raw);
    raw.starts_with(START) || part || raw.starts_with(&[0])
}
