//! The responder: fault → audit → envelope → client. No failure is answered in another way.
//!
//! A failed call is handed over, and the caller goes on. One thread makes the faults, another
//! records them, and a third, or a task, answers. While some are on their way to disk, the next
//! are made, and those before are told.

mod answer;
mod fault;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use faultwire::audit::{self, Digest, Entry, Log};
use faultwire_contract::{Condition, Fault, Outcome, Redactor, Surface};
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;

use crate::backlog::Backlog;
use crate::call::{Call, ClientContext, OpenCall, RequestContext, Responder, digest};
use crate::client_sink::ClientSink;
use crate::edge;
use crate::failing::{CallFailure, Said};
use crate::memory_quota::MemoryQuota;
use crate::metrics::Metrics;
use crate::request::RequestDetails;
use crate::spans::Spans;
use answer::{Answer, Form};
pub(crate) use fault::fault;
use fault::{accepted, dress};

/// When so many wait to be answered, the client is not listened to. No other thread waits here:
/// the others bring no more than one for each open call.
const MOST_WAITING: usize = 4096;
/// A bundle is handed over at this size even if more is coming.
const MOST_GATHERED: usize = 16;
/// Recorded with one sync; what comes later waits for the next.
const MOST_TOGETHER: usize = 256;
/// Events of one name that are all recorded; of the later ones only those whose number is a power
/// of two, so that no server can fill the disk by misbehaving.
const MOST_EVENTS: u64 = 64;

/// What all failures go through.
pub(crate) struct FaultResponder {
    log: Log,
    queue: Sender<Vec<QueueItem>>,
    /// The counters, where metrics are served.
    pub metrics: Option<Arc<Metrics>>,
    /// Where spans go, if there is a collector.
    pub spans: Option<Spans>,
    /// What may be held for clients that do not read.
    pub quota: Arc<MemoryQuota>,
    /// What may be held for servers.
    pub backlog: Arc<Backlog>,
    gathered: Mutex<Gathered>,
    waiting: AtomicUsize,
    events: Mutex<HashMap<&'static str, u64>>,
}

/// Items that are handed over together, while a burst is open.
#[derive(Default)]
struct Gathered {
    items: Vec<QueueItem>,
    bursts: usize,
}

/// While it lives, items are gathered.
pub(crate) struct Burst<'a>(&'a FaultResponder);

impl Drop for Burst<'_> {
    fn drop(&mut self) {
        self.0.gathered().bursts -= 1;
        self.0.hand_over();
    }
}

impl Burst<'_> {
    /// Hands over what there is, if it is worth it.
    pub(crate) fn pause(&self) {
        if self.0.gathered().items.len() >= MOST_GATHERED {
            self.0.hand_over();
        }
    }
}

/// What the responder's own thread does.
pub(crate) enum QueueItem {
    /// Record and answer a call that failed.
    Fail(Arc<ClientContext>, OpenCall, CallFailure),
    /// Record something, and say nothing.
    Record(Entry),
    /// Record and answer something that is no call.
    Refuse(Entry, Box<Answer>),
    /// Say something that is no answer.
    Tell(Arc<dyn ClientSink>, Vec<u8>),
    Stop,
}

/// What is to be written down, and answered then.
pub(crate) type Made = Vec<(Entry, Option<Box<Answer>>)>;

/// Answers that may be sent, and how many items that settles.
pub(crate) struct Settled {
    #[expect(clippy::vec_box, reason = "they were boxed before, and are too large to be moved")]
    answers: Vec<Box<Answer>>,
    items: usize,
}

/// What others do at the responder.
impl FaultResponder {
    /// A responder without metrics and spans.
    pub(crate) fn new(log: Log, queue: Sender<Vec<QueueItem>>) -> Self {
        Self {
            log,
            queue,
            metrics: None,
            spans: None,
            quota: MemoryQuota::new(0),
            // Of one session its own limits are enough.
            backlog: Backlog::new(usize::MAX),
            gathered: Mutex::default(),
            waiting: AtomicUsize::new(0),
            events: Mutex::default(),
        }
    }

    /// Has a try recorded that is not the last.
    pub(crate) fn record_try(&self, call: &Call, fault: &Fault, code: Option<Value>) {
        let facts = self.facts(call, fault, code, &call.details(), None);
        self.gather(QueueItem::Record(Entry::fault(fault, &facts)));
    }

    /// Has something recorded that is no failure of a call.
    pub(crate) fn event(&self, name: &'static str, facts: &Value, redactor: &Redactor) {
        if let Some(metrics) = &self.metrics {
            metrics.event(name);
        }
        let count = {
            let mut events = self.events.lock();
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
        self.record_event(name, facts, redactor);
    }

    /// The same for what is bounded already.
    pub(crate) fn record_event(&self, name: &str, facts: &Value, redactor: &Redactor) {
        self.gather(QueueItem::Record(Entry::event(name, None, facts, redactor)));
    }

    /// Says something of our own to a client that is no answer, without waiting for it.
    pub(crate) fn tell(&self, to: &Arc<dyn ClientSink>, line: Vec<u8>) {
        self.gather(QueueItem::Tell(Arc::clone(to), line));
    }

    /// Whether failures can be recorded.
    pub(crate) fn can_record(&self) -> bool {
        self.log.failure().is_none()
    }

    /// Says that several failures may come at once.
    pub(crate) fn burst(&self) -> Burst<'_> {
        self.gathered().bursts += 1;
        Burst(self)
    }

    /// Waits until all that was read is handed over, but not for ever.
    pub(crate) fn wait_for_bursts(&self, patience: Duration) {
        let until = edge::now() + patience;
        while self.gathered().bursts > 0 && edge::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Ends the responder's own thread once everything before is settled.
    pub(crate) fn close(&self) {
        self.gathered().items.push(QueueItem::Stop);
        self.hand_over();
    }

    /// Whether everything that was handed over is recorded and answered.
    pub(crate) fn is_settled(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) == 0
    }

    /// Waits while too many answers wait. For the one who brings new requests.
    pub(crate) fn wait_for_room(&self) {
        while self.waiting.load(Ordering::Relaxed) > MOST_WAITING {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn gather(&self, item: QueueItem) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let mut gathered = self.gathered();
        gathered.items.push(item);
        if gathered.bursts == 0 {
            drop(gathered);
            self.hand_over();
        }
    }

    fn hand_over(&self) {
        let items = std::mem::take(&mut self.gathered().items);
        if !items.is_empty() {
            // The responder's thread ends only when nothing is open any more.
            let _ = self.queue.send(items);
        }
    }

    fn gathered(&self) -> MutexGuard<'_, Gathered> {
        self.gathered.lock()
    }
}

impl Responder for FaultResponder {
    fn fail(&self, client: Arc<ClientContext>, call: OpenCall, failure: CallFailure) {
        self.gather(QueueItem::Fail(client, call, failure));
    }

    fn refuse(
        &self,
        context: RequestContext<'_>,
        id: Option<&str>,
        number: i64,
        failing: CallFailure,
    ) {
        let (client, mut report) = (context.client, failing.report);
        dress(&mut report, client, None, &RequestDetails::default());
        report.outcome = Some(Outcome::NotSent);
        report.trace = context.trace.map(str::to_owned);
        let noted = context.stranger.map(|stranger| {
            let reason = report.condition.map_or("other", Condition::name);
            let stamp = edge::stamp(false);
            // A stranger that names a trace does not choose the id with it.
            let incident = || match context.trace {
                Some(_) => {
                    let source = digest(&format!("stranger {}", stranger.peer.address));
                    format!("{}_{source}", stamp.incident(context.trace))
                }
                None => stamp.incident(None),
            };
            stranger.refusals.note(stranger.peer.address, reason, edge::now(), incident)
        });
        report.incident = noted.as_ref().map(|noted| noted.incident.clone());
        let fault = accepted(client, report, &client.caller());
        let form = match context.surface {
            Surface::Mcp => Form::Error(number),
            Surface::Http => Form::Http,
        };
        let envelope = fault.envelope_twice(form.surface(), client.settings.profile);
        let facts = audit::Call {
            request: id.and_then(|id| serde_json::from_str(id).ok()),
            client: fault.public().session.client.clone(),
            envelope: Some(Digest::of(envelope.json())),
            peer: context.stranger.map(|stranger| stranger.peer.address.to_string()),
            refusals: noted.as_ref().and_then(|noted| noted.recorded),
            ..audit::Call::default()
        };
        let is_recorded = noted.as_ref().is_none_or(|noted| noted.recorded.is_some());
        if let Some(metrics) = &self.metrics {
            metrics.rejected(&fault, noted.as_ref());
        }
        if let Some(spans) = self.spans.as_ref().filter(|_| is_recorded) {
            spans.refused(&fault, context.trace);
        }
        let line = form.rendered(id, &fault, &envelope, failing.beside.as_ref());
        let entry = Entry::fault(&fault, &facts);
        let (to, client) = (Arc::clone(context.sink()), Arc::clone(client));
        let answer = Answer { to, client, line, fault, id: id.map(Into::into), form };
        if is_recorded {
            self.gather(QueueItem::Refuse(entry, Box::new(answer)));
        } else {
            // The record of those before it is on disk, and has the incident id of this one.
            answer.to.fail(&[answer.failed()]);
        }
    }

    fn quota(&self) -> &Arc<MemoryQuota> {
        &self.quota
    }

    fn is_tracing(&self) -> bool {
        self.spans.is_some()
    }
}

/// What the responder's own thread does.
impl FaultResponder {
    /// Makes faults, and hands over what is to be written down, until it is told to stop.
    pub(crate) fn serve(&self, items: &Receiver<Vec<QueueItem>>, made: &Sender<Made>) {
        let mut open = true;
        while open {
            let Ok(bundle) = items.recv() else { return };
            open = !bundle.iter().any(|item| matches!(item, QueueItem::Stop));
            let prepared: Made =
                bundle.into_iter().filter_map(|item| self.prepared(item)).collect();
            if prepared.len() == 1 && self.waiting.load(Ordering::Relaxed) == 1 {
                // A lone failure is faster without other threads.
                self.deliver(&self.record(prepared));
            } else {
                // Who records goes on for as long as something may come.
                let _ = made.send(prepared);
            }
        }
    }

    /// Records what was made, and hands on what may be answered then. What comes while one sync
    /// goes on shares the next.
    pub(crate) fn record_made(&self, made: &Receiver<Made>, hand_on: impl Fn(Settled)) {
        while let Ok(mut bundle) = made.recv() {
            while bundle.len() < MOST_TOGETHER
                && let Ok(more) = made.try_recv()
            {
                bundle.extend(more);
            }
            hand_on(self.record(bundle));
        }
    }

    /// Sends what is settled.
    pub(crate) fn deliver(&self, settled: &Settled) {
        for same in settled.answers.chunk_by(|one, next| Arc::ptr_eq(&one.to, &next.to)) {
            let failed: Vec<_> = same.iter().map(|answer| answer.failed()).collect();
            same[0].to.fail(&failed);
        }
        self.waiting.fetch_sub(settled.items, Ordering::Relaxed);
    }

    /// Nothing is sent before its record is on disk.
    fn record(&self, made: Made) -> Settled {
        let items = made.len();
        let (entries, answers): (Vec<_>, Vec<_>) = made.into_iter().unzip();
        let before = self.metrics.as_ref().map(|metrics| (metrics, edge::now()));
        let receipts = self.log.append_all(entries);
        if let Some((metrics, before)) = before {
            metrics.synced(edge::now().saturating_duration_since(before));
        }
        let mut settled = Vec::with_capacity(answers.len());
        for (receipt, answer) in receipts.into_iter().zip(answers) {
            let Some(answer) = answer else { continue };
            settled.push(match receipt {
                Ok(_) => answer,
                Err(why) => Box::new(answer.unrecorded(&why)),
            });
        }
        Settled { answers: settled, items }
    }

    /// The record of an item, and what is answered once it is on disk.
    fn prepared(&self, item: QueueItem) -> Option<(Entry, Option<Box<Answer>>)> {
        match item {
            QueueItem::Fail(client, call, failing) => Some(self.failed(client, &call, failing)),
            QueueItem::Record(entry) => Some((entry, None)),
            QueueItem::Refuse(entry, answer) => Some((entry, Some(answer))),
            QueueItem::Tell(to, line) => {
                to.send(&line);
                self.waiting.fetch_sub(1, Ordering::Relaxed);
                None
            }
            QueueItem::Stop => None,
        }
    }

    fn failed(
        &self,
        client: Arc<ClientContext>,
        call: &Call,
        failing: CallFailure,
    ) -> (Entry, Option<Box<Answer>>) {
        let details = call.details();
        let CallFailure { report, upstream_code, rpc, said, is_protocol, beside, blocks } = failing;
        let tool = call.facts;
        let mut fault = fault(&client, call, report, &details);
        if !blocks.is_empty() {
            fault = fault.with_blocks(blocks, &client.caller().sent_raw(call.params()));
        }
        let is_protocol = is_protocol || matches!(said, Said::Protocol(_));
        let form = match (call.surface, is_protocol) {
            (Surface::Mcp, true) => Form::error(&fault, rpc),
            _ => Form::of_call(&client.settings, call, &fault, rpc, tool, &details),
        };
        let envelope = fault.envelope_twice(form.surface(), client.settings.profile);
        let mut facts = self.facts(call, &fault, upstream_code, &details, Some(envelope.json()));
        if let Some(metrics) = &self.metrics {
            let took = edge::now().saturating_duration_since(call.since);
            metrics.failed(&fault, call.tool(), tool.is_listed, Some(took));
            metrics.redacted(envelope.json());
        }
        if let Some(spans) = &self.spans {
            spans.ended(call, &client, Some((&fault, form.number())));
        }
        tracing::debug!(code = fault.public().code, tool = call.tool(), "a call failed");
        let line = match said {
            Said::Nothing => {
                call.sink().inspect(|sink| sink.keep_silent());
                facts.envelope = None;
                return (Entry::fault(&fault, &facts), None);
            }
            // It is for clients of MCP alone, and no envelope.
            Said::Protocol(line) if call.surface == Surface::Mcp => {
                facts.envelope = None;
                line
            }
            Said::Protocol(_) | Said::Whatever => {
                form.rendered(Some(call.client_id()), &fault, &envelope, beside.as_ref())
            }
        };
        let entry = Entry::fault(&fault, &facts);
        let to = Arc::clone(call.sink().unwrap_or(&client.sink));
        let id = Some(call.client_id().into());
        (entry, Some(Box::new(Answer { to, client, line, fault, id, form })))
    }

    fn facts(
        &self,
        call: &Call,
        fault: &Fault,
        upstream_code: Option<Value>,
        details: &RequestDetails,
        envelope: Option<&[u8]>,
    ) -> audit::Call {
        let public = fault.public();
        audit::Call {
            request: serde_json::from_str(call.client_id()).ok(),
            client: public.session.client.clone(),
            arguments: details.arguments.as_ref().map(|a| self.log.fingerprint(a)),
            upstream_code,
            elapsed_ms: public.meta.elapsed_ms,
            attempt: (call.attempt > 1 || envelope.is_none()).then_some(call.attempt),
            envelope: envelope.map(Digest::of),
            undeclared: false,
            peer: None,
            refusals: None,
        }
    }
}
