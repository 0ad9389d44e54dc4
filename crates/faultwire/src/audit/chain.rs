//! The chain: each line names the hash of the one before, and all of them are leaves of a tree.

use crate::audit::hash::Hash;
use crate::audit::line::{BadHead, Head};
use crate::audit::record::{Before, Entry};
use crate::audit::tree::Frontier;

/// The end of a log: all that is needed to check or to write the next line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    log: String,
    prev: Hash,
    tree: Frontier,
}

/// Why a line does not continue the chain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// The line is not a record.
    #[error("{0}")]
    Head(#[from] BadHead),
    /// It is another record than the next.
    #[error("expected record {expected}, found record {found}")]
    Seq {
        /// The number of the next line.
        expected: u64,
        /// The number that is there.
        found: u64,
    },
    /// It belongs to another log.
    #[error("the record belongs to another log ({found}, not {expected})")]
    Log {
        /// This log.
        expected: String,
        /// The other.
        found: String,
    },
    /// The line before is not the one that it was written after.
    #[error("its \"prev\" does not match: the line before was changed")]
    Prev,
    /// Its `synced` includes the line itself or later lines.
    #[error("its \"synced\" is {synced}, which is more than its number {seq}")]
    Synced {
        /// What it claims.
        synced: u64,
        /// Its place.
        seq: u64,
    },
}

impl Broken {
    /// Whether it is only that the record is of another version.
    #[must_use]
    pub fn is_version(&self) -> bool {
        matches!(self, Self::Head(BadHead::Version(_)))
    }
}

impl Chain {
    /// A log without a line.
    #[must_use]
    pub fn new(log: String) -> Self {
        Self { log, prev: Hash::ZERO, tree: Frontier::default() }
    }

    /// Starts a chain at the state in a segment's first line; `None` if that state is impossible.
    #[must_use]
    pub fn resume(head: &Head<'_>, before: Option<&Before>) -> Option<Self> {
        let Some(before) = before else {
            return (head.seq == 0 && head.prev == Hash::ZERO).then(|| Self::new(head.log.into()));
        };
        if before.records == 0 {
            return None;
        }
        let hash = |hex: &String| Hash::from_hex(hex.as_bytes());
        let peaks: Vec<Hash> = before.peaks.iter().map(hash).collect::<Option<_>>()?;
        let tree = Frontier::resume(before.records, peaks)?;
        let same = head.seq == before.records && Some(head.prev) == hash(&before.last);
        same.then(|| Self { log: head.log.into(), prev: head.prev, tree })
    }

    /// Starts a chain at the state of its own [`before`](Self::before).
    #[cfg(feature = "index")]
    pub(crate) fn restore(log: &str, before: &Before) -> Option<Self> {
        let hash = |hex: &String| Hash::from_hex(hex.as_bytes());
        let peaks: Vec<Hash> = before.peaks.iter().map(hash).collect::<Option<_>>()?;
        let tree = Frontier::resume(before.records, peaks)?;
        Some(Self { log: log.to_owned(), prev: hash(&before.last)?, tree })
    }

    /// Checks that the line continues the chain, and adds it. Returns the bytes after its head.
    pub fn take<'l>(&mut self, raw: &'l [u8]) -> Result<(Head<'l>, &'l [u8]), Broken> {
        let (head, body) = Head::read(raw)?;
        if head.log != self.log {
            let (expected, found) = (self.log.clone(), head.log.to_owned());
            return Err(Broken::Log { expected, found });
        }
        if head.seq != self.next() {
            return Err(Broken::Seq { expected: self.next(), found: head.seq });
        }
        if head.prev != self.prev {
            return Err(Broken::Prev);
        }
        if head.synced > head.seq {
            return Err(Broken::Synced { synced: head.synced, seq: head.seq });
        }
        self.push(Hash::line(raw));
        Ok((head, body))
    }

    /// Writes the next line.
    pub fn write(&mut self, entry: &[u8], ts: &str, synced: u64, out: &mut Vec<u8>) {
        let from = out.len();
        let head = Head { seq: self.next(), ts, log: &self.log, prev: self.prev, synced, kind: "" };
        head.write(out);
        out.extend_from_slice(entry);
        let hash = Hash::line(&out[from..]);
        out.push(b'\n');
        self.push(hash);
    }

    fn push(&mut self, line: Hash) {
        self.prev = line;
        self.tree.push(line);
    }

    /// The number of the next line, which is how many there are.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.tree.size()
    }

    /// The root over all lines.
    #[must_use]
    pub fn root(&self) -> Hash {
        self.tree.root()
    }

    /// The log's id.
    #[must_use]
    pub fn log(&self) -> &str {
        &self.log
    }

    /// The state of all lines so far, for the next segment's first line.
    #[must_use]
    pub fn before(&self) -> Before {
        Before::new(self.next(), &self.prev, self.tree.peaks())
    }

    /// The first line of a segment.
    pub(crate) fn write_segment(&mut self, number: u64, ts: &str, out: &mut Vec<u8>) {
        let before = (self.next() > 0).then(|| self.before());
        let entry = Entry::segment(number, before.as_ref());
        let synced = self.next();
        self.write(entry.as_bytes(), ts, synced, out);
    }
}
