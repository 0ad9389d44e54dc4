//! The listener of one run of the server.

use std::fs::File;
use std::io::{self, PipeWriter};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use tokio::runtime::Handle;

use super::listener::{Listener, Signs};
use crate::connection::{Connection, Event, EventSender};

/// A thread where there is nothing but threads, else a task: then an answer is written by the
/// thread that reads it.
pub(super) enum ListenerHandle {
    Thread {
        handle: JoinHandle<()>,
        /// Closed to end it.
        stop: PipeWriter,
        /// Set when what it still has to say is of no use.
        is_over: Arc<AtomicBool>,
        /// Odd while it hands something to the client, and another number each time.
        handing: Arc<AtomicU64>,
    },
    Task(tokio::task::AbortHandle),
}

impl ListenerHandle {
    /// Listens to what this run of the server says.
    pub(super) fn listen(connection: &Arc<Connection>, run: u64, stdout: File) -> io::Result<Self> {
        match &connection.runtime {
            None => Self::thread(Arc::clone(connection), run, stdout),
            Some(runtime) => Ok(Self::task(runtime, Arc::clone(connection), run, stdout)),
        }
    }

    fn thread(connection: Arc<Connection>, run: u64, stdout: File) -> io::Result<Self> {
        let (stopped, stop) = io::pipe()?;
        let is_over = Arc::new(AtomicBool::new(false));
        let handing = Arc::new(AtomicU64::new(0));
        let signs = Signs { is_over: Arc::clone(&is_over), handing: Arc::clone(&handing) };
        let handle = thread::Builder::new().name("listener".to_owned()).spawn(move || {
            let listen = || Listener::new(Arc::clone(&connection), signs).listen(stdout, &stopped);
            if catch_unwind(AssertUnwindSafe(listen)).is_err() {
                connection.events.send(Event::Panicked("listener"));
            }
            connection.events.send(Event::Silent(run));
        })?;
        Ok(Self::Thread { handle, stop, is_over, handing })
    }

    fn task(runtime: &Handle, connection: Arc<Connection>, run: u64, stdout: File) -> Self {
        let ended = Ended { events: connection.events.clone(), run, well: false };
        let task = runtime.spawn(async move {
            let mut ended = ended;
            if let Err(error) =
                Listener::new(connection, Signs::default()).listen_along(stdout).await
            {
                tracing::error!(%error, "the server's output cannot be read");
            }
            ended.well = true;
        });
        Self::Task(task.abort_handle())
    }

    /// Which message it is handing to the client, if it is at that.
    pub(super) fn is_handing(&self) -> Option<u64> {
        let Self::Thread { handing, .. } = self else { return None };
        Some(handing.load(Ordering::Relaxed)).filter(|number| number % 2 == 1)
    }

    /// Ends it. One that has not said that it is done may be waiting for the client to read, and
    /// is not waited for.
    pub(super) fn end(self, is_done: bool) {
        match self {
            Self::Thread { handle, stop, is_over, .. } => {
                is_over.store(!is_done, Ordering::Relaxed);
                drop(stop);
                if is_done {
                    let _ = handle.join();
                }
            }
            Self::Task(task) => task.abort(),
        }
    }
}

/// Tells that a task has ended, in whichever way.
struct Ended {
    events: EventSender,
    run: u64,
    well: bool,
}

impl Drop for Ended {
    fn drop(&mut self) {
        if !self.well && thread::panicking() {
            self.events.send(Event::Panicked("listener"));
        }
        self.events.send(Event::Silent(self.run));
    }
}
