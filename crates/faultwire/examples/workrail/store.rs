//! Sessions on disk: a log of events that only grows, a snapshot after each of them, and a lock.

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use faultwire::workrail::{Code, Failure};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::failures::{AckFailure, Health, Reason, TokenError};
use crate::workflow::State;

const VERSION: u64 = 1;

/// A line of the log.
#[derive(Serialize, Deserialize)]
pub struct Event {
    v: u64,
    index: usize,
    pub workflow: String,
}

/// A session that nobody else works on.
pub struct Session {
    dir: PathBuf,
    _lock: File,
}

impl Session {
    pub fn open(sessions: &Path, id: &str) -> Result<Self, Failure> {
        let dir = sessions.join(id);
        let lock = OpenOptions::new().create(true).append(true).open(dir.join("lock"));
        let lock = lock.map_err(|error| match error.kind() {
            ErrorKind::NotFound => AckFailure::MissingNodeOrRun.into(),
            _ => unusable(&error),
        })?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { dir, _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(TokenError(Code::TokenSessionLocked).into()),
            Err(TryLockError::Error(error)) => Err(unusable(&error)),
        }
    }

    /// All events, if each of them is what it should be.
    pub fn events(&self) -> Result<Vec<Event>, Failure> {
        let text = fs::read_to_string(self.dir.join("events.jsonl")).map_err(|e| unusable(&e))?;
        let mut events = Vec::new();
        for (index, line) in text.lines().enumerate() {
            events.push(event(index, line)?);
        }
        if events.is_empty() {
            return Err(corrupt(0, &"The event log is empty").into());
        }
        Ok(events)
    }

    /// The state after so many steps.
    pub fn snapshot(&self, node: usize) -> Result<State, Failure> {
        let broken = |error: Reason| Failure::from(AckFailure::SnapshotStoreError { error });
        let text = fs::read(self.dir.join(format!("{node}.json")));
        let text = text.map_err(|error| match error.kind() {
            ErrorKind::NotFound => AckFailure::MissingSnapshot.into(),
            kind => broken(reason(&kind.to_string(), &error)),
        })?;
        serde_json::from_slice(&text).map_err(|error| broken(reason("SNAPSHOT_CORRUPT", &error)))
    }

    /// The snapshot first: an event is the proof that there is one.
    pub fn append(&self, index: usize, workflow: &str, state: &State) -> Result<(), Failure> {
        let event = Event { v: VERSION, index, workflow: workflow.to_owned() };
        let line = serde_json::to_string(&event)? + "\n";
        let log = self.dir.join("events.jsonl");
        fs::write(self.dir.join(format!("{index}.json")), serde_json::to_vec(state)?)
            .and_then(|()| OpenOptions::new().create(true).append(true).open(log))
            .and_then(|mut log| log.write_all(line.as_bytes()).and_then(|()| log.sync_data()))
            .map_err(|error| unusable(&error))
    }
}

/// What a line of the log says.
fn event(index: usize, line: &str) -> Result<Event, Health> {
    let value: Value = serde_json::from_str(line).map_err(|error| corrupt(index, &error))?;
    if value["v"].as_u64().is_some_and(|v| v > VERSION) {
        let what = format!("Event {index} has version {}", value["v"]);
        return Err(Health::UnknownVersion { reason: reason("UNKNOWN_EVENT_VERSION", &what) });
    }
    let event: Event = serde_json::from_value(value).map_err(|error| corrupt(index, &error))?;
    if event.index == index { Ok(event) } else { Err(corrupt(index, &"Event log index mismatch")) }
}

fn corrupt(index: usize, message: &impl ToString) -> Health {
    let reason = reason("STORE_INVARIANT_VIOLATION", message);
    if index == 0 { Health::CorruptHead { reason } } else { Health::CorruptTail { reason } }
}

fn unusable(error: &io::Error) -> Failure {
    AckFailure::SessionStoreError { error: reason(&error.kind().to_string(), error) }.into()
}

fn reason(code: &str, message: &impl ToString) -> Reason {
    Reason { code: code.to_owned(), message: message.to_string() }
}

pub fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
