//! The clauses of `OwlClaw` that the contract file carries.

use std::collections::HashSet;

use faultwire_contract::lint::lint;
use faultwire_contract::{
    Contract, Fault, Paging, Profile, Report, RetryClass, Stamp, Surface, builtin, compat,
};
use serde_json::{Value, json};

use crate::support::{STAMP, envelope, envelope_json, fault, keys, report, text};

type Row = (&'static str, &'static [u16], &'static str, &'static str, bool, &'static str);

/// The document's matrix: code, statuses, MCP surface, category, retryable, alert level.
const MATRIX: [Row; 9] = [
    (
        "protocol.unsupported_version",
        &[400, 426],
        "initialize/call error",
        "compatibility",
        false,
        "warning",
    ),
    ("protocol.version_conflict", &[400], "initialize/call error", "validation", false, "warning"),
    ("governance.rate_limited", &[429], "tools/call error", "governance", true, "warning"),
    ("governance.budget_exceeded", &[403], "tools/call error", "governance", false, "critical"),
    ("auth.unauthorized", &[401], "initialize error", "auth", false, "critical"),
    ("auth.forbidden", &[403], "call/read error", "auth", false, "critical"),
    ("runtime.timeout", &[504], "call/read error", "runtime", true, "warning"),
    ("dependency.unavailable", &[503], "call/read error", "dependency", true, "warning"),
    ("internal.unexpected", &[500], "generic error", "internal", false, "critical"),
];

fn http(json: &str) -> Value {
    let fault = fault("owlclaw", json).unwrap();
    serde_json::from_str(&text(&fault, Surface::Http, Profile::default())).unwrap()
}

#[test]
fn o1_canonical_fields() {
    let contract = builtin("owlclaw").unwrap();
    let categories: HashSet<&str> = contract.categories.iter().map(String::as_str).collect();
    let seven =
        ["validation", "compatibility", "governance", "auth", "runtime", "dependency", "internal"];
    assert_eq!(categories, HashSet::from(seven));
    for code in contract.codes() {
        let (domain, reason) = code.id.split_once('.').unwrap();
        assert!(!domain.is_empty() && !reason.is_empty());
        let error =
            envelope_json("owlclaw", &json!({"code": code.id}).to_string())["error"].clone();
        assert_eq!(keys(&error), ["code", "message", "category", "retryable", "incident_id"]);
    }
    let full = envelope_json(
        "owlclaw",
        r#"{"code":"runtime.timeout","details":{"a":1},"retry_after_ms":1500}"#,
    );
    assert_eq!(full["error"]["details"], json!({"a":1}));
    assert_eq!(full["error"]["retry_after"], 2, "whole seconds, rounded up");
}

#[test]
fn o2_problem_details_over_http() {
    let contract = builtin("owlclaw").unwrap();
    assert_eq!(contract.content_type(Surface::Http), "application/problem+json");
    let fault = fault(
        "owlclaw",
        r#"{"code":"protocol.unsupported_version","incident":"inc_20260226_001","details":{"supported_versions":["v1"]}}"#,
    );
    assert_eq!(
        text(&fault.unwrap(), Surface::Http, Profile::default()),
        r#"{"type":"https://owlclaw.dev/problems/protocol-version","title":"Unsupported protocol version","status":400,"code":"protocol.unsupported_version","category":"compatibility","retryable":false,"incident_id":"inc_20260226_001","details":{"supported_versions":["v1"]}}"#
    );
    let limited = crate::support::fault(
        "owlclaw",
        r#"{"code":"governance.rate_limited","retry_after_ms":2000}"#,
    );
    assert_eq!(
        limited.unwrap().retry_after().unwrap().as_secs(),
        2,
        "what Retry-After is made from"
    );
}

#[test]
fn o3_the_same_over_mcp() {
    assert_eq!(
        envelope(
            "owlclaw",
            r#"{"code":"protocol.unsupported_version","incident":"inc_20260226_001","details":{"supported_versions":["2025-06","2025-03"]}}"#
        ),
        r#"{"error":{"code":"protocol.unsupported_version","message":"Unsupported protocol version","category":"compatibility","retryable":false,"incident_id":"inc_20260226_001","details":{"supported_versions":["2025-06","2025-03"]}}}"#
    );
}

#[test]
fn o4_the_nine_rows_of_the_matrix() {
    let contract = builtin("owlclaw").unwrap();
    let found: Vec<_> = contract
        .codes()
        .iter()
        .map(|c| {
            let retryable = c.default_retry().is_retryable();
            let mcp = c.mcp.as_deref().unwrap();
            (
                c.id.as_str(),
                c.status.as_slice(),
                mcp,
                c.category.as_str(),
                retryable,
                c.alert.as_str(),
            )
        })
        .collect();
    assert_eq!(found, MATRIX);
    assert_eq!(http(r#"{"code":"protocol.unsupported_version"}"#)["status"], 400);
    assert_eq!(http(r#"{"code":"protocol.unsupported_version","status":426}"#)["status"], 426);
    assert!(fault("owlclaw", r#"{"code":"auth.forbidden","status":426}"#).is_err());
}

#[test]
fn o5_one_value_two_renderings() {
    for (code, ..) in MATRIX {
        let json = json!({"code": code, "details": {"a": [1]}}).to_string();
        let fault = fault("owlclaw", &json).unwrap();
        let read = |surface| {
            serde_json::from_str::<Value>(&text(&fault, surface, Profile::default())).unwrap()
        };
        let (mcp, http) = (read(Surface::Mcp), read(Surface::Http));
        for fact in ["code", "category", "retryable", "incident_id", "details"] {
            assert_eq!(mcp["error"][fact], http[fact], "{code} {fact}");
        }
    }
}

#[test]
fn o6_retry_follows_the_row() {
    let contract = builtin("owlclaw").unwrap();
    for (code, _, _, _, retryable, _) in MATRIX {
        let class = contract.code(code).unwrap().default_retry();
        assert_eq!(class, if retryable { RetryClass::Backoff } else { RetryClass::Never });
    }
}

#[test]
fn o7_thresholds_are_data() {
    let contract = builtin("owlclaw").unwrap();
    let paging = |name: &str| contract.levels.iter().find(|l| l.name == name).unwrap().paging;
    assert_eq!(paging("critical"), Paging::Every);
    let five_minutes = std::time::Duration::from_mins(5);
    assert_eq!(paging("warning"), Paging::MoreThan { events: 5, within: five_minutes });
}

#[test]
fn o8_a_new_code_needs_a_row_a_test_and_a_release_note() {
    let file = include_str!("../../contracts/owlclaw.toml");
    let load = |text: &str| std::sync::Arc::new(Contract::load("owlclaw.toml", text).unwrap());
    let published = load(file);
    assert_eq!(lint(&published), []);

    let row = "\n[[code]]\nid = \"runtime.busy\"\ncategory = \"runtime\"\nretry = \"backoff\"\nstatus = 503\nalert = \"warning\"\nmessage = \"Busy\"\nmeaning = \"m\"\naction = \"a\"\nsince = \"1.1.0\"\ntype = \"https://owlclaw.dev/problems/busy\"\n";
    let test = "\n[[test]]\nfault = '{\"code\":\"runtime.busy\",\"incident\":\"i\"}'\nmcp = '{\"error\":{\"code\":\"runtime.busy\",\"message\":\"Busy\",\"category\":\"runtime\",\"retryable\":true,\"incident_id\":\"i\"}}'\n";
    let note = "\n[[release]]\nversion = \"1.1.0\"\nnote = \"Busy.\"\nadds = [\"runtime.busy\"]\n";
    let findings = |parts: &[&str]| lint(&load(&format!("{file}{}", parts.concat()))).len();
    assert_eq!(findings(&[row]), 2);
    assert_eq!(findings(&[row, test]), 1);
    assert_eq!(findings(&[row, note]), 1);
    assert_eq!(findings(&[row, test, note]), 0);
    // Without a row there is no code: the file does not load.
    assert!(Contract::load("owlclaw.toml", &format!("{file}{note}")).is_err());
    // The comparison says so too.
    let bare = compat::changes(&published, &load(&format!("{file}{row}")));
    assert_eq!(compat::impact(&bare), compat::Impact::Breaking);
    let whole = load(
        &format!("{file}{row}{test}{note}")
            .replace("version = \"1.0.0\"\ntitle", "version = \"1.1.0\"\ntitle"),
    );
    assert_eq!(compat::impact(&compat::changes(&published, &whole)), compat::Impact::Additive);
}

#[test]
fn o8_a_test_of_the_contract_that_fails_is_found() {
    let file = include_str!("../../contracts/owlclaw.toml");
    let broken = file.replacen(
        "\"retry_after\": \"$retry.after_s?\"",
        "\"retry_in\": \"$retry.after_s?\"",
        1,
    );
    let contract = std::sync::Arc::new(Contract::load("owlclaw.toml", &broken).unwrap());
    let findings = lint(&contract);
    assert_eq!(findings.len(), 1);
    assert!(findings[0].what.contains("governance.rate_limited") && findings[0].line > 1);
}

#[test]
fn o9_incident_ids_lead_to_the_trace() {
    let incident = |json: &str| {
        envelope_json("owlclaw", json)["error"]["incident_id"].as_str().unwrap().to_owned()
    };
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let with = |trace: &str| incident(&json!({"code":"runtime.timeout","trace":trace}).to_string());
    assert_eq!(with(trace), format!("inc_20260119_{trace}"));
    assert_eq!(with(&format!("00-{trace}-00f067aa0ba902b7-01")), format!("inc_20260119_{trace}"));
    assert_eq!(incident(r#"{"code":"runtime.timeout"}"#), "inc_20260119_0000000000000007");
    assert_eq!(
        with("../../etc passwd"),
        "inc_20260119_0000000000000007",
        "a trace that fits no id is left out"
    );
    assert_eq!(
        incident(r#"{"code":"runtime.timeout","incident":"inc_20260226_001"}"#),
        "inc_20260226_001"
    );
    let told =
        json!({"code":"runtime.timeout","trace":trace,"timestamp":"2026-02-26T23:59:59.999Z"})
            .to_string();
    assert_eq!(incident(&told), format!("inc_20260226_{trace}"), "the day of the failure");
    assert_eq!(with(&"0".repeat(32)), "inc_20260119_0000000000000007", "no trace");
    // The date is that of UTC.
    let midnight = Stamp { now_ms: 1_768_867_199_999, ..STAMP };
    let contract = builtin("owlclaw").unwrap();
    let last = Fault::new(&contract, Report::new("runtime.timeout"), &midnight).unwrap();
    assert!(last.public().incident.as_deref().unwrap().starts_with("inc_20260119_"));
    let first = Stamp { now_ms: 1_768_867_200_000, ..STAMP };
    let first = Fault::new(&contract, report(r#"{"code":"runtime.timeout"}"#), &first).unwrap();
    assert!(first.public().incident.as_deref().unwrap().starts_with("inc_20260120_"));
}
