//! What nobody may write, whatever the plan.

use faultwire::ResultExt;
use faultwire::kaiza::{self as errors, Code, Failure};
use serde_json::Value;

use crate::workspace::Place;

pub fn allows(place: &Place, content: &str) -> Result<(), Failure> {
    let extension = place.relative().extension().and_then(|it| it.to_str());
    if content.contains("PRIVATE KEY-----") {
        return Err(errors::policy_violation().message("Keys are not written to files").into());
    }
    if extension == Some("rs") && content.split_whitespace().any(|word| word == "unsafe") {
        return Err(errors::rust_policy_violation().message("No unsafe code here").into());
    }
    // What a machine reads must be readable.
    if extension == Some("json") {
        serde_json::from_str::<Value>(content).fault(Code::PreflightFailed)?;
    }
    Ok(())
}
