//! Whether and when to call again.

use std::sync::Arc;

use faultwire_contract::{Contract, Reason, Report, Safety, Stamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::client::{Reader, RetryContext, ServerFailure, Verdict};
use crate::json::classify::written;
use crate::json::error::{Error, ErrorKind};
use crate::json::fault::{View, read_view};

/// The answer of `faultwire retry`.
#[derive(Serialize)]
struct Answer<'a> {
    retry: bool,
    delay_ms: Option<u128>,
    max_delay_ms: Option<u128>,
    action: &'a str,
    code: &'a str,
    reason: Reason,
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Context {
    attempt: u32,
    read_only: bool,
    idempotent: bool,
    budget: Option<u32>,
}

impl Default for Context {
    fn default() -> Self {
        Self { attempt: 1, read_only: false, idempotent: false, budget: None }
    }
}

/// What a decision depends on, as JSON: `attempt`, `read_only`, `idempotent`, `budget`.
pub fn retry_context(text: &str) -> Result<RetryContext, Error> {
    let context: Context = serde_json::from_str(text).map_err(|e| {
        let help = "use attempt, read_only, idempotent, budget";
        Error::new(ErrorKind::Input, format!("not a valid context: {e}"), help)
    })?;
    let Context { attempt, read_only, idempotent, budget } = context;
    let safety = match (read_only, idempotent) {
        (true, _) => Safety::ReadOnly,
        (false, true) => Safety::Idempotent,
        (false, false) => Safety::Unknown,
    };
    Ok(RetryContext { attempt: attempt.max(1), safety, budget })
}

/// Decides on an envelope of this contract. One that contradicts itself is not retried.
pub fn retry(
    contract: &Arc<Contract>,
    envelope: &[u8],
    view: Option<View>,
    context: &RetryContext,
    stamp: &Stamp,
) -> Result<Vec<u8>, Error> {
    let failure = ServerFailure::of(contract, read_view(contract, envelope, view, None))
        .or_else(|e| ServerFailure::stopping(contract, envelope).ok_or(e))?;
    let verdict = failure.verdict_at(context, stamp);
    written(&Answer {
        retry: verdict.retry,
        delay_ms: verdict.delay.map(|delay| delay.as_millis()),
        max_delay_ms: verdict.max_delay.map(|delay| delay.as_millis()),
        action: &verdict.action,
        code: &failure.report().code,
        reason: verdict.reason,
    })
}

/// What a client can tell of a failure, and what to do about it.
#[derive(Serialize)]
struct Answered<'a> {
    code: Option<&'a str>,
    contract: Option<&'a str>,
    category: Option<&'a str>,
    message: Option<&'a str>,
    incident: Option<&'a str>,
    retry: bool,
    delay_ms: Option<u128>,
    max_delay_ms: Option<u128>,
    reason: Reason,
    action: &'a str,
    class: Option<&'static str>,
    fault: &'a Report,
}

/// The failure that a tool's result or a JSON-RPC error is, in any contract that the reader knows;
/// none for a success.
pub fn failure(reader: &Reader, reply: &[u8]) -> Result<Option<ServerFailure>, Error> {
    let reply: Value = serde_json::from_slice(reply).map_err(|e| {
        let help = "give the result of a call, or the error object of a JSON-RPC reply";
        Error::new(ErrorKind::Input, format!("not valid JSON: {e}"), help)
    })?;
    let body = reply.get("result").or_else(|| reply.get("error")).unwrap_or(&reply);
    let is_error = body.get("code").is_some_and(Value::is_number) && body.get("message").is_some();
    Ok(if is_error { Some(reader.error(body)) } else { reader.result(body) })
}

/// What is known of a failure and what to do about it, as JSON.
pub fn verdict(
    failure: &ServerFailure,
    context: &RetryContext,
    stamp: &Stamp,
) -> Result<Vec<u8>, Error> {
    let Verdict { retry, delay, max_delay, reason, action, .. } =
        &failure.verdict_at(context, stamp);
    let contract = failure.contract();
    let code = failure.code();
    let row = contract.zip(code).and_then(|(contract, code)| contract.code(code));
    written(&Answered {
        code,
        contract: contract.map(|contract| &*contract.name),
        category: row.map(|row| &*row.category),
        message: failure.report().message.as_deref(),
        incident: failure.report().incident.as_deref(),
        retry: *retry,
        delay_ms: delay.map(|delay| delay.as_millis()),
        max_delay_ms: max_delay.map(|delay| delay.as_millis()),
        reason: *reason,
        action,
        class: failure.tool_failure().map(|failure| failure.class.name()),
        fault: failure.report(),
    })
}
