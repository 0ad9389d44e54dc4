//! The audit log: durable before the reply, tamper-evident after it.
//!
//! A log is a directory. [`Log::append`] returns once the record is on disk; one sync covers all
//! waiting records. Each line has the hash of the one before, and signed checkpoints cover all
//! lines. `docs/audit-format.md` defines the format, and says what it cannot show.

mod batch;
mod call;
mod chain;
mod check;
mod checkpoint;
mod error;
mod export;
mod failure;
#[cfg(feature = "index")]
mod filter;
mod hash;
#[cfg(feature = "index")]
mod index;
mod json_writer;
mod key;
pub mod legacy;
mod line;
mod lines;
mod log;
mod options;
mod queue;
mod read;
mod reader;
mod record;
mod recover;
pub mod segment;
pub mod segments;
mod storage;
mod ticket;
mod tree;
mod verify;
mod writer;

pub use call::{Call, Digest, Fingerprint};
pub use chain::{Broken, Chain};
pub use check::{Check, Wrong};
pub use checkpoint::{BadCheckpoint, BadCheckpoints, Checkpoint, Checkpoints, origin};
pub use error::{AuditFailed, OpenError};
pub use export::{Dialect, export};
#[cfg(feature = "index")]
pub use filter::Filter;
pub use hash::Hash;
#[cfg(feature = "index")]
pub use index::{Index, IndexError};
pub use key::{BadKey, Key, PublicKey};
pub use line::{BadHead, Head, LONGEST_LINE, VERSION};
pub use lines::{Line, Lines, Shape};
pub use log::{Answer, Log, Receipt};
pub use options::{Alarm, Options};
pub use read::{Summary, each_line};
pub use reader::{Extent, Reader};
pub use record::{Before, Entry};
pub use storage::{Access, Disk, LockError, Storage, Tail, UnsafeFile};
pub use ticket::Ticket;
pub use tree::Frontier;
pub use verify::{Expect, Finding, Verified, verify};
