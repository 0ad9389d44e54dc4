//! The options of a log.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::audit::key::Key;

/// Settings of a log. The defaults suit a server; change single ones by name:
///
/// ```
/// use faultwire::audit::Options;
///
/// let options = Options { segment_bytes: 1024 * 1024, ..Options::default() };
/// assert!(!options.fail_open);
/// ```
#[derive(Clone)]
pub struct Options {
    /// The writer's name, which other processes see when the log is locked.
    pub holder: String,
    /// A segment is closed when it has this many bytes.
    pub segment_bytes: u64,
    /// A segment is closed when its first line is this old.
    pub segment_age: Duration,
    /// A checkpoint is signed after this many records.
    pub checkpoint_every: u64,
    /// How many bytes may wait to be written before appending waits, too.
    pub queue_bytes: usize,
    /// Whether failures are answered even if they cannot be recorded. It is off by default: if the
    /// log cannot be written, every failure is answered with the code for that. If it is on, missed
    /// records are counted, and their number is recorded as soon as the log works again.
    pub fail_open: bool,
    /// How long to wait before a failed log is tried again, when it fails open.
    pub retry_after: Duration,
    /// The key that signs checkpoints. Without one, a key is generated in the log's directory at
    /// the first use.
    pub key: Option<Arc<Key>>,
    /// What time it is, in milliseconds since the epoch.
    pub clock: fn() -> i64,
    /// Called when the log fails or is repaired. By default, it writes to stderr. The writing
    /// thread calls it and waits for it, so it must not append to the log or close it.
    pub alarm: Arc<dyn Fn(&Alarm) + Send + Sync>,
}

/// An event that an operator must notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Alarm {
    /// The log failed; no failure is recorded any more.
    Failed {
        /// What went wrong, and what to do.
        why: String,
        /// Whether failures are still answered.
        fail_open: bool,
    },
    /// The log works again after it failed open.
    Recovered {
        /// How many failures were answered without being recorded.
        missed: u64,
    },
    /// The log was closed before it worked again.
    Lost {
        /// How many failures were answered without being recorded, and without a record of that.
        missed: u64,
        /// What is wrong with the log.
        why: String,
    },
    /// Bytes that were no whole record were moved aside when the log was opened.
    Repaired {
        /// How many.
        bytes: u64,
        /// The file that keeps them.
        moved_to: String,
    },
}

impl fmt::Display for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed { why, fail_open: false } => {
                write!(
                    f,
                    "AUDIT LOG FAILED: {why}. Failures are answered with the code for an unrecorded failure."
                )
            }
            Self::Failed { why, fail_open: true } => {
                write!(
                    f,
                    "AUDIT LOG FAILED: {why}. Failures are answered without being recorded (fail_open is set)."
                )
            }
            Self::Recovered { missed } => {
                write!(f, "the audit log works again; {missed} failures were not recorded")
            }
            Self::Lost { missed, why } => {
                write!(f, "AUDIT LOG FAILED: {missed} failures were not recorded: {why}")
            }
            Self::Repaired { bytes, moved_to } => write!(
                f,
                "a file of the audit log ended in {bytes} bytes that are not whole, as after a \
                 crash; they were moved to {moved_to}"
            ),
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            holder: format!("process {}", std::process::id()),
            segment_bytes: 16 * 1024 * 1024,
            segment_age: Duration::from_hours(24),
            checkpoint_every: 1024,
            queue_bytes: 8 * 1024 * 1024,
            fail_open: false,
            retry_after: Duration::from_secs(1),
            key: None,
            clock: now_ms,
            alarm: Arc::new(shout),
        }
    }
}

impl Options {
    /// Tells the operator. Who listens must not end the writer.
    pub(crate) fn raise(&self, alarm: &Alarm) {
        let _ = catch_unwind(AssertUnwindSafe(|| (self.alarm)(alarm)));
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("holder", &self.holder)
            .field("segment_bytes", &self.segment_bytes)
            .field("segment_age", &self.segment_age)
            .field("checkpoint_every", &self.checkpoint_every)
            .field("queue_bytes", &self.queue_bytes)
            .field("fail_open", &self.fail_open)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

#[expect(clippy::disallowed_methods, reason = "the log's own clock, which a test can replace")]
fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

fn shout(alarm: &Alarm) {
    use std::io::Write;
    // If stderr fails, there is no other place to report it.
    let _ = writeln!(std::io::stderr().lock(), "faultwire: {alarm}");
}
