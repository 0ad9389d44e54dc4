//! How a server's process is started.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;

/// How a server is started.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Launch {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Variables that it is given beside the environment.
    pub given: Vec<(OsString, OsString)>,
    /// Variables of the environment that it is not given: they are secrets of others (X2).
    pub withheld: BTreeSet<OsString>,
}

impl From<Vec<OsString>> for Launch {
    fn from(command: Vec<OsString>) -> Self {
        Self { command, ..Self::default() }
    }
}

/// A variable's value may be a secret, and is not printed.
impl fmt::Debug for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launch").field("command", &self.command).finish_non_exhaustive()
    }
}
