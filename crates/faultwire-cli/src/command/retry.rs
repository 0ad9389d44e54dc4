//! `retry`: an envelope in, the answer out.

use std::time::Duration;

use faultwire_contract::{
    Code, Contract, Outcome, Question, ReadError, Reason, Report, RetryClass, Safety, Verdict,
    decide,
};
use serde::Serialize;

use crate::args::{RetryArgs, Surface};
use crate::problem::Problem;
use crate::{Done, chosen, edge};

#[derive(Serialize)]
struct Answer<'a> {
    retry: bool,
    delay_ms: Option<u128>,
    max_delay_ms: Option<u128>,
    action: &'a str,
    code: &'a str,
    reason: Reason,
}

pub fn run(args: &RetryArgs) -> Result<Done, Problem> {
    let contract = chosen::contract(&args.contract.contract)?;
    let read = read(&contract, args.surface, &edge::input()?);
    let (report, class) = match read {
        Ok(report) => {
            let class = report.retry.unwrap_or(RetryClass::Never);
            (report, class)
        }
        // A code from a newer version of the contract: its category is the best guess.
        Err(ReadError::UnknownCode { code, category, retryable, retry_after_ms, .. }) => {
            let class = contract.class_of_unknown(category.as_deref(), retryable);
            (Report { retry_after_ms, ..Report::new(code) }, class)
        }
        Err(e) => {
            let help =
                format!("`faultwire contract schema {}` shows the shape", args.contract.contract);
            return Err(Problem::bad("stdin", e.to_string(), help));
        }
    };
    let row = contract.code(&report.code);
    let known = report.outcome.or_else(|| row?.outcome);
    let verdict = decide(&Question {
        class,
        named_delay: report
            .delay(edge::stamp(&contract).now_ms)
            .or_else(|| fixed_delay(class, row?)),
        outcome: known.unwrap_or(Outcome::MaybeExecuted),
        safety: safety(args),
        attempt: args.attempt,
        budget: args.budget,
        backoff: contract.retry.backoff,
        random: edge::random(),
    });
    let (delay, ceiling, reason) = match verdict {
        Verdict::Retry { delay, ceiling } => (Some(delay), Some(ceiling), Reason::Retryable),
        Verdict::Stop(reason) => (None, None, reason),
    };
    let answer = Answer {
        retry: delay.is_some(),
        delay_ms: delay.map(|d| d.as_millis()),
        max_delay_ms: ceiling.map(|d| d.as_millis()),
        action: row
            .map_or("The contract does not know this code; treat it by its category.", |r| {
                &r.action
            }),
        code: &report.code,
        reason,
    };
    let mut json = serde_json::to_vec(&answer).map_err(|e| Problem::Output(e.into()))?;
    json.push(b'\n');
    edge::print(&json)?;
    Ok(Done::Fine)
}

/// The row's own delay, for the class that has one.
fn fixed_delay(class: RetryClass, row: &Code) -> Option<Duration> {
    row.after.filter(|_| class == RetryClass::After)
}

fn safety(args: &RetryArgs) -> Safety {
    match (args.read_only, args.idempotent) {
        (true, _) => Safety::ReadOnly,
        (_, true) => Safety::Idempotent,
        _ => Safety::Unknown,
    }
}

/// The envelope in the surface that was named, or in the first that fits.
fn read(contract: &Contract, surface: Option<Surface>, bytes: &[u8]) -> Result<Report, ReadError> {
    if let Some(surface) = surface {
        return chosen::read(contract, surface, None, bytes);
    }
    let first = chosen::read(contract, Surface::Mcp, None, bytes);
    if !matches!(first, Err(ReadError::Shape { .. })) {
        return first;
    }
    let others = [Surface::Http, Surface::Result].map(|s| chosen::read(contract, s, None, bytes));
    let fits = |read: &Result<Report, ReadError>| !matches!(read, Err(ReadError::Shape { .. }));
    others.into_iter().find(fits).unwrap_or(first)
}
