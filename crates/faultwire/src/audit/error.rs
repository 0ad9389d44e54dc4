//! Errors of a log: what is wrong, where, and what to do.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use faultwire_contract::{Aspect, Condition, Contract, Fault, FaultError, Report, Stamp};

use crate::audit::chain::Broken;
use crate::audit::checkpoint::BadCheckpoints;
use crate::audit::key::BadKey;
use crate::audit::storage::{UnsafeFile, why_unsafe};

/// Why a log cannot be opened. A refused log is left unchanged, except that a failing disk can
/// interrupt a repair, which the next start repeats.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A file or the directory cannot be used.
    #[error("{}: cannot {doing}: {error}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// The system's error.
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
    #[error("{}: the log is in use by {holder}", .path.display())]
    Locked {
        /// The directory.
        path: PathBuf,
        /// Who.
        holder: String,
    },
    /// The file exists and is not a log in this format.
    #[error("{}: line 1 is not an audit record of this format", .0.display())]
    Foreign(PathBuf),
    /// A full segment that cannot belong to this log.
    #[error("{}: this segment is not followed by the live one", .0.display())]
    Stray(PathBuf),
    /// A record that was safely on disk has changed.
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
        "{}: the log has {have} records, but a signed checkpoint covers {sealed}: it was cut",
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
        "{}: the first {size} records are not those that were signed: this is another log",
        .path.display()
    )]
    Forked {
        /// The segment.
        path: PathBuf,
        /// The checkpoint's size.
        size: u64,
    },
    /// A required checkpoint is missing.
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
    /// The checkpoints are not valid.
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
    /// The log on disk is not the one that was open before, or not all of it.
    #[error("{}: the log was replaced, or records are missing", .0.display())]
    Replaced(PathBuf),
    /// The log is signed, but its key is missing.
    #[error("{}: the key that signed the log's checkpoints is missing", .0.display())]
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
                "name a directory that this user can write to, on a disk with free space"
            }
            Self::Unsafe { why, .. } => why.help(),
            Self::Locked { .. } => {
                "only one process can write a log: stop that process, or name another directory"
            }
            Self::Foreign(_) => {
                "name another directory, or move the file away; `faultwire audit verify` also reads the older format"
            }
            Self::Stray(_)
            | Self::Replaced(_)
            | Self::Damaged { .. }
            | Self::Shrunk { .. }
            | Self::Forked { .. }
            | Self::Unsealed { .. } => {
                "keep a copy of the directory as evidence and run `faultwire audit verify`; then restore the whole log from a backup, or move the directory away to begin a new log"
            }
            Self::Checkpoints { .. } => {
                "use the key that the log was created with, or move the directory away to begin a new log"
            }
            Self::Key { .. } | Self::NoKey(_) => {
                "restore the key from a backup, or move the directory away to begin a new log"
            }
        }
    }

    /// The startup failure under a contract (K15). A log that has changed is a failed self-audit; any
    /// other error is a failed startup.
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

/// A record was not written, and no further records will be.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct AuditFailed(Arc<Why>);

#[derive(Debug, thiserror::Error)]
enum Why {
    #[error("{}: cannot {doing}: {error}", .path.display())]
    Io { path: PathBuf, doing: &'static str, error: io::Error },
    #[error("{}: the file was removed or replaced, or another process wrote to it", .0.display())]
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

    /// What the client gets instead of a fault that could not be recorded: the contract's code for
    /// that, with the same incident, and nothing of the unrecorded fault (K10).
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

/// For a server that answers even though its log could not be opened.
impl From<OpenError> for AuditFailed {
    fn from(error: OpenError) -> Self {
        Self(Arc::new(Why::Open(error)))
    }
}

/// The file of that name, or the directory itself.
pub(crate) fn within(place: &Path, name: &str) -> PathBuf {
    if name.is_empty() { place.to_owned() } else { place.join(name) }
}
