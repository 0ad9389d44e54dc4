//! Looks up contracts and profiles by name.

use std::path::Path;
use std::sync::Arc;

use faultwire::json;
use faultwire_contract::{Contract, Profile, builtin};

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
        return Ok(json::builtin(name)?);
    }
    let text = edge::file(path)?;
    Ok(json::load(name, &text)?)
}

/// The profile of that name, or the default one if there is no name.
pub fn profile(contract: &Contract, name: Option<&str>) -> Result<Profile, Problem> {
    Ok(json::profile(contract, name)?)
}
