//! What one server and its clients have between them: open calls, handshake, tool list, questions
//! of the server, retry budget, phase. Everything that decides is here, and nothing else: no I/O,
//! no thread, no clock. Lines and times come in; verdicts and effects come out, and a
//! [`Connection`](crate::connection::Connection) carries them out.
//!
//! | from | is |
//! |---|---|
//! | the client | [`Session::on_client`] |
//! | the server | [`Session::on_server`] |
//! | its process | [`Session::on_started`], [`Session::on_exit`], [`Session::on_start_error`] |
//! | its connection, if it is behind a URL | [`Session::on_session_lost`], [`Session::on_send_error`] |
//! | the clock | [`Session::on_tick`], due at [`Session::next_deadline`] |

mod admission;
mod discovery;
mod effect;
mod expiry;
mod inbound;
mod lifecycle;
mod malformed;
mod outbound;
mod pipeline;
mod release;
mod restart;
mod retry;
mod rules;
mod stray;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use faultwire_contract::{Condition, Contract, Outcome};
use hashbrown::{HashMap, HashSet};
use serde_json::Value;

use crate::backlog::Part;
use crate::call::{Call, Compared, OpenCall, Stage};
use crate::calls::Calls;
use crate::client_sink::ClientSink;
use crate::directories::Directories;
use crate::failing::CallFailure;
use crate::guard::breaker::Breaker;
use crate::guard::tasks::Tasks;
use crate::handshake::Handshake;
use crate::key_lines::KeyLines;
use crate::last_output::LastOutput;
use crate::settings::Settings;
use crate::tools::{ToolFacts, Tools};
use crate::wire;
use discovery::ToolDiscovery;
pub(crate) use effect::{ClientVerdict, Effect, Exit, ServerVerdict, UpstreamSlot};
pub(crate) use inbound::{Checked, Incoming};
pub(crate) use lifecycle::GRACE;
use restart::History;
use retry::Budget;
pub(crate) use stray::{NO_ROOM, TooLong, says_jsonrpc};

/// The state of one server and those who use it.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Session {
    settings: Arc<Settings>,
    /// Shared by all sessions with the same server.
    breaker: Option<Arc<Breaker>>,
    /// The owners of its tasks, where several clients use it.
    tasks: Option<Arc<Tasks>>,
    /// Asked who is there; written to by the connection alone.
    sink: Arc<dyn ClientSink>,
    /// Whether the server is behind a URL.
    is_remote: bool,
    /// The directories that the server's command names.
    directories: Directories,
    /// The roots that the client last told the server.
    roots: Option<Directories>,
    phase: Phase,
    history: History,
    calls: Calls,
    tools: Tools,
    handshake: Handshake,
    discovery: Option<ToolDiscovery>,
    /// A discovery that no call waits for any more. Its answer counts from then on.
    overdue: Option<ToolDiscovery>,
    /// Requests of the server that the client has not answered.
    asked: HashMap<Box<str>, Asked>,
    /// Ids of our own requests that the connection waits for.
    questions: HashSet<String>,
    budget: Budget,
    /// When the connection looks at the clock next.
    planned: Option<Instant>,
    /// When a session was last begun again that the server had lost.
    reopened: Option<Instant>,
    /// Whether this run of the server has answered anything.
    answered: bool,
    /// Whether a run before this one has.
    has_answered: bool,
    /// Whether this run of the server was given anything to do.
    employed: bool,
    /// Whether the client sends batches, and so can read them.
    batches: bool,
    /// Lines of the server that were no messages.
    noise: u64,
    /// Whether the server is printing a private key.
    key_lines: KeyLines,
    /// When the server last got a notification that it has not answered, as some do.
    notified: Option<Instant>,
    /// No new calls are taken.
    closing: bool,
    /// The session ends when its open calls have.
    draining: bool,
    /// It has ended.
    closed: bool,
    /// The server is being started.
    starting: bool,
    /// Prefix of our own ids.
    own: String,
    /// How many of them there were.
    requests: u64,
    effects: Vec<Effect>,
}

/// A request of the server.
struct Asked {
    since: Instant,
    /// Whether a user may have to think about it.
    takes_time: bool,
    /// Whether the client has received it.
    is_heard: bool,
    /// The last call that was opened before it: it was sent for that one or an older one.
    after: u64,
    /// Whether it asks for the client's roots.
    is_for_roots: bool,
}

/// How the server is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It takes calls.
    Up,
    /// It was started again and has not answered the handshake.
    Opening {
        /// When that is given up.
        until: Instant,
    },
    /// It ended.
    Down {
        /// When it is started again; never, if there is no such time.
        until: Option<Instant>,
        /// Why.
        why: String,
        /// What it printed last, if it did not start.
        failed_start: Option<Arc<LastOutput>>,
    },
}

/// What a session shares with others, or is told once.
pub(crate) struct Parts {
    pub settings: Arc<Settings>,
    pub breaker: Option<Arc<Breaker>>,
    pub tasks: Option<Arc<Tasks>>,
    pub sink: Arc<dyn ClientSink>,
    pub is_remote: bool,
    pub directories: Directories,
    /// What the requests of open calls take of the gateway's memory.
    pub bytes: Part,
    /// Tells the ids of one session from another's.
    pub seed: u64,
}

impl Session {
    pub(crate) fn new(parts: Parts) -> Self {
        Self {
            budget: Budget::new(parts.settings.retry),
            settings: parts.settings,
            breaker: parts.breaker,
            tasks: parts.tasks,
            sink: parts.sink,
            is_remote: parts.is_remote,
            directories: parts.directories,
            roots: None,
            phase: Phase::Up,
            history: History::default(),
            calls: Calls::new(parts.bytes),
            tools: Tools::default(),
            handshake: Handshake::default(),
            discovery: None,
            overdue: None,
            asked: HashMap::new(),
            questions: HashSet::new(),
            planned: None,
            reopened: None,
            answered: false,
            has_answered: false,
            employed: false,
            batches: false,
            noise: 0,
            key_lines: KeyLines::default(),
            notified: None,
            closing: false,
            draining: false,
            closed: false,
            starting: false,
            own: format!("\"faultwire-{:016x}-", parts.seed),
            requests: 0,
            effects: Vec::new(),
        }
    }

    /// What is to be done since this was called last.
    pub(crate) fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    fn contract(&self) -> &Arc<Contract> {
        &self.settings.contract
    }

    /// The names of all tools, if they are known.
    pub(crate) fn tool_names(&self) -> Option<Vec<String>> {
        self.tools.names()
    }

    /// What is known of a call's tool by now.
    pub(crate) fn facts_of(&self, call: &Call) -> ToolFacts {
        self.tools.facts(call.tool())
    }

    pub(crate) fn open_calls(&self) -> usize {
        self.calls.len()
    }

    pub(crate) fn phase(&self) -> &Phase {
        &self.phase
    }

    /// Whether this run of the server has answered anything.
    pub(crate) fn has_answer(&self) -> bool {
        self.answered
    }

    /// Whether the server has agreed to the client's handshake.
    pub(crate) fn is_agreed(&self) -> bool {
        self.handshake.is_agreed()
    }

    /// Whether no call is open that ends by itself.
    pub(crate) fn is_idle(&self) -> bool {
        self.calls.iter().all(|call| call.method.name() == wire::LISTEN)
    }

    /// The session ends when its open calls have: no server is started any more.
    pub(crate) fn drain(&mut self) {
        self.draining = true;
    }

    /// From now on the client's requests are refused.
    pub(crate) fn refuse_new(&mut self) {
        self.closing = true;
    }

    /// The client receives now what it had not come for before.
    pub(crate) fn all_heard(&mut self) {
        self.asked.values_mut().for_each(|asked| asked.is_heard = true);
    }

    /// Whether the client has sent a batch.
    pub(crate) fn reads_batches(&self) -> bool {
        self.batches
    }

    /// The client has sent a batch.
    pub(crate) fn note_batch(&mut self) {
        self.batches = true;
    }

    /// The trace context that goes to the server with an open call.
    pub(crate) fn traceparent_of(&self, id: &str) -> Option<String> {
        let call = self.calls.get(id)?;
        match &call.traced {
            Some(traced) => Some(traced.traceparent()),
            None => call.trace.as_deref().map(str::to_owned),
        }
    }

    /// Where the reply to an open call goes, if not to the client's own sink.
    pub(crate) fn sink_of(&self, id: &str) -> Option<Arc<dyn ClientSink>> {
        self.calls.get(id)?.sink().cloned()
    }

    /// Where a message can go that belongs to no call but may be meant for one: to the reply of
    /// the call that was opened last.
    pub(crate) fn latest_sink(&self) -> Option<Arc<dyn ClientSink>> {
        let open = self.calls.iter().filter_map(|call| Some((call.order, call.sink()?)));
        let taking = open.filter(|(_, sink)| sink.takes_messages());
        taking.max_by_key(|(order, _)| *order).map(|(_, sink)| Arc::clone(sink))
    }

    /// The reply's head says how long to wait, should it be a failure.
    pub(crate) fn told_to_wait(&mut self, id: &str, wait: Duration) {
        if let Some(call) = self.calls.get_mut(id) {
            call.wait = Some(wait);
        }
    }

    /// A comparison of a result with its schema was made.
    pub(crate) fn on_compared(&mut self, id: &str, compared: Compared) {
        // The call may have been given up meanwhile.
        if let Some(call) = self.calls.get_mut(id) {
            call.compared = compared;
        }
    }

    /// Asks the server something of our own; under which id, and the line.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> (String, Vec<u8>) {
        let id = self.own_id();
        let line = wire::request(&id, method, params);
        if method == wire::INITIALIZE {
            self.handshake.begin(&id, &line);
        }
        self.questions.insert(id.clone());
        self.employed = true;
        (id, line)
    }

    /// A handshake of our own was answered; `initialized` is the notification that follows.
    pub(crate) fn agree(&mut self, initialized: &[u8]) {
        self.handshake.agree();
        self.handshake.confirm(initialized);
    }

    /// The server is spoken to as if there had been no handshake.
    pub(crate) fn forget_handshake(&mut self) {
        self.handshake = Handshake::default();
    }

    /// The directory to use instead of the one that a refused call named. A server that was told
    /// roots uses these.
    pub(crate) fn directory_instead(
        &self,
        arguments: Option<&Value>,
        said: &str,
    ) -> Option<String> {
        self.roots.as_ref().unwrap_or(&self.directories).instead(arguments, said)
    }

    /// When something is due next, as of now. An earlier deadline that is set later comes as
    /// [`Effect::Sooner`].
    pub(crate) fn next_deadline(&mut self, now: Instant) -> Option<Instant> {
        let phase = match self.phase {
            Phase::Opening { until } if !self.closed => Some(until),
            Phase::Down { until, .. } if !self.starting && !self.draining => until,
            _ => None,
        };
        let dues = [
            self.calls.next_due(self.phase == Phase::Up),
            self.discovery.as_ref().map(|discovery| discovery.deadline),
            phase,
        ];
        let due = dues.into_iter().flatten().min();
        // Looking once too often is cheaper than an effect for every call.
        let planned = self.planned.filter(|planned| *planned > now);
        self.planned = due.into_iter().chain(planned).min();
        self.planned
    }

    /// Has the clock looked at in time for this deadline.
    fn watch(&mut self, due: Option<Instant>) {
        let Some(due) = due else { return };
        if self.planned.is_none_or(|planned| due < planned) {
            self.planned = Some(due);
            self.effects.push(Effect::Sooner);
        }
    }

    fn event(&mut self, name: &'static str, facts: Value) {
        self.effects.push(Effect::Event(name, facts));
    }

    fn fail(&mut self, call: OpenCall, failure: CallFailure) {
        self.effects.push(Effect::Fail { call, failure, counts: true });
    }

    /// A failure that the gateway itself saw.
    fn observed(&self, condition: Condition, message: impl Into<String>) -> CallFailure {
        CallFailure::observed(self.contract(), condition).saying(message)
    }

    /// A refusal of the gateway: nothing was sent.
    fn refused(&self, condition: Condition, message: impl Into<String>) -> CallFailure {
        self.observed(condition, message).outcome(Outcome::NotSent)
    }

    /// An id for a request of our own.
    fn own_id(&mut self) -> String {
        self.requests += 1;
        format!("{}{}\"", self.own, self.requests)
    }

    /// Whether an id is one of ours.
    fn is_own(&self, id: &str) -> bool {
        id.starts_with(&self.own)
    }
}

/// Whether a call was sent to the server.
fn is_sent(call: &Call) -> bool {
    matches!(call.stage, Stage::Sent { .. })
}
