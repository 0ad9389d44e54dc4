//! `classify`: replies of a server in, one answer per line out.

use std::sync::Arc;

use faultwire_contract::{
    Answers, CallContext, Caller, Contract, Explanation, Failure, Fault, FaultError, Judgement,
    Masks, Report, Stamp, oversize, peek,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::args::ClassifyArgs;
use crate::edge::Line;
use crate::problem::Problem;
use crate::{Done, edge, resolve};

#[derive(Serialize)]
struct Answer<'a> {
    failure: bool,
    rule: &'a str,
    #[serde(flatten)]
    report: &'a Report,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<Explanation>,
}

/// The answer for a line that is not a failure.
#[derive(Serialize)]
struct NoFailure<'a> {
    failure: bool,
    /// The rule that matched, if the line only reads like a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    suspect: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<Explanation>,
}

/// The request that the lines answer.
#[derive(Default, Deserialize)]
struct Request {
    method: Option<String>,
    params: Option<Box<RawValue>>,
}

#[derive(Default, Deserialize)]
struct Params {
    name: Option<String>,
}

impl Request {
    /// Reads the JSON, or the file that contains it.
    fn read(given: &str) -> Result<Self, Problem> {
        let (place, text) = if given.trim_start().starts_with('{') {
            ("--call".to_owned(), given.to_owned())
        } else {
            (given.to_owned(), edge::file(given.as_ref())?)
        };
        serde_json::from_str(&text).map_err(|e| {
            let help = r#"give a request, such as {"method":"tools/call","params":{"name":"read","arguments":{"path":"a.md"}}}"#;
            Problem::bad(&place, format!("the call is not valid JSON: {e}"), help)
        })
    }

    fn tool(&self) -> Option<String> {
        serde_json::from_str::<Params>(self.params.as_ref()?.get()).ok()?.name
    }
}

pub fn run(args: &ClassifyArgs) -> Result<Done, Problem> {
    let contract = resolve::contract(&args.contract.contract)?;
    let request = args.call.as_deref().map(Request::read).transpose()?.unwrap_or_default();
    let tool = request.tool();
    let is_tool = request.method.as_deref().is_none_or(|method| method == "tools/call");
    let context = CallContext {
        answers: if is_tool { Answers::ToolCall } else { Answers::Other },
        params: request.params.as_deref().map(RawValue::get),
        tool: tool.as_deref(),
        ..CallContext::default()
    };
    let params = context.params;
    edge::lines(args.max_line, |number, line| {
        let mut why = None;
        let judged = match line {
            Line::Whole(line) => {
                let line = peek(&line);
                why = args.why.then(|| line.explain(&contract, &context)).flatten();
                line.judge(&contract, &context)
            }
            Line::TooLong => Judgement::Failure(oversize(&contract, args.max_line)),
        };
        let Failure { rule, report, .. } = match judged {
            Judgement::Failure(failure) => failure,
            Judgement::Suspect(Failure { rule, .. }) => {
                return print(&NoFailure { failure: false, suspect: Some(&rule), why });
            }
            Judgement::Success => {
                return print(&NoFailure { failure: false, suspect: None, why });
            }
        };
        let redacted = safe(&contract, report, &Caller::new(Masks::LOCAL).sent_raw(params))
            .map_err(|e| {
                Problem::bad(
                    &format!("stdin, line {number}"),
                    e.to_string(),
                    "please report this line as a bug",
                )
            })?;
        print(&Answer { failure: true, rule: &rule, report: &redacted, why })
    })?;
    Ok(Done::Fine)
}

fn print(answer: &impl Serialize) -> Result<(), Problem> {
    let mut json = serde_json::to_vec(answer).map_err(|e| Problem::Output(e.into()))?;
    json.push(b'\n');
    edge::print(&json)
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
