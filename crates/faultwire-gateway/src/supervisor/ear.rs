//! Whoever listens to one run of the server.

use std::fs::File;
use std::io::{self, PipeWriter};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::thread::{self, JoinHandle};

use tokio::runtime::Handle;

use crate::link::Link;
use crate::supervisor::Event;
use crate::upstream::listener::{Listener, Signs};

/// A thread where there is nothing but threads, else a task: then an answer is written by the
/// thread that reads it.
pub(super) enum Ear {
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

impl Ear {
    /// Listens to what this run of the server says.
    pub(super) fn lent(link: &Arc<Link>, run: u64, stdout: File) -> io::Result<Self> {
        match &link.runtime {
            None => Self::thread(Arc::clone(link), run, stdout),
            Some(runtime) => Ok(Self::task(runtime, Arc::clone(link), run, stdout)),
        }
    }

    fn thread(link: Arc<Link>, run: u64, stdout: File) -> io::Result<Self> {
        let (stopped, stop) = io::pipe()?;
        let is_over = Arc::new(AtomicBool::new(false));
        let handing = Arc::new(AtomicU64::new(0));
        let signs = Signs { is_over: Arc::clone(&is_over), handing: Arc::clone(&handing) };
        let handle = thread::Builder::new().name("listener".to_owned()).spawn(move || {
            let listen = || Listener::new(Arc::clone(&link), signs).listen(stdout, &stopped);
            if catch_unwind(AssertUnwindSafe(listen)).is_err() {
                let _ = link.events.send(Event::Panicked("listener"));
            }
            let _ = link.events.send(Event::Silent(run));
        })?;
        Ok(Self::Thread { handle, stop, is_over, handing })
    }

    fn task(runtime: &Handle, link: Arc<Link>, run: u64, stdout: File) -> Self {
        let ended = Ended { events: link.events.clone(), run, well: false };
        let task = runtime.spawn(async move {
            let mut ended = ended;
            if let Err(error) = Listener::new(link, Signs::default()).listen_along(stdout).await {
                tracing::error!(%error, "the server cannot be listened to");
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
    events: Sender<Event>,
    run: u64,
    well: bool,
}

impl Drop for Ended {
    fn drop(&mut self) {
        if !self.well && thread::panicking() {
            let _ = self.events.send(Event::Panicked("listener"));
        }
        let _ = self.events.send(Event::Silent(self.run));
    }
}
