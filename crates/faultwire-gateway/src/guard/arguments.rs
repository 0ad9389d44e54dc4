//! Whether a call's arguments fit its tool's schema, and the head of its request.

use faultwire::arguments::{Misfit, Objection};
use faultwire_contract::{Condition, Contract, Outcome};
use hyper::header::HeaderMap;
use serde_json::Value;

use crate::failing::CallFailure;
use crate::header_params::{self, Head};
use crate::request::RequestDetails;
use crate::settings::{Arguments, Settings};
use crate::sparse::Sparse;
use crate::tools::ListedTool;

static UNFIT: Sparse = Sparse::new();

/// What the tool's schema has against the arguments. This can take its time.
pub(crate) fn objection(
    settings: &Settings,
    name: &str,
    tool: &ListedTool,
    arguments: Option<&str>,
) -> Option<CallFailure> {
    let mode = settings.arguments;
    match tool.schema(name).objection(arguments, mode != Arguments::Off)? {
        Objection::Misfit(misfit) if mode == Arguments::Warn => {
            let message = misfit.message(name);
            UNFIT.note(|count| {
                tracing::warn!(count, tool = name, ?message, "arguments do not fit the schema");
            });
            None
        }
        // A folded member is refused in every mode: the server may read another one than was
        // checked here.
        Objection::Folded(misfit) | Objection::Misfit(misfit) => {
            Some(invalid(&settings.contract, name, &misfit))
        }
    }
}

fn invalid(contract: &Contract, name: &str, misfit: &Misfit) -> CallFailure {
    let mut failure = CallFailure::finer(contract, Condition::InvalidArguments, misfit.aspect())
        .saying(misfit.message(name))
        .outcome(Outcome::NotSent);
    failure.report.hints = misfit.hints();
    failure.report.details = Some(misfit.details());
    failure.report.suggestion =
        Some(format!("Fix the arguments; see the inputSchema of {name} in tools/list"));
    failure
}

/// Whether head and body of a request differ.
pub(crate) fn header_mismatch(
    contract: &Contract,
    head: &Head,
    tool: &ListedTool,
    arguments: Option<&str>,
) -> Option<CallFailure> {
    let declared = tool.header_params();
    if declared.is_empty() {
        return None;
    }
    let arguments: Value = serde_json::from_str(arguments.unwrap_or("{}")).ok()?;
    let why = header_params::disagreement(declared, &arguments, head)?;
    let condition = Condition::VersionConflict;
    let failure = CallFailure::observed(contract, condition).saying(why).outcome(Outcome::NotSent);
    Some(CallFailure { rpc: Some(condition.rpc_code()), is_protocol: true, ..failure })
}

/// Puts those arguments of a call into a head that its tool wants there.
pub(crate) fn repeat(tool: &ListedTool, line: &[u8], headers: &mut HeaderMap) {
    if tool.header_params().is_empty() {
        return;
    }
    if let Some(arguments) = RequestDetails::of(line).arguments {
        header_params::repeat(tool.header_params(), &arguments, headers);
    }
}
