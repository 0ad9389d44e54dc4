//! One run of the server's process.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use faultwire_contract::Caller;
use rustix::process::Signal;

use super::listener_handle::ListenerHandle;
use super::{Source, Supervisor};
use crate::connection::Event;
use crate::edge;
use crate::last_output::LastOutput;
use crate::session::{Exit, GRACE};
use crate::upstream::process::{Group, IN_ORDER, StartedServer};
use crate::upstream::stderr::Stderr;

/// How long the last words of a server that ended are waited for.
const LAST_WORDS: Duration = Duration::from_millis(300);
/// How often is looked whether its stderr is over.
const LOOK: Duration = Duration::from_millis(5);

/// One run of the server.
pub(super) struct Server {
    pub run: u64,
    pub group: Group,
    since: Instant,
    /// Which message waited for the client when it was looked at last.
    handing: Option<u64>,
    stderr: Arc<Stderr>,
    listener: Option<ListenerHandle>,
    exited: Option<String>,
    is_silent: bool,
    /// When it is not waited for any longer.
    patience: Option<Instant>,
    /// When its stderr is not waited for any longer, once all else is over.
    last_words: Option<Instant>,
}

impl Server {
    pub(super) fn on_exited(&mut self, how: String, now: Instant) {
        self.exited = Some(how);
        self.patience = Some(now + LAST_WORDS);
    }

    pub(super) fn on_silent(&mut self, now: Instant) {
        self.is_silent = true;
        self.patience.get_or_insert(now + GRACE);
    }

    /// When to look at it again.
    pub(super) fn due(&self, now: Instant) -> Option<Instant> {
        let look = self.last_words.map(|until| until.min(now + LOOK));
        look.or(self.patience)
    }

    /// Whether the same message waits for the client as when this was asked last, or one does and
    /// it was not asked before.
    fn waits_for_client(&mut self) -> bool {
        let handing = self.listener.as_ref().and_then(ListenerHandle::is_handing);
        let before = std::mem::replace(&mut self.handing, handing);
        handing.is_some() && (before.is_none() || before == handing)
    }
}

impl Supervisor {
    /// Looks whether the server is still there.
    pub(super) fn attend_server(&mut self, now: Instant) {
        let is_ending = self.ending.is_some();
        let Some(server) = &mut self.server else { return };
        let is_late = server.patience.is_some_and(|patience| patience <= now);
        match (server.exited.is_some(), server.is_silent, is_late) {
            // Its last answers wait for a client that takes its time. The calls have deadlines.
            (true, false, true) if !is_ending && server.waits_for_client() => {
                server.patience = Some(now + LAST_WORDS);
            }
            (true, true, _) | (true, false, true) => self.on_end(now),
            // It says nothing any more, and does not end either.
            (false, true, true) => {
                server.patience = None;
                self.signal(Signal::KILL);
            }
            _ => {}
        }
    }

    /// The server is gone. What it printed last is waited for where it says why it did not start,
    /// and at the end of the session, so that nothing is lost.
    fn on_end(&mut self, now: Instant) {
        let has_answer = self.connection.session().has_answer();
        let wants_output = !has_answer || self.ending.is_some();
        let Some(server) = &mut self.server else { return };
        if wants_output && !server.stderr.is_over() {
            let until = *server.last_words.get_or_insert(now + LAST_WORDS);
            if now < until {
                return;
            }
        }
        let Some(mut server) = self.server.take() else { return };
        if let Some(listener) = server.listener.take() {
            listener.end(server.is_silent);
        }
        let output = (!self.connection.session().has_answer()).then(|| self.last_output(&server));
        let how = server.exited.unwrap_or_else(|| "ended".to_owned());
        self.connection.on_exit(Exit {
            is_in_order: how == IN_ORDER,
            how,
            lasted: edge::now().saturating_duration_since(server.since),
            run: server.run,
            is_wanted: self.ending.is_some(),
            output,
        });
    }

    /// What a server printed last that ended before its first answer. Made with no lock held.
    fn last_output(&self, server: &Server) -> Arc<LastOutput> {
        let caller = Caller::new(self.connection.settings().masks);
        Arc::new(server.stderr.last_output(self.connection.contract(), &caller))
    }

    /// Starts the server again. That takes time, so a task leaves it to another thread.
    pub(super) fn start(&self) {
        let Source::Command(pool) = &self.source else { return };
        let (pool, events) = (Arc::clone(pool), self.connection.events.clone());
        let start = move || events.send(Event::Started(pool.take()));
        match &self.connection.runtime {
            None => start(),
            Some(runtime) => drop(runtime.spawn_blocking(start)),
        }
    }

    pub(super) fn on_started(&mut self, started: io::Result<StartedServer>) {
        // One that comes too late ends with being dropped.
        if self.ending.is_some() {
            return;
        }
        if let Err(error) = started.and_then(|started| self.run(started)) {
            let now = edge::now();
            self.connection.with(|session| session.on_start_error(&error, false, now));
        }
    }

    /// A run of the server begins.
    pub(super) fn run(&mut self, started: StartedServer) -> io::Result<()> {
        let connection = &self.connection;
        connection.writer.connect(started.stdin)?;
        self.runs += 1;
        let run = self.runs;
        let listener = ListenerHandle::listen(connection, run, started.stdout)?;
        let events = connection.events.clone();
        let on_exit = move |how| events.send(Event::Exited(run, how));
        started.process.watch(connection.runtime.as_ref(), on_exit)?;
        if let Some(metrics) = connection.responder.metrics.as_ref().filter(|_| run > 1) {
            metrics.restarted();
        }
        connection.with_slot(|session, slot| session.on_started(run, slot));
        tracing::info!(run, "the server is started");
        self.server = Some(Server {
            run,
            group: started.group,
            since: edge::now(),
            handing: None,
            stderr: started.stderr,
            listener: Some(listener),
            exited: None,
            is_silent: false,
            patience: None,
            last_words: None,
        });
        Ok(())
    }
}
