//! A server and its clients: the [`Session`] that decides, behind its lock, and the parts that
//! do what it decides. Several threads or tasks meet here, one for each direction.
//!
//! Order of locks: the writer, then the session. Never the other way round, and no thread waits
//! for a client or a disk with one of them held.

mod checks;
mod client;
mod event;
mod failure;
mod server;
mod verdict;

use std::sync::{self, Arc, PoisonError};

use faultwire_contract::{Contract, Outcome};
use hashbrown::HashMap;
use hyper::header::HeaderMap;
use parking_lot::{Mutex, MutexGuard, RwLock};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};

use crate::call::OpenCall;
use crate::client_sink::ClientSink;
use crate::directories::Directories;
use crate::edge;
use crate::failing::CallFailure;
use crate::guard::arguments;
use crate::guard::breaker::Breaker;
use crate::guard::tasks::Tasks;
use crate::responder::FaultResponder;
use crate::session::{Effect, Exit, Parts, Session, UpstreamSlot};
use crate::settings::Settings;
use crate::tools::{KnownTools, ListedTool};
use crate::upstream::writer::UpstreamWriter;
use crate::wire;
pub(crate) use event::{Event, EventSender};
pub(crate) use verdict::Verdict;

/// A server and its clients.
pub(crate) struct Connection {
    pub responder: Arc<FaultResponder>,
    settings: Arc<Settings>,
    pub writer: Arc<UpstreamWriter>,
    pub events: EventSender,
    pub sink: Arc<dyn ClientSink>,
    /// Where tasks run, if the client is served by such.
    pub runtime: Option<Handle>,
    breaker: Option<Arc<Breaker>>,
    tasks: Option<Arc<Tasks>>,
    /// The standard library's lock: `parking_lot`'s yields before it waits, which cost `wrap` a sixth
    /// of its throughput at 16 calls in flight.
    session: sync::Mutex<Session>,
    /// The tools that the session knows, for checks that are made before it is locked.
    tools: RwLock<Arc<KnownTools>>,
    /// Who waits for the replies to requests of our own.
    waiting: Mutex<HashMap<String, oneshot::Sender<Vec<u8>>>>,
    /// Who wants to know first that the handshake was refused, since that may be no failure.
    doubts: Mutex<Option<oneshot::Sender<Refused>>>,
    /// One check that may take long at a time.
    checking: Arc<Semaphore>,
}

/// A handshake that the server refused, and its failure.
type Refused = (OpenCall, CallFailure);

/// What a connection is made of.
pub(crate) struct Ends {
    pub responder: Arc<FaultResponder>,
    pub settings: Arc<Settings>,
    pub sink: Arc<dyn ClientSink>,
    pub events: EventSender,
    pub breaker: Option<Arc<Breaker>>,
    pub tasks: Option<Arc<Tasks>>,
    /// Whether the server is behind a URL.
    pub is_remote: bool,
    /// The directories that the server's command names.
    pub directories: Directories,
}

impl Connection {
    pub(crate) fn new(ends: Ends) -> Self {
        let Ends { responder, settings, sink, events, breaker, tasks, is_remote, directories } =
            ends;
        let session = Session::new(Parts {
            settings: Arc::clone(&settings),
            breaker: breaker.clone(),
            tasks: tasks.clone(),
            sink: Arc::clone(&sink),
            is_remote,
            directories,
            bytes: responder.backlog.part(),
            seed: edge::random(),
        });
        let (limit, held) = (settings.limits.backlog_bytes, responder.backlog.part());
        let runtime = Handle::try_current().ok();
        Self {
            writer: Arc::new(UpstreamWriter::new(limit, held, runtime.clone())),
            responder,
            settings,
            events,
            sink,
            runtime,
            breaker,
            tasks,
            session: sync::Mutex::new(session),
            tools: RwLock::default(),
            waiting: Mutex::default(),
            doubts: Mutex::default(),
            checking: Arc::new(Semaphore::new(1)),
        }
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn contract(&self) -> &Arc<Contract> {
        &self.settings.contract
    }

    /// The session, to look something up. What changes it goes through [`with`](Self::with).
    pub(crate) fn session(&self) -> sync::MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A tool, as of the last list.
    fn tool(&self, name: &str) -> Option<Arc<ListedTool>> {
        self.tools.read().get(name).cloned()
    }

    /// Has the session do something, and carries out what it wants done.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut Session) -> T) -> T {
        let mut session = self.session();
        let done = act(&mut session);
        let effects = session.take_effects();
        drop(session);
        self.carry_out(effects);
        done
    }

    /// The same with the server's input locked, for what may send requests to it.
    pub(crate) fn with_slot<T>(&self, act: impl FnOnce(&mut Session, UpstreamSlot) -> T) -> T {
        let mut pipe = self.writer.lock();
        let slot = UpstreamSlot { at: pipe.position(), free: pipe.free(), now: edge::now() };
        let mut session = self.session();
        let done = act(&mut session, slot);
        let mut effects = session.take_effects();
        drop(session);
        let is_line = |effect: &mut Effect| matches!(effect, Effect::SendUpstream(_));
        for effect in effects.extract_if(.., is_line) {
            if let Effect::SendUpstream(line) = effect {
                self.writer.send(&mut pipe, &line);
            }
        }
        drop(pipe);
        self.carry_out(effects);
        done
    }

    fn carry_out(&self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::SendUpstream(line) => self.tell_server(&line),
                Effect::Tell(Some(sink), line) => sink.send(&line),
                // Writing to the client may block, and this thread must not.
                Effect::Tell(None, line) => self.responder.tell(&self.sink, line),
                Effect::Fail { call, failure, counts } => self.fail(call, failure, counts),
                Effect::Recall { call, failure, tell, counts } => {
                    self.recall(call, failure, tell, counts);
                }
                Effect::Event(name, facts) => self.event(name, &facts),
                Effect::ToolsListed(tools) => *self.tools.write() = Arc::new(tools),
                Effect::Release => self.release(),
                Effect::Sooner => self.events.send(Event::Sooner),
                Effect::Start => self.events.send(Event::Start),
                Effect::Kill => self.events.send(Event::Kill),
                Effect::Close => self.writer.close(),
            }
        }
    }

    /// Has something recorded that is no failure of a call.
    pub(crate) fn event(&self, name: &'static str, facts: &Value) {
        self.responder.event(name, facts, self.contract().redactor());
    }

    /// Sends something of our own to the server.
    pub(crate) fn tell_server(&self, line: &[u8]) {
        self.writer.send(&mut self.writer.lock(), line);
    }

    /// Asks the server something of our own. No reply comes if it ends before.
    pub(crate) fn ask(&self, method: &str, params: &Value) -> oneshot::Receiver<Vec<u8>> {
        let (reply, replied) = oneshot::channel();
        let mut pipe = self.writer.lock();
        let (id, line) = self.session().ask(method, params);
        self.waiting().insert(id, reply);
        self.writer.send(&mut pipe, &line);
        replied
    }

    /// Who wants to know first that the handshake was refused.
    pub(crate) fn doubt(&self, doubts: oneshot::Sender<Refused>) {
        *self.doubts.lock() = Some(doubts);
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<String, oneshot::Sender<Vec<u8>>>> {
        self.waiting.lock()
    }

    /// The server ended. Nothing may be sent between the end of its input and of its session: a
    /// call that was would be taken for one that it had.
    pub(crate) fn on_exit(&self, exit: Exit) {
        self.waiting().clear();
        let mut pipe = self.writer.lock();
        let written = pipe.written();
        pipe.disconnect();
        let effects = {
            let mut session = self.session();
            session.on_exit(exit, written, edge::now());
            session.take_effects()
        };
        drop(pipe);
        self.carry_out(effects);
    }

    /// Sends everything that waited and may go now.
    pub(crate) fn release(&self) {
        loop {
            // Calls that came after the checks have to be checked, too.
            let checked = self.check_waiting();
            if !self.with_slot(|session, slot| session.on_release(&checked, slot)) {
                return;
            }
        }
    }

    /// The server behind a URL does not know the session any more.
    pub(crate) fn session_lost(&self, id: Option<&str>) {
        self.with_slot(|session, slot| session.on_session_lost(id, slot));
    }

    /// A call was sent in a session that was lost, and there is another one already.
    pub(crate) fn send_again(&self, id: Option<&str>) {
        self.with_slot(|session, slot| session.on_session_replaced(id, slot));
    }

    /// A message failed in a way that only the one who sent it knows.
    pub(crate) fn send_failed(&self, id: &str, failure: CallFailure) {
        let call = self.with(|session| session.on_send_error(id, edge::now()));
        self.waiting().remove(id);
        if let Some(call) = call {
            let _together = self.responder.burst();
            self.refused(call, failure);
        }
    }

    /// A client that closed its stream has cancelled the call.
    pub(crate) fn client_left(&self, id: &str) {
        self.with(|session| session.on_client_left(id));
    }

    /// A call failed before its reply came, which the server may have got: it is taken back, if
    /// nothing of it was sent.
    fn recall(
        &self,
        call: OpenCall,
        failure: CallFailure,
        tell: Option<&'static str>,
        counts: bool,
    ) {
        let mut pipe = self.writer.lock();
        let outcome = pipe.take_back(call.stage, call.line());
        if outcome != Outcome::NotSent
            && let Some(why) = tell
        {
            self.writer.send(&mut pipe, &wire::cancelled(call.id(), why));
        }
        drop(pipe);
        self.fail(call, failure.outcome(outcome), counts);
    }

    /// Puts those arguments of a call into a head that its tool wants there.
    pub(crate) fn repeat_arguments(&self, tool: &str, line: &[u8], headers: &mut HeaderMap) {
        if let Some(tool) = self.tool(tool) {
            arguments::repeat(&tool, line, headers);
        }
    }
}
