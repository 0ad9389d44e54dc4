//! Watches over one server: its process, deadlines, and the end in order. What happens comes as
//! events, one after the other; what the session wants done with the process is done here.
//!
//! In `wrap` this is a thread. In `serve` it is a task, so that no session costs a thread, and the
//! deadlines of all sessions share the runtime's timer.

mod drive;
mod listener;
mod listener_handle;
mod process;

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::connection::{Connection, Event};
use crate::directories::Directories;
use crate::edge;
use crate::remote::Remote;
use crate::session::GRACE;
use crate::upstream::pool::Pool;
use crate::upstream::process::StartedServer;
use process::Server;

/// What stands behind a connection.
#[derive(Clone)]
pub(crate) enum Source {
    /// A server that is started when it is needed, or a little before.
    Command(Arc<Pool>),
    /// A server behind a URL, which the gateway does not start.
    Remote(Arc<Remote>),
}

impl Source {
    /// The directories that it may use, as far as its command tells.
    pub(crate) fn directories(&self) -> Directories {
        match self {
            Self::Command(pool) => pool.directories(),
            Self::Remote(_) => Directories::default(),
        }
    }

    pub(crate) fn is_remote(&self) -> bool {
        matches!(self, Self::Remote(_))
    }
}

/// How the session ends.
#[derive(Clone, Copy)]
enum Ending {
    /// Open calls go on until then.
    Drain(Instant),
    /// The server was told to end; what is done next, and when.
    Stop(Step, Instant),
}

#[derive(Clone, Copy)]
enum Step {
    Terminate,
    Kill,
    Leave,
}

/// The one who watches.
pub(crate) struct Supervisor {
    connection: Arc<Connection>,
    source: Source,
    server: Option<Server>,
    runs: u64,
    ending: Option<Ending>,
    /// Whether the operator has said once already that it is to end.
    signalled: bool,
}

impl Supervisor {
    pub(crate) fn new(connection: Arc<Connection>, source: Source) -> Self {
        Self { connection, source, server: None, runs: 0, ending: None, signalled: false }
    }

    /// Begins with a server that was started already, or with the one behind a URL.
    pub(crate) fn begin(&mut self, started: Option<StartedServer>) -> io::Result<()> {
        if let Source::Remote(remote) = &self.source {
            remote.belong_to(&self.connection);
            self.connection.writer.reach(Arc::clone(remote) as Arc<_>);
        }
        match started {
            Some(started) => self.run(started),
            None => Ok(()),
        }
    }

    /// The server could not be started at all.
    pub(crate) fn cannot_start(&self, error: &io::Error) {
        self.connection.with(|session| session.on_start_error(error, true, edge::now()));
    }

    /// Whether there is still something to watch.
    fn is_watching(&self) -> bool {
        self.server.is_some() || !matches!(self.ending, Some(Ending::Stop(..)))
    }

    fn on_event(&mut self, event: Event) {
        let now = edge::now();
        match event {
            Event::Sooner => {}
            Event::Start => self.start(),
            Event::Started(started) => self.on_started(started),
            Event::Kill => self.signal(Signal::KILL),
            Event::Exited(run, how) => {
                if let Some(server) = self.server.as_mut().filter(|server| server.run == run) {
                    server.on_exited(how, now);
                }
            }
            Event::Silent(run) => {
                if let Some(server) = self.server.as_mut().filter(|server| server.run == run) {
                    server.on_silent(now);
                }
            }
            Event::ClientDone => self.drain(),
            Event::ClientGone => self.end_now(),
            Event::Signal if std::mem::replace(&mut self.signalled, true) => {
                self.end_now();
                self.signal(Signal::KILL);
            }
            Event::Signal => {
                self.connection.session().refuse_new();
                self.drain();
            }
            Event::Panicked(part) => {
                tracing::error!(part, "a part of the gateway panicked; stopping the session");
                self.connection.event("panicked", &json!({ "thread": part }));
                self.end_now();
            }
        }
    }

    /// Everything that is due.
    fn on_tick(&mut self) {
        let now = edge::now();
        self.attend_server(now);
        self.attend_ending(now);
        self.connection.with(|session| session.on_tick(now));
    }

    /// When something is due next. A deadline set later that is earlier comes as an event.
    fn due(&self) -> Option<Instant> {
        let now = edge::now();
        let ending = self.ending.map(|ending| match ending {
            Ending::Drain(at) | Ending::Stop(_, at) => at,
        });
        // Nothing tells when the last call has been answered.
        let drained =
            matches!(self.ending, Some(Ending::Drain(_))).then(|| now + Duration::from_millis(10));
        let server = self.server.as_ref().and_then(|server| server.due(now));
        let session = self.connection.session().next_deadline(now);
        [session, server, ending, drained].into_iter().flatten().min()
    }

    /// Ends the session as soon as the open calls are answered.
    fn drain(&mut self) {
        if self.ending.is_none() {
            self.connection.session().drain();
            self.ending = Some(Ending::Drain(edge::now() + self.connection.settings().drain));
        }
    }

    /// Ends the session; whatever is open fails.
    fn end_now(&mut self) {
        self.connection.session().drain();
        if !matches!(self.ending, Some(Ending::Stop(..))) {
            self.ending = Some(Ending::Drain(edge::now()));
        }
    }

    fn attend_ending(&mut self, now: Instant) {
        match self.ending {
            Some(Ending::Drain(at)) if at <= now || self.is_gone() || self.is_idle() => {
                self.close();
                self.ending = Some(Ending::Stop(Step::Terminate, now + GRACE));
            }
            Some(Ending::Stop(step, at)) if at <= now && self.server.is_some() => {
                self.ending = Some(match step {
                    Step::Terminate => {
                        self.signal(Signal::TERM);
                        Ending::Stop(Step::Kill, now + GRACE)
                    }
                    Step::Kill => {
                        self.signal(Signal::KILL);
                        Ending::Stop(Step::Leave, now + GRACE)
                    }
                    Step::Leave => {
                        self.server = None;
                        Ending::Stop(Step::Leave, now)
                    }
                });
            }
            _ => {}
        }
    }

    /// Whether no server is left that could still answer.
    fn is_gone(&self) -> bool {
        self.server.is_none() && !self.source.is_remote()
    }

    /// Whether nothing is open that has an end of its own. Calls that wait are taken in hand with
    /// the writer locked.
    fn is_idle(&self) -> bool {
        let _pipe = self.connection.writer.lock();
        self.connection.session().is_idle()
    }

    /// Fails what is open, and takes nothing any more.
    fn close(&self) {
        self.connection.with(crate::session::Session::on_close);
    }

    /// Nothing more goes to the server, and its process does not stay behind.
    pub(crate) fn end(self) {
        self.connection.writer.end();
    }

    fn signal(&self, signal: Signal) {
        if let Some(server) = &self.server {
            server.group.signal(signal);
        }
    }
}

impl Drop for Supervisor {
    /// However the watch ended, the server must not stay behind.
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}
