//! `decode`: an envelope in, the fault out.

use faultwire::json;

use crate::args::DecodeArgs;
use crate::problem::Problem;
use crate::{Done, edge, resolve};

pub fn run(args: &DecodeArgs) -> Result<Done, Problem> {
    let name = &args.contract.contract;
    let contract = resolve::contract(name)?;
    let profile = args.profile.as_deref();
    json::profile(&contract, profile)?;
    let report = json::read(&contract, &edge::input()?, Some(args.surface.into()), profile);
    let help = format!("`faultwire contract schema {name}` shows the shape");
    let report = report.map_err(|e| Problem::in_input(&e, &help))?;
    edge::print_line(&report)?;
    Ok(Done::Fine)
}
