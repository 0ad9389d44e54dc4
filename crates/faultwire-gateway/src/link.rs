//! What client and server share: the open calls, and how the server is doing. Two threads meet
//! here, one for each direction; the lock is held for a look-up at a time.
//!
//! Order of locks: the inlet, then the state, then the tools. Never another way round, and nobody
//! waits for client or disk with one of them in hand.

mod examined;
mod failed;
mod fitting;
mod listing;

use std::collections::HashMap;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use faultwire_contract::{Condition, Contract, Outcome};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};

use crate::call::{Call, Stage};
use crate::calls::Calls;
use crate::door::Door;
use crate::edge;
use crate::failing::Failing;
use crate::guard::breaker::Breaker;
use crate::guard::tasks::Tasks;
use crate::handshake::Handshake;
use crate::key_lines::KeyLines;
use crate::outlet::Outlet;
use crate::retry::Budget;
use crate::settings::Settings;
use crate::supervisor::Event;
use crate::tools::Tools;
use crate::upstream::inlet::{Inlet, Pipe};
use crate::upstream::stderr::LastOutput;
use crate::wire;
pub(crate) use examined::Examined;
pub(crate) use listing::Listing;

/// What a client is told whose call does not go to a server that is in trouble.
pub(crate) const LEFT_ALONE: &str =
    "The server failed too often lately and is left alone for a while";

/// A server and whoever uses it.
pub(crate) struct Link {
    pub door: Arc<Door>,
    settings: Arc<Settings>,
    pub inlet: Inlet,
    pub events: Sender<Event>,
    pub client: Arc<dyn Outlet>,
    /// Where tasks run, if the client is served by such.
    pub runtime: Option<Handle>,
    /// Shared by all links to the same server.
    pub breaker: Option<Arc<Breaker>>,
    /// Whose its tasks are, where several clients use it.
    pub tasks: Option<Arc<Tasks>>,
    /// Under a lock of its own: every call looks something up here, and it rarely changes. It is
    /// taken alone, or after the state's.
    tools: Arc<Mutex<Tools>>,
    state: Mutex<State>,
    /// One call at a time is checked that may take long.
    examining: Arc<Semaphore>,
}

/// Everything that both directions change.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct State {
    pub phase: Phase,
    pub calls: Calls,
    /// Requests of the server that the client has not answered.
    pub asked: HashMap<Box<str>, Asked>,
    pub handshake: Handshake,
    pub listing: Option<Listing>,
    /// One that no call waits for any more. What it tells counts from then on.
    pub overdue: Option<Listing>,
    /// Questions of our own to the server, and who waits for the answer.
    pub questions: HashMap<String, oneshot::Sender<Vec<u8>>>,
    /// Who wants to know first that the greeting was refused, since that may be no failure.
    pub doubts: Option<oneshot::Sender<(Call, Failing)>>,
    pub budget: Budget,
    /// When whoever watches the deadlines looks next.
    pub planned: Option<Instant>,
    /// When a session was last begun again that the server had lost.
    pub reopened: Option<Instant>,
    /// Whether this run of the server has answered anything.
    pub answered: bool,
    /// Whether this run of the server was given anything to do.
    pub employed: bool,
    /// Whether the client speaks in batches, and so can hear them.
    pub batches: bool,
    /// Lines of the server that were no messages.
    pub noise: u64,
    /// Whether the server is printing a private key.
    pub key_lines: KeyLines,
    /// When the server last got a notification that it has not answered, as some do.
    pub notified: Option<Instant>,
    /// No new calls are taken.
    pub closing: bool,
    /// How ids of our own begin.
    own: String,
    /// How many of them there were.
    requests: u64,
}

/// A question of the server.
pub(crate) struct Asked {
    pub since: Instant,
    /// Whether somebody may have to think about it.
    pub takes_time: bool,
    /// Whether the client has heard of it.
    pub is_heard: bool,
    /// Which call was the last to be opened before it: it is asked for that one or an older one.
    pub after: u64,
}

/// How the server is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It takes calls.
    Up,
    /// It was started again, and hears the handshake.
    Opening {
        /// When that is given up.
        until: Instant,
    },
    /// It ended.
    Down {
        /// When it is started again; never, if there is no such time.
        until: Option<Instant>,
        /// What became of it.
        why: String,
        /// What it said last, if it did not start.
        failed_start: Option<Arc<LastOutput>>,
    },
}

/// What becomes of a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It goes on as it is.
    Pass,
    /// It does not go on.
    Drop,
    /// This goes on in its place.
    Instead(Vec<u8>),
    /// It is the beginning of something, perhaps.
    Unfinished,
}

impl Link {
    pub(crate) fn new(
        door: Arc<Door>,
        settings: Arc<Settings>,
        client: Arc<dyn Outlet>,
        events: Sender<Event>,
        breaker: Option<Arc<Breaker>>,
        tasks: Option<Arc<Tasks>>,
    ) -> Self {
        let state = State {
            phase: Phase::Up,
            calls: Calls::new(door.backlog.part()),
            asked: HashMap::new(),
            handshake: Handshake::default(),
            listing: None,
            overdue: None,
            questions: HashMap::new(),
            doubts: None,
            budget: Budget::new(settings.retry),
            planned: None,
            reopened: None,
            answered: false,
            employed: false,
            batches: false,
            noise: 0,
            key_lines: KeyLines::default(),
            notified: None,
            closing: false,
            own: format!("\"faultwire-{:016x}-", edge::random()),
            requests: 0,
        };
        let inlet = Inlet::new(settings.limits.backlog_bytes, door.backlog.part());
        let tools = Arc::default();
        let runtime = Handle::try_current().ok();
        Self {
            door,
            settings,
            inlet,
            events,
            client,
            runtime,
            breaker,
            tasks,
            tools,
            state: Mutex::new(state),
            examining: Arc::new(Semaphore::new(1)),
        }
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn contract(&self) -> &Arc<Contract> {
        &self.settings.contract
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn tools(&self) -> MutexGuard<'_, Tools> {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call of this server's.
    pub(crate) fn owned(&self, call: Call) -> Call {
        call.of_server(&self.tools)
    }

    /// Tells whoever watches the deadlines, if this one comes before all that it knows.
    pub(crate) fn watch(&self, state: &mut State, due: Option<Instant>) {
        let Some(due) = due else { return };
        if state.planned.is_none_or(|planned| due < planned) {
            state.planned = Some(due);
            let _ = self.events.send(Event::Sooner);
        }
    }

    /// Sends everything that waited and may go now.
    pub(crate) fn release(&self) {
        // Calls that came after the checks have to be checked, too.
        while self.release_examined(edge::aside(|| self.examine_held())) {}
    }

    /// The same, as far as the calls were checked. Whether others are left.
    fn release_examined(&self, mut examined: HashMap<String, Option<Examined>>) -> bool {
        let mut pipe = self.inlet.lock();
        let now = edge::now();
        let mut state = self.state();
        if state.phase != Phase::Up {
            return false;
        }
        if state.listing.is_none()
            && let Some(ask) = self.ask_for_held(&mut state)
        {
            self.inlet.send(&mut pipe, &ask);
        }
        let listing = state.listing.is_some();
        let mut is_left = false;
        let waits = |call: &Call| match call.stage {
            Stage::Held if call.tool().is_none() => true,
            Stage::Held if listing => false,
            Stage::Held if examined::is_held(call) && !examined.contains_key(call.id()) => {
                is_left = true;
                false
            }
            Stage::Held => true,
            Stage::Again(at) => at <= now,
            Stage::Sent { .. } => false,
        };
        let calls = state.calls.take_all(waits);
        drop(state);
        // The client cannot touch these calls meanwhile, since it needs the inlet for that.
        let mut judge = |call: Call| match call.attempt {
            1 => (self.misfit(&call, examined.remove(call.id()).flatten()), call),
            _ => (self.left_alone(now), call),
        };
        let (refused, fine): (Vec<_>, Vec<_>) =
            calls.into_iter().map(&mut judge).partition(|(misfit, _)| misfit.is_some());
        let mut state = self.state();
        for (_, mut call) in fine {
            if state.phase == Phase::Up {
                call.stage = Stage::Sent { at: pipe.position() };
                self.inlet.send(&mut pipe, call.line());
                state.employed = true;
            }
            state.calls.insert(call);
        }
        drop(state);
        drop(pipe);
        for (failing, call) in refused {
            if let Some(failing) = failing {
                self.fail(call, failing);
            }
        }
        is_left
    }

    /// Why a call is not sent again, if others have found meanwhile that it would be in vain.
    fn left_alone(&self, now: Instant) -> Option<Failing> {
        self.breaker.as_ref().filter(|breaker| breaker.is_open(now))?;
        Some(
            Failing::observed(self.contract(), Condition::UpstreamUnreachable)
                .saying(LEFT_ALONE)
                .outcome(Outcome::NotSent),
        )
    }

    /// Asks the server something of our own. No answer comes if it ends before.
    pub(crate) fn ask(&self, method: &str, params: &Value) -> oneshot::Receiver<Vec<u8>> {
        let (answer, answered) = oneshot::channel();
        let mut pipe = self.inlet.lock();
        let mut state = self.state();
        let id = state.own_id();
        let line = wire::request(&id, method, params);
        if method == wire::INITIALIZE {
            state.handshake.begin(&id, &line);
        }
        state.questions.insert(id, answer);
        state.employed = true;
        drop(state);
        self.inlet.send(&mut pipe, &line);
        answered
    }

    /// What the server is told of the trace that an open call belongs to.
    pub(crate) fn traceparent_of(&self, id: &str) -> Option<String> {
        let state = self.state();
        let call = state.calls.get(id)?;
        match &call.traced {
            Some(traced) => Some(traced.traceparent()),
            None => call.trace.as_deref().map(str::to_owned),
        }
    }

    /// Where the answer to an open call goes, if not where all do.
    pub(crate) fn outlet_of(&self, id: &str) -> Option<Arc<dyn Outlet>> {
        self.state().calls.get(id)?.outlet().cloned()
    }

    /// Where a message can go that belongs to no call but may be meant for one: to the answer of
    /// the call that was opened last.
    pub(crate) fn latest_outlet(&self) -> Option<Arc<dyn Outlet>> {
        let mut state = self.state();
        let open = state.calls.iter_mut().filter_map(|call| Some((call.order, call.outlet()?)));
        let taking = open.filter(|(_, outlet)| outlet.takes_messages());
        taking.max_by_key(|(order, _)| *order).map(|(_, outlet)| Arc::clone(outlet))
    }

    /// Has something recorded that is no failure of a call.
    pub(crate) fn event(&self, name: &'static str, facts: &Value) {
        self.door.event(name, facts, self.contract().redactor());
    }

    /// Sends something of our own to the server.
    pub(crate) fn tell_server(&self, line: &[u8]) {
        let mut pipe: MutexGuard<'_, Pipe> = self.inlet.lock();
        self.inlet.send(&mut pipe, line);
    }
}

impl State {
    /// Takes out the question that an answer of the client is for, if there is one. Where a user
    /// had to think about it, the calls that waited have all their time again.
    pub(crate) fn take_asked(&mut self, id: &str) -> bool {
        let asked = self.asked.remove(id).or_else(|| {
            let other = self.asked.keys().find(|asked| wire::same(asked, id)).cloned()?;
            self.asked.remove(&other)
        });
        let Some(asked) = asked else { return false };
        if asked.takes_time && asked.is_heard {
            let now = edge::now();
            let waited = self.calls.iter_mut().filter(|call| call.order <= asked.after);
            waited.for_each(|call| call.progress(now));
        }
        true
    }

    /// The client hears now what it had not come for before.
    pub(crate) fn all_heard(&mut self) {
        self.asked.values_mut().for_each(|asked| asked.is_heard = true);
    }

    /// Up to which call something may wait for what a user thinks.
    pub(crate) fn waits_for_user(&self) -> u64 {
        let thought_about = self.asked.values().filter(|asked| asked.takes_time && asked.is_heard);
        thought_about.map(|asked| asked.after).max().unwrap_or(0)
    }

    /// An id for a request of our own.
    fn own_id(&mut self) -> String {
        self.requests += 1;
        format!("{}{}\"", self.own, self.requests)
    }

    /// What a new server is told that has answered the handshake.
    pub(crate) fn ordered_again(&mut self) -> Vec<Vec<u8>> {
        let mut orders = std::mem::take(&mut self.handshake.orders);
        let lines = orders.again(|| self.own_id());
        self.handshake.orders = orders;
        lines
    }

    /// Whether an id is one of ours.
    pub(crate) fn is_own(&self, id: &str) -> bool {
        id.starts_with(&self.own)
    }
}
