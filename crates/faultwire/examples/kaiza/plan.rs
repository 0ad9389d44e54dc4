//! Plans: what may be written, and whether it is approved; and what no plan allows.

use std::path::Path;

use faultwire::ResultExt;
use faultwire::kaiza::{self as errors, Code, Failure};
use serde::Deserialize;
use serde_json::Value;

use crate::place::{Place, hash};

#[derive(Deserialize)]
struct Plan {
    status: String,
    /// Directories and files that it is about.
    scope: Vec<String>,
}

/// Whether the plan of this hash allows to write there.
pub fn allows(root: &Path, wanted: Option<&str>, place: &Place) -> Result<(), Failure> {
    let wanted = wanted.ok_or_else(|| errors::missing_required_field().message("No plan_hash"))?;
    let plans = std::fs::read_dir(root.join("docs/plans")).into_iter().flatten().flatten();
    let plans = plans.map(|entry| entry.path()).filter(|path| path.is_file());
    let mut texts = plans.filter_map(|path| std::fs::read(path).ok());
    let text = texts.find(|text| hash(text) == wanted).ok_or_else(errors::plan_not_found)?;
    let plan: Plan = serde_json::from_slice(&text).fault(Code::PlanEnforcementFailed)?;
    if plan.status != "APPROVED" {
        return Err(errors::plan_not_approved().into());
    }
    if !plan.scope.iter().any(|within| place.relative.starts_with(within)) {
        let what = format!("The plan is about {} only", plan.scope.join(", "));
        return Err(errors::plan_scope_violation().message(what).into());
    }
    Ok(())
}

/// Whether any plan may allow this text at this place.
pub fn policy_allows(place: &Place, content: &str) -> Result<(), Failure> {
    let extension = place.relative.extension().and_then(|it| it.to_str());
    if content.contains("PRIVATE KEY-----") {
        return Err(errors::policy_violation().message("Keys are not written to files").into());
    }
    if extension == Some("rs") && content.split_whitespace().any(|word| word == "unsafe") {
        return Err(errors::rust_policy_violation().message("No unsafe code here").into());
    }
    if extension == Some("json") {
        serde_json::from_str::<Value>(content).fault(Code::PreflightFailed)?;
    }
    Ok(())
}
