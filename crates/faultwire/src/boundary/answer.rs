//! From a handler's outcome to the client's answer: fault → audit → envelope.

use std::sync::atomic::Ordering;
use std::time::Instant;

use faultwire_contract::{
    Answers, CallContext, Caller, Condition, Fault, Meta, Outcome, Report, ResultOptions, Session,
    Surface, peek,
};
use rmcp::model::{CallToolResult, ContentBlock, ErrorCode, RequestId};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ErrorData, ServerHandler};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::arguments::{Misfit, Schema};
use crate::audit::{Answer, Call};
use crate::boundary::Boundary;
use crate::boundary::slot::{Said, read};
use crate::edge;
use crate::failure::Failure;
use crate::manifest::Manifest;
use crate::typed::TypedCode;
use crate::watch::{Ended, observed};

/// What is known of a call before it ends.
pub(super) struct Asked {
    since: Instant,
    method: &'static str,
    pub tool: Option<String>,
    pub arguments: Option<Value>,
    request: Option<Value>,
    client: Option<String>,
    trace: Option<String>,
    /// The tool has an output schema, which an envelope does not match.
    pub has_output_schema: bool,
    /// Its `readOnlyHint`, where there is one.
    pub read_only: Option<bool>,
    /// Asking twice does no harm: only tools have effects, and not all of them.
    pub repeatable: bool,
    /// The server has the tool.
    pub is_known: bool,
    /// How many sessions were begun before it.
    pub turn: u64,
}

/// A failure and its JSON-RPC number.
pub(super) struct FailedCall {
    report: Box<Report>,
    number: Option<i64>,
    upstream_code: Option<Value>,
    /// Content blocks that stood beside its text.
    blocks: Vec<Value>,
}

impl Asked {
    pub(super) fn of(context: &RequestContext<RoleServer>, method: &'static str) -> Self {
        let client = context.client_info().map(|info| format!("{}/{}", info.name, info.version));
        Self {
            request: Some(match &context.id {
                RequestId::Number(number) => json!(number),
                RequestId::String(text) => json!(text),
            }),
            client,
            trace: context.meta.0.get_traceparent().map(str::to_owned),
            ..Self::unasked(method)
        }
    }

    /// A failure without other facts.
    pub(super) fn unasked(method: &'static str) -> Self {
        Self {
            since: edge::now(),
            method,
            tool: None,
            arguments: None,
            request: None,
            client: None,
            trace: None,
            has_output_schema: false,
            read_only: None,
            repeatable: true,
            is_known: false,
            turn: 0,
        }
    }

    /// The context for classifying a reply: the client's own words do not decide the code (U1).
    fn seen<C: TypedCode>(&self, reply: &impl Serialize, answers: Answers) -> Option<FailedCall> {
        let line = serde_json::to_string(reply).unwrap_or_default();
        if peek(line.as_bytes()).is_plain_success(C::contract(), answers) {
            return None;
        }
        let params = json!({ "name": self.tool, "arguments": self.arguments }).to_string();
        let context = CallContext {
            answers,
            params: Some(&params),
            tool: self.tool.as_deref(),
            has_output_schema: self.has_output_schema,
            read_only: self.read_only,
            ..CallContext::default()
        };
        FailedCall::seen::<C>(&line, &context)
    }

    fn elapsed_ms(&self) -> Option<u64> {
        u64::try_from(edge::now().saturating_duration_since(self.since).as_millis()).ok()
    }
}

impl FailedCall {
    /// What a message of rmcp's would be to a client, if it is a failure.
    fn seen<C: TypedCode>(line: &str, context: &CallContext<'_>) -> Option<Self> {
        let failure = peek(line.as_bytes()).judge(C::contract(), context).failure()?;
        let (number, upstream_code, blocks) = (failure.rpc, failure.upstream_code, failure.blocks);
        Some(Self { report: failure.report, number, upstream_code, blocks })
    }

    /// Arguments that only the handler found fault with have issues as those have that fail the
    /// schema (W4).
    pub(super) fn with_issues(mut self, schema: &Schema, asked: &Asked) -> Self {
        if self.report.condition == Some(Condition::InvalidArguments) {
            let said = self.report.message.as_deref().unwrap_or_default();
            if self.report.hints.is_empty() {
                self.report.hints = schema.hints_for(asked.arguments.as_ref(), said);
            }
            let misfit = Misfit::told_by_handler(said);
            self.report.details = Some(misfit.details_with(self.report.details.take()));
        }
        self
    }
}

impl FailedCall {
    /// The declared tool that may have been meant by an unknown name.
    pub(super) fn with_nearest(mut self, asked: &Asked, manifest: &Manifest) -> Self {
        if self.report.condition == Some(Condition::UnknownTool) {
            let near = asked.tool.as_deref().and_then(|tool| manifest.nearest(tool));
            self.report.hints.nearest = near.map(str::to_owned);
        }
        self
    }
}

impl From<Report> for FailedCall {
    fn from(report: Report) -> Self {
        Box::new(report).into()
    }
}

impl From<Box<Report>> for FailedCall {
    fn from(report: Box<Report>) -> Self {
        Self { report, number: None, upstream_code: None, blocks: Vec::new() }
    }
}

/// A reply as it would stand on the wire.
#[derive(Serialize)]
struct Reply<R, E> {
    jsonrpc: &'static str,
    id: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<R>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<E>,
}

impl<R, E> Default for Reply<R, E> {
    fn default() -> Self {
        Self { jsonrpc: "2.0", id: 0, result: None, error: None }
    }
}

/// What went wrong, if a handler did not end well.
pub(super) fn judged<C: TypedCode, T>(
    ended: Ended<Heard<T>>,
    asked: &Asked,
    answers: Answers,
) -> Result<(T, Option<Said>), FailedCall> {
    match ended.or_report::<C>()? {
        (Ok(value), said) => Ok((value, said)),
        // A handler may have discarded the failure of another one.
        (Err(error), Some(said)) if error.data == serde_json::from_str(&said.text).ok() => {
            Err(said.report.into())
        }
        (Err(error), _) => {
            let reply = Reply::<(), _> { error: Some(&error), ..Reply::default() };
            let seen = asked.seen::<C>(&reply, answers);
            Err(seen.unwrap_or_else(|| observed::<C>(Condition::RpcError, &error.message).into()))
        }
    }
}

/// What a handler returned, and the failure that it passed around rmcp.
pub(super) type Heard<T> = (Result<T, ErrorData>, Option<Said>);

impl<C: TypedCode, H: ServerHandler> Boundary<C, H> {
    /// Whether a tool's result is a failure, reported as one or not.
    pub(super) fn failure_in(
        asked: &Asked,
        result: &CallToolResult,
        said: Option<Said>,
    ) -> Option<FailedCall> {
        // A handler may have discarded the failure of another one.
        let text = result.content.first().and_then(|block| Some(&block.as_text()?.text));
        if let Some(said) = said.filter(|said| Some(&said.text) == text) {
            return Some(said.report.into());
        }
        let reply = Reply::<_, ()> { result: Some(result), ..Reply::default() };
        asked.seen::<C>(&reply, Answers::ToolCall)
    }

    /// The result of a tool that failed.
    pub(super) async fn told_as_result(&self, asked: &Asked, failed: FailedCall) -> CallToolResult {
        let options = ResultOptions { has_output_schema: asked.has_output_schema, modern: true };
        let answer = self.answer(asked, failed).await;
        read(&answer.fault.result_around(&answer.envelope, options))
    }

    /// The error that any other request is answered with.
    pub(super) async fn told_as_error(&self, asked: &Asked, failed: FailedCall) -> ErrorData {
        let number = failed.number;
        let answer = self.answer(asked, failed).await;
        let public = answer.fault.public();
        let seen = public.condition.unwrap_or(Condition::Internal);
        let number = number.unwrap_or_else(|| seen.rpc_code());
        let number = i32::try_from(number).unwrap_or(ErrorCode::INTERNAL_ERROR.0);
        let message = public.message.clone().unwrap_or_default();
        let data = serde_json::from_slice(&answer.envelope).ok();
        ErrorData::new(ErrorCode(number), message, data)
    }

    /// A success, wrapped if the contract wraps successes (T1).
    pub(super) fn dressed(&self, asked: &Asked, result: CallToolResult) -> CallToolResult {
        let contract = C::contract();
        if !contract.wraps_success() {
            return result;
        }
        let Some(data) = data_of(&result) else { return result };
        let meta = Meta { elapsed_ms: asked.elapsed_ms(), ..self.settings.meta.clone() };
        let Some(envelope) = contract.success(self.settings.profile, &data, &meta) else {
            return result;
        };
        let text = String::from_utf8_lossy(&envelope).into_owned();
        let structured = serde_json::from_slice(&envelope).ok();
        let mut content = vec![ContentBlock::text(text)];
        // Pictures and the like have no place in an envelope.
        content.extend(result.content.into_iter().filter(|block| block.as_text().is_none()));
        let mut dressed = CallToolResult::success(content);
        // A tool's own schema is for its own data.
        dressed.structured_content =
            if asked.has_output_schema { result.structured_content } else { structured };
        dressed.meta = result.meta;
        dressed
    }

    /// Recorded first, then given back to be sent.
    async fn answer(&self, asked: &Asked, failed: FailedCall) -> Answer {
        let FailedCall { mut report, mut upstream_code, blocks, .. } = failed;
        self.turn_lost(asked, &report.code);
        let undeclared = !self.declares(asked, &report.code);
        if undeclared {
            self.undeclared.fetch_add(1, Ordering::Relaxed);
            let (tool, code) = (asked.tool.as_deref().unwrap_or_default(), &report.code);
            tracing::error!(tool, code, "the tool answered a code that its manifest does not list");
            if self.settings.is_strict {
                let known = self.manifest.has(tool);
                let why =
                    if known { "which its manifest does not list" } else { "but has no manifest" };
                let what = format!("{tool} answered {code}, {why}");
                upstream_code = Some(Value::from(code.as_str()));
                report = observed::<C>(Condition::Internal, &what);
            }
        }
        let mut failure = Failure::<C>::told(report);
        self.add_facts(asked, failure.report_mut());
        let fault: Fault = {
            let caller = Caller::default().sent(asked.arguments.as_ref());
            let fault = failure.into_fault_for(&edge::stamp(C::contract()), &caller);
            fault.with_blocks(blocks, &caller)
        };
        let call = Call {
            request: asked.request.clone(),
            client: asked.client.clone(),
            arguments: asked.arguments.as_ref().map(|a| self.log.fingerprint(a)),
            upstream_code,
            undeclared,
            elapsed_ms: fault.public().meta.elapsed_ms,
            ..Call::default()
        };
        let answer = self.log.answer_async(fault, &call, Surface::Mcp, self.settings.profile).await;
        self.turn_lost(asked, &answer.fault.code().id);
        answer
    }

    /// Whether the tool may answer this code. Servers without a manifest may answer any code, and
    /// so may requests for unknown tools.
    fn declares(&self, asked: &Asked, code: &str) -> bool {
        let tool = asked.tool.as_deref().filter(|_| asked.is_known);
        self.manifest.is_empty() || tool.is_none_or(|tool| self.manifest.declares(tool, code))
    }

    /// What the boundary knows and the handler did not say.
    fn add_facts(&self, asked: &Asked, report: &mut Report) {
        report.tool = report.tool.take().or_else(|| asked.tool.clone());
        report.method.get_or_insert_with(|| asked.method.to_owned());
        report.trace = report.trace.take().or_else(|| asked.trace.clone());
        report.repeatable.get_or_insert(asked.repeatable);
        report.outcome =
            report.outcome.or(Some(Outcome::MaybeExecuted).filter(|_| report.condition.is_none()));
        let Session { id, client, role, workspace_root, phase, plan_hash } = self.known_session();
        let session = &mut report.session;
        for (said, known) in [
            (&mut session.id, id),
            (&mut session.client, client.or_else(|| asked.client.clone())),
            (&mut session.role, role),
            (&mut session.workspace_root, workspace_root),
            (&mut session.phase, phase),
            (&mut session.plan_hash, plan_hash),
        ] {
            *said = said.take().or(known);
        }
        let Meta { tool_version, mode, approval_mode, .. } = self.settings.meta.clone();
        let meta = &mut report.meta;
        meta.tool_version = meta.tool_version.take().or(tool_version);
        meta.mode = meta.mode.take().or(mode);
        meta.approval_mode = meta.approval_mode.or(approval_mode);
        meta.elapsed_ms = meta.elapsed_ms.or_else(|| asked.elapsed_ms());
    }
}

/// What a tool returned: its structured content, otherwise its text, parsed if it is JSON.
fn data_of(result: &CallToolResult) -> Option<Box<RawValue>> {
    if let Some(structured) = &result.structured_content {
        return to_raw_value(structured).ok();
    }
    let texts: Vec<&str> =
        result.content.iter().filter_map(|c| Some(c.as_text()?.text.as_str())).collect();
    match texts[..] {
        [only] => match serde_json::from_str(only) {
            Ok(json) => Some(json),
            Err(_) => to_raw_value(only).ok(),
        },
        _ => to_raw_value(&texts).ok(),
    }
}
