//! From the server to the client.

use std::sync::Arc;
use std::time::Instant;

use faultwire::output::Output;
use faultwire_contract::{CUT_OFF, Condition, Line, Masks, Sort};
use serde_json::{Value, json};

use super::effect::{Effect, ServerVerdict};
use super::stray::says_jsonrpc;
use super::{Asked, Phase, Session};
use crate::call::{Call, Comparison};
use crate::client_sink::Reach;
use crate::failing::CallFailure;
use crate::method::Method;
use crate::replayed_requests::ReplayedRequests;
use crate::rewrite::Rewrite;
use crate::settings::Settings;
use crate::tools::{Known, ListedTool, Page, Tools};
use crate::wire;

impl Session {
    /// A line of the server that begins like a message, and was peeked at. A reply to one of its
    /// calls is judged outside of the session, since that can take its time. With `may_wait`, what
    /// has to be made before that comes first.
    pub(crate) fn on_server(
        &mut self,
        bytes: &[u8],
        line: &Line<'_>,
        may_wait: bool,
        now: Instant,
    ) -> ServerVerdict {
        // Servers print logs in JSON, too; what has no `jsonrpc` is no message to anybody.
        let is_whole = !matches!(line.sort(), Sort::Malformed(_));
        if is_whole && !says_jsonrpc(bytes) {
            self.on_garbled(bytes);
            return ServerVerdict::Drop;
        }
        match (line.sort(), line.id) {
            (Sort::Reply, Some(id)) => self.reply(id, line, bytes, may_wait, now),
            (Sort::Request, Some(id)) if wire::is_id(id) => {
                self.request_of_server(id, line, bytes, now)
            }
            (Sort::Request | Sort::Notification, _) => self.notice(line, bytes, now),
            (Sort::Malformed(CUT_OFF), _) => ServerVerdict::Unfinished,
            (Sort::Malformed(_), _) => {
                self.on_garbled(bytes);
                ServerVerdict::Drop
            }
            (Sort::Reply, None) => {
                self.misdirected(None, bytes, now);
                ServerVerdict::Drop
            }
        }
    }

    fn reply(
        &mut self,
        id: &str,
        line: &Line<'_>,
        bytes: &[u8],
        may_wait: bool,
        now: Instant,
    ) -> ServerVerdict {
        let Some(mut call) = self.calls.answered(id) else {
            return self.reply_to_gateway(id, bytes, now);
        };
        self.answered = true;
        let tool = call.tool().and_then(|name| self.tools.get(name));
        call.facts = tool.map(|tool| tool.facts).unwrap_or_default();
        call.is_compared = is_promised(&self.settings, &self.tools, tool, &call, line);
        if may_wait
            && call.is_compared
            && let Some(due) = tool.and_then(|tool| call.comparison_due(tool, line.structured()))
        {
            self.calls.insert(call);
            return ServerVerdict::Later(due);
        }
        ServerVerdict::Reply(call, tool.cloned())
    }

    /// The server has done what a call asked for. What that means for the calls to come; `page` is
    /// what it listed.
    pub(crate) fn on_success(&mut self, call: &Call, page: Option<Page>) {
        match &call.method {
            Method::Initialize => {
                self.handshake.agree();
                self.calls.shrink();
            }
            Method::ToolsCall => self.note_success(call),
            Method::ToolsList { first_page } => {
                if let Some(page) = page {
                    self.learn(page, *first_page);
                }
            }
            Method::Other(method) => {
                if ReplayedRequests::are_given_by(method)
                    && let Some(params) = call.params()
                {
                    self.note_order(method, params);
                }
            }
        }
    }

    /// A reply that answers no call may answer the gateway itself.
    fn reply_to_gateway(&mut self, id: &str, bytes: &[u8], now: Instant) -> ServerVerdict {
        if self.overdue.as_ref().is_some_and(|discovery| discovery.id == id) {
            self.resume_discovery(now);
        }
        if self.questions.contains(id) {
            return ServerVerdict::OwnReply;
        }
        if self.discovery.as_ref().is_some_and(|discovery| discovery.id == id) {
            self.answered = true;
            return ServerVerdict::Listed;
        }
        // The handshake may be our own, too, where several clients share a server.
        if matches!(self.phase, Phase::Opening { .. }) && self.handshake.is_answer(id) {
            return ServerVerdict::Opened;
        }
        if self.is_own(id) {
            return ServerVerdict::OwnReply;
        }
        self.misdirected(Some(id), bytes, now);
        ServerVerdict::Drop
    }

    /// The comparison that has to be made before a line is looked at, whose call stays where it
    /// is.
    pub(crate) fn due(&mut self, line: &Line<'_>) -> Option<Comparison> {
        let call = self.calls.get_mut(line.id?)?;
        let tool = self.tools.get(call.tool()?)?;
        let is_due = is_promised(&self.settings, &self.tools, Some(tool), call, line);
        is_due.then(|| call.comparison_due(tool, line.structured())).flatten()
    }

    /// A request of the server to the client.
    fn request_of_server(
        &mut self,
        id: &str,
        line: &Line<'_>,
        bytes: &[u8],
        now: Instant,
    ) -> ServerVerdict {
        if self.is_too_deep(line) {
            return self.refuse_server(id, "The request is nested too deeply");
        }
        if !self.sink.is_somebody() {
            if line.method.as_deref() == Some(wire::PING) {
                let pong = wire::result(id, |out| out.extend_from_slice(b"{}"));
                self.effects.push(Effect::SendUpstream(pong));
                return ServerVerdict::Drop;
            }
            return self.refuse_server(
                id,
                "The server is shared by several clients and cannot ask one of them",
            );
        }
        let reach = match self.latest_sink() {
            Some(_) => Reach::Now,
            None => self.sink.reach(bytes.len()),
        };
        if reach == Reach::Never {
            return self.refuse_server(id, "No client takes the request");
        }
        if self.asked.len() >= self.settings.limits.in_flight {
            return self.refuse_server(id, "Too many requests are open");
        }
        let asked = Asked {
            since: now,
            takes_time: matches!(line.method.as_deref(), Some(wire::SAMPLE | wire::ELICIT)),
            is_heard: reach == Reach::Now,
            after: self.calls.opened(),
            is_for_roots: line.method.as_deref() == Some(wire::ROOTS),
        };
        self.asked.insert(id.into(), asked);
        ServerVerdict::Pass
    }

    fn refuse_server(&mut self, id: &str, why: &str) -> ServerVerdict {
        let error = wire::error(Some(id), wire::INVALID_REQUEST, why, b"null");
        self.effects.push(Effect::SendUpstream(error));
        ServerVerdict::Drop
    }

    /// A notification of the server.
    fn notice(&mut self, line: &Line<'_>, bytes: &[u8], now: Instant) -> ServerVerdict {
        if self.is_too_deep(line) {
            return ServerVerdict::Drop;
        }
        let param = |name| line.params.and_then(|params| wire::member::<Value>(params, name));
        match line.method.as_deref() {
            Some(wire::PROGRESS) => {
                let call = param("progressToken").and_then(|token| self.progress(&token, now));
                if let Some((sink, token)) = call.and_then(Call::hears_progress) {
                    let line = match token {
                        None => bytes.to_vec(),
                        Some(token) => wire::progress_under(bytes, &token),
                    };
                    self.effects.push(Effect::Tell(Some(sink), line));
                    return ServerVerdict::Drop;
                }
            }
            Some(wire::TOOLS_CHANGED) => self.tools.forget(),
            Some(wire::CANCELLED) => {
                if let Some(id) = param("requestId") {
                    self.asked.remove(&*id.to_string());
                }
            }
            _ => {}
        }
        if self.sink.is_somebody() {
            ServerVerdict::Pass
        } else {
            self.tell_subscriber(line, bytes)
        }
    }

    /// What a shared server tells those who listen: each message names the request that it is
    /// for.
    fn tell_subscriber(&mut self, line: &Line<'_>, bytes: &[u8]) -> ServerVerdict {
        let Some(subscription) = wire::subscription(line.params) else {
            return ServerVerdict::Pass;
        };
        let id = subscription.get().trim_matches('"');
        let Some((sink, known_as)) = self.calls.get(id).and_then(Call::subscriber) else {
            return ServerVerdict::Drop;
        };
        let mut message = Rewrite::new(bytes);
        message.instead_of(subscription.get(), String::from(known_as));
        let mut message = message.to_vec();
        message.push(b'\n');
        self.effects.push(Effect::Tell(Some(sink), message));
        ServerVerdict::Drop
    }

    fn is_too_deep(&mut self, line: &Line<'_>) -> bool {
        let is_deep = line.is_deeper_than(self.settings.limits.depth);
        if is_deep {
            self.event("too_deep", json!({ "bytes": line.text.len() }));
        }
        is_deep
    }

    /// Something was heard of a call: which one.
    fn progress(&mut self, token: &Value, now: Instant) -> Option<&Call> {
        // The token is mostly the id itself.
        let id = token.to_string();
        let is_id = self.calls.get(&id).is_some_and(|call| call.has_token(token));
        let call = if is_id {
            self.calls.get_mut(&id)
        } else {
            self.calls.iter_mut().find(|call| call.has_token(token))
        }?;
        call.progress(now);
        Some(call)
    }

    /// What the tools and the directories of this session say about a failure of the caller's.
    pub(crate) fn advise(
        &self,
        call: &Call,
        failure: &mut CallFailure,
        may_know: impl Fn(&str) -> bool,
    ) {
        match (failure.report.condition, call.tool()) {
            (Some(Condition::UnknownTool), Some(name)) => {
                // A client is not pointed to a tool that it may not use.
                let near = self.tools.nearest(name).filter(|near| may_know(near));
                failure.report.suggestion = near.map(|near| format!("Did you mean {near:?}?"));
                failure.report.hints.nearest = near.map(str::to_owned);
            }
            (Some(Condition::PermissionDenied), Some(_)) => {
                // Where paths are masked, so is a directory (U2).
                let masks = self.settings.masks.with(self.contract().text.masks);
                if !masks.covers(Masks::PATHS) {
                    let said = failure.report.message.as_deref().unwrap_or_default();
                    let arguments = call.details().arguments;
                    failure.report.hints.directory =
                        self.directory_instead(arguments.as_ref(), said);
                }
            }
            _ => {}
        }
    }
}

/// Whether a success is compared with the output schema of its tool: the one that was listed when
/// the call was sent, if it still is, or one of a list that came later.
fn is_promised(
    settings: &Settings,
    tools: &Tools,
    tool: Option<&Arc<ListedTool>>,
    call: &Call,
    line: &Line<'_>,
) -> bool {
    // Between a changed list and the next one it is not known which schema counts.
    settings.output != Output::Off
        && call.method == Method::ToolsCall
        && tools.known != Known::No
        && line.is_success()
        && tool.is_some_and(|tool| call.is_promised_by(tool))
}
