//! `redact`: text in, text out.

use faultwire::json;
use faultwire_contract::{Masks, Redactor};

use crate::args::RedactArgs;
use crate::problem::Problem;
use crate::{Done, edge, resolve};

pub fn run(args: &RedactArgs) -> Result<Done, Problem> {
    let redactor = match (&args.rules, &args.contract) {
        (Some(path), _) => {
            let text = edge::file(path)?;
            Redactor::with(json::redact_rules(&path.display().to_string(), &text)?)
        }
        (None, Some(name)) => resolve::contract(name)?.redactor().clone(),
        (None, None) => Redactor::default(),
    };
    let input = edge::input()?;
    let text = String::from_utf8_lossy(&input);
    let masks = args.keep.iter().fold(Masks::ALL, |masks, kind| masks.without(*kind));
    edge::print(redactor.masking(masks).redact_all(&text).as_bytes())?;
    Ok(Done::Fine)
}
