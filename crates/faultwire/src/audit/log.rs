//! The log as its users see it: append, and go on once the record is on disk.

use std::path::Path;
use std::sync::Arc;

use faultwire_contract::{Fault, Profile, Stamp, Surface};
use serde_json::Value;

use crate::audit::call::{Call, Digest, Fingerprint};
use crate::audit::error::{AuditFailed, OpenError};
use crate::audit::json_writer;
use crate::audit::options::Options;
use crate::audit::queue::Shared;
use crate::audit::record::Entry;
use crate::audit::segment::LOCK;
use crate::audit::storage::{Disk, LockError, Storage, why_unsafe};
use crate::audit::ticket::Ticket;
use crate::audit::writer::{Writer, moment};

/// An open audit log. Clones share it; the last one to go closes it.
///
/// ```
/// use faultwire::audit::{Call, Entry, Log, Options};
/// use faultwire::contract::{Fault, Report, Stamp, builtin};
///
/// # let dir = std::env::temp_dir().join(format!("faultwire-doc-{}", std::process::id()));
/// let log = Log::open(&dir, Options::default())?;
/// let contract = builtin("owlclaw").unwrap();
/// let fault = Fault::new(&contract, Report::new("runtime.timeout"), &Stamp::default())?;
///
/// let receipt = log.append(Entry::fault(&fault, &Call::default()))?;
/// assert_eq!(receipt.seq, Some(1));
/// log.close()?;
/// # std::fs::remove_dir_all(dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Log(Arc<Handle>);

/// The result of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The record's number. None if it was not recorded and the log is set to fail open.
    pub seq: Option<u64>,
}

/// What to send to the client, and its receipt from the log.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The fault that was recorded, or the one that says that it could not be.
    pub fault: Fault,
    /// Its envelope.
    pub envelope: Vec<u8>,
    /// The record, if there is one.
    pub receipt: Option<Receipt>,
}

impl Log {
    /// Opens the log in a directory, or begins one there.
    pub fn open(dir: impl AsRef<Path>, options: Options) -> Result<Self, OpenError> {
        Self::open_on(Arc::new(Disk::new(dir.as_ref())), options)
    }

    /// The same on another storage.
    pub fn open_on(storage: Arc<dyn Storage>, options: Options) -> Result<Self, OpenError> {
        storage.prepare().map_err(OpenError::io(storage.place(), "", "create it"))?;
        let started = moment((options.clock)());
        let lock = storage.lock(&format!("{} since {started}", options.holder));
        let lock = lock.map_err(|e| match e {
            LockError::Held(holder) => {
                OpenError::Locked { path: storage.place().to_owned(), holder }
            }
            LockError::Io(error) => {
                let file = if why_unsafe(&error).is_some() { LOCK } else { "" };
                OpenError::io(storage.place(), file, "lock it")(error)
            }
        })?;
        let options = Arc::new(options);
        let writer = Writer::open(&storage, &options, None)?;
        let shared = Shared::new(writer, storage, options, lock);
        Ok(Self(Arc::new(Handle { shared })))
    }

    /// Records the entry, and returns once it is on disk.
    pub fn append(&self, entry: Entry) -> Result<Receipt, AuditFailed> {
        self.0.shared.append(entry)
    }

    /// Records the entry in the background. The ticket can be awaited or waited for, and resolves
    /// when the record is on disk. If the queue is full, the entry joins it when the ticket is
    /// first polled or waited for.
    #[must_use = "only the ticket says whether the record is on disk"]
    pub fn submit(&self, entry: Entry) -> Ticket {
        Ticket::new(Arc::clone(&self.0.shared), entry)
    }

    /// Records entries in their order, and returns once all of them are on disk: one sync for as
    /// many as fit into the queue.
    ///
    /// ```
    /// # use faultwire::audit::{Entry, Log, Options};
    /// # use faultwire::contract::Redactor;
    /// # let dir = std::env::temp_dir().join(format!("faultwire-all-{}", std::process::id()));
    /// let log = Log::open(&dir, Options::default())?;
    /// let entry = |name| Entry::event(name, None, &serde_json::json!({}), &Redactor::default());
    /// let receipts = log.append_all(vec![entry("one"), entry("two")]);
    /// assert_eq!(receipts[1].as_ref().unwrap().seq, Some(2));
    /// # std::fs::remove_dir_all(dir)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use = "each record may have failed"]
    pub fn append_all(&self, entries: Vec<Entry>) -> Vec<Result<Receipt, AuditFailed>> {
        self.0.shared.append_all(entries)
    }

    /// The one way from a fault to its answer: it is recorded, and only then given back to be
    /// sent. If it cannot be recorded, the answer is the contract's code for that (K10).
    #[must_use]
    pub fn answer(&self, fault: Fault, call: &Call, surface: Surface, profile: Profile) -> Answer {
        let (entry, envelope) = enveloped(&fault, call, surface, profile);
        self.settled(fault, envelope, self.append(entry), surface, profile)
    }

    /// The same without holding up a thread.
    pub async fn answer_async(
        &self,
        fault: Fault,
        call: &Call,
        surface: Surface,
        profile: Profile,
    ) -> Answer {
        let (entry, envelope) = enveloped(&fault, call, surface, profile);
        let receipt = self.submit(entry).await;
        self.settled(fault, envelope, receipt, surface, profile)
    }

    fn settled(
        &self,
        fault: Fault,
        envelope: Vec<u8>,
        receipt: Result<Receipt, AuditFailed>,
        surface: Surface,
        profile: Profile,
    ) -> Answer {
        match receipt {
            Ok(receipt) => Answer { fault, envelope, receipt: Some(receipt) },
            Err(failed) => {
                let now_ms = self.0.shared.now_ms();
                let stamp = Stamp { now_ms, ..Stamp::default() };
                let fault = failed.instead_of(&fault, &stamp).unwrap_or(fault);
                let envelope = fault.envelope(surface, profile);
                Answer { fault, envelope, receipt: None }
            }
        }
    }

    /// The keyed hash of arguments for the record. Equal arguments have equal hashes, independent
    /// of the order of their members.
    #[must_use]
    pub fn fingerprint(&self, arguments: &Value) -> Fingerprint {
        let mut sorted = arguments.clone();
        sorted.sort_all_objects();
        let mut json = Vec::new();
        // A JSON value is always JSON; an empty text would only make a hash that matches nothing.
        let _ = json_writer::write(&sorted, &mut json);
        Fingerprint(self.0.shared.key().fingerprint(&json))
    }

    /// The log's id.
    #[must_use]
    pub fn id(&self) -> &str {
        self.0.shared.log()
    }

    /// Why nothing is recorded any more, if that is so.
    #[must_use]
    pub fn failure(&self) -> Option<AuditFailed> {
        self.0.shared.failure()
    }

    /// Waits for everything that was appended, signs a checkpoint and lets go of the files and the
    /// lock. Afterwards every append fails. An error says that not everything was recorded.
    pub fn close(&self) -> Result<(), AuditFailed> {
        self.0.shared.close()
    }
}

fn enveloped(fault: &Fault, call: &Call, surface: Surface, profile: Profile) -> (Entry, Vec<u8>) {
    let envelope = fault.envelope(surface, profile);
    let call = Call { envelope: Some(Digest::of(&envelope)), ..call.clone() };
    (Entry::fault(fault, &call), envelope)
}

/// Closes the log when its last clone is dropped.
struct Handle {
    shared: Arc<Shared>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        // Callers that need the result call `close`; the alarm already has the failure.
        let _ = self.shared.close();
    }
}
