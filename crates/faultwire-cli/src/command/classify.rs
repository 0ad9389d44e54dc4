//! `classify`: what a server sent in, one answer a line out.

use std::sync::Arc;

use faultwire_contract::{Contract, Failure, Fault, FaultError, Report, Stamp, classify, oversize};
use serde::Serialize;

use crate::args::ClassifyArgs;
use crate::edge::Line;
use crate::problem::Problem;
use crate::{Done, chosen, edge};

#[derive(Serialize)]
struct Answer<'a> {
    failure: bool,
    rule: &'a str,
    #[serde(flatten)]
    report: &'a Report,
}

pub fn run(args: &ClassifyArgs) -> Result<Done, Problem> {
    let contract = chosen::contract(&args.contract.contract)?;
    edge::lines(args.max_line, |number, line| {
        let failure = match line {
            Line::Whole(line) => classify(&contract, &line),
            Line::TooLong => Some(oversize(&contract, args.max_line)),
        };
        let Some(Failure { rule, report, .. }) = failure else {
            return edge::print(b"{\"failure\":false}\n");
        };
        let told = safe(&contract, report).map_err(|e| {
            Problem::bad(&format!("stdin, line {number}"), e.to_string(), "report this line to us")
        })?;
        let answer = Answer { failure: true, rule: &rule, report: &told };
        let mut json = serde_json::to_vec(&answer).map_err(|e| Problem::Output(e.into()))?;
        json.push(b'\n');
        edge::print(&json)
    })?;
    Ok(Done::Fine)
}

/// The report as a fault would tell it, without what only a real failure has.
fn safe(contract: &Arc<Contract>, report: Box<Report>) -> Result<Report, FaultError> {
    let (incident, timestamp) = (report.incident.clone(), report.timestamp.clone());
    let fault = Fault::new(contract, report, &Stamp::default())?;
    Ok(Report { incident, timestamp, ..fault.public().clone() })
}
