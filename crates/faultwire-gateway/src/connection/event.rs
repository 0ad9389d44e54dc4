//! What the supervisor of a server is told.

use std::sync::mpsc::Sender;

use tokio::sync::mpsc::UnboundedSender;

use crate::upstream::process::StartedServer;

/// What the supervisor is told.
pub(crate) enum Event {
    /// A deadline was set that comes before all others.
    Sooner,
    /// The server is to be started.
    Start,
    /// It was, or could not be.
    Started(std::io::Result<StartedServer>),
    /// The server is to be killed; it is started again.
    Kill,
    /// The server's process ended: which run, and how.
    Exited(u64, String),
    /// The server closed its output.
    Silent(u64),
    /// The client sends no more.
    ClientDone,
    /// The client reads no more.
    ClientGone,
    /// The operator ends the session.
    Signal,
    /// A thread or task of ours panicked: nothing can be relied on any more.
    Panicked(&'static str),
}

/// Where events go: to a thread, or to a task.
#[derive(Clone)]
pub(crate) enum EventSender {
    Thread(Sender<Event>),
    Task(UnboundedSender<Event>),
}

impl EventSender {
    /// Tells the supervisor. Without one, nothing is to be done.
    pub(crate) fn send(&self, event: Event) {
        match self {
            Self::Thread(events) => drop(events.send(event)),
            Self::Task(events) => drop(events.send(event)),
        }
    }
}
