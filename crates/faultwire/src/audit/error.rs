//! What can go wrong with a log: what, where, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use faultwire_contract::{Aspect, Condition, Contract, Fault, FaultError, Report, Stamp};

use crate::audit::chain::Broken;
use crate::audit::checkpoint::BadCheckpoints;
use crate::audit::key::BadKey;
use crate::audit::storage::{UnsafeFile, why_unsafe};

/// Why a log cannot be opened. A log that is refused is left as it is; only a disk that fails may
/// do so after a repair was begun, and that can be begun again.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A file or the directory cannot be used.
    #[error("{}: cannot {doing}: {error}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// A file or the directory is not safe to use.
    #[error("{}: {why}", .path.display())]
    Unsafe {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: UnsafeFile,
    },
    /// Another process writes it.
    #[error("{}: the log is held by {holder}", .path.display())]
    Locked {
        /// The directory.
        path: PathBuf,
        /// Who.
        holder: String,
    },
    /// The file is there and is no log of ours.
    #[error("{}: line 1 is no record of this log's format", .0.display())]
    Foreign(PathBuf),
    /// A full segment is there that cannot be one of this log.
    #[error("{}: the live segment does not come after this one", .0.display())]
    Stray(PathBuf),
    /// A record that was safely on disk is not what it was.
    #[error("{}:{line}: {why}", .path.display())]
    Damaged {
        /// The segment.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong.
        why: Broken,
    },
    /// There are fewer records than a checkpoint covers.
    #[error(
        "{}: the log has {have} records, and a signed checkpoint covers {sealed}: it was cut",
        .path.display()
    )]
    Shrunk {
        /// The directory.
        path: PathBuf,
        /// How many a checkpoint covers.
        sealed: u64,
        /// How many there are.
        have: u64,
    },
    /// The records are not those that a checkpoint covers.
    #[error(
        "{}: the first {size} records are not those that were signed: it is another log",
        .path.display()
    )]
    Forked {
        /// The segment.
        path: PathBuf,
        /// The checkpoint's size.
        size: u64,
    },
    /// A checkpoint that must be there is not.
    #[error(
        "{}: no checkpoint covers the {size} records before this segment",
        .path.display()
    )]
    Unsealed {
        /// The segment.
        path: PathBuf,
        /// How many records come before it.
        size: u64,
    },
    /// The checkpoints are not what they should be.
    #[error("{}: {why}", .path.display())]
    Checkpoints {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: BadCheckpoints,
    },
    /// The first record could not be written.
    #[error("{0}")]
    Failed(AuditFailed),
    /// What is there is not the log that was open before, or not all of it.
    #[error("{}: another log is in its place, or records are missing", .0.display())]
    Replaced(PathBuf),
    /// The log is signed, and its key is gone.
    #[error("{}: the key that signed the log's checkpoints is not there", .0.display())]
    NoKey(PathBuf),
    /// The key cannot be used.
    #[error("{}: {why}", .path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: BadKey,
    },
}

impl OpenError {
    /// What to do.
    #[must_use]
    pub fn help(&self) -> &'static str {
        match self {
            Self::Io { .. } | Self::Failed(_) => {
                "name a directory that this user may write to, with space on it"
            }
            Self::Unsafe { why, .. } => why.help(),
            Self::Locked { .. } => {
                "one process writes a log: stop that one, or name another directory"
            }
            Self::Foreign(_) => {
                "name another directory, or move the file away; `faultwire audit verify` reads the older format, too"
            }
            Self::Stray(_)
            | Self::Replaced(_)
            | Self::Damaged { .. }
            | Self::Shrunk { .. }
            | Self::Forked { .. }
            | Self::Unsealed { .. } => {
                "keep the directory as evidence (`faultwire audit verify` tells more), bring back the whole log from a backup, or move the directory away and a new log begins"
            }
            Self::Checkpoints { .. } => {
                "use the key that the log was begun with, or move the directory away and a new log begins"
            }
            Self::Key { .. } | Self::NoKey(_) => {
                "bring back the key from a backup, or move the directory away and a new log begins"
            }
        }
    }

    /// The start-up failure under a contract (K15). A log that is not what it was is a failed
    /// self-audit; anything else keeps the program from starting.
    pub fn fault(&self, contract: &Arc<Contract>, stamp: &Stamp) -> Result<Fault, FaultError> {
        let aspect = match self {
            Self::Io { .. }
            | Self::Unsafe { .. }
            | Self::Failed(_)
            | Self::Key { .. }
            | Self::NoKey(_)
            | Self::Locked { .. } => None,
            _ => Some(Aspect::SelfAudit),
        };
        let report = Report {
            condition: Some(Condition::BootstrapFailed),
            message: Some(format!("{self} ({})", self.help())),
            tool: Some("startup".to_owned()),
            ..Report::new(&contract.code_for(Condition::BootstrapFailed, aspect).id)
        };
        Fault::new(contract, report, stamp)
    }

    pub(crate) fn io(
        place: &Path,
        name: &str,
        doing: &'static str,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = within(place, name);
        move |error| match why_unsafe(&error) {
            Some(why) => Self::Unsafe { path, why },
            None => Self::Io { path, doing, error },
        }
    }
}

/// A record was not written, and no further one will be.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct AuditFailed(Arc<Why>);

#[derive(Debug, thiserror::Error)]
enum Why {
    #[error("{}: cannot {doing}: {error}", .path.display())]
    Io { path: PathBuf, doing: &'static str, error: io::Error },
    #[error("{}: the file is gone, another stands in its place, or another process wrote to it", .0.display())]
    Gone(PathBuf),
    #[error("the log is closed")]
    Closed,
    #[error("{0}")]
    Open(OpenError),
    #[error("a thread that wrote the log panicked")]
    Panicked,
}

impl AuditFailed {
    pub(crate) fn io(
        place: &Path,
        name: &str,
        doing: &'static str,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = within(place, name);
        move |error| Self(Arc::new(Why::Io { path, doing, error }))
    }

    pub(crate) fn gone(path: PathBuf) -> Self {
        Self(Arc::new(Why::Gone(path)))
    }

    pub(crate) fn closed() -> Self {
        Self(Arc::new(Why::Closed))
    }

    pub(crate) fn panicked() -> Self {
        Self(Arc::new(Why::Panicked))
    }

    /// What the client gets in the place of a fault that could not be recorded: the contract's
    /// code for that, under the same incident, and nothing of what was not recorded (K10).
    pub fn instead_of(&self, fault: &Fault, stamp: &Stamp) -> Result<Fault, FaultError> {
        let (contract, public) = (fault.contract(), fault.public());
        let locked = matches!(&*self.0, Why::Open(OpenError::Locked { .. }));
        let code = contract.code_for(Condition::AuditFailed, locked.then_some(Aspect::Lock));
        let report = Report {
            condition: Some(Condition::AuditFailed),
            tool: public.tool.clone(),
            method: public.method.clone(),
            outcome: public.outcome,
            session: public.session.clone(),
            meta: public.meta.clone(),
            incident: public.incident.clone(),
            trace: public.trace.clone(),
            ..Report::new(&code.id)
        };
        Fault::new(contract, report, stamp)
    }
}

/// For a server that answers although its log could not be opened.
impl From<OpenError> for AuditFailed {
    fn from(error: OpenError) -> Self {
        Self(Arc::new(Why::Open(error)))
    }
}

/// The file of that name, or the directory itself.
pub(crate) fn within(place: &Path, name: &str) -> PathBuf {
    if name.is_empty() { place.to_owned() } else { place.join(name) }
}
