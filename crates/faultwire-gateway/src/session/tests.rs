//! A session driven by lines and times, without a process: what comes in, and what comes out.

mod properties;
mod tables;

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use faultwire_contract::{Condition, Contract, Outcome, peek};
use hashbrown::HashMap;
use parking_lot::Mutex;

use super::{ClientVerdict, Effect, Exit, Incoming, Parts, ServerVerdict, Session, UpstreamSlot};
use crate::backlog::Backlog;
use crate::call::{Bridged, ClientContext, OpenCall, RequestContext, Responder, session_of};
use crate::client_sink::ClientSink;
use crate::directories::Directories;
use crate::edge;
use crate::failing::CallFailure;
use crate::guard::breaker::Breaker;
use crate::last_output::LastOutput;
use crate::memory_quota::MemoryQuota;
use crate::reply::{Judged, Reply, result_of};
use crate::settings::Settings;
use crate::tools::Page;

/// A client's sink that keeps nothing: what is told to it is among the effects. `true` if there is
/// one client behind it.
struct Nowhere(bool);

impl ClientSink for Nowhere {
    fn send(&self, _lines: &[u8]) {}

    fn is_somebody(&self) -> bool {
        self.0
    }
}

/// A responder that notes what fails.
struct Noted {
    failed: Mutex<Vec<String>>,
    quota: Arc<MemoryQuota>,
}

impl Responder for Noted {
    fn fail(&self, _client: Arc<ClientContext>, call: OpenCall, failure: CallFailure) {
        let condition = failure.report.condition.unwrap_or(Condition::Internal);
        let outcome = failure.report.outcome.unwrap_or_else(|| condition.outcome()).name();
        let condition = condition.name();
        let mut failed = self.failed.lock();
        failed.push(format!("fail {} {condition} {outcome}", call.client_id()));
    }

    fn refuse(&self, _: RequestContext<'_>, _: Option<&str>, _: i64, _: CallFailure) {}

    fn quota(&self) -> &Arc<MemoryQuota> {
        &self.quota
    }

    fn is_tracing(&self) -> bool {
        false
    }
}

/// A session, and what a connection would keep beside it.
struct Driven {
    session: Session,
    client: Arc<ClientContext>,
    noted: Arc<Noted>,
    now: Instant,
    /// Bytes that were ever meant for this run of the server.
    at: u64,
    /// Whether the server has stopped reading, and at which byte.
    stalled: Option<u64>,
    run: u64,
    bridged: Bridged,
    /// What a check found that was made before the client's line came.
    checked: Option<super::Checked<'static>>,
    /// What came out since this was emptied last.
    out: Vec<String>,
}

impl Driven {
    fn new(settings: Settings) -> Self {
        Self::with(settings, false, None)
    }

    fn with(settings: Settings, is_remote: bool, breaker: Option<Arc<Breaker>>) -> Self {
        Self::before(settings, is_remote, breaker, true)
    }

    /// A session whose server several clients share.
    fn shared(settings: Settings) -> Self {
        Self::before(settings, false, None, false)
    }

    fn before(
        settings: Settings,
        is_remote: bool,
        breaker: Option<Arc<Breaker>>,
        is_somebody: bool,
    ) -> Self {
        let settings = Arc::new(settings);
        let noted = Arc::new(Noted { failed: Mutex::default(), quota: MemoryQuota::new(0) });
        let sink: Arc<dyn ClientSink> = Arc::new(Nowhere(is_somebody));
        let responder = Arc::clone(&noted) as Arc<_>;
        let facts = session_of(&settings);
        let client = ClientContext::new(responder, Arc::clone(&settings), Arc::clone(&sink), facts);
        let session = Session::new(Parts {
            settings,
            breaker,
            tasks: None,
            sink,
            is_remote,
            directories: Directories::default(),
            bytes: Backlog::new(usize::MAX).part(),
            seed: 0,
        });
        let (at, stalled, run, out, bridged) = (0, None, 1, Vec::new(), Bridged::No);
        Self {
            session,
            client,
            noted,
            now: edge::now(),
            at,
            stalled,
            run,
            bridged,
            checked: None,
            out,
        }
    }

    fn slot(&self) -> UpstreamSlot {
        UpstreamSlot { at: self.at, free: 1 << 20, now: self.now }
    }

    /// A line of the client, and what becomes of it.
    fn client(&mut self, line: &str) {
        let line = format!("{line}\n");
        let client = Arc::clone(&self.client);
        let context = RequestContext { bridged: self.bridged, ..client.plainly() };
        let slot = self.slot();
        let seen = peek(line.as_bytes());
        let depth = client.settings.limits.depth;
        let incoming = Incoming::read(context, line.as_bytes(), &seen, depth, self.now);
        match self.session.on_client(incoming, self.checked.as_ref(), slot) {
            ClientVerdict::Pass => {
                self.at += line.len() as u64;
                self.out.push("pass".to_owned());
            }
            ClientVerdict::Drop => {}
            ClientVerdict::Instead(other) => self.upstream(&other),
            ClientVerdict::Refuse(refusal) => {
                let id = refusal.id.as_deref().unwrap_or("-");
                self.out.push(format!("refuse {id} {}", refusal.number));
            }
        }
        // The driver has the server's input locked: what needs that lock would wait for ever.
        let effects = self.session.take_effects();
        let is_stuck = |effect: &Effect| {
            matches!(
                effect,
                Effect::SendUpstream(_) | Effect::Recall { .. } | Effect::Release | Effect::Close
            )
        };
        assert!(!effects.iter().any(is_stuck), "{line}");
        for effect in effects {
            self.carry_out_one(effect);
        }
        self.carry_out();
    }

    /// A line of the server, and what becomes of it.
    fn server(&mut self, line: &str) {
        let line = format!("{line}\n");
        let bytes = line.as_bytes();
        let seen = peek(bytes);
        match self.session.on_server(bytes, &seen, false, self.now) {
            ServerVerdict::Pass => self.out.push("pass".to_owned()),
            ServerVerdict::Drop | ServerVerdict::Later(_) => {}
            ServerVerdict::Unfinished => self.out.push("unfinished".to_owned()),
            ServerVerdict::Opened if seen.error_number().is_some() => {
                self.session.on_handshake_refused(self.now);
            }
            ServerVerdict::Opened => self.session.on_opened(self.slot()),
            ServerVerdict::Listed => {
                let page = result_of(bytes).and_then(Page::read);
                self.session.on_listed(page);
            }
            ServerVerdict::OwnReply => {
                let id = seen.id.unwrap_or_default();
                if self.session.on_own_reply(id, &seen) {
                    self.out.push("own reply".to_owned());
                }
            }
            ServerVerdict::Reply(mut call, tool) => {
                let settings = Arc::clone(&self.client.settings);
                let reply = Reply {
                    settings: &settings,
                    tasks: None,
                    tool: tool.as_ref(),
                    call: &call,
                    line: &seen,
                    bytes,
                };
                match reply.judge() {
                    Judged::Success(success) => {
                        self.session.on_success(&call, success.page);
                        self.out.push(format!("answer {}", call.client_id()));
                        call.dismiss();
                    }
                    Judged::ProtocolError(_) => {
                        self.out.push(format!("answer {}", call.client_id()));
                        call.dismiss();
                    }
                    Judged::Mismatch(failure) | Judged::Failure(failure) => {
                        call.facts = self.session.facts_of(&call);
                        self.fail(call, *failure);
                    }
                }
            }
        }
        self.carry_out();
    }

    fn fail(&mut self, call: OpenCall, failure: CallFailure) {
        if call.was_open() {
            self.session.note_failure(&call, &failure.report.code);
        }
        call.fail(failure);
        self.out.append(&mut self.noted.failed.lock());
    }

    fn upstream(&mut self, line: &[u8]) {
        self.at += line.len() as u64;
        let seen = peek(line);
        let mut request = String::from("upstream");
        if let Some(method) = &seen.method {
            let _ = write!(request, " {method}");
        }
        if let Some(id) = seen.id {
            let id = id.replace("\"faultwire-0000000000000000-", "own-").replace('"', "");
            let _ = write!(request, " {id}");
        }
        self.out.push(request);
    }

    fn written(&self) -> u64 {
        self.stalled.unwrap_or(self.at)
    }

    fn carry_out(&mut self) {
        loop {
            let effects = self.session.take_effects();
            if effects.is_empty() {
                return;
            }
            for effect in effects {
                self.carry_out_one(effect);
            }
        }
    }

    fn carry_out_one(&mut self, effect: Effect) {
        match effect {
            Effect::SendUpstream(line) => self.upstream(&line),
            Effect::Tell(_, line) => {
                let method = peek(&line).method.map(String::from).unwrap_or_default();
                self.out.push(format!("tell {method}"));
            }
            Effect::Fail { call, failure, .. } => self.fail(call, failure),
            Effect::Recall { call, failure, tell, .. } => {
                let is_out = call.is_out(self.written());
                let outcome = if is_out { Outcome::MaybeExecuted } else { Outcome::NotSent };
                if is_out && tell.is_some() {
                    self.out.push(format!("upstream notifications/cancelled {}", call.id()));
                }
                self.fail(call, failure.outcome(outcome));
            }
            Effect::Event(name, _) => self.out.push(format!("event {name}")),
            Effect::Release => {
                let slot = self.slot();
                while self.session.on_release(&self.checked(), slot) {}
            }
            Effect::Sooner | Effect::ToolsListed(_) => {}
            Effect::Start => self.out.push("start".to_owned()),
            Effect::Kill => self.out.push("kill".to_owned()),
            Effect::Close => self.out.push("close".to_owned()),
        }
    }

    fn checked(&self) -> HashMap<String, super::Checked<'static>> {
        let settings = &self.client.settings;
        self.session.unchecked().into_iter().map(|call| call.check(settings)).collect()
    }

    /// Time passes, and the session is looked at whenever it wants to be.
    fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(due) = self.session.next_deadline(self.now).filter(|due| *due <= until) {
            self.now = due.max(self.now);
            self.session.on_tick(self.now);
            self.carry_out();
            if self.session.next_deadline(self.now).is_some_and(|next| next <= self.now) {
                // Whatever is due now is the driver's to do, such as to start the server.
                break;
            }
        }
        self.now = until;
        self.session.on_tick(self.now);
        self.carry_out();
    }

    /// The server's process ended.
    fn exit(&mut self, how: &str) {
        let output = Arc::new(LastOutput { text: "npm error 404".to_owned(), check: None });
        self.session.on_exit(
            Exit {
                how: how.to_owned(),
                is_in_order: how == "exited with status 0",
                lasted: Duration::from_millis(10),
                run: self.run,
                is_wanted: false,
                output: (!self.session.has_answer()).then_some(output),
            },
            self.written(),
            self.now,
        );
        (self.at, self.stalled) = (0, None);
        self.carry_out();
    }

    /// The server's process was started again.
    fn started(&mut self) {
        self.run += 1;
        self.session.on_started(self.run, self.slot());
        self.carry_out();
        self.session.on_tick(self.now);
        self.carry_out();
    }

    fn close(&mut self) {
        self.session.on_close();
        self.carry_out();
    }
}

fn settings(contract: &str) -> Settings {
    let contract: Arc<Contract> = faultwire_contract::builtin(contract).expect("it is built in");
    Settings::new(contract)
}
