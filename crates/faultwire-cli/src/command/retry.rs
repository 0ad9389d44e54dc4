//! `retry`: an envelope in, the decision out.

use faultwire::client::{Ask, Told};
use faultwire_contract::{Contract, ReadError, Reason, Report, Safety};
use serde::Serialize;

use crate::args::{RetryArgs, Surface};
use crate::problem::Problem;
use crate::{Done, edge, resolve};

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
    let contract = resolve::contract(&args.contract.contract)?;
    let input = edge::input()?;
    let read = read(&contract, args.surface, &input);
    let told = Told::of(&contract, read).or_else(|e| Told::stopping(&contract, &input).ok_or(e));
    let told = told.map_err(|e| {
        let help =
            format!("`faultwire contract schema {}` shows the shape", args.contract.contract);
        Problem::bad("stdin", e.to_string(), help)
    })?;
    let verdict =
        told.verdict(&Ask { attempt: args.attempt, safety: safety(args), budget: args.budget });
    let answer = Answer {
        retry: verdict.retry,
        delay_ms: verdict.delay.map(|d| d.as_millis()),
        max_delay_ms: verdict.max_delay.map(|d| d.as_millis()),
        action: &verdict.action,
        code: &told.report().code,
        reason: verdict.reason,
    };
    let mut json = serde_json::to_vec(&answer).map_err(|e| Problem::Output(e.into()))?;
    json.push(b'\n');
    edge::print(&json)?;
    Ok(Done::Fine)
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
        return resolve::read(contract, surface, None, bytes);
    }
    let first = resolve::read(contract, Surface::Mcp, None, bytes);
    if !matches!(first, Err(ReadError::Shape { .. })) {
        return first;
    }
    let others = [Surface::Http, Surface::Result].map(|s| resolve::read(contract, s, None, bytes));
    let fits = |read: &Result<Report, ReadError>| !matches!(read, Err(ReadError::Shape { .. }));
    others.into_iter().find(fits).unwrap_or(first)
}
