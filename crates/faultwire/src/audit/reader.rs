//! Reads a log that may have been tampered with. Each line must continue the chain; the first that
//! does not, or that does not match a checkpoint, is an error. A forged line is detected at the
//! next checkpoint at the latest, so callers only show lines after reading everything that was
//! requested.

use std::io::{self, Read};
use std::sync::Arc;

use crate::audit::chain::Chain;
use crate::audit::check::{Check, Wrong};
use crate::audit::checkpoint::Checkpoints;
use crate::audit::error::within;
use crate::audit::key::PublicKey;
use crate::audit::lines::{Line, Lines, Shape};
use crate::audit::segment::{CHECKPOINTS, LIVE, PUBLIC_KEY};
use crate::audit::segments;
use crate::audit::storage::Storage;
use crate::audit::verify::Finding;

/// A place in a log, from which it is read on.
pub struct Reader<'s> {
    storage: &'s dyn Storage,
    check: Check,
    segment: u64,
    offset: u64,
}

impl<'s> Reader<'s> {
    /// Begins at the start of a segment. A checkpoint must cover the lines before it.
    pub fn new(storage: &'s dyn Storage, segment: u64) -> Result<Self, Box<Finding>> {
        let check = Check::new(checkpoints(storage, 0)?);
        Ok(Self { storage, check, segment, offset: 0 })
    }

    /// Where an earlier one stood.
    #[cfg_attr(not(feature = "index"), expect(dead_code, reason = "only an index resumes"))]
    pub(crate) fn resume(
        storage: &'s dyn Storage,
        chain: Chain,
        segment: u64,
        offset: u64,
    ) -> Result<Self, Box<Finding>> {
        let checkpoints = checkpoints(storage, chain.next())?;
        Ok(Self { storage, check: Check::resume(checkpoints, chain), segment, offset })
    }

    /// The segment that is read.
    #[must_use]
    pub fn segment(&self) -> u64 {
        self.segment
    }

    /// Where in it the next line begins.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// How many records of the log precede that line.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.check.records()
    }

    pub(crate) fn chain(&self) -> Option<&Chain> {
        self.check.chain()
    }

    /// Goes on with a segment; if it does not follow the one before, from a checkpoint.
    pub fn after(
        before: Option<Self>,
        storage: &'s dyn Storage,
        segment: u64,
    ) -> Result<Self, Box<Finding>> {
        match before {
            Some(mut reader) if reader.segment.checked_add(1) == Some(segment) => {
                reader.next_segment();
                Ok(reader)
            }
            _ => Self::new(storage, segment),
        }
    }

    /// Goes to the next segment.
    pub fn next_segment(&mut self) {
        self.segment += 1;
        self.offset = 0;
    }

    /// Reads to the present end of the segment and returns whether more may follow. An error of
    /// `each` stops it and is returned.
    pub fn read_segment<E>(
        &mut self,
        mut each: impl FnMut(&Line<'_>) -> Result<(), E>,
    ) -> Result<Result<bool, E>, Box<Finding>> {
        let opened = segments::open_at(self.storage, self.segment, self.offset);
        // Between two segments, the live one is missing for a moment.
        let Some(segment) = opened.map_err(|e| finding(self.storage, "", e.into()))? else {
            return Ok(Ok(true));
        };
        let begins = self.offset == 0;
        if begins {
            self.catch_up()?;
            self.check.begin(self.segment);
        }
        let mut lines = Lines::starting_at(segment.file, self.offset);
        let found = |why| finding(self.storage, &segment.name, why);
        while let Some(line) = lines.next_line().map_err(|e| found(e.into()))? {
            if line.shape == Shape::Unfinished && segment.name == LIVE {
                break;
            }
            if let Err(why) = self.check.line(&line) {
                let (good, line) = (self.check.good(&why), begins.then_some(line.number));
                return Err(Box::new(Finding { line, good, ..found(why) }));
            }
            if let Err(stop) = each(&line) {
                return Ok(Err(stop));
            }
            self.offset = line.offset + line.raw.len() as u64 + 1;
        }
        if segment.name == LIVE {
            return Ok(Ok(true));
        }
        // A segment is only closed with a signature over its end.
        self.check.end().map_err(found)?;
        if self.catch_up()? {
            Ok(Ok(false))
        } else {
            Err(found(Wrong::Unsealed(self.records())).into())
        }
    }

    /// Tells whether a checkpoint ends here. One that was signed meanwhile is newer than those we
    /// know.
    fn catch_up(&mut self) -> Result<bool, Box<Finding>> {
        let before = self.check.records();
        if before > 0 && self.check.checkpoints.root_at(before).is_none() {
            self.check.checkpoints = Arc::new(checkpoints(self.storage, before)?);
            self.check.compare().map_err(|why| finding(self.storage, CHECKPOINTS, why))?;
        }
        Ok(self.check.checkpoints.root_at(before).is_some())
    }
}

/// Which segments exist, and how many records were signed before reading: at least these must be
/// found.
pub struct Extent {
    /// The numbers of the segments, the live one last.
    pub present: Vec<u64>,
    signed: u64,
}

impl Extent {
    /// Looks into the directory.
    pub fn of(storage: &dyn Storage) -> Result<Self, Box<Finding>> {
        // In the other order, records that are written and signed in between would seem to be
        // missing.
        let signed = checkpoints(storage, u64::MAX)?.sealed();
        let present = segments::present(storage);
        let present = present.map_err(|e| finding(storage, "", e.into()))?;
        Ok(Self { present, signed })
    }

    /// Whether a reader at the end has found all records.
    pub fn expect_all(&self, reader: &Reader<'_>) -> Result<(), Box<Finding>> {
        let (have, sealed) = (reader.records(), self.signed);
        let signed = reader.check.checkpoints.last().map(|last| &*last.log);
        let log = reader.chain().map(Chain::log);
        if let (Some(other), Some(log)) = (signed, log)
            && other != log
        {
            let why = Wrong::OtherLog(other.to_owned());
            return Err(finding(reader.storage, CHECKPOINTS, why).into());
        }
        if have >= sealed {
            return Ok(());
        }
        Err(finding(reader.storage, CHECKPOINTS, Wrong::Shrunk { sealed, have }).into())
    }
}

/// Calls `each` with every line of the log. Segments may be missing: each can be checked
/// independently, because a checkpoint covers what its first line says about the lines before.
pub(crate) fn read_all<E>(
    storage: &dyn Storage,
    mut each: impl FnMut(&Line<'_>) -> Result<(), E>,
) -> Result<Result<(), E>, Box<Finding>> {
    let extent = Extent::of(storage)?;
    let mut reader: Option<Reader<'_>> = None;
    for number in &extent.present {
        let here = Reader::after(reader.take(), storage, *number)?;
        let here = reader.insert(here);
        match here.read_segment(&mut each)? {
            Err(stop) => return Ok(Err(stop)),
            Ok(true) => break,
            Ok(false) => {}
        }
    }
    if let Some(reader) = &reader {
        extent.expect_all(reader)?;
    }
    Ok(Ok(()))
}

/// The log's checkpoints. Signatures are checked if they cover at least this many records.
fn checkpoints(storage: &dyn Storage, from: u64) -> Result<Checkpoints, Box<Finding>> {
    let wrong = |why: Wrong| finding(storage, CHECKPOINTS, why);
    let bytes = contents(storage, CHECKPOINTS)?.unwrap_or_default();
    let checkpoints = Checkpoints::read(bytes, None).map_err(|why| wrong(why.into()))?;
    if checkpoints.is_empty() {
        return Ok(checkpoints);
    }
    let Some(text) = contents(storage, PUBLIC_KEY)? else {
        return Err(finding(storage, PUBLIC_KEY, Wrong::NoKey).into());
    };
    let key = PublicKey::parse(&String::from_utf8_lossy(&text));
    let key = key.map_err(|why| finding(storage, PUBLIC_KEY, why.into()))?;
    checkpoints.check_from(from, &key).map_err(|why| wrong(why.into()))?;
    Ok(checkpoints)
}

fn contents(storage: &dyn Storage, name: &str) -> Result<Option<Vec<u8>>, Box<Finding>> {
    let mut bytes = Vec::new();
    match storage.read(name).and_then(|mut file| file.read_to_end(&mut bytes)) {
        Ok(_) => Ok(Some(bytes)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(finding(storage, name, e.into()).into()),
    }
}

fn finding(storage: &dyn Storage, name: &str, why: Wrong) -> Finding {
    Finding { path: within(storage.place(), name), line: None, good: 0, why }
}
