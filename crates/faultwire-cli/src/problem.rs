//! What can go wrong with a command itself: what, where, and what to do about it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use faultwire::audit::{IndexError, OpenError};
use faultwire_contract::{
    Condition, Contract, DEFAULT, Fault, FaultError, Mistakes, Profile, Redactor, Report, Surface,
    builtin,
};

use crate::style::{ERROR, HELP};
use crate::{chosen, edge};

/// A reason to exit with 2.
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
    #[error("{0}: {1}")]
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
    /// What is wrong often quotes the input, which may hold secrets and steer a terminal.
    pub fn bad(place: &str, what: impl Into<String>, help: impl Into<String>) -> Self {
        let redactor = Redactor::default();
        let what = what.into();
        let what = redactor.redact_credentials(&what).into_owned();
        Self::Bad { place: place.to_owned(), what, help: help.into() }
    }

    /// The same, where the settings ask for what cannot be had.
    pub fn asked_at(self, place: String) -> Self {
        match self {
            Self::Bad { place: inner, what, help } => {
                Self::Bad { place, what: format!("{inner}: {what}"), help }
            }
            Self::File(path, error) => {
                let what = format!("{}: {error}", path.display());
                Self::Bad { place, what, help: "name a file that can be read".to_owned() }
            }
            other => other,
        }
    }

    /// The same, where it keeps a program from starting that others talk to (K15).
    pub fn at_start(self) -> Self {
        let help = self.help().unwrap_or("`faultwire contract lint FILE` checks it").to_owned();
        match self {
            Self::Bad { place, what, .. } => Self::Startup { place, what, help },
            Self::File(path, error) => {
                Self::Startup { place: path.display().to_string(), what: error.to_string(), help }
            }
            Self::Contract(mistakes) => {
                Self::Startup { place: "contract".to_owned(), what: mistakes.to_string(), help }
            }
            other => other,
        }
    }

    /// Whoever read our output has gone: `faultwire … | head` is no failure.
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Output(e) if e.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Whether it kept a program from starting that others talk to.
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

    /// As an envelope of the contract that the command speaks, or of the default one.
    pub fn envelope(&self, contract: Option<&str>) -> String {
        let named = contract.and_then(|name| chosen::contract(name).ok());
        let Some(contract) = named.or_else(|| builtin(DEFAULT)) else { return self.for_people() };
        let fault = match self {
            Self::Audit(error) => error.fault(&contract, &edge::stamp(&contract)),
            _ => self.fault(&contract),
        };
        match fault {
            Ok(fault) => {
                let bytes = fault.envelope(Surface::Mcp, Profile::default());
                format!("{}\n", String::from_utf8_lossy(&bytes))
            }
            Err(e) => format!("{e}\n"),
        }
    }

    fn fault(&self, contract: &Arc<Contract>) -> Result<Fault, FaultError> {
        let condition = match self {
            Self::Bad { .. } | Self::Contract(_) | Self::File(..) => Condition::InvalidArguments,
            Self::Startup { .. } => Condition::BootstrapFailed,
            _ => Condition::Internal,
        };
        let help = self.help().map(|help| format!(" ({help})")).unwrap_or_default();
        let report = Report {
            condition: Some(condition),
            message: Some(format!("{self}{help}")),
            suggestion: self.help().map(str::to_owned),
            tool: self.is_startup().then(|| "startup".to_owned()),
            ..Report::new(&contract.code_for(condition, None).id)
        };
        Fault::new(contract, report, &edge::stamp(contract))
    }

    fn help(&self) -> Option<&str> {
        match self {
            Self::Bad { help, .. } | Self::Startup { help, .. } => Some(help),
            Self::File(..) => Some("name a file that can be read"),
            Self::Audit(error) => Some(error.help()),
            Self::Index(IndexError::Broken(_) | IndexError::Changed { .. }) => Some(
                "nothing is shown of a log that does not hold; `faultwire audit verify` tells more",
            ),
            Self::Index(_) => Some("name the directory of an audit log; its index may be deleted"),
            Self::Contract(_) | Self::Input(_) | Self::Output(_) => None,
        }
    }
}
