//! A server that runs for clients over HTTP: its connection, and the task that watches it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::mpsc::unbounded_channel;

use crate::connection::{Connection, Ends, Event, EventSender};
use crate::supervisor::{Source, Supervisor};
use crate::upstream::process::StartedServer;

/// A server that runs until it is told to end, and is started again when it ends before.
pub(crate) struct Running {
    pub connection: Arc<Connection>,
}

impl Running {
    /// Begins with a server that was started, or with one behind a URL. `on_over` is called when
    /// it has ended for good.
    pub(crate) fn begin(
        ends: impl FnOnce(EventSender) -> Ends,
        source: Source,
        started: Option<StartedServer>,
        alive: &Arc<AtomicUsize>,
        on_over: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        let (events, heard) = unbounded_channel();
        let connection = Arc::new(Connection::new(ends(EventSender::Task(events))));
        let mut supervisor = Supervisor::new(Arc::clone(&connection), source);
        supervisor.begin(started)?;
        alive.fetch_add(1, Ordering::Relaxed);
        let (alive, on_over) = (Arc::clone(alive), Some(on_over));
        let mut watch = Watch { supervisor: Some(supervisor), alive, on_over };
        tokio::spawn(async move {
            if let Some(supervisor) = &mut watch.supervisor {
                supervisor.watch_as_task(heard).await;
            }
        });
        Ok(Self { connection })
    }

    /// Ends it as soon as the open calls are answered.
    pub(crate) fn end(&self) {
        self.connection.events.send(Event::ClientDone);
    }

    /// Ends it; no new calls are taken, and open ones have their time.
    pub(crate) fn drain(&self) {
        self.connection.events.send(Event::Signal);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// A watch over one server. It ends in order, also if the task panics or is dropped.
struct Watch<F: FnOnce()> {
    supervisor: Option<Supervisor>,
    /// How many servers have not ended yet.
    alive: Arc<AtomicUsize>,
    on_over: Option<F>,
}

impl<F: FnOnce()> Drop for Watch<F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!("supervisor panicked; stopping the server");
        }
        if let Some(supervisor) = self.supervisor.take() {
            supervisor.end();
        }
        self.alive.fetch_sub(1, Ordering::Relaxed);
        if let Some(on_over) = self.on_over.take() {
            on_over();
        }
    }
}
