//! Errors of commands: what is wrong, where, and what to do.

use std::io;
use std::path::PathBuf;

use faultwire::audit::{IndexError, OpenError};
use faultwire::json;
use faultwire_contract::{Mistakes, Redactor};

use crate::style::{ERROR, HELP};

/// What to do about a file that cannot be read.
const READABLE: &str = "check the path and the file's permissions";

/// An error that ends a command with exit code 2.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The input cannot be used.
    #[error("{place}: {what}")]
    Bad {
        /// Where.
        place: String,
        /// What.
        what: String,
        /// What to do.
        help: String,
    },
    /// A contract file that does not load.
    #[error("{0}")]
    Contract(Mistakes),
    /// A file that cannot be read.
    #[error("{0}: cannot read the file: {1}")]
    File(PathBuf, #[source] io::Error),
    /// The audit log cannot be opened.
    #[error("{0}")]
    Audit(#[from] OpenError),
    /// The program cannot start.
    #[error("{place}: {what}")]
    Startup {
        /// Where.
        place: String,
        /// What.
        what: String,
        /// What to do.
        help: String,
    },
    /// The audit log cannot be searched.
    #[error("{0}")]
    Index(#[from] IndexError),
    /// stdin cannot be read.
    #[error("stdin: {0}")]
    Input(#[source] io::Error),
    /// stdout cannot be written.
    #[error("stdout: {0}")]
    Output(#[source] io::Error),
}

impl Problem {
    /// Bad input, with what to do.
    ///
    /// The text often quotes the input, which may contain secrets.
    pub fn bad(place: &str, what: impl Into<String>, help: impl Into<String>) -> Self {
        let redactor = Redactor::default();
        let what = what.into();
        let what = redactor.redact_credentials(&what).into_owned();
        Self::Bad { place: place.to_owned(), what, help: help.into() }
    }

    /// An error of the text on stdin; the help is for errors that have none of their own.
    pub fn in_input(error: &json::Error, help: &str) -> Self {
        match error.place() {
            Some(_) => error.clone().into(),
            None => Self::bad("stdin", error.what(), error.help().unwrap_or(help)),
        }
    }

    /// The same error, located at the setting that caused it.
    pub fn asked_at(self, place: String) -> Self {
        match self {
            Self::Bad { place: inner, what, help } => {
                Self::Bad { place, what: format!("{inner}: {what}"), help }
            }
            Self::File(path, error) => {
                let what = format!("cannot read {}: {error}", path.display());
                Self::Bad { place, what, help: READABLE.to_owned() }
            }
            other => other,
        }
    }

    /// The same error, if it kept a server from starting (K15).
    pub fn at_start(self) -> Self {
        let help = self
            .help()
            .unwrap_or("run `faultwire contract lint FILE` to check the file")
            .to_owned();
        match self {
            Self::Bad { place, what, .. } => Self::Startup { place, what, help },
            Self::File(path, error) => {
                let what = format!("cannot read the file: {error}");
                Self::Startup { place: path.display().to_string(), what, help }
            }
            Self::Contract(mistakes) => {
                Self::Startup { place: "contract".to_owned(), what: mistakes.to_string(), help }
            }
            other => other,
        }
    }

    /// Whether the reader of stdout has closed it: `faultwire … | head` is not a failure.
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Output(e) if e.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Whether it kept a server from starting.
    pub fn is_startup(&self) -> bool {
        matches!(self, Self::Startup { .. } | Self::Audit(_))
    }

    /// For a terminal.
    pub fn for_people(&self) -> String {
        let mut text = format!("{ERROR}error{ERROR:#}: {self}\n");
        if let Some(help) = self.help() {
            text += &format!("  {HELP}help{HELP:#}: {help}\n");
        }
        text
    }

    pub fn help(&self) -> Option<&str> {
        match self {
            Self::Bad { help, .. } | Self::Startup { help, .. } => Some(help),
            Self::File(..) => Some(READABLE),
            Self::Audit(error) => Some(error.help()),
            Self::Index(IndexError::Broken(_) | IndexError::Changed { .. }) => Some(
                "records of a log that fails verification are not shown; run `faultwire audit verify`",
            ),
            Self::Index(_) => Some(
                "name the directory of an audit log; its index (audit-index.sqlite) may be deleted",
            ),
            Self::Contract(_) | Self::Input(_) | Self::Output(_) => None,
        }
    }
}

impl From<json::Error> for Problem {
    fn from(error: json::Error) -> Self {
        if let Some(mistakes) = error.mistakes() {
            return Self::Contract(mistakes.clone());
        }
        let place = error.place().map_or("stdin", |place| &place.name);
        Self::bad(place, error.what(), error.help().unwrap_or_default())
    }
}
