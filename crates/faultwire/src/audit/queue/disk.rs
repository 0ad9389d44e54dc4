//! Writes batches to disk, and handles failures of the log.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{FailedWrite, Shared, Taken, WRITING};
use crate::audit::batch::{Fate, wake_all};
use crate::audit::error::AuditFailed;
use crate::audit::options::Alarm;
use crate::audit::record::{Entry, Gap};
use crate::audit::writer::{Left, Writer, moment};

impl Shared {
    /// Writes a batch, wakes all who wait for it, and signs a checkpoint if it is due.
    pub(super) fn bring_to_disk(&self, taken: Taken) {
        let outer = WRITING.replace(self.address());
        wake_all(taken.wakers);
        let fate = match guarded(|| self.commit(&taken.entries)) {
            Ok(first) => Fate::Durable(first),
            Err(why) => self.fail(why, taken.entries.len() as u64),
        };
        taken.batch.settle(fate);
        let sealed = guarded(|| self.writer().as_mut().map_or(Ok(()), Writer::seal_if_due));
        if let Err(why) = sealed {
            self.fail(why, 0);
        }
        WRITING.set(outer);
    }

    fn commit(&self, entries: &[Entry]) -> Result<u64, AuditFailed> {
        let mut slot = self.writer();
        let writer = match &mut *slot {
            Some(writer) => writer,
            // What gathered before the log failed has failed with it.
            None if !self.options.fail_open => {
                return Err(self.failure().unwrap_or_else(AuditFailed::closed));
            }
            None => slot.insert(self.reopen()?),
        };
        let first = writer.commit(entries)?;
        self.durable.store(writer.records(), Ordering::Relaxed);
        Ok(first)
    }

    /// Reopens a log that failed open, and records what it missed.
    fn reopen(&self) -> Result<Writer, AuditFailed> {
        let records = self.durable.load(Ordering::Relaxed);
        let left = Left { log: self.log.clone(), key: Arc::clone(&self.key), records };
        let opened = Writer::open(&self.storage, &self.options, Some(&left));
        let mut writer = opened.map_err(AuditFailed::from)?;
        let Some(failed) = self.queue().failed.take() else { return Ok(writer) };
        let (missed, since) = (failed.missed, moment(failed.since_ms));
        let gap = Gap { missed, since, why: failed.why.to_string() };
        if let Err(why) = writer.commit([&Entry::gap(&gap)]) {
            self.queue().failed = Some(failed);
            return Err(why);
        }
        self.options.raise(&Alarm::Recovered { missed });
        Ok(writer)
    }

    /// The last chance to record what was missed.
    pub(super) fn confess(&self) {
        match guarded(|| self.reopen()) {
            Ok(writer) => *self.writer() = Some(writer),
            Err(why) => {
                let missed = self.queue().failed.as_ref().map_or(0, |failed| failed.missed);
                self.options.raise(&Alarm::Lost { missed, why: why.to_string() });
            }
        }
    }

    /// Stops recording and closes the files. Whether the last bytes reached the disk is only known
    /// after the log is opened again.
    fn fail(&self, why: AuditFailed, lost: u64) -> Fate {
        *self.writer() = None;
        let now = (self.options.clock)();
        let mut queue = self.queue();
        let known = queue.failed.is_some();
        let failed = queue.failed.get_or_insert_with(|| FailedWrite {
            why: why.clone(),
            since_ms: now,
            tried_ms: now,
            missed: 0,
        });
        failed.missed += lost;
        drop(queue);
        if !known {
            self.shout(&why);
        }
        if self.options.fail_open { Fate::Missed } else { Fate::Failed(why) }
    }

    pub(super) fn shout(&self, why: &AuditFailed) {
        let fail_open = self.options.fail_open;
        self.options.raise(&Alarm::Failed { why: why.to_string(), fail_open });
    }
}

/// A bug in the writer must not block waiting threads for ever.
pub(super) fn guarded<T>(work: impl FnOnce() -> Result<T, AuditFailed>) -> Result<T, AuditFailed> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(AuditFailed::panicked()))
}
