//! The door: fault → audit → envelope → client. No failure is answered in another way.
//!
//! Whoever sees a call fail hands it over and goes on. One thread makes the faults; another
//! records them, and answers. While some are on their way to disk, the next are made.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use faultwire::audit::{self, Digest, Entry, Log};
use faultwire_contract::{
    Condition, Fault, Meta, Outcome, Report, ResultOptions, Session, Surface,
};
use serde_json::Value;

use crate::call::{Call, Method};
use crate::failing::{Failing, Said};
use crate::outlet::Outlet;
use crate::request::Story;
use crate::settings::Settings;
use crate::tools::ToolFacts;
use crate::{edge, wire};

/// When so many wait to be answered, the client is not listened to. Nobody else ever waits here:
/// the others bring no more than one for each open call.
const MOST_WAITING: usize = 4096;
/// A bundle is handed over at this size even if more is coming.
const MOST_GATHERED: usize = 16;
/// Recorded with one sync; what comes later waits for the next.
const MOST_TOGETHER: usize = 256;
/// Events of one name that are all recorded; of the later ones only those whose number is a power
/// of two, so that no server can fill the disk by misbehaving.
const MOST_EVENTS: u64 = 64;
/// What all failures of a session go through.
pub(crate) struct Door {
    settings: Settings,
    log: Log,
    queue: Sender<Vec<Errand>>,
    session: Mutex<Session>,
    gathered: Mutex<Gathered>,
    waiting: AtomicUsize,
    events: Mutex<HashMap<&'static str, u64>>,
}

/// Errands that are handed over together, while somebody says that more is coming.
#[derive(Default)]
struct Gathered {
    errands: Vec<Errand>,
    bursts: usize,
}

/// While it lives, errands are gathered.
pub(crate) struct Burst<'a>(&'a Door);

impl Drop for Burst<'_> {
    fn drop(&mut self) {
        self.0.gathered().bursts -= 1;
        self.0.hand_over();
    }
}

impl Burst<'_> {
    /// Hands over what there is, if it is worth it.
    pub(crate) fn pause(&self) {
        if self.0.gathered().errands.len() >= MOST_GATHERED {
            self.0.hand_over();
        }
    }
}

/// What the door's own thread does.
pub(crate) enum Errand {
    /// Record and answer a call that failed.
    Fail(Box<(Call, Failing)>),
    /// Record something, and say nothing.
    Record(Entry),
    /// Record and answer something that is no call.
    Refuse(Entry, Box<Answer>),
    /// Say something that is no answer.
    Tell(Vec<u8>),
    Stop,
}

/// What is to be written down, and answered then.
pub(crate) type Made = Vec<(Entry, Option<Answer>)>;

/// An answer that may be sent once it is recorded.
pub(crate) struct Answer {
    line: Vec<u8>,
    fault: Fault,
    id: Option<Box<str>>,
    form: Form,
}

/// How a failure is put on the wire.
#[derive(Clone, Copy)]
enum Form {
    Result(ResultOptions),
    Error(i64),
}

/// What others do at the door.
impl Door {
    pub(crate) fn new(settings: Settings, log: Log, queue: Sender<Vec<Errand>>) -> Self {
        let session = Mutex::new(Session {
            id: Some(format!("{:016x}{:016x}", edge::random(), edge::random())),
            ..settings.session.clone()
        });
        Self {
            settings,
            log,
            queue,
            session,
            gathered: Mutex::default(),
            waiting: AtomicUsize::new(0),
            events: Mutex::default(),
        }
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The client has said who it is.
    pub(crate) fn greet(&self, client: Option<String>) {
        self.session().client = client;
    }

    /// How long an answer may take, and how long with progress.
    pub(crate) fn deadline_of(
        &self,
        method: &Method,
        tool: Option<&str>,
    ) -> (Option<Duration>, Duration) {
        let deadlines = &self.settings.deadlines;
        let own = || tool.and_then(|tool| deadlines.tools.get(tool).copied());
        let starts = |name: &str| name == wire::DISCOVER;
        let span = match method {
            Method::ToolsCall if deadlines.tools.is_empty() => Some(deadlines.default),
            Method::ToolsCall => Some(own().unwrap_or(deadlines.default)),
            Method::Initialize => Some(deadlines.start.max(deadlines.default)),
            Method::Other(name) if starts(name) => Some(deadlines.start.max(deadlines.default)),
            Method::Other(name) if deadlines.unbounded.iter().any(|m| **m == **name) => None,
            Method::Other(_) | Method::ToolsList { .. } => Some(deadlines.default),
        };
        (span, deadlines.hard.max(span.unwrap_or_default()))
    }

    /// Has a failed call recorded, and answered after that.
    pub(crate) fn fail(&self, call: Call, failing: Failing) {
        self.gather(Errand::Fail(Box::new((call, failing))));
    }

    /// Has a try recorded that is not the last.
    pub(crate) fn record_try(&self, call: &Call, fault: &Fault, code: Option<Value>) {
        let facts = self.facts(call, fault, code, &call.story(), None);
        self.gather(Errand::Record(Entry::fault(fault, &facts)));
    }

    /// Has something recorded that is no failure of a call.
    pub(crate) fn event(&self, name: &'static str, facts: &Value) {
        let count = {
            let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
            let count = events.entry(name).or_default();
            *count += 1;
            *count
        };
        if count > MOST_EVENTS && !count.is_power_of_two() {
            return;
        }
        let facts = &if count > MOST_EVENTS {
            serde_json::json!({ "count": count, "last": facts })
        } else {
            facts.clone()
        };
        let redactor = self.settings.contract.redactor();
        self.gather(Errand::Record(Entry::event(name, None, facts, redactor)));
    }

    /// Answers something of the client's that is no call: there is nothing to send on.
    pub(crate) fn refuse(&self, id: Option<&str>, number: i64, failing: Failing) {
        let report = Report {
            outcome: Some(Outcome::NotSent),
            ..self.dressed(failing.report, None, &Story::default())
        };
        let fault = self.accepted(report);
        let envelope = fault.envelope(Surface::Mcp, self.settings.profile);
        let facts = audit::Call {
            request: id.and_then(|id| serde_json::from_str(id).ok()),
            client: fault.public().session.client.clone(),
            envelope: Some(Digest::of(&envelope)),
            ..audit::Call::default()
        };
        let form = Form::Error(number);
        let line = rendered(id, &fault, &envelope, form);
        let entry = Entry::fault(&fault, &facts);
        let answer = Answer { line, fault, id: id.map(Into::into), form };
        self.gather(Errand::Refuse(entry, Box::new(answer)));
    }

    /// Makes the fault of a failing call, as it stands now.
    pub(crate) fn fault(&self, call: &Call, report: Report, story: &Story) -> Fault {
        let elapsed = edge::now().saturating_duration_since(call.since);
        let mut report = self.dressed(report, u64::try_from(elapsed.as_millis()).ok(), story);
        report.tool = report.tool.or_else(|| call.tool().map(str::to_owned));
        report.method.get_or_insert_with(|| call.method.name().to_owned());
        self.accepted(report)
    }

    /// Says something of our own to the client that is no answer, without waiting for it.
    pub(crate) fn tell(&self, line: Vec<u8>) {
        self.gather(Errand::Tell(line));
    }

    /// Says that several failures may come at once.
    pub(crate) fn burst(&self) -> Burst<'_> {
        self.gathered().bursts += 1;
        Burst(self)
    }

    /// Ends the door's own thread once everything before is settled.
    pub(crate) fn close(&self) {
        self.gathered().errands.push(Errand::Stop);
        self.hand_over();
    }

    /// Waits while too many answers wait. For the one who brings new requests.
    pub(crate) fn wait_for_room(&self) {
        while self.waiting.load(Ordering::Relaxed) > MOST_WAITING {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn gather(&self, errand: Errand) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let mut gathered = self.gathered();
        gathered.errands.push(errand);
        if gathered.bursts == 0 {
            drop(gathered);
            self.hand_over();
        }
    }

    fn hand_over(&self) {
        let errands = std::mem::take(&mut self.gathered().errands);
        if !errands.is_empty() {
            // The door's thread ends only when nothing is open any more.
            let _ = self.queue.send(errands);
        }
    }

    fn gathered(&self) -> MutexGuard<'_, Gathered> {
        self.gathered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the door's own thread does.
impl Door {
    /// Makes faults, and hands over what is to be written down, until it is told to stop.
    pub(crate) fn serve(
        &self,
        errands: &Receiver<Vec<Errand>>,
        made: &Sender<Made>,
        client: &dyn Outlet,
    ) {
        let mut open = true;
        while open {
            let Ok(bundle) = errands.recv() else { return };
            open = !bundle.iter().any(|errand| matches!(errand, Errand::Stop));
            let prepared: Made =
                bundle.into_iter().filter_map(|errand| self.prepared(errand, client)).collect();
            if prepared.len() == 1 && self.waiting.load(Ordering::Relaxed) == 1 {
                // A lone failure is faster without another thread.
                self.settle(prepared, client);
            } else {
                // Who records goes on for as long as something may come.
                let _ = made.send(prepared);
            }
        }
    }

    /// Records what was made and answers it. What comes while one sync goes on shares the next.
    pub(crate) fn record_made(&self, made: &Receiver<Made>, client: &dyn Outlet) {
        while let Ok(mut bundle) = made.recv() {
            while bundle.len() < MOST_TOGETHER
                && let Ok(more) = made.try_recv()
            {
                bundle.extend(more);
            }
            self.settle(bundle, client);
        }
    }

    /// Nothing is sent before its record is on disk.
    fn settle(&self, made: Made, client: &dyn Outlet) {
        let done = made.len();
        let (entries, answers): (Vec<_>, Vec<_>) = made.into_iter().unzip();
        let receipts = self.log.append_all(entries);
        let mut lines = Vec::new();
        for (receipt, answer) in receipts.into_iter().zip(answers) {
            match (answer, receipt) {
                (Some(answer), Ok(_)) => lines.extend_from_slice(&answer.line),
                (Some(answer), Err(why)) => {
                    lines.extend_from_slice(&self.unrecorded(answer, &why));
                }
                (None, _) => {}
            }
        }
        if !lines.is_empty() {
            client.send(&lines);
        }
        self.waiting.fetch_sub(done, Ordering::Relaxed);
    }

    /// The record of an errand, and what is answered once it is on disk.
    fn prepared(&self, errand: Errand, client: &dyn Outlet) -> Option<(Entry, Option<Answer>)> {
        match errand {
            Errand::Fail(failed) => {
                let (call, failing) = *failed;
                Some(self.failed(&call, failing))
            }
            Errand::Record(entry) => Some((entry, None)),
            Errand::Refuse(entry, answer) => Some((entry, Some(*answer))),
            Errand::Tell(line) => {
                client.send(&line);
                self.waiting.fetch_sub(1, Ordering::Relaxed);
                None
            }
            Errand::Stop => None,
        }
    }

    fn failed(&self, call: &Call, failing: Failing) -> (Entry, Option<Answer>) {
        let story = call.story();
        let Failing { report, upstream_code, rpc, tool, said } = failing;
        let fault = self.fault(call, report, &story);
        let form = self.form(call, &fault, rpc, tool, &story);
        let envelope = fault.envelope(Surface::Mcp, self.settings.profile);
        let facts = self.facts(call, &fault, upstream_code, &story, Some(&envelope));
        let line = match said {
            Said::Nothing => {
                let facts = audit::Call { envelope: None, ..facts };
                return (Entry::fault(&fault, &facts), None);
            }
            Said::Protocol(line) => line,
            Said::Envelope(line) if holds(&line, &envelope) => line,
            Said::Envelope(_) | Said::Whatever => {
                rendered(Some(call.id()), &fault, &envelope, form)
            }
        };
        let entry = Entry::fault(&fault, &facts);
        (entry, Some(Answer { line, fault, id: Some(call.id().into()), form }))
    }

    /// What the client gets for a failure that could not be written down (K10).
    fn unrecorded(&self, answer: Answer, why: &audit::AuditFailed) -> Vec<u8> {
        let stamp = edge::stamp(self.settings.show_stack);
        let fault = why.instead_of(&answer.fault, &stamp).unwrap_or(answer.fault);
        let envelope = fault.envelope(Surface::Mcp, self.settings.profile);
        rendered(answer.id.as_deref(), &fault, &envelope, answer.form)
    }

    /// Adds what is known of session and call. An envelope that a server made itself may know
    /// better.
    fn dressed(&self, mut report: Report, elapsed_ms: Option<u64>, story: &Story) -> Report {
        let said = std::mem::replace(&mut report.session, self.session().clone());
        let session = &mut report.session;
        let better = [
            (&mut session.id, said.id),
            (&mut session.role, said.role),
            (&mut session.workspace_root, said.workspace_root),
            (&mut session.phase, said.phase),
            (&mut session.plan_hash, said.plan_hash),
        ];
        for (known, said) in better {
            *known = said.or(known.take());
        }
        if report.meta.is_empty() {
            report.meta = Meta { elapsed_ms, ..self.settings.meta.clone() };
        }
        story.tell(&mut report);
        report
    }

    fn accepted(&self, report: Report) -> Fault {
        let (contract, stamp) = (&self.settings.contract, edge::stamp(self.settings.show_stack));
        let plain = || Report {
            origin: Some(Condition::Internal.origin()),
            outcome: Some(Condition::Internal.outcome()),
            ..Report::new(&contract.fallback().id)
        };
        Fault::new(contract, report, &stamp)
            .or_else(|_| Fault::new(contract, plain(), &stamp))
            .unwrap_or_else(|e| unreachable!("the contract's own fallback is refused: {e}"))
    }

    fn form(
        &self,
        call: &Call,
        fault: &Fault,
        rpc: Option<i64>,
        tool: ToolFacts,
        story: &Story,
    ) -> Form {
        if call.method == Method::ToolsCall && self.settings.failures_as_results {
            let has_output_schema = tool.has_output_schema;
            return Form::Result(ResultOptions { has_output_schema, modern: story.is_modern() });
        }
        let observed = fault.public().condition.unwrap_or(Condition::Internal);
        Form::Error(rpc.unwrap_or_else(|| observed.rpc_code()))
    }

    fn facts(
        &self,
        call: &Call,
        fault: &Fault,
        upstream_code: Option<Value>,
        story: &Story,
        envelope: Option<&[u8]>,
    ) -> audit::Call {
        let public = fault.public();
        audit::Call {
            request: serde_json::from_str(call.id()).ok(),
            client: public.session.client.clone(),
            arguments: story.arguments.as_ref().map(|a| self.log.fingerprint(a)),
            upstream_code,
            elapsed_ms: public.meta.elapsed_ms,
            attempt: (call.attempt > 1 || envelope.is_none()).then_some(call.attempt),
            envelope: envelope.map(Digest::of),
        }
    }
}

fn rendered(id: Option<&str>, fault: &Fault, envelope: &[u8], form: Form) -> Vec<u8> {
    match (form, id) {
        (Form::Result(options), Some(id)) => {
            wire::result(id, &fault.result_around(envelope, options))
        }
        (Form::Error(number), id) => {
            let message = fault.public().message.as_deref().unwrap_or_default();
            wire::error(id, number, message, envelope)
        }
        (Form::Result(_), None) => wire::error(None, wire::INVALID_REQUEST, "", envelope),
    }
}

/// Whether the line has exactly this envelope as a text.
fn holds(line: &[u8], envelope: &[u8]) -> bool {
    let text = Value::from(String::from_utf8_lossy(envelope)).to_string();
    memchr::memmem::find(line, text.as_bytes()).is_some()
}
