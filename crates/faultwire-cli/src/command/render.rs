//! `render`: a fault in, the envelope's exact bytes and a newline out.

use faultwire::json::{self, Target};

use crate::args::RenderArgs;
use crate::problem::Problem;
use crate::{Done, edge, resolve};

pub fn run(args: &RenderArgs) -> Result<Done, Problem> {
    let name = &args.contract.contract;
    let contract = resolve::contract(name)?;
    let profile = args.profile.clone();
    json::profile(&contract, profile.as_deref())?;
    let target = Target { view: args.surface.into(), profile, ..Target::default() };
    let help = format!("`faultwire contract show {name}` lists the codes and what each allows");
    let fault = json::fault(&contract, edge::input()?, &edge::stamp(&contract))
        .map_err(|e| Problem::in_input(&e, &help))?;
    let mut bytes = json::render(&fault, &target)?;
    bytes.push(b'\n');
    edge::print(&bytes)?;
    Ok(Done::Fine)
}
