//! The writer: the one place that changes a log's files.

use std::io::{self, Read};
use std::sync::Arc;

use faultwire_contract::Stamp;
use jiff::Timestamp;

use crate::audit::chain::Chain;
use crate::audit::checkpoint::{Checkpoint, origin};
use crate::audit::error::{AuditFailed, OpenError};
use crate::audit::hash::Hash;
use crate::audit::key::Key;
use crate::audit::options::{Alarm, Options};
use crate::audit::record::{Entry, Torn};
use crate::audit::recover::{Found, examine};
use crate::audit::segment::{self, CHECKPOINTS, KEY, LIVE, PUBLIC_KEY};
use crate::audit::storage::{Access, Storage, Tail};

/// An open log.
pub(crate) struct Writer {
    storage: Arc<dyn Storage>,
    options: Arc<Options>,
    key: Arc<Key>,
    chain: Chain,
    live: Box<dyn Tail>,
    segment: u64,
    /// Bytes in the live segment, and when it began.
    bytes: u64,
    born_ms: i64,
    checkpoints: Box<dyn Tail>,
    checkpoint_bytes: u64,
    sealed: u64,
    buffer: Vec<u8>,
}

impl Writer {
    /// Opens the log in the directory, or creates one. Torn bytes at its end are moved aside; a log
    /// that does not match what was signed is refused. If this process had it open before, it must
    /// not be shorter than it was.
    pub fn open(
        storage: &Arc<dyn Storage>,
        options: &Arc<Options>,
        left: Option<&Left>,
    ) -> Result<Self, OpenError> {
        let opening = Opening { storage: &**storage, options, left };
        let log = new_log_id().map_err(OpenError::io(storage.place(), "", "get randomness"))?;
        let key = opening.key()?;
        let found = examine(&**storage, key.as_ref().map(|key| key.public()))?;
        opening.is_as_left(&found)?;
        let key = key.map_or_else(|| opening.new_key(&found, &log), Ok)?;
        opening.publish(&key)?;
        let torn = opening.set_aside_tail(&found)?;
        let torn_note = opening.set_aside_note(&found)?;
        let Files { live, checkpoints } = opening.files(&found)?;
        let born_ms = found.born.parse().map_or(0, Timestamp::as_millisecond);
        let (good, segment, has_first_line) = (found.good, found.segment, found.live);
        let mut writer = Self {
            sealed: found.checkpoints.sealed(),
            checkpoint_bytes: found.checkpoints.len(),
            chain: found.chain.unwrap_or_else(|| Chain::new(log)),
            live,
            segment,
            bytes: good,
            born_ms,
            checkpoints,
            key,
            buffer: Vec::new(),
            storage: Arc::clone(storage),
            options: Arc::clone(options),
        };
        if !has_first_line {
            writer.begin_segment().map_err(OpenError::Failed)?;
        }
        if let Some(torn) = torn {
            writer.commit(&[Entry::recovery(&torn)]).map_err(OpenError::Failed)?;
            options.raise(&Alarm::Repaired { bytes: torn.bytes, moved_to: torn.moved_to });
        }
        if let Some(torn) = torn_note {
            options.raise(&Alarm::Repaired { bytes: torn.bytes, moved_to: torn.moved_to });
        }
        Ok(writer)
    }

    /// Writes the entries and returns once they are on disk, with the number of the first.
    pub fn commit<'e>(
        &mut self,
        entries: impl IntoIterator<Item = &'e Entry>,
    ) -> Result<u64, AuditFailed> {
        let now = (self.options.clock)();
        if self.is_full(now) {
            self.rotate()?;
        }
        let first = self.chain.next();
        let ts = moment(now);
        self.buffer.clear();
        for entry in entries {
            self.chain.write(entry.as_bytes(), &ts, first, &mut self.buffer);
        }
        self.flush()?;
        Ok(first)
    }

    /// Signs what is on disk, if enough records were written since the last checkpoint.
    pub fn seal_if_due(&mut self) -> Result<(), AuditFailed> {
        if self.chain.next() - self.sealed < self.options.checkpoint_every {
            Ok(())
        } else {
            self.seal()
        }
    }

    /// Signs what is on disk, if any records were written since the last checkpoint.
    pub fn seal(&mut self) -> Result<(), AuditFailed> {
        let size = self.chain.next();
        if size == self.sealed {
            return Ok(());
        }
        let root = self.chain.root();
        let note = Checkpoint { log: self.chain.log().to_owned(), size, root }.sign(&self.key);
        let written =
            self.checkpoints.write(note.as_bytes()).and_then(|()| self.checkpoints.sync());
        if let Err(e) = written {
            drop(self.checkpoints.cut(self.checkpoint_bytes));
            return Err(self.failed(CHECKPOINTS, "write to it")(e));
        }
        self.checkpoint_bytes += note.len() as u64;
        self.sealed = size;
        Ok(())
    }

    /// The key of the log.
    pub fn key(&self) -> &Arc<Key> {
        &self.key
    }

    /// The log's id.
    pub fn log(&self) -> &str {
        self.chain.log()
    }

    /// How many records there are.
    pub fn records(&self) -> u64 {
        self.chain.next()
    }

    fn is_full(&self, now: i64) -> bool {
        let age = u128::try_from(now.saturating_sub(self.born_ms)).unwrap_or(0);
        self.bytes >= self.options.segment_bytes || age >= self.options.segment_age.as_millis()
    }

    /// Closes the live segment and begins the next. Each step is on disk before the one after it.
    fn rotate(&mut self) -> Result<(), AuditFailed> {
        self.seal()?;
        let full = segment::full(self.segment);
        self.storage.rename(LIVE, &full).map_err(self.failed(LIVE, "rename it"))?;
        self.storage.sync_names().map_err(self.failed("", "sync it"))?;
        self.live =
            self.storage.create(LIVE, Access::Owner).map_err(self.failed(LIVE, "create it"))?;
        self.bytes = 0;
        self.begin_segment()
    }

    fn begin_segment(&mut self) -> Result<(), AuditFailed> {
        let now = (self.options.clock)();
        self.segment += 1;
        self.born_ms = now;
        self.buffer.clear();
        self.chain.write_segment(self.segment, &moment(now), &mut self.buffer);
        self.flush()?;
        self.storage.sync_names().map_err(self.failed("", "sync it"))
    }

    /// Brings the buffer to disk, and makes sure that it can be found there. What may not have
    /// reached the disk is cut off again, since the system may go on showing it as if it had.
    fn flush(&mut self) -> Result<(), AuditFailed> {
        let written = self.write_live();
        match &written {
            Ok(()) => self.bytes += self.buffer.len() as u64,
            Err(_) => drop(self.live.cut(self.bytes)),
        }
        written
    }

    fn write_live(&mut self) -> Result<(), AuditFailed> {
        self.live.write(&self.buffer).map_err(self.failed(LIVE, "write to it"))?;
        self.live.sync().map_err(self.failed(LIVE, "sync it"))?;
        let len = self.bytes + self.buffer.len() as u64;
        if self.live.is_in_place(len).map_err(self.failed(LIVE, "check it"))? {
            return Ok(());
        }
        Err(AuditFailed::gone(self.storage.place().join(LIVE)))
    }

    fn failed(&self, name: &str, doing: &'static str) -> impl FnOnce(io::Error) -> AuditFailed {
        AuditFailed::io(self.storage.place(), name, doing)
    }
}

/// The files that are written to.
struct Files {
    live: Box<dyn Tail>,
    checkpoints: Box<dyn Tail>,
}

/// The steps of opening before the first record.
struct Opening<'a> {
    storage: &'a dyn Storage,
    options: &'a Options,
    left: Option<&'a Left>,
}

/// The state of a log when this process closed it, before it opens it again.
pub(crate) struct Left {
    pub log: String,
    pub key: Arc<Key>,
    /// How many records were on disk.
    pub records: u64,
}

impl Opening<'_> {
    /// The key that was given, or the one beside the log.
    fn key(&self) -> Result<Option<Arc<Key>>, OpenError> {
        let known = self.left.map(|left| &left.key).or(self.options.key.as_ref());
        if let Some(key) = known {
            return Ok(Some(Arc::clone(key)));
        }
        let Some(line) = self.text(KEY, |name| self.storage.read_secret(name))? else {
            return Ok(None);
        };
        let path = self.storage.place().join(KEY);
        let key = Key::parse(&line).map_err(|why| OpenError::Key { path, why })?;
        Ok(Some(Arc::new(key)))
    }

    /// Whether it is the log that was left, with all of its records.
    fn is_as_left(&self, found: &Found) -> Result<(), OpenError> {
        let Some(left) = self.left else { return Ok(()) };
        let same = |chain: &Chain| chain.log() == left.log && chain.next() >= left.records;
        if found.chain.as_ref().is_some_and(same) {
            return Ok(());
        }
        Err(OpenError::Replaced(self.storage.place().to_owned()))
    }

    /// A key for a log that has no key and no signature.
    fn new_key(&self, found: &Found, log: &str) -> Result<Arc<Key>, OpenError> {
        if found.checkpoints.last().is_some() {
            return Err(OpenError::NoKey(self.storage.place().join(KEY)));
        }
        let name = found.chain.as_ref().map_or(log, Chain::log);
        let key = Key::generate(&origin(name)).map_err(self.io(KEY, "make a key"))?;
        self.put(KEY, &key.to_line(), Access::Owner)?;
        Ok(Arc::new(key))
    }

    /// Keeps the public half where a reader finds it.
    fn publish(&self, key: &Key) -> Result<(), OpenError> {
        let line = key.public().to_string();
        let published = self.text(PUBLIC_KEY, |name| self.storage.read(name))?;
        if published.as_deref().map(str::trim) == Some(&line) {
            return Ok(());
        }
        self.put(PUBLIC_KEY, &line, Access::Public)
    }

    /// Saves the bytes at the end of the live file that are not a record.
    fn set_aside_tail(&self, found: &Found) -> Result<Option<Torn>, OpenError> {
        let seq = found.chain.as_ref().map_or(0, Chain::next);
        let name = |hash: &Hash| segment::torn(seq, hash);
        found.torn.then(|| self.set_aside(LIVE, found.good, name)).transpose()
    }

    /// Saves the bytes at the end of the checkpoints that are not a checkpoint.
    fn set_aside_note(&self, found: &Found) -> Result<Option<Torn>, OpenError> {
        let from = found.checkpoints.len();
        let torn = found.torn_checkpoint;
        torn.then(|| self.set_aside(CHECKPOINTS, from, segment::torn_note)).transpose()
    }

    fn set_aside(
        &self,
        file: &str,
        from: u64,
        name: impl FnOnce(&Hash) -> String,
    ) -> Result<Torn, OpenError> {
        let mut bytes = Vec::new();
        let read = self.storage.read_from(file, from);
        read.and_then(|mut tail| tail.read_to_end(&mut bytes)).map_err(self.io(file, "read it"))?;
        let hash = Hash::of(&bytes);
        let name = name(&hash);
        let mut aside =
            self.storage.create(&name, Access::Owner).map_err(self.io(&name, "create it"))?;
        aside
            .write(&bytes)
            .and_then(|()| aside.sync())
            .and_then(|()| self.storage.sync_names())
            .map_err(self.io(&name, "write to it"))?;
        Ok(Torn { bytes: bytes.len() as u64, sha256: hash.to_string(), moved_to: name })
    }

    /// Opens the files for writing, cut to their valid part. The valid part may only be in memory
    /// if the previous writer was killed or could not sync, and after a failed sync the system does
    /// not try again. So the ends are rewritten and synced before anything follows them.
    fn files(&self, found: &Found) -> Result<Files, OpenError> {
        // The same applies to a renamed segment: its new name must be durable before the old one is
        // used again.
        self.storage.sync_names().map_err(self.io("", "sync it"))?;
        let mut live = self
            .storage
            .append(LIVE, Access::Owner)
            .map_err(self.io(LIVE, "open it for writing"))?;
        let mut checkpoints = self
            .storage
            .append(CHECKPOINTS, Access::Owner)
            .map_err(self.io(CHECKPOINTS, "open it for writing"))?;
        // The lengths are set even if they look right: a truncation whose sync failed is only in
        // memory, and the removed bytes would come back after the next records.
        live.cut(found.good).map_err(self.io(LIVE, "repair it"))?;
        let notes = found.checkpoints.len();
        checkpoints.cut(notes).map_err(self.io(CHECKPOINTS, "repair it"))?;
        self.write_again(LIVE, found.batch, found.good)?;
        self.write_again(CHECKPOINTS, found.checkpoints.last_note(), found.checkpoints.len())?;
        live.sync().map_err(self.io(LIVE, "sync it"))?;
        checkpoints.sync().map_err(self.io(CHECKPOINTS, "sync it"))?;
        self.storage.sync_names().map_err(self.io("", "sync it"))?;
        Ok(Files { live, checkpoints })
    }

    /// Writes a part of a file over itself.
    fn write_again(&self, name: &str, from: u64, to: u64) -> Result<(), OpenError> {
        let mut bytes = Vec::new();
        let read = self.storage.read_from(name, from);
        read.and_then(|file| file.take(to - from).read_to_end(&mut bytes))
            .map_err(self.io(name, "read it"))?;
        if bytes.is_empty() {
            return Ok(());
        }
        self.storage.overwrite(name, from, &bytes).map_err(self.io(name, "write to it"))
    }

    /// The text of a small file, if it is there.
    fn text(
        &self,
        name: &str,
        open: impl FnOnce(&str) -> io::Result<Box<dyn Read + Send>>,
    ) -> Result<Option<String>, OpenError> {
        let names = self.storage.names().map_err(self.io("", "list it"))?;
        if !names.iter().any(|n| n == name) {
            return Ok(None);
        }
        let mut text = String::new();
        let read = open(name).and_then(|file| file.take(LONGEST_KEY).read_to_string(&mut text));
        read.map_err(self.io(name, "read it"))?;
        Ok(Some(text))
    }

    /// Writes a small file atomically.
    fn put(&self, name: &str, line: &str, access: Access) -> Result<(), OpenError> {
        let new = format!("{name}.new");
        let mut file = self.storage.create(&new, access).map_err(self.io(&new, "create it"))?;
        file.write(format!("{line}\n").as_bytes())
            .and_then(|()| file.sync())
            .and_then(|()| self.storage.rename(&new, name))
            .and_then(|()| self.storage.sync_names())
            .map_err(self.io(name, "write it"))
    }

    fn io(&self, name: &str, doing: &'static str) -> impl FnOnce(io::Error) -> OpenError {
        OpenError::io(self.storage.place(), name, doing)
    }
}

/// The longest key file; a key is one short line.
const LONGEST_KEY: u64 = 64 * 1024;

fn new_log_id() -> io::Result<String> {
    let mut id = [0; 16];
    getrandom::fill(&mut id).map_err(io::Error::other)?;
    Ok(format!("{:032x}", u128::from_be_bytes(id)))
}

pub(crate) fn moment(now_ms: i64) -> String {
    Stamp { now_ms: now_ms.max(0), ..Stamp::default() }.timestamp()
}
