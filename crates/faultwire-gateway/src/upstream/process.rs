//! One run of the server: a process with a group of its own, so that what it starts ends with it.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread;

use crate::launch::Launch;
use crate::upstream::reaper;
use crate::upstream::stderr::Stderr;
use parking_lot::Mutex;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::runtime::Handle;

/// A server that was started.
pub(crate) struct StartedServer {
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
    /// A server that is not watched must not stay.
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

/// Starts the server. Its stderr is copied to ours.
pub(crate) fn start(launch: &Launch) -> io::Result<StartedServer> {
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
    Ok(StartedServer {
        stdin: File::from(OwnedFd::from(stdin)),
        stdout: File::from(OwnedFd::from(stdout)),
        stderr: Stderr::copy(File::from(OwnedFd::from(stderr)))?,
        process,
        group,
    })
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

impl Process {
    /// Tells how the server ended, once it has: from the one task that waits for all, or without
    /// a runtime from a thread of its own.
    pub(crate) fn watch(
        self,
        runtime: Option<&Handle>,
        on_exit: impl FnOnce(String) + Send + 'static,
    ) -> io::Result<()> {
        if let Some(runtime) = runtime {
            return reaper::watch(self, runtime, on_exit);
        }
        let wait = move || on_exit(self.wait());
        thread::Builder::new().name("waiter".to_owned()).spawn(wait).map(drop)
    }
}

impl Group {
    /// Sends a signal to the server and everything that it started.
    pub(crate) fn signal(&self, signal: Signal) {
        // The lock keeps the number from being given to another process meanwhile.
        let pid = self.0.lock();
        if let Some(pid) = *pid {
            let _ = kill_process_group(pid, signal);
        }
    }

    fn pid(&self) -> Option<Pid> {
        *self.0.lock()
    }

    fn forget(&self) {
        *self.0.lock() = None;
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
