//! Judging a reply to an open call: a success, whose own bytes pass, or which failure. All that
//! takes time is here, and needs no lock: what a session knows comes with the call.

use std::borrow::Cow;
use std::sync::Arc;

use faultwire::arguments::Misfit;
use faultwire::output::Output;
use faultwire_contract::{
    CallContext, Caller, Condition, Contract, Failure, Judgement, Line, Outcome, Redactor,
    malformed, peek,
};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::call::{Bridged, Call};
use crate::edge;
use crate::era;
use crate::failing::{CallFailure, Said};
use crate::guard::filter::permitted;
use crate::guard::tasks::{self, Tasks};
use crate::guard::{targets, version};
use crate::method::Method;
use crate::rewrite::Rewrite;
use crate::settings::Settings;
use crate::sparse::Sparse;
use crate::tools::{ListedTool, Page};
use crate::wire::{self, Flow};

static MISMATCHED: Sparse = Sparse::new();
static UNCOMPARED: Sparse = Sparse::new();

/// A reply and what is known of its call.
pub(crate) struct Reply<'c, 'a> {
    pub settings: &'c Settings,
    /// The owners of the server's tasks, where several clients use it.
    pub tasks: Option<&'c Tasks>,
    /// The tool, if it is listed.
    pub tool: Option<&'c Arc<ListedTool>>,
    pub call: &'c Call,
    pub line: &'c Line<'c>,
    pub bytes: &'a [u8],
}

/// What a reply is.
pub(crate) enum Judged<'a> {
    /// A success, and what of it is rewritten.
    Success(Success<'a>),
    /// A failure.
    Failure(Box<CallFailure>),
    /// A success that does not match its tool's output schema, where that is a failure.
    Mismatch(Box<CallFailure>),
    /// An error that the protocol wants to reach the client: as this line.
    ProtocolError(Vec<u8>),
}

/// What a success is sent as, and what is to be noted of it.
pub(crate) struct Success<'a> {
    pub reply: Rewrite<'a>,
    /// The list of tools in it.
    pub page: Option<Page>,
    /// What is recorded of it: events.
    pub events: Vec<(&'static str, Value)>,
    /// Whether it differs from its output schema.
    pub is_mismatched: bool,
}

impl<'c, 'a> Reply<'c, 'a> {
    fn contract(&self) -> &'c Arc<Contract> {
        &self.settings.contract
    }

    /// What the reply is.
    pub(crate) fn judge(&self) -> Judged<'a> {
        match self.success() {
            Ok(success) => Judged::Success(success),
            Err(judged) => judged,
        }
    }

    fn success(&self) -> Result<Success<'a>, Judged<'a>> {
        let limit = self.settings.limits.depth;
        if self.line.is_deeper_than(limit) {
            return Err(self.malformed(&format!("JSON deeper than {limit} levels")));
        }
        let mut events: Vec<_> = self.soft_failure()?.into_iter().collect();
        let mismatch = self.output_mismatch()?;
        let is_mismatched = mismatch.is_some();
        events.extend(mismatch.map(|facts| ("output_mismatch", facts)));
        if self.call.bridged == Bridged::LegacyClient && era::wants_more(result_of(self.bytes)) {
            return Err(self.unanswerable());
        }
        let mut reply = Rewrite::new(self.bytes);
        if self.call.bridged == Bridged::ModernClient {
            era::as_modern(&mut reply, result_of(self.bytes), self.call.method.name());
        } else if self.call.method.name() == wire::LISTEN
            && let Some(subscription) = wire::subscription(result_of(self.bytes).map(RawValue::get))
        {
            reply.instead_of(subscription.get(), self.call.client_id().to_owned());
        }
        match self.filtered() {
            Ok(None) => {}
            Ok(Some((all, kept))) => reply.instead_of(all, kept),
            Err(why) => return Err(self.malformed(why)),
        }
        let page = match self.call.method {
            Method::ToolsList { .. } => result_of(self.bytes).and_then(Page::read),
            _ => None,
        };
        Ok(Success { reply, page, events, is_mismatched })
    }

    fn malformed(&self, why: &str) -> Judged<'a> {
        Judged::Failure(Box::new(CallFailure::classified(malformed(self.contract(), why))))
    }

    /// The tool wants a second round, which the client's version does not have.
    fn unanswerable(&self) -> Judged<'a> {
        let message = "The tool asks for more input, which this client's version cannot give";
        let mut failure = CallFailure::observed(self.contract(), Condition::UnsupportedVersion)
            .saying(message)
            .outcome(Outcome::MaybeExecuted);
        failure.report.details = Some(json!({ "supported_versions": version::MODERN }));
        Judged::Failure(Box::new(failure))
    }

    /// What is recorded of a success that only reads like a failure, and passes (U5). An error if
    /// it is one.
    fn soft_failure(&self) -> Result<Option<(&'static str, Value)>, Judged<'a>> {
        let (call, answers) = (self.call, self.call.method.answers());
        if self.line.is_plain_success(self.contract(), answers) {
            return Ok(None);
        }
        let context = CallContext {
            answers,
            params: peek(call.line()).params,
            tool: call.tool(),
            has_output_schema: call.facts.has_output_schema,
            read_only: call.facts.read_only,
            soft_failures: self.settings.soft_failures,
        };
        match self.line.judge(self.contract(), &context) {
            Judgement::Success => Ok(None),
            Judgement::Failure(failure) => Err(self.failure(failure)),
            Judgement::Suspect(failure) => {
                let message = failure.report.message.as_deref().unwrap_or_default();
                let facts = json!({
                    "tool": call.tool(),
                    "code": failure.report.code,
                    "rule": failure.rule,
                    "message": message.chars().take(512).collect::<String>(),
                });
                Ok(Some(("soft_failure", facts)))
            }
        }
    }

    /// What is recorded of a success that does not match its tool's output schema, and passes. An
    /// error if that is enforced.
    fn output_mismatch(&self) -> Result<Option<Value>, Judged<'a>> {
        let (Some(tool), Some(name)) = (self.tool, self.call.tool()) else { return Ok(None) };
        if !self.call.is_compared {
            return Ok(None);
        }
        let found = self.call.mismatch(name, tool, self.line.structured()).unwrap_or_else(|()| {
            UNCOMPARED.note(|count| {
                tracing::warn!(count, tool = name, "the result could not be checked; it passes");
            });
            None
        });
        let Some(mismatch) = found.filter(|_| is_complete(self.line.text)) else {
            return Ok(None);
        };
        if self.settings.output == Output::Enforce {
            let failure = CallFailure::mismatched(self.contract(), name, &mismatch);
            return Err(Judged::Mismatch(Box::new(failure)));
        }
        MISMATCHED.note(|count| {
            tracing::warn!(count, tool = name, "the result does not match the tool's outputSchema");
        });
        Ok(Some(mismatch.facts(name)))
    }

    /// The list in a reply and what of it the client may know, where that is not all; an error if
    /// it cannot be told. Tasks that the reply tells of are the client's from now on.
    fn filtered(&self) -> Result<Option<(&'a str, String)>, &'static str> {
        let (call, bytes) = (self.call, self.bytes);
        let Some(client) = call.client() else { return Ok(None) };
        let method = call.method.name();
        if let Some(tasks) = self.tasks {
            if method == tasks::LIST {
                let is_owner = |id: &str| tasks.is_owner(&client.owner, id);
                let kept = result_of(bytes).and_then(|l| permitted(l, "tasks", "taskId", is_owner));
                return kept.map(Some).ok_or("a task list that cannot be read");
            }
            if !method.starts_with("tasks/") {
                tasks.learn(&client.owner, bytes);
            }
        }
        let Some((kind, list, name)) = targets::listed_by(method) else { return Ok(None) };
        if !client.is_kept_from(kind) {
            return Ok(None);
        }
        let kept = result_of(bytes)
            .and_then(|l| permitted(l, list, name, |name| client.may_use(kind, name)));
        kept.map(Some).ok_or("a list that cannot be read")
    }

    /// The server says that the call failed, in whichever way.
    fn failure(&self, failure: Failure) -> Judged<'a> {
        let call = self.call;
        // To read the request again takes time, and hardly any failure needs it.
        let is_modern = || call.details().is_modern();
        let flow = Flow::of(self.line.error_number());
        if flow == Flow::Elicitation
            && !is_modern()
            && wire::asks_for_urls(self.bytes)
            && let Some(line) = self.negotiated()
        {
            return Judged::ProtocolError(line);
        }
        let mut failure = CallFailure::classified(failure);
        if let Some(number) = failure.rpc.filter(|number| wire::modern_number(*number) != *number) {
            let is_modern = call.bridged != Bridged::LegacyClient && is_modern();
            failure.rpc = Some(if is_modern { wire::modern_number(number) } else { number });
        }
        if failure.report.retry_after_ms.is_none() && call.wait.is_some() {
            failure = failure.after(self.contract(), call.wait);
        }
        failure.report.outcome = Some(self.outcome_of(&failure));
        // What was asked was the next round of a tool that has run already, not the tool.
        failure.is_protocol =
            failure.rpc == Some(wire::INVALID_PARAMS) && call.details().is_next_round();
        if flow == Flow::Negotiation && (is_modern() || call.method == Method::Initialize) {
            failure.is_protocol = true;
            if let Some(line) = self.negotiated() {
                failure.said = Said::Protocol(line);
            }
        }
        self.advise(&mut failure);
        Judged::Failure(Box::new(failure))
    }

    /// How far a call got that the server says it failed (A7). It was sent: a code's promise that
    /// it was not is not what we saw, and words in a text are no proof that no tool has run.
    fn outcome_of(&self, failure: &CallFailure) -> Outcome {
        let report = &failure.report;
        let row = self.contract().code(&report.code);
        let tempts = row.is_some_and(|row| row.retry.iter().any(|class| class.is_retryable()));
        match report.condition.map(Condition::reported_outcome) {
            Some(Outcome::NotSent) if tempts || failure.rpc.is_none() => Outcome::MaybeExecuted,
            seen => seen.unwrap_or(Outcome::MaybeExecuted),
        }
    }

    /// An error that the protocol wants to reach the client: its number, and what stands in its
    /// data, redacted.
    fn negotiated(&self) -> Option<Vec<u8>> {
        #[derive(Deserialize)]
        struct Reply {
            error: RpcError,
        }
        #[derive(Deserialize)]
        struct RpcError {
            code: i64,
            message: Option<String>,
            data: Option<Value>,
        }
        let Reply { error } = serde_json::from_slice(self.bytes).ok()?;
        let (call, contract) = (self.call, self.contract());
        let known = call.client().map_or_else(Caller::default, |client| client.caller());
        let caller = known.sent_raw(call.params());
        let message = error.message.as_deref().map(|text| contract.redact_for(text, &caller));
        let mut passed = json!({ "code": error.code, "message": message.unwrap_or_default() });
        if let Some(mut data) = error.data {
            // Addresses that a user is to open hold what they must; all around them is text.
            let urls = data.as_object_mut().and_then(|data| data.remove(wire::ELICITATIONS));
            let mut data = contract.redact_json_for(data, &caller);
            if let (Some(urls), Some(data)) = (urls, data.as_object_mut()) {
                let urls = without_secrets(urls, contract.redactor());
                data.insert(wire::ELICITATIONS.to_owned(), urls);
            }
            passed["data"] = data;
        }
        Some(wire::error_reply(call.client_id(), &passed))
    }

    /// Adds what the tool's schema knows about wrong arguments that the server has found.
    fn advise(&self, failure: &mut CallFailure) {
        let (Some(name), Some(Condition::InvalidArguments)) =
            (self.call.tool(), failure.report.condition)
        else {
            return;
        };
        let arguments = self.call.details().arguments;
        let said = failure.report.message.as_deref().unwrap_or_default();
        let check = |tool: &Arc<ListedTool>| {
            let text = arguments.as_ref().map(ToString::to_string);
            let schema = tool.schema(name);
            let misfit = schema.misfit(text.as_deref());
            let known = || schema.hints_for(arguments.as_ref(), said);
            let hints = misfit.as_ref().map_or_else(known, Misfit::hints);
            (misfit, hints)
        };
        let (misfit, hints) = self.tool.map(|tool| edge::aside(|| check(tool))).unwrap_or_default();
        // What only the server noticed is an issue, too (W4).
        let misfit = misfit.unwrap_or_else(|| Misfit::told_by_handler(said));
        failure.report.hints = hints;
        failure.report.details = Some(misfit.details_with(failure.report.details.take()));
    }
}

/// The result in a reply.
pub(crate) fn result_of(bytes: &[u8]) -> Option<&RawValue> {
    #[derive(Deserialize)]
    struct Reply<'a> {
        #[serde(borrow)]
        result: &'a RawValue,
    }
    serde_json::from_slice::<Reply<'_>>(bytes).ok().map(|reply| reply.result)
}

/// Whether a result is what its tool returned, and not a question for more input or a task.
fn is_complete(reply: &str) -> bool {
    #[derive(Deserialize)]
    struct Reply<'a> {
        #[serde(borrow)]
        result: Kind<'a>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Kind<'a> {
        #[serde(borrow, default)]
        result_type: Option<Cow<'a, str>>,
        #[serde(default)]
        task: Option<IgnoredAny>,
    }
    let read: Option<Reply<'_>> = serde_json::from_str(reply).ok();
    read.is_some_and(|Reply { result }| match result.result_type {
        Some(kind) => kind == "complete",
        None => result.task.is_none(),
    })
}

/// What a server says beside the addresses that it wants opened, without credentials.
fn without_secrets(elicitations: Value, redactor: &Redactor) -> Value {
    let Value::Array(all) = elicitations else {
        return redactor.redact_json_credentials(elicitations);
    };
    let safe = |mut one: Value| {
        let url = one.as_object_mut().and_then(|one| one.remove("url"));
        let mut one = redactor.redact_json_credentials(one);
        if let (Some(one), Some(url)) = (one.as_object_mut(), url) {
            one.insert("url".to_owned(), url);
        }
        one
    };
    all.into_iter().map(safe).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x6_an_elicitation_keeps_its_address_and_loses_secrets_around_it() {
        let asked = json!([{ "mode": "url", "elicitationId": "e1",
            "url": "https://login.example/start?token=abc123def456&state=x",
            "message": "Sign in; password=hunter2hunter2" }]);
        let safe = without_secrets(asked.clone(), &Redactor::default());
        assert_eq!(safe[0]["url"], asked[0]["url"]);
        assert_eq!(safe[0]["elicitationId"], "e1");
        assert!(!safe.to_string().contains("hunter2"), "{safe}");
    }

    #[test]
    fn only_complete_results_are_compared() {
        let reply = |result: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
        for (result, expected) in [
            (r#"{"content":[]}"#, true),
            (r#"{"content":[],"resultType":"complete"}"#, true),
            (r#"{"content":[],"resultType":null}"#, true),
            (r#"{"resultType":"input_required","inputRequests":{}}"#, false),
            (r#"{"resultType":"task","taskId":"1"}"#, false),
            (r#"{"resultType":5}"#, false),
            (r#"{"task":{"taskId":"1","status":"working"}}"#, false),
        ] {
            assert_eq!(is_complete(&reply(result)), expected, "{result}");
        }
        assert!(!is_complete(r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}"#));
    }
}
