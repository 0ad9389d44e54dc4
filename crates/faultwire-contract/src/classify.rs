//! Classification: from what a server sent to a success, or a failure with a code.
//!
//! A reply is peeked at once, without building it. Only what looks like a failure is taken
//! apart: first as an envelope of the contract, then by a code that the contract knows, then by
//! the contract's rules, then by the shared ones, and last by its shape alone.

mod cache;
mod context;
mod embedded;
mod evidence;
mod explanation;
mod fast_path;
mod mask;
mod names;
mod own_words;
mod peek;
mod prefilter;
mod rule;
mod slow_path;
mod soft;
mod status;

use serde_json::Value;

use crate::code::Code;
use crate::condition::{Aspect, Condition};
use crate::contract::{Contract, Profile, Surface};
use crate::origin::Origin;
use crate::redact::Caller;
use crate::report::Report;
pub use context::{Answers, CallContext, SoftFailures};
use evidence::Evidence;
pub use explanation::{Explanation, Masked};
pub use mask::MaskKind;
pub use peek::{CUT_OFF, Line, Sort, peek};
use peek::{Message, Peek};
use rule::{Shape, Then};

/// A reply that is a failure.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// What decided it.
    pub rule: String,
    /// What is known of it.
    pub report: Box<Report>,
    /// The profile, when the reply already is an envelope of the contract. A fault made from the
    /// report has the same bytes, unless something in it had to be set right.
    pub envelope: Option<Profile>,
    /// The server's own code for it, a JSON-RPC number or a name, where it gave one.
    pub upstream_code: Option<Value>,
    /// The number of the JSON-RPC error that the reply was.
    pub rpc: Option<i64>,
    /// The content blocks of the result that are no text, as they came.
    pub blocks: Vec<Value>,
}

/// Says whether one line of a server is a failure, and which. Requests, notifications and
/// successes are `None`.
///
/// ```
/// let contract = faultwire_contract::builtin("owlclaw").unwrap();
/// let line = br#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"fine"}]}}"#;
/// assert!(faultwire_contract::classify(&contract, line).is_none());
///
/// let line = br#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"Too many requests"}}"#;
/// let failure = faultwire_contract::classify(&contract, line).unwrap();
/// assert_eq!(failure.report.code, contract.code_for(faultwire_contract::Condition::RateLimited, None).id);
/// ```
#[must_use]
pub fn classify(contract: &Contract, line: &[u8]) -> Option<Failure> {
    peek(line).failure(contract, Answers::ToolCall)
}

/// The same for the reply to a call of which more is known.
#[must_use]
pub fn classify_call(contract: &Contract, line: &[u8], context: &CallContext<'_>) -> Judgement {
    peek(line).judge(contract, context)
}

/// What a reply is.
#[derive(Clone, Debug, PartialEq)]
pub enum Judgement {
    /// A success, or no reply at all.
    Success,
    /// A success that reads like a failure: it passes untouched, and is noted (U5).
    Suspect(Failure),
    /// A failure.
    Failure(Failure),
}

impl Judgement {
    /// The failure, if it is one.
    #[must_use]
    pub fn failure(self) -> Option<Failure> {
        match self {
            Self::Failure(failure) => Some(failure),
            Self::Success | Self::Suspect(_) => None,
        }
    }

    /// The same with the blocks beside the failure's text.
    fn with_blocks(mut self, blocks: impl FnOnce() -> Vec<Value>) -> Self {
        if let Self::Failure(failure) = &mut self {
            failure.blocks = blocks();
        }
        self
    }
}

impl Line<'_> {
    /// The failure that the line is, if it is one.
    #[must_use]
    pub fn failure(&self, contract: &Contract, answers: Answers) -> Option<Failure> {
        self.judge(contract, &CallContext::of(answers)).failure()
    }

    /// Whether a first look tells that the line is no failure: no text is unescaped for it, and
    /// nothing of the call is needed.
    #[must_use]
    pub fn is_plain_success(&self, contract: &Contract, answers: Answers) -> bool {
        match &self.message {
            Message::Other => true,
            Message::Result(_) | Message::OddResult if answers == Answers::Other => true,
            Message::Malformed(_) | Message::Error(_) | Message::OddResult => false,
            Message::Result(result) => {
                !result.is_error && !soft::may_fail(result) && !may_be_envelope(contract, result)
            }
        }
    }

    /// What the line is, in the light of the call that it answers.
    #[must_use]
    pub fn judge(&self, contract: &Contract, context: &CallContext<'_>) -> Judgement {
        let mut evidence = match &self.message {
            Message::Other => return Judgement::Success,
            Message::Malformed(why) => return Judgement::Failure(malformed(contract, why)),
            Message::Error(raw) => evidence::of_error(raw),
            Message::Result(_) | Message::OddResult if context.answers == Answers::Other => {
                return Judgement::Success;
            }
            Message::OddResult => {
                return Judgement::Failure(malformed(contract, "a result that is no object"));
            }
            Message::Result(result) if result.is_error => {
                evidence::of_result(result, Shape::ToolError)
            }
            Message::Result(result) => {
                let judged = soft_failure(contract, result, context);
                return judged.with_blocks(|| self.other_blocks(result));
            }
        };
        evidence.settle(context);
        let judged = Judgement::Failure(from_evidence(contract, evidence));
        let Message::Result(result) = &self.message else { return judged };
        judged.with_blocks(|| self.other_blocks(result))
    }

    /// The content blocks that are no text.
    fn other_blocks(&self, result: &Peek<'_>) -> Vec<Value> {
        if result.other_blocks { evidence::other_blocks(self.text) } else { Vec::new() }
    }
}

/// Builds what the first failure under a contract would build: the automata over the shared rules
/// and over the redaction rules. Call it in the background; without it, the first failure takes
/// some ten milliseconds longer. The patterns for failures that call themselves a success take
/// 5 MiB, and are built when one comes.
///
/// ```
/// use faultwire_contract::{DEFAULT, builtin, prepare};
///
/// prepare(&builtin(DEFAULT).unwrap());
/// ```
pub fn prepare(contract: &Contract) {
    let call = r#"{"name":"read","arguments":{"path":"/srv/data/a.txt"}}"#;
    for result in [
        r#"{"content":[{"type":"text","text":"ENOENT: no such file, open '/srv/data/a.txt'"}],"isError":true}"#,
        r#"{"content":[{"type":"text","text":"429 Too Many Requests: retry in 2 s (password=hunter2)"}],"isError":true}"#,
    ] {
        let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{result}}}");
        let context = CallContext {
            params: Some(call),
            tool: Some("read"),
            ..CallContext::of(Answers::ToolCall)
        };
        if let Some(failure) = peek(line.as_bytes()).judge(contract, &context).failure() {
            let message = failure.report.message.unwrap_or_default();
            let _ = contract.redact_for(&message, &Caller::default().sent_raw(Some(call)));
        }
    }
}

/// A failure dressed as a success, or an envelope that lost its `isError`.
fn soft_failure(contract: &Contract, result: &Peek<'_>, context: &CallContext<'_>) -> Judgement {
    let is_envelope = may_be_envelope(contract, result);
    let is_off = context.soft_failures == SoftFailures::Off;
    if !is_envelope && (is_off || !soft::may_fail(result)) {
        return Judgement::Success;
    }
    let mut evidence = evidence::of_result(result, Shape::SoftFailure);
    if is_envelope && envelope(contract, &evidence).is_some() {
        evidence.settle(context);
        return Judgement::Failure(from_evidence(contract, evidence));
    }
    let Some(doubt) = soft::judge(&mut evidence, context).filter(|_| !is_off) else {
        return Judgement::Success;
    };
    let failure = from_evidence(contract, evidence);
    match (context.soft_failures, doubt) {
        (SoftFailures::Rewrite, _) | (SoftFailures::Auto, soft::Doubt::None) => {
            Judgement::Failure(failure)
        }
        _ => Judgement::Suspect(failure),
    }
}

/// Whether everything that the contract's envelopes must have is somewhere in the only text.
fn may_be_envelope(contract: &Contract, result: &Peek<'_>) -> bool {
    let holds = |raw: &str| {
        let opens = raw.bytes().find(|b| !b.is_ascii_whitespace() && *b != b'"');
        matches!(opens, Some(b'{' | b'['))
            && contract.mcp.templates.iter().any(|t| t.may_match(raw.as_bytes()))
    };
    result.only_text().is_some_and(holds) || result.structured.or(result.bare).is_some_and(holds)
}

/// The failure of a line that is longer than its reader takes.
#[must_use]
pub fn oversize(contract: &Contract, limit: usize) -> Failure {
    let message = format!("The server sent a message of more than {limit} bytes");
    protocol(contract, Aspect::Oversize, "oversize".to_owned(), message)
}

/// The failure of a line that is no JSON-RPC message.
#[must_use]
pub fn malformed(contract: &Contract, why: &str) -> Failure {
    let message = format!("The server sent no JSON-RPC message: {why}");
    protocol(contract, Aspect::Malformed, "malformed".to_owned(), message)
}

fn protocol(contract: &Contract, aspect: Aspect, rule: String, message: String) -> Failure {
    let mut report = observed(contract, Condition::UpstreamProtocol, Some(aspect));
    report.message = Some(message);
    Failure {
        rule,
        report: report.into(),
        envelope: None,
        upstream_code: None,
        rpc: None,
        blocks: Vec::new(),
    }
}

fn from_evidence(contract: &Contract, evidence: Evidence) -> Failure {
    let rpc = evidence.rpc.filter(|_| evidence.shape == Shape::RpcError);
    let named = evidence.codes.first().map(|code| Value::from(code.as_str()));
    let upstream_code = rpc.map(Value::from).or(named);
    if let Some((mut report, profile)) = envelope(contract, &evidence) {
        let promised = contract.code(&report.code).and_then(|code| code.outcome);
        report.origin = report.origin.or(Some(Origin::Upstream));
        report.outcome = report.outcome.or(promised);
        // What to do is said by the contract, not by a server that speaks it.
        report.next = None;
        let rule = "envelope".to_owned();
        let (report, envelope) = (report.into(), Some(profile));
        return Failure { rule, report, envelope, upstream_code, rpc, blocks: Vec::new() };
    }
    let seen = rule::shared(&evidence);
    let (condition, aspect) = match seen.map(|rule| rule.then) {
        Some(Then::Condition(condition, aspect)) => (condition, aspect),
        _ => (evidence.shape.condition(), None),
    };
    let own = own_code(contract, &evidence, condition == evidence.shape.condition());
    let rule = own.map(|(rule, _)| rule).or(seen.map(|rule| rule.name.as_str()));
    let rule = rule.unwrap_or(evidence.shape.name());
    let code = own.map(|(_, code)| code);
    let mut report = observed(contract, condition, aspect);
    let row = code.unwrap_or_else(|| contract.code_for(condition, aspect));
    report.code.clone_from(&row.id);
    // A server that names one of our codes makes the code's promise.
    report.outcome = code.and(row.outcome).or(report.outcome);
    let gleaned =
        code.and_then(|code| evidence.bodies.iter().find_map(|body| contract.gleaned(code, body)));
    if let Some(gleaned) = gleaned {
        let Report { code, condition, origin, outcome, .. } = report;
        report = Report { code, condition, origin, outcome, ..gleaned };
    }
    let delay = evidence.retry_after.filter(|_| row.retry.iter().any(|class| class.takes_delay()));
    let delay = delay.and_then(|d| u64::try_from(d.as_millis()).ok());
    report.retry_after_ms = report.retry_after_ms.or(delay);
    report.details = report.details.or(evidence.facts);
    // A body that says nothing in words is no message.
    let wordless = code.is_some() && evidence.body.is_some() && evidence.text.starts_with('{');
    let said = Some(evidence.text).filter(|text| !text.is_empty() && !wordless);
    report.message = report.message.or(said);
    let (rule, report) = (rule.to_owned(), report.into());
    Failure { rule, report, envelope: None, upstream_code, rpc, blocks: Vec::new() }
}

/// The code that the reply names itself, or that a rule of the contract leads to.
fn own_code<'a>(
    contract: &'a Contract,
    evidence: &Evidence,
    generic: bool,
) -> Option<(&'a str, &'a Code)> {
    let known = evidence.codes.iter().find_map(|code| contract.code(code));
    if let Some(code) = known {
        return Some(("registered_code", code));
    }
    let fits = |r: &&rule::Rule| (generic || !r.when.generic) && r.when.matches(evidence);
    let rule = contract.rules.iter().find(fits)?;
    match rule.then {
        Then::Code(code) => Some((rule.name.as_str(), &contract.codes[code])),
        Then::Condition(..) => None,
    }
}

/// The facts of a condition that a server reported. What is the caller's own fault stays so; all
/// else is the server's.
fn observed(contract: &Contract, condition: Condition, aspect: Option<Aspect>) -> Report {
    let origin = match condition.origin() {
        Origin::Client => Origin::Client,
        _ => Origin::Upstream,
    };
    Report {
        condition: Some(condition),
        origin: Some(origin),
        outcome: Some(condition.reported_outcome()),
        ..Report::new(&contract.code_for(condition, aspect).id)
    }
}

fn envelope(contract: &Contract, evidence: &Evidence) -> Option<(Report, Profile)> {
    evidence.bodies.iter().find_map(|body| {
        contract.all_profiles().find_map(|profile| {
            let read = contract.read(Surface::Mcp, profile, body.as_bytes()).ok()?;
            Some((read, profile))
        })
    })
}
