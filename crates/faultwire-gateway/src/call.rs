//! An open call. It ends once: as a success, or through the responder. Dropped without either, it is
//! a fault of our own, so that silence cannot happen.

mod client_context;
mod output;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use faultwire_contract::{Condition, Line, Outcome, Surface};
use serde_json::Value;

use crate::client_sink::ClientSink;
use crate::failing::CallFailure;
use crate::header_params::Head;
use crate::method::Method;
use crate::request::{self, RequestDetails};
use crate::rewrite::Rewrite;
use crate::tools::ToolFacts;
use crate::trace::Traced;
use crate::wire;
pub(crate) use client_context::{
    Bridged, ClientContext, KnownAs, RequestContext, Responder, digest, session_of,
};
pub(crate) use output::{Compared, Comparison, Promise};

/// A request of the client that has no answer yet.
#[must_use = "a call that is dropped is answered with a fault of our own"]
pub(crate) struct Call {
    /// The request, as it came, with a line end.
    line: Box<str>,
    /// Where in it the id stands.
    id: Range<u32>,
    /// Where its params do.
    params: Option<Range<u32>>,
    tool: ToolName,
    pub method: Method,
    /// Which call of the session it is; 0 until it is open.
    pub order: u64,
    pub since: Instant,
    /// How long it may take from the last progress on.
    pub span: Option<Duration>,
    pub deadline: Option<Instant>,
    /// What no progress can stretch.
    pub hard: Option<Instant>,
    /// Which try it is, from 1.
    pub attempt: u32,
    /// Whether the server's session was lost with it already.
    pub lost: bool,
    /// How far the tries before this one got.
    pub reached: Outcome,
    /// The token of its progress, once it was needed.
    token: OnceCell<Option<Value>>,
    pub stage: Stage,
    /// The id under which the client asked, if it was given another one.
    known_as: Option<Box<str>>,
    /// The token under which the client hears of progress, if it was given another one.
    known_token: Option<Box<str>>,
    /// Where the answer goes, if not where all of the client's do.
    sink: Option<Arc<dyn ClientSink>>,
    /// How a failure is put.
    pub surface: Surface,
    /// Whether client and server are of one era.
    pub bridged: Bridged,
    /// How long the head of its answer says to wait.
    pub wait: Option<Duration>,
    /// The trace that it belongs to, if its head told.
    pub trace: Option<Box<str>>,
    /// Where it stands in that, if there is a collector.
    pub traced: Option<Box<Traced>>,
    /// What the head repeats of the arguments, where it has to.
    pub head: Option<Head>,
    /// What is known of its tool.
    pub facts: ToolFacts,
    /// What its tool had promised of results when it was sent.
    promise: Promise,
    /// Whether its result is compared with that.
    pub is_compared: bool,
    /// What a comparison found that took its time.
    pub compared: Compared,
    /// Who asked; none once it has ended.
    client: Option<Arc<ClientContext>>,
}

/// A call that goes from hand to hand. It is large, and would be copied at each.
pub(crate) type OpenCall = Box<Call>;

/// Where a call's progress is told, and under which token, if not as it is.
pub(crate) type Ear = (Arc<dyn ClientSink>, Option<Box<str>>);

/// How far the request got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It waits for the tool list, or for the server to be started again.
    Held,
    /// It stands in the server's input from this byte on.
    Sent { at: u64 },
    /// It failed, and is sent again then.
    Again(Instant),
}

/// The tool's name.
enum ToolName {
    None,
    /// It stands there in the request.
    In(Range<u32>),
    /// It was written with escapes.
    Named(Box<str>),
}

impl Call {
    pub(crate) fn new(
        context: RequestContext<'_>,
        line: &Line<'_>,
        id: &str,
        method: Method,
        tool: Option<&str>,
        now: Instant,
    ) -> Self {
        let (span, hard) = context.client.settings.deadlines.of(&method, tool);
        let collected = context.client.responder.is_tracing();
        let traced =
            collected.then(|| Box::new(Traced::begin(trace_of(context.trace, line).as_deref())));
        let own = || traced.as_ref().map(|traced| traced.traceparent().into());
        let mut text = String::with_capacity(line.text.len() + 1);
        text.push_str(line.text);
        text.push('\n');
        Self {
            id: within(line.text, id).unwrap_or(0..0),
            params: line.params.and_then(|params| within(line.text, params)),
            tool: match tool {
                None => ToolName::None,
                Some(tool) => within(line.text, tool)
                    .map_or_else(|| ToolName::Named(tool.into()), ToolName::In),
            },
            line: text.into_boxed_str(),
            method,
            order: 0,
            since: now,
            span,
            deadline: span.and_then(|span| now.checked_add(span.min(hard))),
            hard: span.and_then(|_| now.checked_add(hard)),
            attempt: 1,
            lost: false,
            reached: Outcome::NotSent,
            token: OnceCell::new(),
            stage: Stage::Held,
            known_as: context.known_as.map(|known| known.id.into()),
            known_token: context.known_as.and_then(|known| known.token).map(Into::into),
            sink: context.sink.cloned(),
            surface: context.surface,
            bridged: context.bridged,
            wait: None,
            trace: context.trace.map(Into::into).or_else(own),
            traced,
            head: context.head.cloned(),
            facts: ToolFacts::default(),
            promise: Promise::Unknown,
            is_compared: false,
            compared: Compared::No,
            client: Some(Arc::clone(context.client)),
        }
    }

    /// The id, as it was written.
    pub(crate) fn id(&self) -> &str {
        self.part(&self.id)
    }

    /// The id under which the client asked, as it was written.
    pub(crate) fn client_id(&self) -> &str {
        self.known_as.as_deref().unwrap_or_else(|| self.id())
    }

    pub(crate) fn tool(&self) -> Option<&str> {
        match &self.tool {
            ToolName::None => None,
            ToolName::In(place) => Some(self.part(place)),
            ToolName::Named(name) => Some(name),
        }
    }

    /// The request, as it came, with a line end.
    pub(crate) fn line(&self) -> &[u8] {
        self.line.as_bytes()
    }

    /// The params of the request, as they were written.
    pub(crate) fn params(&self) -> Option<&str> {
        self.params.as_ref().map(|place| self.part(place))
    }

    fn part(&self, place: &Range<u32>) -> &str {
        &self.line[place.start as usize..place.end as usize]
    }

    /// It went well, and this is its answer. If the client hears that on the stream that all
    /// messages pass through anyway, nothing is done.
    #[must_use]
    pub(crate) fn answer(mut self: Box<Self>, line: &Line<'_>, mut reply: Rewrite<'_>) -> bool {
        self.client = None;
        let Some(sink) = self.sink.take() else { return false };
        if let (Some(known_as), Some(id)) = (self.known_as.take(), line.id) {
            reply.instead_of(id, String::from(known_as));
        }
        sink.reply(&reply);
        true
    }

    /// It did not fail after all, and was answered in another way.
    pub(crate) fn dismiss(mut self: Box<Self>) {
        self.client = None;
    }

    /// Where to tell of progress, and under which token, if not as it is.
    pub(crate) fn hears_progress(&self) -> Option<Ear> {
        Some((Arc::clone(self.sink.as_ref()?), self.known_token.clone()))
    }

    /// Who listens with it, and what it is called there.
    pub(crate) fn subscriber(&self) -> Option<(Arc<dyn ClientSink>, Box<str>)> {
        Some((Arc::clone(self.sink.as_ref()?), self.client_id().into()))
    }

    pub(crate) fn client(&self) -> Option<&Arc<ClientContext>> {
        self.client.as_ref()
    }

    /// Where something that belongs to this call goes, if it has a place of its own.
    pub(crate) fn sink(&self) -> Option<&Arc<dyn ClientSink>> {
        self.sink.as_ref()
    }

    /// It failed. The responder records that, and answers.
    pub(crate) fn fail(mut self: Box<Self>, mut failing: CallFailure) {
        let now = failing.report.outcome;
        failing.report.outcome = now.map(|now| further(now, self.reached));
        if let Some(client) = self.client.take() {
            let responder = Arc::clone(&client.responder);
            responder.fail(client, self, failing);
        }
    }

    /// Something was heard of it.
    pub(crate) fn progress(&mut self, now: Instant) {
        if let (Some(span), Some(hard)) = (self.span, self.hard) {
            self.deadline = Some((now + span).min(hard));
        }
    }

    /// Whether it was ever in the table of open calls.
    pub(crate) fn was_open(&self) -> bool {
        self.order > 0
    }

    /// Whether the server got any of it, if it took `written` bytes.
    pub(crate) fn is_out(&self, written: u64) -> bool {
        matches!(self.stage, Stage::Sent { at } if at < written)
    }

    /// Whether progress under this token is its own.
    pub(crate) fn has_token(&self, token: &Value) -> bool {
        self.token.get_or_init(|| request::progress_token(&self.line)).as_ref() == Some(token)
    }

    pub(crate) fn details(&self) -> RequestDetails {
        RequestDetails::told_by(self.params())
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            let lost = CallFailure::observed(client.contract(), Condition::Internal)
                .saying("The call was lost inside the gateway");
            let call = Self {
                line: std::mem::take(&mut self.line),
                id: std::mem::take(&mut self.id),
                params: self.params.take(),
                tool: std::mem::replace(&mut self.tool, ToolName::None),
                method: std::mem::replace(&mut self.method, Method::Initialize),
                token: OnceCell::new(),
                known_as: self.known_as.take(),
                known_token: None,
                trace: self.trace.take(),
                traced: self.traced.take(),
                head: None,
                promise: Promise::Unknown,
                compared: Compared::No,
                sink: self.sink.take(),
                client: None,
                ..*self
            };
            let responder = Arc::clone(&client.responder);
            responder.fail(client, Box::new(call), lost);
        }
    }
}

/// The trace that a request belongs to: what it says itself counts more than its head.
pub(crate) fn trace_of<'a>(head: Option<&'a str>, line: &Line<'_>) -> Option<Cow<'a, str>> {
    let meta = line.params.and_then(|params| wire::member::<Value>(params, "_meta"));
    let told = meta.as_ref().and_then(|meta| meta.get("traceparent")?.as_str());
    let told = told.filter(|told| wire::is_traceparent(told));
    told.map(|told| told.to_owned().into()).or_else(|| head.map(Into::into))
}

/// The one that is further.
fn further(one: Outcome, other: Outcome) -> Outcome {
    let rank = |outcome| Outcome::ALL.iter().position(|o| *o == outcome);
    if rank(one) >= rank(other) { one } else { other }
}

/// Where a part of a text stands in it; none if it is no part of it.
fn within(text: &str, part: &str) -> Option<Range<u32>> {
    let start = (part.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
    let end = start + part.len();
    let place = u32::try_from(start).ok()?..u32::try_from(end).ok()?;
    (text.get(start..end) == Some(part)).then_some(place)
}
