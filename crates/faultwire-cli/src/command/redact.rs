//! `redact`: text in, text out.

use faultwire_contract::Redactor;

use crate::args::RedactArgs;
use crate::problem::Problem;
use crate::{Done, chosen, edge};

pub fn run(args: &RedactArgs) -> Result<Done, Problem> {
    let redactor = match &args.contract {
        Some(name) => chosen::contract(name)?.redactor().clone(),
        None => Redactor::default(),
    };
    let input = edge::input()?;
    let text = String::from_utf8_lossy(&input);
    edge::print(redactor.redact_all(&text).as_bytes())?;
    Ok(Done::Fine)
}
