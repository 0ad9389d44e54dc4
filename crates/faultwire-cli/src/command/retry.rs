//! `retry`: an envelope in, the decision out.

use faultwire::client::RetryContext;
use faultwire::json;
use faultwire_contract::Safety;

use crate::args::RetryArgs;
use crate::problem::Problem;
use crate::{Done, edge, resolve};

pub fn run(args: &RetryArgs) -> Result<Done, Problem> {
    let name = &args.contract.contract;
    let contract = resolve::contract(name)?;
    let context = RetryContext { attempt: args.attempt, safety: safety(args), budget: args.budget };
    let view = args.surface.map(Into::into);
    let stamp = edge::stamp(&contract);
    let answer = json::retry(&contract, &edge::input()?, view, &context, &stamp);
    let help = format!("`faultwire contract schema {name}` shows the shape");
    let mut answer = answer.map_err(|e| Problem::in_input(&e, &help))?;
    answer.push(b'\n');
    edge::print(&answer)?;
    Ok(Done::Fine)
}

fn safety(args: &RetryArgs) -> Safety {
    match (args.read_only, args.idempotent) {
        (true, _) => Safety::ReadOnly,
        (_, true) => Safety::Idempotent,
        _ => Safety::Unknown,
    }
}
