//! Plans: what may be written, and whether somebody approved it.

use faultwire::ResultExt;
use faultwire::kaiza::{self as errors, Code, Failure};
use serde::Deserialize;

use crate::workspace::{Place, Workspace, hash};

#[derive(Deserialize)]
struct Plan {
    status: String,
    /// Directories and files that it is about.
    scope: Vec<String>,
}

/// Whether the plan of this hash allows to write there.
pub fn allows(workspace: &Workspace, wanted: Option<&str>, place: &Place) -> Result<(), Failure> {
    let wanted = wanted.ok_or_else(|| {
        errors::missing_required_field().message("Writing needs a plan_hash, except for reports")
    })?;
    let plans = std::fs::read_dir(workspace.root().join("docs/plans"));
    let plans = plans.into_iter().flatten().flatten().map(|entry| entry.path());
    let texts = plans.filter(|path| path.is_file()).filter_map(|path| std::fs::read(path).ok());
    let text = texts.into_iter().find(|text| hash(text) == wanted);
    let text = text.ok_or_else(errors::plan_not_found)?;
    let plan: Plan = serde_json::from_slice(&text).fault(Code::PlanEnforcementFailed)?;
    if plan.status != "APPROVED" {
        return Err(errors::plan_not_approved().into());
    }
    if !plan.scope.iter().any(|within| place.is_under(within)) {
        let what = format!("The plan is about {} only", plan.scope.join(", "));
        return Err(errors::plan_scope_violation().message(what).into());
    }
    Ok(())
}
