//! Replies of servers, judged.

use std::sync::Arc;

use faultwire_contract::{
    Answers, CallContext, Caller, Contract, Explanation, Failure, Fault, FaultError, Judgement,
    Masks, Report, Stamp, oversize, peek,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::json::error::{Error, ErrorKind};

/// The answer for a failure.
#[derive(Serialize)]
struct Failed<'a> {
    failure: bool,
    rule: &'a str,
    #[serde(flatten)]
    report: &'a Report,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<Explanation>,
}

/// The answer for a line that is not a failure.
#[derive(Serialize)]
struct Passed<'a> {
    failure: bool,
    /// The rule that matched, if the line only reads like a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    suspect: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<Explanation>,
}

/// The request that a reply answers.
#[derive(Debug, Default, Deserialize)]
pub struct Request {
    method: Option<String>,
    params: Option<Box<RawValue>>,
}

#[derive(Default, Deserialize)]
struct Params {
    name: Option<String>,
}

impl Request {
    /// Reads a request, such as a `tools/call` with its arguments.
    pub fn read(text: &str) -> Result<Self, Error> {
        serde_json::from_str(text).map_err(|e| {
            let help = r#"give a request, such as {"method":"tools/call","params":{"name":"read","arguments":{"path":"a.md"}}}"#;
            Error::new(ErrorKind::Input, format!("the call is not valid JSON: {e}"), help)
        })
    }

    fn tool(&self) -> Option<String> {
        serde_json::from_str::<Params>(self.params.as_ref()?.get()).ok()?.name
    }
}

/// Judges one line that a server sent. None is a line that was too long to be read, which is a
/// failure; `limit` is the limit.
pub fn classify(
    contract: &Arc<Contract>,
    line: Option<&[u8]>,
    limit: usize,
    request: &Request,
    explain: bool,
) -> Result<Vec<u8>, Error> {
    let tool = request.tool();
    let is_tool = request.method.as_deref().is_none_or(|method| method == "tools/call");
    let context = CallContext {
        answers: if is_tool { Answers::ToolCall } else { Answers::Other },
        params: request.params.as_deref().map(RawValue::get),
        tool: tool.as_deref(),
        ..CallContext::default()
    };
    let mut why = None;
    let judged = match line {
        Some(line) => {
            let line = peek(line);
            why = explain.then(|| line.explain(contract, &context)).flatten();
            line.judge(contract, &context)
        }
        None => Judgement::Failure(oversize(contract, limit)),
    };
    let suspect = match judged {
        Judgement::Failure(Failure { rule, report, .. }) => {
            let caller = Caller::new(Masks::LOCAL).sent_raw(context.params);
            let report = safe(contract, report, &caller)?;
            return written(&Failed { failure: true, rule: &rule, report: &report, why });
        }
        Judgement::Suspect(Failure { rule, .. }) => Some(rule),
        Judgement::Success => None,
    };
    written(&Passed { failure: false, suspect: suspect.as_deref(), why })
}

/// The report as a client would see it, without what only a real failure has.
fn safe(
    contract: &Arc<Contract>,
    report: Box<Report>,
    caller: &Caller<'_>,
) -> Result<Report, FaultError> {
    let (incident, timestamp) = (report.incident.clone(), report.timestamp.clone());
    let fault = Fault::for_caller(contract, report, &Stamp::default(), caller)?;
    Ok(Report { incident, timestamp, ..fault.public().clone() })
}

pub(super) fn written(answer: &impl Serialize) -> Result<Vec<u8>, Error> {
    let failed = |e| Error::new(ErrorKind::Input, format!("cannot be written as JSON: {e}"), "");
    serde_json::to_vec(answer).map_err(failed)
}
