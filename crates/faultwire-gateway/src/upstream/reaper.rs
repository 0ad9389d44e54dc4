//! Waits for the processes of all servers at once, with one task: it looks at them whenever the
//! system says that a child has ended.

use std::io;

use parking_lot::{Mutex, MutexGuard};
use tokio::runtime::Handle;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;

use super::process::Process;

static REAPER: Reaper = Reaper { state: Mutex::new(State::new()), more: Notify::const_new() };

struct Reaper {
    state: Mutex<State>,
    /// One more process is to be looked at, which may have ended before.
    more: Notify,
}

struct State {
    running: Vec<Child>,
    /// Whether there is a task.
    is_watched: bool,
}

/// A process, and what is to be done when it has ended.
struct Child {
    process: Process,
    on_exit: Box<dyn FnOnce(String) + Send>,
}

impl State {
    const fn new() -> Self {
        Self { running: Vec::new(), is_watched: false }
    }
}

/// Calls `on_exit` when the process has ended.
pub(super) fn watch(
    process: Process,
    runtime: &Handle,
    on_exit: impl FnOnce(String) + Send + 'static,
) -> io::Result<()> {
    let mut state = REAPER.state();
    if !state.is_watched {
        let _entered = runtime.enter();
        let signals = signal(SignalKind::child())?;
        state.is_watched = true;
        let watched = Watched;
        runtime.spawn(async move { watched.run(signals).await });
    }
    state.running.push(Child { process, on_exit: Box::new(on_exit) });
    drop(state);
    REAPER.more.notify_one();
    Ok(())
}

impl Reaper {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn reap(&self) {
        let ended: Vec<Child> = {
            let mut state = self.state();
            state.running.extract_if(.., |child| !child.process.is_running()).collect()
        };
        for Child { process, on_exit } in ended {
            on_exit(process.wait());
        }
    }
}

/// The task that looks. When its runtime ends, another one is needed.
struct Watched;

impl Watched {
    async fn run(self, mut signals: Signal) {
        loop {
            tokio::select! {
                _ = signals.recv() => {}
                () = REAPER.more.notified() => {}
            }
            REAPER.reap();
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        REAPER.state().is_watched = false;
    }
}
