//! From the server to the client.

use faultwire_contract::{
    CUT_OFF, CallContext, Condition, Failure, Judgement, Line, Outcome, Sort, malformed, peek,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::stray::says_jsonrpc;
use crate::batch;
use crate::call::{Call, Ear, Method};
use crate::edge;
use crate::era;
use crate::failing::Failing;
use crate::guard::filter::permitted;
use crate::guard::{targets, tasks, version};
use crate::link::{Asked, Link, Phase, Verdict};
use crate::orders::Orders;
use crate::outlet::Reach;
use crate::party::Bridged;
use crate::patched::Patched;
use crate::tools::Page;
use crate::wire;

impl Link {
    /// A line of the server.
    pub(crate) fn hear_server(&self, line: &[u8]) -> Verdict {
        match line.first() {
            Some(b'{') => self.message_of_server(line),
            Some(b'[') => match batch::members(line) {
                Some(members) => {
                    let list = self.state().batches;
                    batch::judged(line, &members, list, |m| self.message_of_server(m))
                }
                None if batch::is_cut_off(line) => Verdict::Unfinished,
                None => self.message_of_server(line),
            },
            _ => self.oddly_begun(line),
        }
    }

    /// Blanks, a byte order mark or NULs around a message are taken off: no client reads them.
    fn oddly_begun(&self, line: &[u8]) -> Verdict {
        let bare = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        let bare = bare.trim_ascii();
        let bare = &bare[bare.iter().take_while(|b| **b == 0).count()..];
        if bare.is_empty() {
            return Verdict::Drop;
        }
        if bare.len() == line.len() || !matches!(bare[0], b'{' | b'[') {
            self.garbled(line);
            return Verdict::Drop;
        }
        let mut clean = bare.to_vec();
        clean.push(b'\n');
        match self.hear_server(&clean) {
            Verdict::Pass => Verdict::Instead(clean),
            verdict => verdict,
        }
    }

    /// A line of the server that was looked at already.
    pub(crate) fn hear_seen_of_server(&self, line: &[u8], seen: &Line<'_>) -> Verdict {
        match line.first() {
            Some(b'{') => self.seen_of_server(line, seen),
            _ => self.hear_server(line),
        }
    }

    fn message_of_server(&self, bytes: &[u8]) -> Verdict {
        self.seen_of_server(bytes, &peek(bytes))
    }

    fn seen_of_server(&self, bytes: &[u8], line: &Line<'_>) -> Verdict {
        // Servers print logs in JSON, too; what has no `jsonrpc` is no message to anybody.
        let whole = !matches!(line.sort(), Sort::Malformed(_));
        if whole && !says_jsonrpc(bytes) {
            self.garbled(bytes);
            return Verdict::Drop;
        }
        match (line.sort(), line.id) {
            (Sort::Reply, Some(id)) => self.reply(id, line, bytes),
            (Sort::Request, Some(id)) if wire::is_id(id) => self.question(id, line, bytes),
            (Sort::Request | Sort::Notification, _) => self.notice(line, bytes),
            (Sort::Malformed(CUT_OFF), _) => Verdict::Unfinished,
            (Sort::Malformed(_), _) => {
                self.garbled(bytes);
                Verdict::Drop
            }
            (Sort::Reply, None) => {
                self.misdirected(None, bytes);
                Verdict::Drop
            }
        }
    }

    fn reply(&self, id: &str, line: &Line<'_>, bytes: &[u8]) -> Verdict {
        let mut state = self.state();
        let Some(call) = state.calls.answered(id) else {
            if state.overdue.as_ref().is_some_and(|listing| listing.id == id) {
                state.resume_listing();
            }
            let asked = state.listing.as_ref().is_some_and(|listing| listing.id == id);
            let own = state.is_own(id);
            if let Some(waiting) = state.questions.remove(id) {
                state.answered = true;
                drop(state);
                // Who asked may have given up.
                let _ = waiting.send(bytes.to_vec());
                return Verdict::Drop;
            }
            let opening =
                matches!(state.phase, Phase::Opening { .. }) && state.handshake.is_answer(id);
            state.answered |= asked;
            drop(state);
            match (asked, own, opening) {
                (true, ..) => self.listed(bytes),
                // The handshake may be our own, too, where several clients share a server.
                (.., true) => self.opened(line),
                (_, true, _) => self.ordered(id, line),
                _ => self.misdirected(Some(id), bytes),
            }
            return Verdict::Drop;
        };
        state.answered = true;
        drop(state);
        let limit = self.settings().limits.depth;
        if line.is_deeper_than(limit) {
            let why = format!("JSON deeper than {limit} levels");
            self.fail(call, Failing::classified(malformed(self.contract(), &why)));
            return Verdict::Drop;
        }
        match self.failure_in(&call, line) {
            None if call.bridged == Bridged::LegacyClient && era::wants_more(result_of(bytes)) => {
                let mut failing = Failing::observed(self.contract(), Condition::UnsupportedVersion)
                    .saying("The tool asks for more input, which this client's version cannot give")
                    .outcome(Outcome::MaybeExecuted);
                failing.report.details = Some(json!({ "supported_versions": version::MODERN }));
                self.fail(call, failing);
                Verdict::Drop
            }
            None if call.bridged == Bridged::ModernClient => {
                let mut reply = Patched::new(bytes);
                era::as_modern(&mut reply, result_of(bytes), call.method.name());
                self.succeeded(call, line, bytes, reply)
            }
            None => {
                let mut reply = Patched::new(bytes);
                if call.method.name() == wire::LISTEN
                    && let Some(subscription) =
                        wire::subscription(result_of(bytes).map(RawValue::get))
                {
                    reply.instead_of(subscription.get(), call.client_id().to_owned());
                }
                self.succeeded(call, line, bytes, reply)
            }
            Some(failure) => self.failed(call, failure, line, bytes),
        }
    }

    /// The failure that a reply is, in the light of its call. A success that only reads like one is
    /// noted and passes (U5).
    fn failure_in(&self, call: &Call, line: &Line<'_>) -> Option<Failure> {
        let answers = call.method.answers();
        if line.is_plain_success(self.contract(), answers) {
            return None;
        }
        let context = CallContext {
            answers,
            params: peek(call.line()).params,
            tool: call.tool(),
            has_output_schema: call.facts().has_output_schema,
            soft_failures: self.settings().soft_failures,
        };
        match line.judge(self.contract(), &context) {
            Judgement::Success => None,
            Judgement::Failure(failure) => Some(failure),
            Judgement::Suspect(failure) => {
                let message = failure.report.message.as_deref().unwrap_or_default();
                let facts = json!({
                    "tool": call.tool(),
                    "code": failure.report.code,
                    "rule": failure.rule,
                    "message": message.chars().take(512).collect::<String>(),
                });
                self.event("soft_failure", &facts);
                None
            }
        }
    }

    fn succeeded<'a>(
        &self,
        call: Call,
        line: &Line<'_>,
        bytes: &'a [u8],
        mut reply: Patched<'a>,
    ) -> Verdict {
        if let Some(breaker) = &self.breaker {
            breaker.worked();
        }
        match self.filtered(&call, bytes) {
            Ok(None) => {}
            Ok(Some((all, kept))) => reply.instead_of(all, kept),
            Err(why) => {
                self.fail(call, Failing::classified(malformed(self.contract(), why)));
                return Verdict::Drop;
            }
        }
        if let (Some(spans), Some(party)) = (&self.door.spans, call.party()) {
            spans.ended(&call, party, None);
        }
        match call.method {
            Method::Initialize => self.state().handshake.agree(),
            Method::ToolsList { first_page } => {
                if let Some(page) = result_of(bytes).and_then(Page::read) {
                    self.tools().learn(page, first_page);
                }
            }
            Method::ToolsCall => {
                self.turn_over(&call);
                if let (Some(metrics), Some(tool)) = (&self.door.metrics, call.tool()) {
                    let took = edge::now().saturating_duration_since(call.since);
                    metrics.succeeded(tool, || self.tools().get(tool).is_some(), took);
                }
            }
            Method::Other(ref method) => {
                // A server that several clients share takes orders of none.
                if self.client.is_somebody()
                    && Orders::are_given_by(method)
                    && let Some(params) = peek(call.line()).params
                    && !self.state().handshake.orders.done(method, params)
                {
                    let why = "there are too many to remember";
                    self.lost_orders([json!({ "method": method, "why": why })]);
                }
            }
        }
        if call.answer(line, reply) { Verdict::Drop } else { Verdict::Pass }
    }

    /// The list in a reply and what of it the client may know, where that is not all; an error if
    /// it cannot be told. Tasks that the reply tells of are the client's from now on.
    fn filtered<'a>(
        &self,
        call: &Call,
        bytes: &'a [u8],
    ) -> Result<Option<(&'a str, String)>, &'static str> {
        let Some(party) = call.party() else { return Ok(None) };
        let method = call.method.name();
        if let Some(tasks) = &self.tasks {
            if method == tasks::LIST {
                let is_owner = |id: &str| tasks.is_owner(&party.owner, id);
                let kept = result_of(bytes).and_then(|l| permitted(l, "tasks", "taskId", is_owner));
                return kept.map(Some).ok_or("a task list that cannot be read");
            }
            if !method.starts_with("tasks/") {
                tasks.learn(&party.owner, bytes);
            }
        }
        let Some((kind, list, name)) = targets::listed_by(method) else { return Ok(None) };
        if !party.is_kept_from(kind) {
            return Ok(None);
        }
        let kept = result_of(bytes)
            .and_then(|l| permitted(l, list, name, |name| party.may_use(kind, name)));
        kept.map(Some).ok_or("a list that cannot be read")
    }

    /// A request of the server to the client.
    fn question(&self, id: &str, line: &Line<'_>, bytes: &[u8]) -> Verdict {
        let refuse = |message| {
            self.tell_server(&wire::error(Some(id), wire::INVALID_REQUEST, message, b"null"));
            Verdict::Drop
        };
        if self.too_deep(line) {
            return refuse("The request is nested too deeply");
        }
        if !self.client.is_somebody() {
            if line.method.as_deref() == Some(wire::PING) {
                self.tell_server(&wire::result(id, |out| out.extend_from_slice(b"{}")));
                return Verdict::Drop;
            }
            return refuse("There is no one client to ask");
        }
        let reach = self.client.reach(bytes.len());
        if reach == Reach::Never {
            return refuse("Nobody takes the request");
        }
        let mut state = self.state();
        if state.asked.len() >= self.settings().limits.in_flight {
            drop(state);
            return refuse("Too many requests are open");
        }
        let takes_time = matches!(line.method.as_deref(), Some(wire::SAMPLE | wire::ELICIT));
        let is_heard = reach == Reach::Now;
        let (since, after) = (edge::now(), state.calls.opened());
        state.asked.insert(id.into(), Asked { since, takes_time, is_heard, after });
        drop(state);
        // It may have come for what waits between the two.
        if !is_heard
            && self.client.reach(bytes.len()) == Reach::Now
            && let Some(asked) = self.state().asked.get_mut(id)
        {
            asked.is_heard = true;
        }
        Verdict::Pass
    }

    fn notice(&self, line: &Line<'_>, bytes: &[u8]) -> Verdict {
        if self.too_deep(line) {
            return Verdict::Drop;
        }
        let param = |name| line.params.and_then(|params| wire::member::<Value>(params, name));
        match line.method.as_deref() {
            Some(wire::PROGRESS) => {
                let told = param("progressToken").and_then(|token| self.progress(&token));
                if let Some((outlet, token)) = told {
                    match token {
                        None => outlet.send(bytes),
                        Some(token) => outlet.send(&wire::progress_under(bytes, &token)),
                    }
                    return Verdict::Drop;
                }
            }
            Some(wire::TOOLS_CHANGED) => self.tools().forget(),
            Some(wire::CANCELLED) => {
                let taken_back = param("requestId").map(|id| id.to_string());
                taken_back.map(|id| self.state().asked.remove(&*id));
            }
            _ => {}
        }
        if self.client.is_somebody() { Verdict::Pass } else { self.to_subscriber(line, bytes) }
    }

    /// What a shared server tells those who listen: each message names whose it is.
    fn to_subscriber(&self, line: &Line<'_>, bytes: &[u8]) -> Verdict {
        let Some(subscription) = wire::subscription(line.params) else { return Verdict::Pass };
        let state = self.state();
        let id = subscription.get().trim_matches('"');
        let Some((outlet, known_as)) = state.calls.get(id).and_then(Call::subscriber) else {
            return Verdict::Drop;
        };
        drop(state);
        let mut message = Patched::new(bytes);
        message.instead_of(subscription.get(), String::from(known_as));
        let mut message = message.to_vec();
        message.push(b'\n');
        outlet.send(&message);
        Verdict::Drop
    }

    fn too_deep(&self, line: &Line<'_>) -> bool {
        let deep = line.is_deeper_than(self.settings().limits.depth);
        if deep {
            self.event("too_deep", &json!({ "bytes": line.text.len() }));
        }
        deep
    }

    /// Something was heard of a call. Where else than to the client's one stream it goes.
    fn progress(&self, token: &Value) -> Option<Ear> {
        let mut state = self.state();
        let now = edge::now();
        // The token is mostly the id itself.
        if let Some(call) = state.calls.get_mut(&token.to_string())
            && call.has_token(token)
        {
            call.progress(now);
            return call.hears_progress();
        }
        let call = state.calls.iter_mut().find(|call| call.has_token(token))?;
        call.progress(now);
        call.hears_progress()
    }
}

/// The result in a reply.
pub(super) fn result_of(bytes: &[u8]) -> Option<&RawValue> {
    #[derive(serde::Deserialize)]
    struct Reply<'a> {
        #[serde(borrow)]
        result: &'a RawValue,
    }
    serde_json::from_slice::<Reply<'_>>(bytes).ok().map(|reply| reply.result)
}
