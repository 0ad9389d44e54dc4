//! The guards of a request (see [`pipeline`](super::pipeline)): each answers why the request must
//! not go on, if it must not.

use std::time::{Duration, Instant};

use faultwire_contract::{Aspect, Condition, Outcome};

use super::inbound::Request;
use super::{Phase, Session};
use crate::failing::CallFailure;
use crate::guard::{arguments, tasks};
use crate::last_output::LastOutput;
use crate::method::Method;
use crate::wire;

/// What a client is told whose call does not go to a server that is in trouble.
pub(super) const LEFT_ALONE: &str = "The server failed too often; calls are paused for a while";

impl Session {
    pub(super) fn tool_name_objection(&self, request: &Request<'_>) -> Option<CallFailure> {
        if request.call.method != Method::ToolsCall {
            return None;
        }
        match request.call.tool() {
            None => Some(self.bad(Aspect::Missing).saying("tools/call needs the name of a tool")),
            Some(name) if name.chars().any(char::is_control) => {
                Some(self.bad(Aspect::Value).saying("The tool's name has a control character"))
            }
            Some(_) => None,
        }
    }

    /// What the client may use, how often, and for how much.
    pub(super) fn access_objection(&self, request: &Request<'_>) -> Option<CallFailure> {
        let (call, client) = (request.call, request.call.client()?);
        if call.method == Method::ToolsCall {
            return client.objection(call.tool());
        }
        let why = client.target_objection(call.method.name(), request.params)?;
        Some(self.refused(Condition::Forbidden, why))
    }

    /// Tasks of another client are not found.
    pub(super) fn task_objection(&self, request: &Request<'_>) -> Option<CallFailure> {
        let (tasks, client) = (self.tasks.as_ref()?, request.call.client()?);
        let is_own = |id: &String| tasks.is_owner(&client.owner, id);
        let named = tasks::named(request.call.method.name(), request.params);
        if named.is_ok_and(|named| named.iter().all(is_own)) {
            return None;
        }
        let failure = self.bad(Aspect::Value).saying("Task not found");
        Some(CallFailure { rpc: Some(wire::INVALID_PARAMS), is_protocol: true, ..failure })
    }

    pub(super) fn id_objection(&self, request: &Request<'_>) -> Option<CallFailure> {
        let id = request.call.id();
        self.calls
            .contains(id)
            .then(|| self.bad(Aspect::Value).saying(format!("The request id {id} is still in use")))
    }

    pub(super) fn shutdown_objection(&self, _: &Request<'_>) -> Option<CallFailure> {
        self.closing.then(|| self.refused(Condition::NotReady, "The gateway is shutting down"))
    }

    /// A server that ended. One that is about to be started is waited for.
    pub(super) fn server_objection(&self, request: &Request<'_>) -> Option<CallFailure> {
        let Phase::Down { until, why, failed_start } = &self.phase else { return None };
        let now = request.slot.now;
        let is_due = until.is_some_and(|until| until <= now);
        (!is_due).then(|| self.unreachable(*until, why, failed_start.as_deref(), now))
    }

    pub(super) fn room_objection(&self, request: &Request<'_>) -> Option<CallFailure> {
        let limits = &self.settings.limits;
        let length = request.call.line().len();
        let bytes = self.calls.bytes().saturating_add(length);
        let is_crowded = bytes > limits.backlog_bytes || self.calls.is_crowded_for(length);
        if self.calls.len() >= limits.in_flight || (is_crowded && !self.calls.is_empty()) {
            let message = format!("{} calls are open already", self.calls.len());
            return Some(self.refused(Condition::RateLimited, message));
        }
        (length > request.slot.free).then(|| {
            let why = "The server does not read its input";
            self.refused(Condition::UpstreamUnreachable, why)
        })
    }

    /// Last of all that need no tool list: the request that is let through may be the one that
    /// finds out how the server is.
    pub(super) fn breaker_objection(&self, request: &Request<'_>) -> Option<CallFailure> {
        let is_call = request.call.method == Method::ToolsCall;
        let breaker = self.breaker.as_ref().filter(|_| is_call)?;
        let wait = breaker.admit(request.slot.now).err()?;
        let failure = self.refused(Condition::UpstreamUnreachable, LEFT_ALONE);
        Some(failure.after(self.contract(), Some(wait)))
    }

    pub(super) fn headers_objection(&self, request: &Request<'_>) -> Option<CallFailure> {
        let (head, tool) = (request.call.head.as_ref()?, request.tool?);
        arguments::header_mismatch(self.contract(), head, tool, request.arguments)
    }

    pub(super) fn arguments_objection(&self, request: &Request<'_>) -> Option<CallFailure> {
        let (name, tool) = (request.call.tool()?, request.tool?);
        // List and line may have changed since the check was made.
        match request.checked.filter(|checked| checked.is_of(tool, request.arguments)) {
            Some(checked) => checked.objection.clone(),
            None => arguments::objection(&self.settings, name, tool, request.arguments),
        }
    }

    /// Something of the client's own that cannot be sent on.
    pub(super) fn bad(&self, aspect: Aspect) -> CallFailure {
        CallFailure::finer(self.contract(), Condition::InvalidArguments, Some(aspect))
            .outcome(Outcome::NotSent)
    }

    /// The failure of calls while there is no server.
    pub(super) fn unreachable(
        &self,
        until: Option<Instant>,
        why: &str,
        failed_start: Option<&LastOutput>,
        now: Instant,
    ) -> CallFailure {
        let wait = until.map(|until| until.saturating_duration_since(now));
        let next = match wait {
            Some(_) => "it is being started again",
            None => "it is not started again",
        };
        let message = format!("The server {why}; {next}");
        let failure = match failed_start {
            Some(output) => self.start_failed(message, output),
            None => self.observed(Condition::UpstreamUnreachable, message),
        };
        let wait = wait.map(|wait| wait + Duration::from_millis(100));
        failure.outcome(Outcome::NotSent).after(self.contract(), wait)
    }

    /// The failure of calls to a server that does not start: what it printed last is in the
    /// message (U6), what to do is ours.
    pub(super) fn start_failed(&self, message: String, output: &LastOutput) -> CallFailure {
        let message = match output.text.as_str() {
            "" => message,
            text => format!("{message}. Its last output:\n{text}"),
        };
        let mut failure = self.observed(Condition::StartFailed, message);
        failure.report.hints.check = output.check.map(str::to_owned);
        failure
    }
}
