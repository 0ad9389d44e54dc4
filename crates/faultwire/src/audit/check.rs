//! Checks a log line by line: whether each continues the chain and matches what was signed.

use std::io;
use std::sync::Arc;

use crate::audit::chain::{Broken, Chain};
use crate::audit::checkpoint::{BadCheckpoints, Checkpoints};
use crate::audit::key::BadKey;
use crate::audit::line::{BadHead, Head, LONGEST_LINE};
use crate::audit::lines::{Line, Shape};
use crate::audit::segments::{SEGMENT, SegmentLine};
use crate::audit::verify::Verified;

/// The state of a verification between two lines. A copy continues independently.
#[derive(Clone, Debug)]
pub struct Check {
    pub(crate) checkpoints: Arc<Checkpoints>,
    chain: Option<Chain>,
    /// The segment whose first line comes next.
    begins: Option<u64>,
    first: u64,
    bytes: u64,
    pub(crate) growing: bool,
    /// How many records were signed when the check began.
    floor: u64,
    /// Whether the log has grown by more than its last line meanwhile.
    pub(crate) outrun: bool,
}

impl Check {
    /// Before the first line.
    #[must_use]
    pub fn new(checkpoints: Checkpoints) -> Self {
        let floor = checkpoints.sealed();
        let checkpoints = Arc::new(checkpoints);
        Self {
            floor,
            checkpoints,
            chain: None,
            begins: None,
            first: 0,
            bytes: 0,
            growing: false,
            outrun: false,
        }
    }

    /// Inside a segment, where an earlier check ended.
    pub(crate) fn resume(checkpoints: Checkpoints, chain: Chain) -> Self {
        Self { first: chain.next(), chain: Some(chain), ..Self::new(checkpoints) }
    }

    /// The end of what is valid.
    pub(crate) fn chain(&self) -> Option<&Chain> {
        self.chain.as_ref()
    }

    /// The next line is the first of this segment.
    pub fn begin(&mut self, segment: u64) {
        self.begins = Some(segment);
    }

    /// The segment is over: it had a first line, at least.
    pub fn end(&self) -> Result<(), Wrong> {
        if self.begins.is_some() && !self.growing { Err(Wrong::Segment) } else { Ok(()) }
    }

    /// How many records are valid.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.chain.as_ref().map_or(0, Chain::next)
    }

    /// How many records were known to be good when this was found.
    pub(crate) fn good(&self, why: &Wrong) -> u64 {
        match why {
            // All lines after the last matching signature may be forged.
            Wrong::Forked(size) => {
                let sizes = self.checkpoints.all.iter().map(|signed| signed.size);
                sizes.filter(|signed| signed < size).max().unwrap_or(self.first)
            }
            Wrong::Changed => self.records().saturating_sub(1),
            _ => self.records(),
        }
    }

    /// How many records were signed and are missing, if any.
    pub(crate) fn cut(&self) -> Option<Wrong> {
        let (have, sealed) = (self.records(), self.floor);
        (have < sealed).then_some(Wrong::Shrunk { sealed, have })
    }

    /// Checks the next line.
    pub fn line(&mut self, line: &Line<'_>) -> Result<(), Wrong> {
        match line.shape {
            Shape::Whole => self.raw(line.raw),
            Shape::Unfinished => Err(Wrong::Unfinished),
            Shape::TooLong => Err(Wrong::TooLong),
        }
    }

    /// Checks the bytes of the next line, which are given without the newline.
    pub fn raw(&mut self, raw: &[u8]) -> Result<(), Wrong> {
        let begins = self.begins.take();
        if let Some(number) = begins {
            self.first_line(raw, number)?;
        }
        let Some(chain) = &mut self.chain else { return Err(Wrong::Segment) };
        let (head, _) = chain.take(raw)?;
        if begins.is_none() && head.kind == SEGMENT {
            return Err(Wrong::Segment);
        }
        self.bytes += raw.len() as u64 + 1;
        self.compare()
    }

    /// Starts the chain at the state that a first line states, and checks that state.
    fn first_line(&mut self, raw: &[u8], number: u64) -> Result<(), Wrong> {
        let (head, body) = Head::read(raw).map_err(Broken::from)?;
        let line = SegmentLine::read(&head, body).ok_or(Wrong::Segment)?;
        let claimed = Chain::resume(&head, line.before.as_ref()).ok_or(Wrong::Segment)?;
        let fits = match &self.chain {
            // A chain that is broken has its own, clearer words.
            Some(chain) => chain.next() != head.seq || claimed == *chain,
            None => true,
        };
        if line.segment != number || !fits {
            return Err(Wrong::Segment);
        }
        let before = claimed.next();
        if self.chain.is_none() {
            self.first = before;
            self.chain = Some(claimed);
            self.compare()?;
        }
        // A segment is only closed with a signature.
        if before > 0 && self.checkpoints.root_at(before).is_none() {
            return Err(Wrong::Unsealed(before));
        }
        Ok(())
    }

    /// Whether the records so far match the checkpoint of exactly this size, if there is one.
    pub(crate) fn compare(&self) -> Result<(), Wrong> {
        let Some(chain) = &self.chain else { return Ok(()) };
        match self.checkpoints.root_at(chain.next()) {
            Some(root) if root != chain.root() => Err(Wrong::Forked(chain.next())),
            _ => Ok(()),
        }
    }

    /// After the last line.
    pub fn finish(self, segments: u64) -> Result<Verified, Wrong> {
        let (have, sealed) = (self.records(), self.checkpoints.sealed());
        let log = self.chain.as_ref().map(|chain| chain.log().to_owned()).unwrap_or_default();
        if let Some(other) = self.checkpoints.last().filter(|last| last.log != log) {
            return Err(Wrong::OtherLog(other.log.clone()));
        }
        // Records that were signed before reading began must be found, also while the log is
        // written.
        let least = if self.outrun { self.floor } else { sealed };
        if have < least {
            return Err(Wrong::Shrunk { sealed: least, have });
        }
        Ok(Verified {
            log,
            records: have,
            segments,
            bytes: self.bytes,
            checkpoints: self.checkpoints.all.len() as u64,
            sealed: sealed.min(have),
            key: None,
            first: self.first,
            growing: self.growing || self.outrun,
        })
    }
}

/// What can be wrong with a log.
#[derive(Debug, thiserror::Error)]
pub enum Wrong {
    /// A line does not continue the chain.
    #[error("{0}")]
    Chain(#[from] Broken),
    /// A line is not valid JSON.
    #[error("the record is not valid JSON: {0}")]
    Json(String),
    /// A line does not end.
    #[error(
        "the last line is incomplete, as after a crash; opening the log for writing moves it aside"
    )]
    Unfinished,
    /// The line after it was written after another one.
    #[error("the record was changed: the next line has another hash in its \"prev\"")]
    Changed,
    /// A line was complete once, and is not any more.
    #[error("the line is cut off")]
    Cut,
    /// A line is longer than any record.
    #[error("the line is longer than {LONGEST_LINE} bytes")]
    TooLong,
    /// A segment's first line does not match the lines before it.
    #[error("the first line of this segment does not match the records before it, or its position")]
    Segment,
    /// A segment was closed, and the next not begun.
    #[error(
        "the live segment is missing, as after a crash; opening the log for writing creates it"
    )]
    NoLive,
    /// A segment is not there.
    #[error("segment {0} is missing")]
    Missing(u64),
    /// A segment that cannot belong to this log.
    #[error("this segment is not followed by the live one")]
    Stray,
    /// There are signatures, and no key to check them with.
    #[error("the public key to check the signatures with is missing")]
    NoKey,
    /// The checkpoints are those of another log.
    #[error("the checkpoints belong to another log, {0}")]
    OtherLog(String),
    /// The log does not exist.
    #[error("no audit log in this directory")]
    Nothing,
    /// The records are not those that were signed.
    #[error("the first {0} records are not those that were signed")]
    Forked(u64),
    /// Nothing is signed, and a key was given to check signatures with.
    #[error("the log has no checkpoint signed with the given key")]
    Unsigned,
    /// A segment was closed without a signature.
    #[error("no checkpoint covers the {0} records before it")]
    Unsealed(u64),
    /// There are fewer records than were signed.
    #[error("the log has {have} records, but a signed checkpoint covers {sealed}: it was cut")]
    Shrunk {
        /// How many a checkpoint covers.
        sealed: u64,
        /// How many there are.
        have: u64,
    },
    /// The checkpoints are not valid.
    #[error("{0}")]
    Checkpoints(#[from] BadCheckpoints),
    /// The file of checkpoints ends in something that is not a checkpoint.
    #[error("the last checkpoint is incomplete; opening the log for writing removes it")]
    UnfinishedCheckpoint,
    /// The key in the log's directory is not valid.
    #[error("{0}")]
    Key(#[from] BadKey),
    /// A file cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl From<BadHead> for Wrong {
    fn from(bad: BadHead) -> Self {
        Self::Chain(bad.into())
    }
}
