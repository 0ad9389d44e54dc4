//! What a server that does not start printed last.

use std::io;

use faultwire_contract::start_check;

/// The last output of a server that does not start.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LastOutput {
    /// Its last lines, safe to show.
    pub text: String,
    /// What to check, in our own words.
    pub check: Option<&'static str>,
}

impl LastOutput {
    /// Of a server that could not even be run.
    pub(crate) fn of_error(error: &io::Error) -> Self {
        Self { text: String::new(), check: start_check(&error.to_string()) }
    }

    /// Whether the command is what keeps a server from being started, and not a lack of something
    /// that there may be more of later.
    pub(crate) fn is_fault_of_command(error: &io::Error) -> bool {
        use rustix::io::Errno;
        let of_command =
            [Errno::NOENT, Errno::ACCESS, Errno::PERM, Errno::NOEXEC, Errno::ISDIR, Errno::NOTDIR];
        let number = error.raw_os_error();
        error.kind() == io::ErrorKind::InvalidInput
            || of_command.iter().any(|errno| Some(errno.raw_os_error()) == number)
    }
}
