//! `decode`: an envelope in, the fault out.

use crate::args::DecodeArgs;
use crate::problem::Problem;
use crate::{Done, edge, resolve};

pub fn run(args: &DecodeArgs) -> Result<Done, Problem> {
    let contract = resolve::contract(&args.contract.contract)?;
    let named = args.profile.as_deref();
    let profile = named.map(|name| resolve::profile(&contract, Some(name))).transpose()?;
    let report = resolve::read(&contract, args.surface, profile, &edge::input()?).map_err(|e| {
        let help =
            format!("`faultwire contract schema {}` shows the shape", args.contract.contract);
        Problem::bad("stdin", e.to_string(), help)
    })?;
    let mut json = serde_json::to_vec(&report).map_err(|e| Problem::Output(e.into()))?;
    json.push(b'\n');
    edge::print(&json)?;
    Ok(Done::Fine)
}
