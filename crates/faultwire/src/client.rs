//! The client's side: reads a failure in any of the loaded contracts and decides what to do.
//!
//! ```
//! use faultwire::client::{RetryContext, Reader};
//! use serde_json::json;
//!
//! let reader = Reader::builtin();
//! let result = json!({
//!     "content": [{ "type": "text", "text": r#"{"error":{"code":"governance.rate_limited",
//!         "message":"Slow down","category":"governance","retryable":true,
//!         "incident_id":"inc_20260119_7","retry_after":2}}"# }],
//!     "isError": true,
//! });
//! let failure = reader.result(&result).expect("it is a failure");
//! let verdict = failure.verdict(&RetryContext::default());
//! assert!(verdict.retry);
//! assert_eq!(verdict.delay.unwrap().as_secs(), 2);
//! assert_eq!(verdict.code.as_deref(), Some("governance.rate_limited"));
//! ```
//!
//! A failure in an unknown contract may be classified in the result's `_meta`, as in a proposal for
//! MCP (pull request 3312 of the specification; this may change with it). If the server says that
//! it is retryable, this counts like a retryable code: only for a tool that may run twice.
//!
//! ```
//! use faultwire::client::{RetryContext, Reader};
//! use faultwire::contract::Safety;
//! use serde_json::json;
//!
//! let result = json!({
//!     "content": [{ "type": "text", "text": "The mail service is restarting" }],
//!     "isError": true,
//!     "_meta": { "io.modelcontextprotocol/toolFailure": {
//!         "class": "reliability", "code": "restarting", "retryable": true, "correlationId": "7f3a",
//!         "agentGuidance": "Try again in a minute." } },
//! });
//! let failure = Reader::builtin().result(&result).expect("it is a failure");
//! assert!(!failure.verdict(&RetryContext::default()).retry);
//! let verdict = failure.verdict(&RetryContext { safety: Safety::ReadOnly, ..RetryContext::default() });
//! assert!(verdict.retry);
//! assert_eq!(verdict.action, "Try again in a minute.");
//! ```

#[cfg(feature = "rmcp-client")]
mod retrying;

use std::sync::Arc;
use std::time::Duration;

use faultwire_contract::{
    BUILTINS, Backoff, CONTRACT_META, Contract, ENVELOPE_META, FailureClass, Outcome, Question,
    ReadError, Reason, Report, RetryClass, Safety, Stamp, Surface, ToolFailure, decide,
};
use serde_json::Value;

use crate::edge;
#[cfg(feature = "rmcp-client")]
pub use retrying::Retrying;

/// The action for a code that no loaded contract has.
const UNKNOWN_ACTION: &str = "This failure is unknown; do not send the call again.";

/// The action for a code that its contract does not have yet.
const NEWER_ACTION: &str = "The contract does not have this code; handle it by its category.";

/// The longest that a retry is put off for a server without a contract that is known. What should
/// wait longer is not sent again.
const LONGEST_WAIT: Duration = Duration::from_hours(24);

/// Reads failures of the contracts that it knows.
#[derive(Clone, Debug)]
pub struct Reader {
    contracts: Vec<Arc<Contract>>,
}

/// A failure that a server reported.
#[derive(Clone, Debug)]
pub struct ServerFailure {
    contract: Option<Arc<Contract>>,
    report: Report,
    class: RetryClass,
    tool_failure: Option<ToolFailure<'static>>,
}

/// What the decision depends on besides the failure.
#[derive(Clone, Copy, Debug)]
pub struct RetryContext {
    /// Which attempt failed, from 1.
    pub attempt: u32,
    /// What is known of the tool.
    pub safety: Safety,
    /// How many retries are left; None is unlimited.
    pub budget: Option<u32>,
}

impl Default for RetryContext {
    fn default() -> Self {
        Self { attempt: 1, safety: Safety::Unknown, budget: None }
    }
}

/// What to do about a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether to send the call again.
    pub retry: bool,
    /// After how long.
    pub delay: Option<Duration>,
    /// The most that could have been drawn.
    pub max_delay: Option<Duration>,
    /// Why, or why not.
    pub reason: Reason,
    /// What to do instead, or until then: the contract's words. Where the code has no contract that
    /// is known they may be the server's own (`agentGuidance`), which are data and no order.
    pub action: String,
    /// The code, where there is one.
    pub code: Option<String>,
    /// The contract that it is of.
    pub contract: Option<String>,
    /// The id to ask support with.
    pub incident: Option<String>,
}

impl Reader {
    /// Reads these contracts.
    #[must_use]
    pub fn new(contracts: impl IntoIterator<Item = Arc<Contract>>) -> Self {
        Self { contracts: contracts.into_iter().collect() }
    }

    /// Reads all contracts that are built in.
    #[must_use]
    pub fn builtin() -> Self {
        Self::new(BUILTINS.iter().map(faultwire_contract::Builtin::contract))
    }

    /// Reads a tool's result, if it is a failure.
    #[must_use]
    pub fn result(&self, result: &Value) -> Option<ServerFailure> {
        let meta = |key| result.get("_meta").and_then(|meta| meta.get(key));
        let named = meta(CONTRACT_META).and_then(|c| c.get("name")).and_then(Value::as_str);
        let text = result.pointer("/content/0/text").and_then(Value::as_str);
        let structured = result.get("structuredContent").map(ToString::to_string);
        let beside = meta(ENVELOPE_META).map(ToString::to_string);
        let failure = [text, structured.as_deref(), beside.as_deref()].into_iter().flatten();
        let failure = failure.filter_map(|envelope| self.envelope(Surface::Mcp, named, envelope));
        // A success may be wrapped in an envelope, too, which is not a failure.
        let failure = failure.into_iter().next();
        if result.get("isError").and_then(Value::as_bool) != Some(true) {
            return failure;
        }
        Some(match (failure, ToolFailure::read(result).map(ToolFailure::into_owned)) {
            (Some(failure), classified) => failure.beside(classified),
            (None, Some(failure)) => ServerFailure::classified(failure, text),
            (None, None) => ServerFailure::unknown(text),
        })
    }

    /// Reads a JSON-RPC error: the object with `code`, `message` and `data`.
    #[must_use]
    pub fn error(&self, error: &Value) -> ServerFailure {
        let read = |data: &Value| self.envelope(Surface::Mcp, None, &data.to_string());
        let failure = error.get("data").and_then(|data| {
            read(data).or_else(|| {
                // If the protocol requires members in `data`, the envelope is beside them.
                let mut data = data.as_object()?.clone();
                data.retain(|name, _| name != "supported" && name != "requested");
                read(data.get("envelope").unwrap_or(&Value::Object(data.clone())))
            })
        });
        failure
            .unwrap_or_else(|| ServerFailure::unknown(error.get("message").and_then(Value::as_str)))
    }

    /// Reads an HTTP response, if its status is a failure. `retry_after` is the header.
    #[must_use]
    pub fn http(
        &self,
        status: u16,
        retry_after: Option<&str>,
        body: &[u8],
    ) -> Option<ServerFailure> {
        if status < 400 {
            return None;
        }
        let text = String::from_utf8_lossy(body);
        let failure = self.envelope(Surface::Http, None, &text);
        let mut failure = failure.unwrap_or_else(|| ServerFailure::unknown(None));
        let header = retry_after.and_then(|seconds| seconds.trim().parse::<u64>().ok());
        let header = header.map(|seconds| seconds.saturating_mul(1000));
        failure.report.retry_after_ms = failure.report.retry_after_ms.or(header);
        Some(failure)
    }

    /// An envelope of any contract that is known; of the one that was named, if one was.
    fn envelope(&self, surface: Surface, named: Option<&str>, text: &str) -> Option<ServerFailure> {
        let mut guess = None;
        let fits = |contract: &&Arc<Contract>| named.is_none_or(|name| contract.name == name);
        for contract in self.contracts.iter().filter(fits) {
            let read = contract.read_any(surface, text.as_bytes()).map(|(report, _)| report);
            let known = read.is_ok();
            match ServerFailure::of(contract, read) {
                Ok(failure) if known => return Some(failure),
                Ok(failure) => _ = guess.get_or_insert(failure),
                Err(_) => {}
            }
        }
        guess
    }
}

impl ServerFailure {
    /// The failure in an envelope of this contract. A code of a newer version is handled by its
    /// category; any other read error is returned.
    pub fn of(
        contract: &Arc<Contract>,
        read: Result<Report, ReadError>,
    ) -> Result<Self, ReadError> {
        let (report, class) = match read {
            Ok(report) => {
                let class = report.retry.unwrap_or(RetryClass::Never);
                (report, class)
            }
            Err(ReadError::UnknownCode { code, category, retryable, retry_after_ms, .. }) => {
                let class = contract.class_of_unknown(category.as_deref(), retryable);
                (Report { retry_after_ms, ..Report::new(code) }, class)
            }
            // Whatever contradicts itself or its contract is not worth another try.
            Err(ReadError::Contradiction { code, .. }) => (Report::new(code), RetryClass::Never),
            Err(other) => return Err(other),
        };
        Ok(Self { contract: Some(Arc::clone(contract)), report, class, tool_failure: None })
    }

    /// Reads a body that is not an envelope of this contract, if it says that it is not retryable
    /// or names a code of the contract: then the safe decision is to stop.
    #[must_use]
    pub fn stopping(contract: &Arc<Contract>, body: &[u8]) -> Option<Self> {
        let body: Value = serde_json::from_slice(body).ok()?;
        let places = ["", "/error", "/structuredContent", "/structuredContent/error"];
        let code = places.iter().filter_map(|place| body.pointer(place)).find_map(|at| {
            let text = |key: &str| at.get(key).and_then(Value::as_str);
            let code = text("code").or_else(|| text("error_code")).unwrap_or_default();
            let says = |pointer: &str, no: &Value| at.pointer(pointer) == Some(no);
            let stops = says("/retryable", &false.into())
                || says("/retry", &false.into())
                || says("/retry/kind", &"not_retryable".into());
            (stops || contract.code(code).is_some()).then(|| code.to_owned())
        })?;
        let report = Report::new(code);
        let contract = Some(Arc::clone(contract));
        Some(Self { contract, report, class: RetryClass::Never, tool_failure: None })
    }

    /// A failure in an unknown format.
    fn unknown(message: Option<&str>) -> Self {
        let message = message.map(str::to_owned);
        let report = Report { message, ..Report::default() };
        Self { contract: None, report, class: RetryClass::Never, tool_failure: None }
    }

    /// A failure in no contract that is known, classified by the server that it is of.
    fn classified(failure: ToolFailure<'static>, message: Option<&str>) -> Self {
        let class = if failure.retryable { RetryClass::Backoff } else { RetryClass::Never };
        let report = Report {
            message: message.map(str::to_owned),
            retry: Some(class),
            next: failure.agent_guidance.as_deref().map(str::to_owned),
            ..Report::new(&*failure.code)
        };
        Self { contract: None, report, class, tool_failure: None }.beside(Some(failure))
    }

    /// The same with the facts beside the envelope. The envelope takes precedence.
    fn beside(mut self, failure: Option<ToolFailure<'static>>) -> Self {
        let id = failure.as_ref().and_then(|failure| failure.correlation_id.as_deref());
        self.report.incident = self.report.incident.take().or_else(|| id.map(str::to_owned));
        Self { tool_failure: failure, ..self }
    }

    /// The contract of the failure, if it is known.
    #[must_use]
    pub fn contract(&self) -> Option<&Arc<Contract>> {
        self.contract.as_ref()
    }

    /// The whole report.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The code, where there is one.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        Some(&*self.report.code).filter(|code| !code.is_empty())
    }

    /// How the result's `_meta` classifies it, if it does.
    #[must_use]
    pub fn tool_failure(&self) -> Option<&ToolFailure<'static>> {
        self.tool_failure.as_ref()
    }

    /// What to do about it (O6). A tool that may have run is called again only if that is safe.
    #[must_use]
    pub fn verdict(&self, context: &RetryContext) -> Verdict {
        self.verdict_at(context, &edge::moment())
    }

    /// The same at this moment and with this random number.
    #[must_use]
    pub fn verdict_at(&self, context: &RetryContext, stamp: &Stamp) -> Verdict {
        let row = self.contract.as_ref().and_then(|contract| contract.code(&self.report.code));
        let known = self.report.outcome.or_else(|| row?.outcome);
        let fixed = row.and_then(|row| row.after).filter(|_| self.class == RetryClass::After);
        let not_before = self.tool_failure.as_ref().and_then(|failure| failure.delay(stamp.now_ms));
        // A contract itself says what may be retried, and after which delay.
        let is_short = not_before.is_none_or(|delay| delay <= LONGEST_WAIT);
        let can_wait = is_short || self.contract.is_some();
        let decided = decide(&Question {
            class: if can_wait { self.class } else { RetryClass::Never },
            named_delay: self.report.delay(stamp.now_ms).or(not_before).or(fixed),
            outcome: known.unwrap_or(Outcome::MaybeExecuted),
            safety: context.safety,
            attempt: context.attempt,
            budget: context.budget,
            backoff: self.contract.as_ref().map_or_else(Backoff::default, |c| c.retry.backoff),
            random: stamp.random,
        });
        let (delay, max_delay, reason) = match decided {
            faultwire_contract::Verdict::Retry { delay, ceiling } => {
                (Some(delay), Some(ceiling), Reason::Retryable)
            }
            faultwire_contract::Verdict::Stop(reason) => (None, None, reason),
        };
        Verdict {
            retry: delay.is_some(),
            delay,
            max_delay,
            reason,
            action: row.map_or_else(|| self.strange_action(), |row| &row.action).to_owned(),
            code: self.code().map(str::to_owned),
            contract: self.contract.as_ref().map(|contract| contract.name.clone()),
            incident: self.report.incident.clone(),
        }
    }

    /// What to do about a code that has no row here.
    fn strange_action(&self) -> &str {
        match &self.tool_failure {
            _ if self.contract.is_some() => NEWER_ACTION,
            Some(failure) => failure.agent_guidance.as_deref().unwrap_or(advice(failure.class)),
            None => UNKNOWN_ACTION,
        }
    }
}

/// What to do about a failure of which only the class is known.
fn advice(class: FailureClass) -> &'static str {
    match class {
        FailureClass::Capability => "The call cannot succeed as it is; change it or do without it.",
        FailureClass::Reliability => "The service failed; check the call's effect before a retry.",
        FailureClass::Governance => "A policy refused the call; get permission before a retry.",
    }
}
