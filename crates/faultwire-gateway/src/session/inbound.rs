//! From the client to the server.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use faultwire_contract::protocol::REQUESTS;
use faultwire_contract::{Condition, Line, Outcome, Sort};
use serde_json::json;
use serde_json::value::RawValue;

use super::effect::{ClientVerdict, Effect, UpstreamSlot};
use super::{Phase, Session, is_sent, pipeline};
use crate::call::{Call, OpenCall, RequestContext, Stage};
use crate::directories::Directories;
use crate::failing::{CallFailure, Said};
use crate::method::Method;
use crate::request::ToolCall;
use crate::tools::ListedTool;
use crate::wire;

/// A line of the client, and what can be said of it without the session.
pub(crate) struct Incoming<'a> {
    context: RequestContext<'a>,
    bytes: &'a [u8],
    line: &'a Line<'a>,
    /// Why it is not read as the message that it seems to be.
    unreadable: Option<String>,
    /// The call that it is, if it is a request, and the params of a call of a tool.
    request: Option<(OpenCall, Option<ToolCall<'a>>)>,
}

impl<'a> Incoming<'a> {
    /// Of a line that was peeked at. `depth` is the deepest that it may be nested.
    pub(crate) fn read(
        context: RequestContext<'a>,
        bytes: &'a [u8],
        line: &'a Line<'a>,
        depth: usize,
        now: Instant,
    ) -> Self {
        let sort = line.sort();
        let unreadable = match sort {
            Sort::Malformed(_) => None,
            _ => pipeline::unreadable(line, depth),
        };
        let id = line.id.filter(|id| sort == Sort::Request && wire::is_id(id));
        let request = id.map(|id| {
            let method = Method::of(line.method.as_deref().unwrap_or_default(), line.params);
            let params = match method {
                Method::ToolsCall => ToolCall::read(line.params),
                _ => None,
            };
            let tool = params.as_ref().map(|params| &*params.name);
            (Box::new(Call::new(context, line, id, method, tool, now)), params)
        });
        Self { context, bytes, line, unreadable, request }
    }

    /// Who has sent it.
    pub(crate) fn context(&self) -> RequestContext<'a> {
        self.context
    }

    /// The params, if it is a call of a tool.
    pub(crate) fn tool_call(&self) -> Option<&ToolCall<'a>> {
        self.request.as_ref()?.1.as_ref()
    }
}

/// A request on its way through the guards.
pub(crate) struct Request<'a> {
    pub call: &'a Call,
    pub params: Option<&'a str>,
    /// The tool, if it is listed.
    pub tool: Option<&'a Arc<ListedTool>>,
    pub arguments: Option<&'a str>,
    /// What a check of the arguments found that was made before.
    pub checked: Option<&'a Checked<'a>>,
    pub slot: UpstreamSlot,
}

/// What a check of arguments found that was made outside of the session.
pub(crate) struct Checked<'a> {
    pub tool: Arc<ListedTool>,
    /// Those that were checked. The line may have been rewritten since.
    pub arguments: Option<Cow<'a, str>>,
    pub objection: Option<CallFailure>,
}

impl Checked<'_> {
    /// Whether it was made of these arguments and this tool.
    pub(super) fn is_of(&self, tool: &Arc<ListedTool>, arguments: Option<&str>) -> bool {
        Arc::ptr_eq(&self.tool, tool) && self.arguments.as_deref() == arguments
    }
}

impl Session {
    /// A line of the client. `checked` is what a check of its arguments found, if one was made
    /// before.
    pub(crate) fn on_client(
        &mut self,
        incoming: Incoming<'_>,
        checked: Option<&Checked<'_>>,
        slot: UpstreamSlot,
    ) -> ClientVerdict {
        let Incoming { context, bytes, line, unreadable, request } = incoming;
        if let Sort::Malformed(why) = line.sort() {
            return self.malformed_line(bytes, line.id, why);
        }
        match (request, unreadable) {
            (Some((call, _)), Some(why)) => return self.refuse_request(call, &why),
            (None, Some(why)) => return self.malformed_line(bytes, line.id, &why),
            (Some((call, params)), None) => {
                return self.request(call, params.as_ref(), line, checked, slot);
            }
            (None, None) => {}
        }
        match (line.sort(), line.id) {
            (Sort::Request, Some(_)) => self.refuse_id(),
            // No server must run what was not checked, and there is no id to answer to.
            (Sort::Request | Sort::Notification, _) if is_request(line) => {
                self.refuse_line(bytes, "a request without an id")
            }
            (Sort::Request | Sort::Notification, _)
                if !context.client.may_notify(line.method.as_deref().unwrap_or_default()) =>
            {
                self.refuse_line(bytes, "this client may not send this notification")
            }
            (Sort::Request | Sort::Notification, _) => self.notification(line, bytes, slot),
            (Sort::Reply, Some(id)) => self.reply_of_client(id, bytes, slot.now),
            (Sort::Reply | Sort::Malformed(_), _) => {
                self.refuse_line(bytes, "a reply without an id")
            }
        }
    }

    fn reply_of_client(&mut self, id: &str, bytes: &[u8], now: Instant) -> ClientVerdict {
        if self.take_asked(id, bytes, now) {
            return ClientVerdict::Pass;
        }
        // The server that asked is gone, or took its request back.
        self.event("stray_answer", json!({ "id": id }));
        ClientVerdict::Drop
    }

    fn notification(&mut self, line: &Line<'_>, bytes: &[u8], slot: UpstreamSlot) -> ClientVerdict {
        match line.method.as_deref() {
            Some(wire::INITIALIZED) => self.handshake.confirm(bytes),
            Some(wire::CANCELLED) => {
                let cancelled = line.params.and_then(|p| wire::member::<&RawValue>(p, "requestId"));
                return match cancelled {
                    Some(id) => self.cancel(id.get(), slot),
                    None => ClientVerdict::Pass,
                };
            }
            _ => {}
        }
        // A restarted server gets the handshake again; anything else was meant for the one
        // before.
        let goes = self.phase == Phase::Up && bytes.len() <= slot.free;
        if goes {
            self.notified = Some(slot.now);
            return ClientVerdict::Pass;
        }
        ClientVerdict::Drop
    }

    /// The client cancels a call.
    fn cancel(&mut self, id: &str, slot: UpstreamSlot) -> ClientVerdict {
        let is_up = self.phase == Phase::Up;
        let Some(call) = self.calls.give_up(id, "cancelled") else {
            return if is_up { ClientVerdict::Pass } else { ClientVerdict::Drop };
        };
        self.notified = Some(slot.now);
        let sent = is_sent(&call);
        let outcome = if sent { Outcome::MaybeExecuted } else { Outcome::NotSent };
        let mut failure =
            self.observed(Condition::Cancelled, "Cancelled by the client").outcome(outcome);
        if !self.settings.answer_cancelled {
            failure.said = Said::Nothing;
        }
        self.fail(call, failure);
        if sent && is_up && slot.free > 0 { ClientVerdict::Pass } else { ClientVerdict::Drop }
    }

    /// The client closed the stream of a call, which cancels it.
    pub(crate) fn on_client_left(&mut self, id: &str) {
        let Some(call) = self.calls.give_up(id, "cancelled") else { return };
        let mut failure =
            self.observed(Condition::Cancelled, "The client closed the stream before the reply");
        failure.said = Said::Nothing;
        let tell = Some("the client left");
        self.effects.push(Effect::Recall { call, failure, tell, counts: true });
    }

    fn request(
        &mut self,
        mut call: OpenCall,
        params: Option<&ToolCall<'_>>,
        line: &Line<'_>,
        checked: Option<&Checked<'_>>,
        slot: UpstreamSlot,
    ) -> ClientVerdict {
        let name = params.map(|params| &*params.name);
        let tool = name.and_then(|name| self.tools.get(name)).cloned();
        self.budget.earn();
        let request = Request {
            call: &call,
            params: line.params,
            tool: tool.as_ref(),
            arguments: params.and_then(|params| params.arguments).map(RawValue::get),
            checked,
            slot,
        };
        let waits_for_list = name.is_some_and(|name| self.tools.must_be_listed(name));
        let is_call = call.method == Method::ToolsCall && !waits_for_list;
        let objection = pipeline::objection(pipeline::REQUEST, self, &request).or_else(|| {
            let objection = is_call.then(|| pipeline::objection(pipeline::TOOL, self, &request));
            // The breaker may have let it through to find out how the server is.
            objection.flatten().inspect(|_| self.breaker.iter().for_each(|it| it.let_go()))
        });
        if let Some(failure) = objection {
            self.fail(call, failure);
            return ClientVerdict::Drop;
        }
        if waits_for_list {
            return self.open_after_list(call, slot);
        }
        if let Some(tool) = &tool {
            call.promised_by(tool);
        }
        self.open(call, slot)
    }

    /// Opens a call, and sends it if the server is there.
    fn open(&mut self, mut call: OpenCall, slot: UpstreamSlot) -> ClientVerdict {
        if call.method == Method::Initialize {
            let name = self.handshake.begin(call.id(), call.line());
            tracing::info!(client = name, "a client begins its session");
            if let Some(client) = call.client() {
                client.greet(name);
            }
        }
        let goes = self.phase == Phase::Up;
        if goes {
            call.stage = Stage::Sent { at: slot.at };
            self.employed = true;
        }
        let deadline = call.deadline;
        self.calls.insert(call);
        self.watch(deadline);
        if goes { ClientVerdict::Pass } else { ClientVerdict::Drop }
    }

    /// Opens a call whose arguments cannot be checked before the tool list is known.
    fn open_after_list(&mut self, call: OpenCall, slot: UpstreamSlot) -> ClientVerdict {
        let asks = self.discovery.is_none() && self.phase == Phase::Up;
        let (deadline, era) = (call.deadline, asks.then(|| call.details().era()));
        let span = call.span.filter(|_| self.may_hurry());
        self.calls.insert(call);
        let ask = era.map(|era| self.ask_for_tools(era, None, slot.now));
        let listed = self.discovery.as_mut().and_then(|discovery| discovery.hurry(slot.now, span));
        self.watch(deadline.into_iter().chain(listed).min());
        ask.map_or(ClientVerdict::Drop, ClientVerdict::Instead)
    }

    /// Takes out the request of the server that a reply of the client answers, if there is one.
    /// Where a user had to think about it, the calls that waited have all their time again.
    pub(super) fn take_asked(&mut self, id: &str, reply: &[u8], now: Instant) -> bool {
        let asked = self.asked.remove(id).or_else(|| {
            let other = self.asked.keys().find(|asked| wire::same(asked, id)).cloned()?;
            self.asked.remove(&other)
        });
        let Some(asked) = asked else { return false };
        if asked.is_for_roots {
            let roots = Directories::of_roots(reply);
            self.roots = roots.or_else(|| self.roots.take());
        }
        if asked.takes_time && asked.is_heard {
            let waited = self.calls.iter_mut().filter(|call| call.order <= asked.after);
            waited.for_each(|call| call.progress(now));
        }
        true
    }
}

/// Whether a message without an id names what only a request may ask for.
fn is_request(line: &Line<'_>) -> bool {
    line.method.as_deref().is_some_and(|method| REQUESTS.contains(&method))
}
