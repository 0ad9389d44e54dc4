//! The contract check: a contract that loads may still be incomplete (O8).

use std::sync::Arc;

use crate::code::Code;
use crate::contract::{Contract, Example};
use crate::fault::Fault;
use crate::incident::Stamp;
use crate::report::Report;

/// Something that the check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The line in the file.
    pub line: usize,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub help: String,
}

/// Checks a loaded contract: every code has what the contract requires, and the contract's own
/// tests pass.
#[must_use]
pub fn lint(contract: &Arc<Contract>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for code in contract.codes() {
        for missing in contract.missing(code) {
            findings.push(Finding {
                line: code.line,
                what: format!("code {:?} {missing}", code.id),
                help: "a new code needs its row, a test and a release note".to_owned(),
            });
        }
    }
    for example in &contract.examples {
        findings.extend(run(contract, example));
    }
    findings
}

impl Contract {
    /// What the contract requires of a code and the file does not have (O8).
    pub(crate) fn missing(&self, code: &Code) -> Vec<&'static str> {
        let tested = self.examples.iter().any(|example| example.code == code.id);
        let noted =
            self.releases.iter().any(|r| r.version == code.since && r.adds.contains(&code.id));
        let mut missing = Vec::new();
        if self.requires.test && !tested {
            missing.push("has no [[test]]");
        }
        if self.requires.release && !noted {
            missing.push("is not listed in the [[release]] of its version");
        }
        missing
    }
}

fn run(contract: &Arc<Contract>, example: &Example) -> Vec<Finding> {
    let finding =
        |what: String, help: &str| Finding { line: example.line, what, help: help.to_owned() };
    let report: Report = match serde_json::from_str(&example.fault) {
        Ok(report) => report,
        Err(e) => {
            return vec![finding(format!("the fault cannot be read: {e}"), "fix its JSON")];
        }
    };
    let fault = match Fault::new(contract, report, &Stamp { show_stack: true, ..Stamp::default() })
    {
        Ok(fault) => fault,
        Err(e) => {
            return vec![finding(
                format!("the fault is refused: {e}"),
                "fix the fault or the code's row",
            )];
        }
    };
    let mut findings = Vec::new();
    for (surface, expected) in &example.expect {
        let bytes = fault.envelope(*surface, example.profile);
        let rendered = String::from_utf8_lossy(&bytes);
        if rendered != *expected {
            let what = format!(
                "the {} envelope of {:?} does not match the test\n    expected {expected}\n    rendered {rendered}",
                surface.name(),
                example.code,
            );
            findings.push(finding(what, "fix the template, the code's row or the test"));
        }
    }
    findings
}
