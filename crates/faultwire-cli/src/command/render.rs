//! `render`: a fault in, the envelope's exact bytes and a newline out.

use faultwire_contract::{Fault, Report, ResultOptions, Surface};

use crate::args::{self, RenderArgs};
use crate::problem::Problem;
use crate::{Done, edge, resolve};

pub fn run(args: &RenderArgs) -> Result<Done, Problem> {
    let contract = resolve::contract(&args.contract.contract)?;
    let profile = resolve::profile(&contract, args.profile.as_deref())?;
    let report: Report = serde_json::from_slice(&edge::input()?).map_err(|e| {
        Problem::bad(
            "stdin",
            format!("not a valid fault: {e}"),
            "send one JSON object; only \"code\" is required",
        )
    })?;
    let fault = Fault::new(&contract, report, &edge::stamp(&contract)).map_err(|e| {
        let help = format!(
            "`faultwire contract show {}` lists the codes and what each allows",
            args.contract.contract
        );
        Problem::bad("stdin", e.to_string(), help)
    })?;
    let mut bytes = match args.surface {
        args::Surface::Mcp => fault.envelope(Surface::Mcp, profile),
        args::Surface::Http => fault.envelope(Surface::Http, profile),
        args::Surface::Result => fault.call_tool_result(profile, ResultOptions::default()),
    };
    bytes.push(b'\n');
    edge::print(&bytes)?;
    Ok(Done::Fine)
}
