//! Faults and envelopes.

use std::sync::Arc;

use faultwire_contract::{
    Contract, Fault, Profile, ReadError, Report, ResultOptions, Stamp, Surface, ToolFailure,
};
use serde_json::Value;

use crate::json::error::{Error, ErrorKind};

/// Which envelope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum View {
    /// The envelope that an MCP client reads.
    #[default]
    Mcp,
    /// The body that an HTTP client reads.
    Http,
    /// The whole MCP result of a tool call.
    Result,
}

impl View {
    /// The view of that name.
    pub fn named(name: &str) -> Result<Self, Error> {
        match name {
            "mcp" => Ok(Self::Mcp),
            "http" => Ok(Self::Http),
            "result" => Ok(Self::Result),
            _ => {
                let help = "use one of mcp, http, result";
                Err(Error::new(ErrorKind::Input, "unknown surface", help).at(name))
            }
        }
    }
}

/// What to make of a fault.
#[derive(Clone, Debug, Default)]
pub struct Target {
    /// Which envelope.
    pub view: View,
    /// The profile; by default the contract's first.
    pub profile: Option<String>,
    /// What is known of the call, for a whole result.
    pub result: ResultOptions,
}

/// The report in a text.
pub fn report(text: impl AsRef<[u8]>) -> Result<Report, Error> {
    serde_json::from_slice(text.as_ref()).map_err(|e| {
        let what = format!("not a valid fault: {e}");
        Error::new(ErrorKind::Input, what, "send one JSON object; only \"code\" is required")
    })
}

/// The fault of a report in a text.
pub fn fault(
    contract: &Arc<Contract>,
    report: impl AsRef<[u8]>,
    stamp: &Stamp,
) -> Result<Fault, Error> {
    Ok(Fault::new(contract, self::report(report)?, stamp)?)
}

/// A report as JSON.
pub fn text_of(report: &Report) -> Result<String, Error> {
    let failed = |e| Error::new(ErrorKind::Input, format!("cannot be written as JSON: {e}"), "");
    serde_json::to_string(report).map_err(failed)
}

/// The exact bytes of an envelope.
pub fn render(fault: &Fault, target: &Target) -> Result<Vec<u8>, Error> {
    let profile = profile(fault.contract(), target.profile.as_deref())?;
    Ok(match target.view {
        View::Mcp => fault.envelope(Surface::Mcp, profile),
        View::Http => fault.envelope(Surface::Http, profile),
        View::Result => fault.call_tool_result(profile, target.result),
    })
}

/// The profile of that name, or the default one if there is no name.
pub fn profile(contract: &Contract, name: Option<&str>) -> Result<Profile, Error> {
    let Some(name) = name else { return Ok(Profile::default()) };
    contract.profile(name).ok_or_else(|| {
        let what = format!("contract {} has no such profile", contract.name);
        let help = match &contract.profiles[..] {
            [_] => "remove the profile: this contract has only one".to_owned(),
            several => format!("use one of {}", several.join(", ")),
        };
        Error::new(ErrorKind::Input, what, help).at(name)
    })
}

/// The report in an envelope, in one profile or in the first that fits; of the surface that was
/// named, or of the first that fits.
pub fn read(
    contract: &Contract,
    bytes: &[u8],
    view: Option<View>,
    profile: Option<&str>,
) -> Result<Report, Error> {
    let profile = profile.map(|name| self::profile(contract, Some(name))).transpose()?;
    Ok(read_view(contract, bytes, view, profile)?)
}

pub(super) fn read_view(
    contract: &Contract,
    bytes: &[u8],
    view: Option<View>,
    profile: Option<Profile>,
) -> Result<Report, ReadError> {
    if let Some(view) = view {
        return read_one(contract, bytes, view, profile);
    }
    let no_shape = |read: &Result<_, _>| matches!(read, Err(ReadError::Shape { .. }));
    let first = read_one(contract, bytes, View::Mcp, profile);
    if !no_shape(&first) {
        return first;
    }
    let others = [View::Http, View::Result].map(|view| read_one(contract, bytes, view, profile));
    others.into_iter().find(|read| !no_shape(read)).unwrap_or(first)
}

fn read_one(
    contract: &Contract,
    bytes: &[u8],
    view: View,
    profile: Option<Profile>,
) -> Result<Report, ReadError> {
    let read = |surface, bytes: &[u8]| match profile {
        Some(profile) => contract.read(surface, profile, bytes),
        None => contract.read_any(surface, bytes).map(|(report, _)| report),
    };
    match view {
        View::Mcp => read(Surface::Mcp, bytes),
        View::Http => read(Surface::Http, bytes),
        View::Result => match inner(bytes) {
            Some((envelope, id)) => {
                let report = read(Surface::Mcp, envelope.as_bytes())?;
                Ok(Report { incident: report.incident.or(id), ..report })
            }
            None => Err(no_result(contract)),
        },
    }
}

fn no_result(contract: &Contract) -> ReadError {
    ReadError::Shape {
        contract: contract.name.clone(),
        surface: "result",
        why: "no isError result with an envelope in its text".to_owned(),
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
