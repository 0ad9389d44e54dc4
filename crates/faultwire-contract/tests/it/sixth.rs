//! A contract with a shape unlike the five works with no line of Rust for it.

use faultwire_contract::{Condition, Profile, ResultOptions, Surface, classify};
use serde_json::{Value, json};

use crate::support::{STAMP, harbour, report, text};

fn envelope(json: &str, profile: &str) -> Value {
    let contract = harbour();
    let fault = faultwire_contract::Fault::new(&contract, report(json), &STAMP).unwrap();
    serde_json::from_str(&text(&fault, Surface::Mcp, contract.profile(profile).unwrap())).unwrap()
}

#[test]
fn its_envelope_is_a_list() {
    assert_eq!(
        envelope(r#"{"code":"H-300","message":"Fog"}"#, "brief"),
        json!(["failure", "H-300", {"text": "Fog", "again": "occasionally"}])
    );
    let full = envelope(
        r#"{"code":"H-200","condition":"rate_limited","details":{"a":{"b":{"c":{"d":{"e":1}}}}}}"#,
        "full",
    );
    assert_eq!(full[2]["wait_ms"], 3000);
    assert_eq!(full[2]["source"], json!({"who":"policy","how_far":"not_sent","tool":"unknown"}));
    assert_eq!(full[3], json!({"a":{"b":{"c":{"d":"..."}}}}), "details_depth = 4");
}

#[test]
fn its_rules_and_redaction_are_its_own() {
    let contract = harbour();
    let line = |said: &str| {
        json!({"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":said}],"isError":true}}).to_string()
    };
    let failure = classify(&contract, line("thick fog at berth-1234").as_bytes()).unwrap();
    assert_eq!((failure.rule.as_str(), failure.report.code.as_str()), ("fog", "H-200"));
    assert_eq!(contract.redactor().redact("moor at berth-1234"), "moor at [redacted]");
    assert_eq!(
        contract.redactor().redact("password=x1 at berth-1"),
        "password=[redacted] at berth-1"
    );
    let failure = classify(&contract, line("no such tool: crane").as_bytes()).unwrap();
    assert_eq!(failure.report.condition, Some(Condition::UnknownTool));
    assert_eq!(failure.report.code, "H-100");
}

#[test]
fn a_list_is_no_structured_content() {
    let contract = harbour();
    let fault =
        faultwire_contract::Fault::new(&contract, report(r#"{"code":"H-900"}"#), &STAMP).unwrap();
    let result = fault.call_tool_result(Profile::default(), ResultOptions::default());
    let result: Value = serde_json::from_slice(&result).unwrap();
    assert!(result.get("structuredContent").is_none() && result["isError"] == true);
}
