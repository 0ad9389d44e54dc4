//! Errors: what is wrong, where, and what to do.

use std::fmt;

use faultwire_contract::{FaultError, Mistakes, ReadError};

use crate::audit::{AuditFailed, OpenError};

/// What kind of error it is. Packages for other languages have an exception for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// A contract file has mistakes.
    Contract,
    /// There is no built-in contract of this name.
    UnknownContract,
    /// The contract has no such code.
    UnknownCode,
    /// The contract does not allow this fault.
    Fault,
    /// This is not an envelope of the contract.
    Envelope,
    /// The input is not what is expected.
    Input,
    /// The audit log cannot be opened or written.
    Audit,
    /// A bug of the engine.
    Internal,
}

impl ErrorKind {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Contract => "contract",
            Self::UnknownContract => "unknown_contract",
            Self::UnknownCode => "unknown_code",
            Self::Fault => "fault",
            Self::Envelope => "envelope",
            Self::Input => "input",
            Self::Audit => "audit",
            Self::Internal => "internal",
        }
    }
}

/// Where an error is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The file, or the name that was given.
    pub name: String,
    /// The line, from 1.
    pub line: Option<usize>,
    /// The column, from 1.
    pub column: Option<usize>,
}

/// An error: what is wrong, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<Parts>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Parts {
    kind: ErrorKind,
    place: Option<Place>,
    what: String,
    help: Option<String>,
    /// All mistakes of a contract file.
    mistakes: Option<Mistakes>,
}

impl Error {
    /// An error, and what to do about it.
    #[must_use]
    pub fn new(kind: ErrorKind, what: impl Into<String>, help: impl Into<String>) -> Self {
        let parts = Parts { help: Some(help.into()), ..Parts::new(kind, what.into()) };
        Self(Box::new(parts))
    }

    /// An error that says itself what to do.
    fn plain(kind: ErrorKind, error: &impl ToString) -> Self {
        Self(Box::new(Parts::new(kind, error.to_string())))
    }

    /// The same error at this place.
    #[must_use]
    pub fn at(mut self, name: impl Into<String>) -> Self {
        self.0.place = Some(Place { name: name.into(), ..Place::default() });
        self
    }

    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What is wrong.
    #[must_use]
    pub fn what(&self) -> &str {
        &self.0.what
    }

    /// Where, if it is at a place.
    #[must_use]
    pub fn place(&self) -> Option<&Place> {
        self.0.place.as_ref()
    }

    /// What to do.
    #[must_use]
    pub fn help(&self) -> Option<&str> {
        self.0.help.as_deref()
    }

    /// As JSON, for other languages: `kind`, `what`, `file`, `line`, `column`, `help`, and the whole
    /// `text`.
    #[must_use]
    pub fn to_json(&self) -> String {
        let place = self.place();
        serde_json::json!({
            "kind": self.kind().name(),
            "what": self.what(),
            "file": place.map(|place| &place.name),
            "line": place.and_then(|place| place.line),
            "column": place.and_then(|place| place.column),
            "help": self.help(),
            "text": self.to_string(),
        })
        .to_string()
    }

    /// All mistakes of a contract file, if it is about one.
    #[must_use]
    pub fn mistakes(&self) -> Option<&Mistakes> {
        self.0.mistakes.as_ref()
    }
}

impl Parts {
    fn new(kind: ErrorKind, what: String) -> Self {
        Self { kind, place: None, what, help: None, mistakes: None }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(mistakes) = &self.0.mistakes {
            return mistakes.fmt(f);
        }
        if let Some(place) = &self.0.place {
            write!(f, "{}: ", place.name)?;
        }
        f.write_str(&self.0.what)
    }
}

impl std::error::Error for Error {}

impl From<Mistakes> for Error {
    fn from(mistakes: Mistakes) -> Self {
        let first = mistakes.list.first();
        Self(Box::new(Parts {
            kind: ErrorKind::Contract,
            place: Some(Place {
                name: mistakes.file.clone(),
                line: first.map(|mistake| mistake.line),
                column: first.map(|mistake| mistake.column),
            }),
            what: first.map(|mistake| mistake.what.clone()).unwrap_or_default(),
            help: first.map(|mistake| mistake.help.clone()),
            mistakes: Some(mistakes),
        }))
    }
}

impl From<FaultError> for Error {
    fn from(error: FaultError) -> Self {
        let kind = match &error {
            FaultError::UnknownCode { .. } => ErrorKind::UnknownCode,
            _ => ErrorKind::Fault,
        };
        Self::plain(kind, &error)
    }
}

impl From<ReadError> for Error {
    fn from(error: ReadError) -> Self {
        let kind = match &error {
            ReadError::UnknownCode { .. } => ErrorKind::UnknownCode,
            _ => ErrorKind::Envelope,
        };
        Self::plain(kind, &error)
    }
}

impl From<OpenError> for Error {
    fn from(error: OpenError) -> Self {
        Self::new(ErrorKind::Audit, error.to_string(), error.help())
    }
}

impl From<AuditFailed> for Error {
    fn from(error: AuditFailed) -> Self {
        Self::plain(ErrorKind::Audit, &error)
    }
}
