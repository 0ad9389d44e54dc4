//! Looks up contracts, profiles and envelopes by name.

use std::path::Path;
use std::sync::Arc;

use faultwire_contract::{
    BUILTINS, Contract, Profile, ReadError, Report, Surface, ToolFailure, builtin, nearest,
};
use serde_json::Value;

use crate::args;
use crate::edge;
use crate::problem::Problem;

/// A built-in contract, or the one in a file.
pub fn contract(name: &str) -> Result<Arc<Contract>, Problem> {
    if let Some(contract) = builtin(name) {
        return Ok(contract);
    }
    let path = Path::new(name);
    let looks_like_a_file = name.contains(['/', '\\', '.']) || path.exists();
    if !looks_like_a_file {
        let names = BUILTINS.iter().map(|b| b.name);
        let all = names.clone().collect::<Vec<_>>().join(", ");
        let help = match nearest(name, names) {
            Some(near) => format!("did you mean {near:?}?"),
            None => format!("use one of {all}, or name a file"),
        };
        return Err(Problem::bad(name, "unknown contract", help));
    }
    let text = edge::file(path)?;
    Contract::load(name, &text).map(Arc::new).map_err(Problem::Contract)
}

/// The profile of that name, or the default one if there is no name.
pub fn profile(contract: &Contract, name: Option<&str>) -> Result<Profile, Problem> {
    let Some(name) = name else {
        return Ok(Profile::default());
    };
    contract.profile(name).ok_or_else(|| {
        let what = format!("contract {} has no such profile", contract.name);
        let help = match &contract.profiles[..] {
            [_] => "remove the profile: this contract has only one".to_owned(),
            several => format!("use one of {}", several.join(", ")),
        };
        Problem::bad(name, what, help)
    })
}

/// Reads an envelope of the surface, in one profile or in the first that fits.
pub fn read(
    contract: &Contract,
    surface: args::Surface,
    profile: Option<Profile>,
    bytes: &[u8],
) -> Result<Report, ReadError> {
    let read = |surface, bytes: &[u8]| match profile {
        Some(profile) => contract.read(surface, profile, bytes),
        None => contract.read_any(surface, bytes).map(|(report, _)| report),
    };
    match surface {
        args::Surface::Mcp => read(Surface::Mcp, bytes),
        args::Surface::Http => read(Surface::Http, bytes),
        args::Surface::Result => match inner(bytes) {
            Some((envelope, id)) => {
                let report = read(Surface::Mcp, envelope.as_bytes())?;
                Ok(Report { incident: report.incident.or(id), ..report })
            }
            None => Err(ReadError::Shape {
                contract: contract.name.clone(),
                surface: "result",
                why: "no isError result with an envelope in its text".to_owned(),
            }),
        },
    }
}

/// The envelope inside a `CallToolResult`, and the incident beside it.
fn inner(bytes: &[u8]) -> Option<(String, Option<String>)> {
    let result: Value = serde_json::from_slice(bytes).ok()?;
    let failed = result.get("isError") == Some(&Value::Bool(true));
    let text = result.pointer("/content/0/text").and_then(Value::as_str).filter(|_| failed)?;
    let id = ToolFailure::read(&result).and_then(|failure| failure.correlation_id);
    Some((text.to_owned(), id.map(Into::into)))
}
