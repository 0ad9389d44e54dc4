//! Verification: every line, from the bytes on disk, against the chain and what was signed.

use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::de::IgnoredAny;

use crate::audit::chain::Broken;
use crate::audit::check::{Check, Wrong};
use crate::audit::checkpoint::Checkpoints;
use crate::audit::error::within;
use crate::audit::hash::Hash;
use crate::audit::key::PublicKey;
use crate::audit::line::Head;
use crate::audit::lines::{Lines, Shape};
use crate::audit::segment::{self, CHECKPOINTS, LIVE, PUBLIC_KEY};
use crate::audit::segments;
use crate::audit::storage::Storage;

/// A valid log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// The log's id.
    pub log: String,
    /// How many records there are.
    pub records: u64,
    /// How many segments.
    pub segments: u64,
    /// How many bytes.
    pub bytes: u64,
    /// How many checkpoints.
    pub checkpoints: u64,
    /// How many records the last of them covers.
    pub sealed: u64,
    /// The key that the signatures were checked with.
    pub key: Option<String>,
    /// The first record that is there, where older segments were taken away.
    pub first: u64,
    /// Whether the log was being written meanwhile, and has more by now.
    pub growing: bool,
}

/// The first thing that is wrong.
#[derive(Debug, thiserror::Error)]
#[error("{}{}: {why}", .path.display(), at(*.line))]
pub struct Finding {
    /// The file.
    pub path: PathBuf,
    /// The line, from 1.
    pub line: Option<u64>,
    /// How many records before it hold.
    pub good: u64,
    /// What is wrong.
    pub why: Wrong,
}

fn at(line: Option<u64>) -> String {
    line.map(|line| format!(":{line}")).unwrap_or_default()
}

/// How a log is to be verified.
#[derive(Clone, Debug, Default)]
pub struct Expect {
    /// The key that must have signed. Without one, the key in the log's directory is used: this
    /// detects accidents, but not changes by someone who can write to the directory.
    pub key: Option<PublicKey>,
    /// Older segments may have been taken away.
    pub archived: bool,
}

/// Verifies a whole log. `progress` gets the number of bytes that were read since its last call.
pub fn verify(
    storage: &dyn Storage,
    expect: &Expect,
    progress: &mut dyn FnMut(u64),
) -> Result<Verified, Box<Finding>> {
    Walk { storage, expect, progress }.run().map_err(Box::new)
}

struct Walk<'a> {
    storage: &'a dyn Storage,
    expect: &'a Expect,
    progress: &'a mut dyn FnMut(u64),
}

impl Walk<'_> {
    fn run(mut self) -> Result<Verified, Finding> {
        let key = self.key()?;
        let checkpoints = self.checkpoints(key.as_ref())?;
        let there = segments::present(self.storage).map_err(|e| self.finding("", e.into()))?;
        let [first, ..] = there[..] else {
            let cut = Check::new(checkpoints).cut();
            return Err(self.finding("", cut.unwrap_or(Wrong::Nothing)));
        };
        // A busy writer may begin segments faster than they can be read, so only those that existed
        // at the beginning count.
        let last = there.last().copied().unwrap_or(first);
        if key.is_none() && !checkpoints.all.is_empty() {
            return Err(self.finding(PUBLIC_KEY, Wrong::NoKey));
        }
        if self.expect.key.is_some() && checkpoints.all.is_empty() {
            return Err(self.finding(CHECKPOINTS, Wrong::Unsigned));
        }
        let mut check = Check::new(checkpoints);
        let begin = if self.expect.archived { first } else { 1 };
        let mut number = begin;
        loop {
            self.catch_up(&mut check, key.as_ref())?;
            let opened = segments::open(self.storage, number);
            let Some(segment) = opened.map_err(|e| self.finding("", e.into()))? else {
                let none = || check.cut().unwrap_or(Wrong::NoLive);
                let why = if number > last { none() } else { Wrong::Missing(number) };
                return Err(Finding { good: check.records(), ..self.finding("", why) });
            };
            let live = segment.is_live();
            self.segment(&mut check, number, &segment.name, segment.file)?;
            if live {
                break;
            }
            if number >= last && self.storage.holder().is_some() {
                check.outrun = true;
                break;
            }
            number += 1;
        }
        self.no_strays(number)?;
        let good = check.records();
        let finished = check.finish(number - begin + 1);
        let verified =
            finished.map_err(|why| Finding { good, ..self.finding(CHECKPOINTS, why) })?;
        Ok(Verified { key: key.map(|key| key.to_string()), ..verified })
    }

    /// While a log is read it may grow. A segment that is newer than the checkpoints we know has
    /// newer checkpoints, too.
    fn catch_up(&self, check: &mut Check, key: Option<&PublicKey>) -> Result<(), Finding> {
        let before = check.records();
        if before > 0 && check.checkpoints.root_at(before).is_none() {
            check.checkpoints = Arc::new(self.checkpoints(key)?);
        }
        Ok(())
    }

    /// Full segments must not have a number after the live one or before the first, also while a
    /// writer closes segments: the names are listed before the live one is read, so all of them are
    /// older.
    fn no_strays(&self, verified: u64) -> Result<(), Finding> {
        let mut strays = Vec::new();
        for _ in 0..LOOKS {
            let names = self.storage.names().map_err(|e| self.finding("", e.into()))?;
            let live = segments::live_number(self.storage);
            let live = live.map_err(|e| self.finding(LIVE, e.into()))?;
            let newest = live.map_or(verified, |live| live - 1);
            strays = segment::numbers(&names);
            strays.retain(|number| *number == 0 || *number > newest);
            // Between two segments, the live one is missing for a moment.
            if strays.is_empty() || live.is_some() || self.storage.holder().is_none() {
                break;
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
        match strays.first() {
            Some(number) => Err(self.finding(&segment::full(*number), Wrong::Stray)),
            None => Ok(()),
        }
    }

    /// Checks a segment. Whether its lines are JSON is looked at by another thread meanwhile.
    fn segment(
        &mut self,
        check: &mut Check,
        number: u64,
        name: &str,
        file: Box<dyn Read + Send>,
    ) -> Result<(), Finding> {
        // It may have another name by now; then only the chain is checked.
        let again = self.storage.read(name).ok();
        check.begin(number);
        let before = check.records();
        let (chained, json) = std::thread::scope(|scope| {
            let json = scope.spawn(move || first_that_is_no_json(again?));
            let chained = self.chained(check, name, file);
            (chained, json.join().unwrap_or(None))
        });
        let broken_at = chained.as_ref().err().and_then(|finding| finding.line);
        match json {
            Some((line, why)) if broken_at.is_none_or(|broken| line < broken) => {
                let good = before + line - 1;
                Err(Finding { line: Some(line), good, ..self.finding(name, Wrong::Json(why)) })
            }
            _ => chained,
        }
    }

    fn chained(
        &mut self,
        check: &mut Check,
        name: &str,
        file: Box<dyn Read + Send>,
    ) -> Result<(), Finding> {
        let mut lines = Lines::new(file);
        let mut reported = 0;
        loop {
            let line = lines.next_line().map_err(|e| self.finding(name, e.into()))?;
            let Some(line) = line else { break };
            if line.offset - reported > TELL_EVERY {
                (self.progress)(line.offset - reported);
                reported = line.offset;
            }
            let (mut number, shape) = (line.number, line.shape);
            if let Err(why) = check.line(&line) {
                let hash = Hash::line(line.raw);
                let unfinished = shape == Shape::Unfinished && name == LIVE;
                if unfinished && self.storage.holder().is_some() {
                    check.growing = true;
                    break;
                }
                // Opening only repairs lines that were not signed.
                let sealed = check.checkpoints.sealed() > check.records();
                let why = match why {
                    Wrong::Unfinished if sealed || name != LIVE => Wrong::Cut,
                    Wrong::Chain(Broken::Prev) if number > 1 && is_whole(hash, &mut lines) => {
                        number -= 1;
                        Wrong::Changed
                    }
                    why => why,
                };
                let (line, good) = (Some(number), check.good(&why));
                return Err(Finding { line, good, ..self.finding(name, why) });
            }
        }
        (self.progress)(lines.offset() - reported);
        let empty = lines.offset() == 0 && name == LIVE;
        check.end().map_err(|why| {
            let why = if empty { check.cut().unwrap_or(Wrong::NoLive) } else { why };
            Finding { line: Some(1), good: check.records(), ..self.finding(name, why) }
        })
    }

    fn key(&self) -> Result<Option<PublicKey>, Finding> {
        if let Some(key) = &self.expect.key {
            return Ok(Some(key.clone()));
        }
        let text = self.read(PUBLIC_KEY)?;
        let key = text.map(|text| PublicKey::parse(&String::from_utf8_lossy(&text))).transpose();
        key.map_err(|why| self.finding(PUBLIC_KEY, why.into()))
    }

    fn checkpoints(&self, key: Option<&PublicKey>) -> Result<Checkpoints, Finding> {
        let bytes = self.read(CHECKPOINTS)?.unwrap_or_default();
        let read = Checkpoints::read(bytes, key);
        let checkpoints = read.map_err(|why| self.finding(CHECKPOINTS, why.into()))?;
        if checkpoints.is_torn() && self.storage.holder().is_none() {
            return Err(self.finding(CHECKPOINTS, Wrong::UnfinishedCheckpoint));
        }
        Ok(checkpoints)
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Finding> {
        let mut bytes = Vec::new();
        match self.storage.read(name).and_then(|mut file| file.read_to_end(&mut bytes)) {
            Ok(_) => Ok(Some(bytes)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(self.finding(name, e.into())),
        }
    }

    fn finding(&self, name: &str, why: Wrong) -> Finding {
        let path = within(self.storage.place(), name);
        Finding { path, line: None, good: 0, why }
    }
}

/// Whether a line that does not match the one before is itself unchanged: then the line after it
/// has its hash. For the last line this is unknown; a changed text is more likely than a changed
/// hash.
fn is_whole(line: Hash, after: &mut Lines<Box<dyn Read + Send>>) -> bool {
    match after.next_line() {
        Ok(Some(next)) => Head::read(next.raw).is_ok_and(|(head, _)| head.prev == line),
        Ok(None) | Err(_) => true,
    }
}

/// The number of the first complete line that is not JSON, and why.
fn first_that_is_no_json(file: Box<dyn Read + Send>) -> Option<(u64, String)> {
    let mut lines = Lines::new(file);
    // What cannot be read is found by the other thread, too.
    while let Ok(Some(line)) = lines.next_line() {
        if line.shape != Shape::Whole {
            continue;
        }
        let why = match str::from_utf8(line.raw) {
            Ok(text) => serde_json::from_str::<IgnoredAny>(text).err().map(|e| e.to_string()),
            Err(e) => Some(e.to_string()),
        };
        if let Some(why) = why {
            return Some((line.number, why));
        }
    }
    None
}

const TELL_EVERY: u64 = 1024 * 1024;
/// How often, and with which pauses, a log is looked at that has no live segment for a moment.
const LOOKS: usize = 100;
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);
