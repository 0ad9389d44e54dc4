//! Watches over one session: deadlines, the server's life, and the end in order. All that is
//! rare happens here, on one thread, one thing after the other.

mod ear;
mod life;

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use faultwire_contract::{Condition, Outcome};
use rustix::process::Signal;
use serde_json::json;

use crate::call::{Call, Method, Stage};
use crate::failing::Failing;
use crate::link::{Link, Phase};
use crate::tools::Known;
use crate::upstream::pool::Pool;
use crate::upstream::process::Group;
use crate::upstream::remote::Remote;
use crate::upstream::restart::History;
use crate::upstream::stderr::Stderr;
use crate::{edge, wire};
use ear::Ear;

/// How long a server may take to end by itself, before it is told to, and before it is made to.
const GRACE: Duration = Duration::from_secs(2);
/// How long the last words of a server that ended are waited for.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// What the supervisor is told.
pub(crate) enum Event {
    /// A deadline was set that comes before all others.
    Sooner,
    /// The server's process ended: which run, and how.
    Exited(u64, String),
    /// The server closed its output.
    Silent(u64),
    /// The server refused the handshake.
    Refused,
    /// The client sends no more.
    ClientDone,
    /// The client hears no more.
    ClientGone,
    /// The operator ends the session.
    Signal,
    /// A thread of ours panicked: nothing can be relied on any more.
    Panicked(&'static str),
}

/// One run of the server.
struct Server {
    run: u64,
    since: Instant,
    /// Which message waited for the client when it was looked at last.
    handing: Option<u64>,
    group: Group,
    stderr: Arc<Stderr>,
    listener: Option<Ear>,
    exited: Option<String>,
    silent: bool,
    /// When it is not waited for any longer.
    patience: Option<Instant>,
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

/// What stands behind the link.
#[derive(Clone)]
pub(crate) enum Source {
    /// A server that is started when it is needed, or a little before.
    Command(Arc<Pool>),
    /// A server behind a URL, which somebody else looks after.
    Remote(Arc<Remote>),
}

/// The one who watches.
pub(crate) struct Supervisor {
    link: Arc<Link>,
    source: Source,
    events: Receiver<Event>,
    server: Option<Server>,
    runs: u64,
    /// Whether a run of the server before this one has answered something.
    has_answered: bool,
    history: History,
    ending: Option<Ending>,
    /// Whether the operator has said once already that it is to end.
    signalled: bool,
}

impl Supervisor {
    pub(crate) fn new(link: Arc<Link>, source: Source, events: Receiver<Event>) -> Self {
        Self {
            link,
            source,
            events,
            server: None,
            runs: 0,
            has_answered: false,
            history: History::default(),
            ending: None,
            signalled: false,
        }
    }

    /// Starts the server for the first time.
    pub(crate) fn start(&mut self) -> io::Result<()> {
        let remote = match &self.source {
            Source::Command(_) => None,
            Source::Remote(remote) => Some(Arc::clone(remote)),
        };
        match remote {
            None => self.server = Some(self.run()?),
            Some(remote) => {
                remote.belong_to(&self.link);
                self.link.inlet.reach(remote);
            }
        }
        Ok(())
    }

    fn is_remote(&self) -> bool {
        matches!(self.source, Source::Remote(_))
    }

    /// Watches until the session is over. Nothing is open then.
    pub(crate) fn watch(&mut self) {
        self.watch_on();
        self.abandon();
    }

    fn watch_on(&mut self) {
        while self.server.is_some() || !matches!(self.ending, Some(Ending::Stop(..))) {
            let wait = self.due().map(|due| due.saturating_duration_since(edge::now()));
            let event = match wait {
                Some(wait) => match self.events.recv_timeout(wait) {
                    Ok(event) => Some(event),
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => return,
                },
                None => match self.events.recv() {
                    Ok(event) => Some(event),
                    Err(_) => return,
                },
            };
            if let Some(event) = event {
                self.take(event);
            }
            self.tick();
        }
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Sooner => {}
            Event::Exited(run, how) => {
                if let Some(server) = self.server.as_mut().filter(|server| server.run == run) {
                    server.exited = Some(how);
                    server.patience = Some(edge::now() + LAST_WORDS);
                }
            }
            Event::Silent(run) => {
                if let Some(server) = self.server.as_mut().filter(|server| server.run == run) {
                    server.silent = true;
                    server.patience.get_or_insert(edge::now() + GRACE);
                }
            }
            Event::Refused if self.is_remote() => self.give_up_opening(),
            Event::Refused => self.signal(Signal::KILL),
            Event::ClientDone => self.end(),
            Event::ClientGone => self.end_now(),
            Event::Signal if std::mem::replace(&mut self.signalled, true) => {
                self.end_now();
                self.signal(Signal::KILL);
            }
            Event::Signal => {
                self.link.state().closing = true;
                self.end();
            }
            Event::Panicked(thread) => {
                tracing::error!(thread, "a part of the gateway failed; the session ends");
                self.link.event("panicked", &json!({ "thread": thread }));
                self.end_now();
            }
        }
    }

    /// Everything that is due.
    fn tick(&mut self) {
        let now = edge::now();
        self.expire(now);
        self.attend_server(now);
        self.attend_restart(now);
        self.attend_ending(now);
        self.link.release();
    }

    /// When something is due next. Whoever sets an earlier deadline from now on says so.
    fn due(&self) -> Option<Instant> {
        let mut state = self.link.state();
        let phase = match state.phase {
            Phase::Opening { until } => Some(until),
            Phase::Down { until, .. } => until,
            Phase::Up => None,
        };
        let ending = self.ending.map(|ending| match ending {
            Ending::Drain(at) | Ending::Stop(_, at) => at,
        });
        // Nothing tells when the last call has been answered.
        let drained = matches!(self.ending, Some(Ending::Drain(_)))
            .then(|| edge::now() + Duration::from_millis(10));
        let dues = [
            state.calls.next_due(state.phase == Phase::Up),
            state.listing.as_ref().map(|listing| listing.deadline),
            phase,
            self.server.as_ref().and_then(|server| server.patience),
            ending,
            drained,
        ];
        let due = dues.into_iter().flatten().min();
        // Looking once too often is cheaper than being told of every call.
        let planned = state.planned.filter(|planned| *planned > edge::now());
        state.planned = due.into_iter().chain(planned).min();
        state.planned
    }

    /// Calls whose time is over.
    fn expire(&self, now: Instant) {
        let mut state = self.link.state();
        if state.listing.as_ref().is_some_and(|listing| listing.deadline <= now) {
            tracing::warn!("the server does not tell its tools yet; arguments are not checked");
            state.overdue = state.listing.take();
            self.link.tools().known = Known::Never;
        }
        // A user may take long to answer what the server asked; the call waits for that.
        let longest = self.link.settings().deadlines.hard;
        state.asked.retain(|_, asked| now.saturating_duration_since(asked.since) < longest);
        let waiting = state.waits_for_user();
        let mut over = Vec::new();
        for call in state.calls.iter_mut() {
            let hard = call.hard.is_some_and(|hard| hard <= now);
            if call.deadline.is_some_and(|deadline| deadline <= now) {
                if call.order <= waiting && !hard {
                    call.progress(now);
                } else {
                    over.push(call.id().to_owned());
                }
            }
        }
        let calls: Vec<Call> =
            over.iter().filter_map(|id| state.calls.give_up(id, "timeout")).collect();
        drop(state);
        for call in calls {
            self.time_out(call, now);
        }
    }

    fn time_out(&self, call: Call, now: Instant) {
        let took = now.saturating_duration_since(call.since);
        let message = format!("No answer within {} ms", took.as_millis());
        let outcome = call.withdraw(&mut self.link.inlet.lock());
        if outcome != Outcome::NotSent && call.method != Method::Initialize {
            self.link.tell_server(&wire::cancelled(call.id(), "timeout"));
        }
        let failing = Failing::observed(self.link.contract(), Condition::Timeout);
        if let Some(breaker) = self.link.breaker.as_ref().filter(|_| call.tool().is_some()) {
            breaker.failed(now);
        }
        call.fail(failing.saying(message).outcome(outcome));
    }

    /// Ends the session as soon as the open calls are answered.
    fn end(&mut self) {
        if self.ending.is_none() {
            self.ending = Some(Ending::Drain(edge::now() + self.link.settings().drain));
        }
    }

    /// Ends the session; whatever is open fails.
    fn end_now(&mut self) {
        if !matches!(self.ending, Some(Ending::Stop(..))) {
            self.ending = Some(Ending::Drain(edge::now()));
        }
    }

    fn attend_ending(&mut self, now: Instant) {
        match self.ending {
            Some(Ending::Drain(at)) if at <= now || self.is_gone() || self.is_idle() => {
                self.abandon();
                self.link.inlet.close();
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

    /// Whether there is nobody who could still answer.
    fn is_gone(&self) -> bool {
        self.server.is_none() && !self.is_remote()
    }

    /// A server behind a URL does not take the session again.
    fn give_up_opening(&self) {
        let mut state = self.link.state();
        state.phase = Phase::Up;
        let held = state.calls.take_all(|call| call.stage == Stage::Held);
        drop(state);
        for call in held {
            let failing = Failing::observed(self.link.contract(), Condition::UpstreamUnreachable)
                .saying("The server lost the session and does not begin another")
                .outcome(Outcome::NotSent);
            self.link.fail(call, failing);
        }
    }

    /// Whether nothing is open that has an end of its own. Calls that wait are taken in hand with
    /// the inlet locked.
    fn is_idle(&self) -> bool {
        let _pipe = self.link.inlet.lock();
        self.link.state().calls.iter_mut().all(|call| call.method.name() == wire::LISTEN)
    }

    /// Fails what is open when the session ends.
    fn abandon(&self) {
        let mut pipe = self.link.inlet.lock();
        let mut state = self.link.state();
        state.closing = true;
        let calls = state.calls.take_all(|_| true);
        drop(state);
        let mut over = Vec::with_capacity(calls.len());
        for call in calls {
            over.push((call.withdraw(&mut pipe), call));
        }
        drop(pipe);
        for (outcome, call) in over {
            let (condition, why) = match call.method.name() {
                wire::LISTEN => {
                    (Condition::NotReady, "The server is replaced or ends; listen anew")
                }
                _ => (Condition::Timeout, "The session ended before the server answered"),
            };
            let failing = Failing::observed(self.link.contract(), condition).saying(why);
            call.fail(failing.outcome(outcome));
        }
    }
}

impl Drop for Supervisor {
    /// However the watch ended, the server must not stay behind.
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}
