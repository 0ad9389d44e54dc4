//! The boundary of a server in another language: what a handler did comes in as JSON, and the
//! answer goes out as JSON, once it is recorded.
//!
//! The language's own part calls handlers, waits for them, and knows its SDK. Everything that
//! decides is here, so that all languages decide alike.
//!
//! ```
//! use faultwire::json::{self, Boundary, Call, Standing};
//!
//! let contract = json::builtin("standard")?;
//! let boundary = Boundary::new(contract, None, "{}")?;
//! let call = Call::read(r#"{"tool":"read","arguments":{"path":"a.md"}}"#)?;
//! let thrown = r#"{"name":"Error","code":"ENOENT","message":"ENOENT: no such file, open 'a.md'"}"#;
//! let answer = boundary.threw(&call, thrown)?.answer(&boundary, &call, &Standing::default());
//! assert_eq!(answer.fault().code().id, "not_found");
//! # Ok::<(), json::Error>(())
//! ```

mod answer;
mod call;
mod responded;
mod settings;
mod thrown;
mod tools;

pub use answer::{Answer, Form, Pending};
pub use call::Call;
pub use settings::Settings;
pub use tools::Standing;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use faultwire_contract::{
    Answers, CallContext, Condition, Contract, Failure, Judgement, Meta, Origin, Outcome, Profile,
    Report, malformed, peek,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::arguments::Misfit;
use crate::audit::{Entry, Log};
use crate::json::error::{Error, ErrorKind};
use crate::json::fault::profile;
use crate::output::Output;
use responded::Responded;
use thrown::Thrown;
use tools::Tools;

/// The first mismatches are all recorded, later ones only if their number is a power of two.
const MOST_RECORDED: u64 = 64;

/// A boundary under one contract.
pub struct Boundary {
    contract: Arc<Contract>,
    log: Option<Log>,
    settings: Settings,
    profile: Profile,
    tools: Tools,
    mismatched: AtomicU64,
    undeclared: AtomicU64,
}

/// A failure of a call, not yet recorded.
#[derive(Debug)]
#[must_use = "only its answer tells the client"]
pub struct Failed {
    report: Box<Report>,
    number: Option<i64>,
    upstream_code: Option<Value>,
    blocks: Vec<Value>,
}

/// What a handler's result is.
pub enum Judged {
    /// A success: its own bytes are sent.
    Success,
    /// A success that the contract wraps: this result is sent instead.
    Wrapped(Vec<u8>),
    /// A failure.
    Failed(Failed),
}

impl Boundary {
    /// A boundary with settings as JSON; failures are recorded in the log, if there is one.
    pub fn new(contract: Arc<Contract>, log: Option<Log>, settings: &str) -> Result<Self, Error> {
        let settings = Settings::read(settings, &contract)?;
        let profile = profile(&contract, settings.profile.as_deref())?;
        let tools = Tools::new(&contract);
        let (mismatched, undeclared) = Default::default();
        Ok(Self { contract, log, settings, profile, tools, mismatched, undeclared })
    }

    /// Its contract.
    #[must_use]
    pub fn contract(&self) -> &Arc<Contract> {
        &self.contract
    }

    /// Its log.
    #[must_use]
    pub fn log(&self) -> Option<&Log> {
        self.log.as_ref()
    }

    /// Learns the server's tools from a `tools/list` result.
    pub fn learn(&self, list: &str) -> Result<(), Error> {
        self.tools.learn(list)
    }

    /// Whether a tool is known by now.
    #[must_use]
    pub fn knows(&self, tool: &str) -> bool {
        self.tools.get(tool).is_some()
    }

    /// How many failures had a code that their tool does not declare.
    #[must_use]
    pub fn undeclared(&self) -> u64 {
        self.undeclared.load(Ordering::Relaxed)
    }

    /// How many successes did not match the output schema of their tool.
    #[must_use]
    pub fn mismatched(&self) -> u64 {
        self.mismatched.load(Ordering::Relaxed)
    }

    /// Why a call does not reach its handler, if it does not: the session's state (K12), or, where
    /// that is enforced, arguments that do not match the tool's schema (W4).
    pub fn refusal(&self, call: &Call, standing: &Standing) -> Option<Failed> {
        let name = call.tool.as_deref()?;
        if let Some((condition, message)) = self.tools.out_of_turn(call, standing, &self.settings) {
            return Some(self.seen(condition, message).outcome(Outcome::NotSent));
        }
        if !self.settings.checks_arguments() {
            return None;
        }
        let misfit = self.tools.get(name)?.misfit(name, call)?;
        Some(self.misfit(name, &misfit).outcome(Outcome::NotSent))
    }

    /// Whether a first look tells that a result is a success that passes as it is, so that nothing
    /// has to be known of its call.
    #[must_use]
    pub fn passes(&self, result: &str) -> bool {
        !self.contract.wraps_success()
            && peek(line("result", result).as_bytes())
                .is_plain_success(&self.contract, Answers::ToolCall)
    }

    /// What a handler's result is.
    pub fn returned(
        &self,
        call: &Call,
        standing: &Standing,
        result: &str,
    ) -> Result<Judged, Error> {
        if serde_json::from_str::<&RawValue>(result).is_err() {
            return Ok(Judged::Failed(malformed(&self.contract, "the result is no JSON").into()));
        }
        if call.is_tool() {
            let found = self.judge(call, &line("result", result));
            if let Some(failed) = found.or_else(|| self.output_mismatch(call, result)) {
                return Ok(Judged::Failed(self.advised(call, failed)));
            }
            self.tools.after_success(call, standing);
        }
        let data = self.wrapped(call, result);
        Ok(data.map_or(Judged::Success, Judged::Wrapped))
    }

    /// The failure of a handler, by how it failed: `threw`, `refused`, `responded` (an HTTP response
    /// with `status`, `message`, `retry_after`), or the name of a condition.
    pub fn failed(&self, call: &Call, how: &str, what: &str) -> Result<Failed, Error> {
        match how {
            "threw" => self.threw(call, what),
            "refused" => Ok(self.refused(call, what)),
            "responded" => Responded::read(what).map(|response| response.failed(self)),
            condition => Ok(self.advised(call, self.observed(condition, what)?)),
        }
    }

    /// The failure that a JSON-RPC error of a handler is: an object with `code` and `message`.
    #[must_use = "only its answer tells the client"]
    pub fn refused(&self, call: &Call, error: &str) -> Failed {
        let found = self.judge(call, &line("error", error));
        self.advised(call, found.unwrap_or_else(|| self.seen(Condition::RpcError, error)))
    }

    /// The failure that something thrown is, as JSON: an error has `message`, and maybe `name`,
    /// `code`, `cause`, `stack`, `status`, `issues`; a typed one has its whole `fault`; anything
    /// else is a `value`.
    pub fn threw(&self, call: &Call, thrown: &str) -> Result<Failed, Error> {
        let thrown = Thrown::read(thrown)?;
        let failed = thrown.failed(self, call);
        Ok(if thrown.is_classified() { self.advised(call, failed) } else { failed })
    }

    /// A failure that was observed: the name of a condition, and what happened in words.
    pub fn observed(&self, condition: &str, message: &str) -> Result<Failed, Error> {
        let known = condition.parse::<Condition>().map_err(|_| {
            let names: Vec<&str> = Condition::ALL.iter().map(|known| known.name()).collect();
            let help = format!("use one of {}", names.join(", "));
            Error::new(ErrorKind::Input, "unknown condition", help).at(condition)
        })?;
        Ok(self.seen(known, message))
    }

    fn seen(&self, condition: Condition, message: impl Into<String>) -> Failed {
        let report = Report {
            condition: Some(condition),
            message: Some(message.into()),
            ..Report::new(&self.contract.code_for(condition, None).id)
        };
        Box::new(report).into()
    }

    fn misfit(&self, tool: &str, misfit: &Misfit) -> Failed {
        let (condition, aspect) = (Condition::InvalidArguments, misfit.aspect());
        let help = format!("Fix the arguments; see the inputSchema of {tool} in tools/list");
        let report = Report {
            condition: Some(condition),
            message: Some(misfit.message(tool)),
            hints: misfit.hints(),
            details: Some(misfit.details()),
            suggestion: Some(help),
            ..Report::new(&self.contract.code_for(condition, aspect).id)
        };
        Box::new(report).into()
    }

    /// What a reply of the server would be, if it is a failure.
    fn judge(&self, call: &Call, line: &str) -> Option<Failed> {
        let params = call.params();
        let tool = call.tool.as_deref();
        let known = tool.and_then(|tool| self.tools.get(tool));
        let context = CallContext {
            answers: if call.is_tool() { Answers::ToolCall } else { Answers::Other },
            params: params.as_deref(),
            tool,
            has_output_schema: known.as_ref().is_some_and(|tool| tool.has_output_schema()),
            read_only: known.as_ref().and_then(|tool| tool.read_only),
            soft_failures: self.settings.soft_failures,
        };
        match peek(line.as_bytes()).judge(&self.contract, &context) {
            Judgement::Failure(failure) => Some(failure.into()),
            Judgement::Suspect(failure) => {
                let facts = json!({ "tool": tool, "code": failure.report.code,
                                    "rule": failure.rule, "message": failure.report.message });
                self.event("soft_failure", &facts);
                None
            }
            Judgement::Success => None,
        }
    }

    /// What the tool's schema and the list of tools know about a failure.
    fn advised(&self, call: &Call, mut failed: Failed) -> Failed {
        let report = &mut failed.report;
        let Some(name) = call.tool.as_deref() else { return failed };
        match report.condition {
            Some(Condition::UnknownTool) => report.hints.nearest = self.tools.nearest(name),
            Some(Condition::InvalidArguments) => {
                let said = report.message.as_deref().unwrap_or_default();
                let known = self.tools.get(name);
                let misfit = known.as_ref().and_then(|tool| tool.misfit(name, call));
                let misfit = misfit.or_else(|| thrown::issues_in(said));
                if report.hints.is_empty() {
                    report.hints = match &misfit {
                        Some(misfit) => misfit.hints(),
                        None => known.map(|tool| tool.hints(name, call, said)).unwrap_or_default(),
                    };
                }
                let misfit = misfit.unwrap_or_else(|| Misfit::told_by_handler(said));
                report.details = Some(misfit.details_with(report.details.take()));
            }
            _ => {}
        }
        failed
    }

    /// The failure that a success is because it does not match its tool's output schema, if that is
    /// enforced. Else a mismatch is recorded, and the success passes.
    fn output_mismatch(&self, call: &Call, result: &str) -> Option<Failed> {
        let mode = self.settings.output();
        let name = call.tool.as_deref().filter(|_| mode != Output::Off)?;
        let mismatch = self.tools.get(name)?.mismatch(name, result)?;
        let count = self.mismatched.fetch_add(1, Ordering::Relaxed) + 1;
        if mode == Output::Enforce {
            let mut failed = self.seen(Condition::UpstreamProtocol, mismatch.message(name));
            failed.report.details = Some(mismatch.details());
            failed.report.origin = Some(Origin::Upstream);
            return Some(failed.outcome(Outcome::Executed));
        }
        if count <= MOST_RECORDED || count.is_power_of_two() {
            self.event("output_mismatch", &mismatch.facts(name));
        }
        None
    }

    /// A success in the contract's own form, if it wraps successes (T1).
    fn wrapped(&self, call: &Call, result: &str) -> Option<Vec<u8>> {
        let is_wrapped = call.is_tool() && self.contract.wraps_success();
        let result: Value = is_wrapped.then(|| serde_json::from_str(result).ok()).flatten()?;
        let data = data_of(&result)?;
        let meta = Meta { elapsed_ms: call.elapsed_ms, ..self.settings.meta.clone() };
        let envelope = self.contract.success(self.profile, &data, &meta)?;
        let text = String::from_utf8_lossy(&envelope);
        let mut content = vec![json!({ "type": "text", "text": text })];
        let blocks = result["content"].as_array().into_iter().flatten();
        // Pictures and the like have no place in an envelope.
        content.extend(blocks.filter(|block| block["type"] != "text").cloned());
        let has_schema = call
            .tool
            .as_deref()
            .and_then(|tool| self.tools.get(tool))
            .is_some_and(|tool| tool.has_output_schema());
        let mut wrapped = result.clone();
        wrapped["content"] = content.into();
        // A tool's own schema is for its own data.
        if !has_schema {
            wrapped["structuredContent"] = serde_json::from_slice(&envelope).ok()?;
        }
        serde_json::to_vec(&wrapped).ok()
    }

    /// Records something that is no failure. Nothing waits for it.
    pub fn event(&self, name: &str, facts: &Value) {
        if let Some(log) = &self.log {
            drop(log.submit(Entry::event(name, None, facts, self.contract.redactor())));
        }
    }
}

/// A message of a server with this member.
fn line(member: &str, json: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":0,"{member}":{json}}}"#)
}

/// What a tool returned: its structured content, otherwise its text, parsed if it is JSON.
fn data_of(result: &Value) -> Option<Box<RawValue>> {
    let raw = |value: &Value| serde_json::value::to_raw_value(value).ok();
    if let Some(structured) = result.get("structuredContent").filter(|value| !value.is_null()) {
        return raw(structured);
    }
    let blocks = result.get("content")?.as_array()?;
    let texts: Vec<&Value> = blocks.iter().filter_map(|block| block.get("text")).collect();
    match texts[..] {
        [Value::String(only)] => match serde_json::from_str(only) {
            Ok(json) => Some(json),
            Err(_) => raw(texts[0]),
        },
        _ => raw(&json!(texts)),
    }
}

impl Failed {
    fn outcome(mut self, outcome: Outcome) -> Self {
        self.report.outcome = Some(outcome);
        self
    }

    /// The code that it has so far.
    #[must_use]
    pub fn code(&self) -> &str {
        &self.report.code
    }
}

impl From<Box<Report>> for Failed {
    fn from(report: Box<Report>) -> Self {
        Self { report, number: None, upstream_code: None, blocks: Vec::new() }
    }
}

impl From<Failure> for Failed {
    fn from(failure: Failure) -> Self {
        let Failure { report, rpc, upstream_code, blocks, .. } = failure;
        Self { report, number: rpc, upstream_code, blocks }
    }
}
