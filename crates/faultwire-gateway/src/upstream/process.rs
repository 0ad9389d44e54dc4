//! One run of the server: a process with a group of its own, so that what it starts ends with it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use crate::upstream::stderr::Stderr;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// A server that was started.
pub(crate) struct Started {
    pub stdin: File,
    pub stdout: File,
    pub stderr: Arc<Stderr>,
    pub process: Process,
    pub group: Group,
}

/// What must be waited for.
pub(crate) struct Process {
    child: Child,
    group: Group,
    waited: bool,
}

impl Drop for Process {
    /// A server that nobody came to watch must not stay.
    fn drop(&mut self) {
        if !self.waited {
            self.group.signal(Signal::KILL);
            self.group.forget();
            let _ = self.child.wait();
        }
    }
}

/// The server and everything that it started, as long as there is something to end.
#[derive(Clone)]
pub(crate) struct Group(Arc<Mutex<Option<Pid>>>);

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

/// Starts the server. Its stderr is copied to ours.
pub(crate) fn start(launch: &Launch) -> io::Result<Started> {
    let (program, arguments) = launch.command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command.args(arguments).process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for name in &launch.withheld {
        command.env_remove(name);
    }
    command.envs(launch.given.iter().map(|(name, value)| (name, value)));
    let mut child = with_usual_pages(|| command.spawn())?;
    let missing = || io::Error::other("the server was started without a pipe");
    let stdin = child.stdin.take().ok_or_else(missing)?;
    let stdout = child.stdout.take().ok_or_else(missing)?;
    let stderr = child.stderr.take().ok_or_else(missing)?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let group = Group(Arc::new(Mutex::new(pid)));
    // From here on the server ends if it cannot be used.
    let process = Process { child, group: group.clone(), waited: false };
    Ok(Started {
        stdin: File::from(OwnedFd::from(stdin)),
        stdout: File::from(OwnedFd::from(stdout)),
        stderr: Stderr::copy(File::from(OwnedFd::from(stderr)))?,
        process,
        group,
    })
}

/// Whether the command is what keeps a server from being started, and not a lack of something that
/// there may be more of later.
pub(crate) fn is_fault_of_command(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let of_command =
        [Errno::NOENT, Errno::ACCESS, Errno::PERM, Errno::NOEXEC, Errno::ISDIR, Errno::NOTDIR];
    let number = error.raw_os_error();
    error.kind() == io::ErrorKind::InvalidInput
        || of_command.iter().any(|errno| Some(errno.raw_os_error()) == number)
}

/// Our allocator has the kernel use small pages, which the server is not to inherit.
#[cfg(target_os = "linux")]
fn with_usual_pages<T>(spawn: impl FnOnce() -> T) -> T {
    use rustix::thread::{disable_transparent_huge_pages, transparent_huge_pages_are_disabled};
    let small = transparent_huge_pages_are_disabled().unwrap_or(false);
    if small {
        let _ = disable_transparent_huge_pages(false);
    }
    let spawned = spawn();
    if small {
        let _ = disable_transparent_huge_pages(true);
    }
    spawned
}

#[cfg(not(target_os = "linux"))]
fn with_usual_pages<T>(spawn: impl FnOnce() -> T) -> T {
    spawn()
}

impl Process {
    /// Whether it has not ended yet.
    pub(crate) fn is_running(&self) -> bool {
        let Some(pid) = self.group.pid() else { return false };
        // One that has ended stays a zombie for now, so that its number still means its group.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        matches!(waitid(WaitId::Pid(pid), options), Ok(None))
    }

    #[cfg(test)]
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the server to end, and then ends what it left behind. How it ended.
    pub(crate) fn wait(mut self) -> String {
        let pid = self.group.pid();
        if let Some(pid) = pid {
            // The process stays a zombie for now, so that its number still means its group.
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(pid), options) {}
            let _ = kill_process_group(pid, Signal::KILL);
        }
        self.group.forget();
        self.waited = true;
        match self.child.wait() {
            Ok(status) => told(status),
            Err(e) => format!("ended in an unknown way ({e})"),
        }
    }
}

impl Group {
    /// Sends a signal to the server and everything that it started.
    pub(crate) fn signal(&self, signal: Signal) {
        // The lock keeps the number from being given to somebody else meanwhile.
        let pid = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pid) = *pid {
            let _ = kill_process_group(pid, signal);
        }
    }

    fn pid(&self) -> Option<Pid> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// How a server ends that wants to.
pub(crate) const IN_ORDER: &str = "exited with status 0";

fn told(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with status {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}
