//! The clauses of KAIZA that the contract file carries.

use faultwire_contract::{
    Condition, Fault, FaultError, Profile, Report, SessionCall, SessionState, Stamp, Surface,
    builtin, cause,
};
use serde_json::{Value, json};

use crate::support::{STAMP, envelope, envelope_json, fault, keys, report, text};

const ELEVEN: [&str; 11] = [
    "error_code",
    "human_message",
    "role",
    "session_id",
    "workspace_root",
    "tool_name",
    "invariant_id",
    "phase_id",
    "plan_hash",
    "cause",
    "timestamp",
];

#[test]
fn k1_eleven_fields_in_order_and_null_when_empty() {
    let bare = envelope_json("kaiza", r#"{"code":"FILE_NOT_FOUND"}"#);
    assert_eq!(keys(&bare), ELEVEN);
    for nullable in
        ["role", "session_id", "workspace_root", "invariant_id", "phase_id", "plan_hash", "cause"]
    {
        assert_eq!(bare[nullable], Value::Null, "{nullable}");
    }
    assert!(bare["tool_name"].is_string() && bare["timestamp"].is_string());

    let full = envelope(
        "kaiza",
        r#"{"code":"PLAN_SCOPE_VIOLATION","message":"not in the plan","tool":"write_file","invariant":"PLAN_BOUND",
            "session":{"id":"550e8400","role":"WINDSURF","workspace_root":"/home/user/project","phase":"PHASE_5A","plan_hash":"abc123"},
            "cause":"boom","timestamp":"2026-01-19T15:32:10.123Z"}"#,
    );
    assert_eq!(
        full,
        r#"{"error_code":"PLAN_SCOPE_VIOLATION","human_message":"not in the plan","role":"WINDSURF","session_id":"550e8400","workspace_root":"/home/user/project","tool_name":"write_file","invariant_id":"PLAN_BOUND","phase_id":"PHASE_5A","plan_hash":"abc123","cause":"boom","timestamp":"2026-01-19T15:32:10.123Z"}"#
    );
}

#[test]
fn k2_the_stack_shows_only_when_the_switch_has_exactly_its_value() {
    let contract = builtin("kaiza").unwrap();
    let shown = |value: Option<&str>| {
        contract.shows_stack(|name| {
            assert_eq!(name, "DEBUG_STACK");
            value.map(str::to_owned)
        })
    };
    assert!(shown(Some("true")));
    for other in [None, Some("1"), Some("TRUE"), Some("true "), Some("")] {
        assert!(!shown(other), "{other:?}");
    }

    let with = |show_stack| {
        let stamp = Stamp { show_stack, ..STAMP };
        let report = Report { stack: Some("at main".into()), ..Report::new("INTERNAL_ERROR") };
        let fault = Fault::new(&contract, report, &stamp).unwrap();
        serde_json::from_str::<Value>(&text(&fault, Surface::Mcp, Profile::default())).unwrap()
    };
    assert_eq!(keys(&with(false)), ELEVEN);
    let shown = with(true);
    assert_eq!(keys(&shown)[11], "stack_trace");
    assert_eq!(shown["stack_trace"], "at main");
}

#[test]
fn k3_the_35_codes_grouped_and_no_other() {
    let groups: [(&str, &[&str]); 11] = [
        (
            "session",
            &["SESSION_NOT_INITIALIZED", "SESSION_LOCKED", "SESSION_INITIALIZATION_FAILED"],
        ),
        (
            "input",
            &[
                "INVALID_INPUT_TYPE",
                "INVALID_INPUT_FORMAT",
                "INVALID_INPUT_VALUE",
                "MISSING_REQUIRED_FIELD",
            ],
        ),
        ("authorization", &["UNAUTHORIZED_ACTION", "INSUFFICIENT_PERMISSIONS", "ROLE_MISMATCH"]),
        (
            "path",
            &["INVALID_PATH", "PATH_NOT_FOUND", "PATH_TRAVERSAL_BLOCKED", "OUTSIDE_WORKSPACE"],
        ),
        (
            "file",
            &["FILE_NOT_FOUND", "FILE_ALREADY_EXISTS", "FILE_READ_FAILED", "FILE_WRITE_FAILED"],
        ),
        ("patch", &["PATCH_INVALID", "PATCH_APPLY_FAILED", "HASH_MISMATCH"]),
        (
            "plan",
            &[
                "PLAN_NOT_FOUND",
                "PLAN_NOT_APPROVED",
                "PLAN_ENFORCEMENT_FAILED",
                "PLAN_SCOPE_VIOLATION",
            ],
        ),
        ("policy", &["POLICY_VIOLATION", "RUST_POLICY_VIOLATION", "PREFLIGHT_FAILED"]),
        ("governance", &["INVARIANT_VIOLATION", "BOOTSTRAP_FAILURE", "SELF_AUDIT_FAILURE"]),
        ("audit", &["AUDIT_LOG_FAILED", "AUDIT_LOCK_FAILED"]),
        ("generic", &["INTERNAL_ERROR", "UNKNOWN_TOOL_FAILURE"]),
    ];
    let contract = builtin("kaiza").unwrap();
    let expected: Vec<(&str, &str)> =
        groups.iter().flat_map(|(group, codes)| codes.iter().map(move |c| (*group, *c))).collect();
    let found: Vec<(&str, &str)> =
        contract.codes().iter().map(|c| (c.category.as_str(), c.id.as_str())).collect();
    assert_eq!(found.len(), 35);
    assert_eq!(found, expected);
}

#[test]
fn k3_an_unregistered_code_is_refused_by_name() {
    let refused = fault("kaiza", r#"{"code":"FILE_NOT_FUND"}"#).unwrap_err();
    assert_eq!(
        refused,
        FaultError::UnknownCode {
            contract: "kaiza".into(),
            code: "FILE_NOT_FUND".into(),
            nearest: Some("FILE_NOT_FOUND".into()),
        }
    );
    assert!(refused.to_string().contains("FILE_NOT_FUND"));
}

#[test]
fn k4_causes_are_normalised() {
    let cause_of = |json: &str| envelope_json("kaiza", json)["cause"].clone();
    assert_eq!(cause_of(r#"{"code":"INTERNAL_ERROR"}"#), Value::Null);
    assert_eq!(cause_of(r#"{"code":"INTERNAL_ERROR","cause":null}"#), Value::Null);
    assert_eq!(cause_of(r#"{"code":"INTERNAL_ERROR","cause":"plain"}"#), json!("plain"));
    assert_eq!(cause_of(r#"{"code":"INTERNAL_ERROR","cause":{"a":1}}"#), json!({"a":1}));
    assert_eq!(
        cause_of(r#"{"code":"INTERNAL_ERROR","cause":42}"#),
        json!({"message":"42","code":null,"name":null})
    );
    // Three nested below the first, and no more.
    let deep = r#"{"code":"INTERNAL_ERROR","cause":{"message":"0","cause":{"message":"1","cause":{"message":"2","cause":{"message":"3","cause":{"message":"4"}}}}}}"#;
    let kept = cause_of(deep);
    assert_eq!(kept.pointer("/cause/cause/cause/message"), Some(&json!("3")));
    assert_eq!(kept.pointer("/cause/cause/cause/cause"), None);
    // Redacted and bounded like everything else.
    let leaky = cause_of(
        r#"{"code":"INTERNAL_ERROR","cause":{"message":"open /etc/shadow","password":"hunter2"}}"#,
    );
    assert_eq!(leaky, json!({"message":"open [redacted:path]","password":"[redacted]"}));
}

#[test]
fn k4_rust_errors_become_message_code_name_with_their_sources() {
    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer(#[source] Box<dyn std::error::Error + Send + Sync>);

    let mut error: Box<dyn std::error::Error + Send + Sync> =
        Box::new(std::io::Error::other("innermost"));
    for _ in 0..5 {
        error = Box::new(Outer(error));
    }
    let normalised = cause::from_error(&Outer(error));
    assert_eq!(normalised["name"], "Outer");
    assert_eq!(normalised["message"], "outer");
    assert_eq!(normalised["code"], Value::Null);
    assert!(normalised.pointer("/cause/cause/cause").is_some());
    assert!(normalised.pointer("/cause/cause/cause/cause").is_none(), "three deep at most");

    let io = cause::from_error(&std::io::Error::from(std::io::ErrorKind::NotFound));
    assert_eq!(io["code"], "NotFound");
}

#[test]
fn k5_timestamps_are_iso_8601_utc_with_milliseconds() {
    let made = envelope_json("kaiza", r#"{"code":"INTERNAL_ERROR"}"#);
    assert_eq!(made["timestamp"], "2026-01-19T15:32:10.123Z");
    for bad in [
        "2026-01-19T15:32:10Z",
        "2026-01-19T15:32:10.123+00:00",
        "yesterday",
        "2026-13-19T15:32:10.123Z",
        "",
    ] {
        let json = json!({"code": "INTERNAL_ERROR", "timestamp": bad}).to_string();
        assert_eq!(fault("kaiza", &json).unwrap_err(), FaultError::Timestamp(bad.into()));
    }
}

#[test]
fn k6_no_field_that_was_given_is_dropped() {
    let given = report(
        r#"{"code":"INVARIANT_VIOLATION","message":"m","tool":"startup","invariant":"I1",
            "session":{"id":"s","role":"r","workspace_root":"w","phase":"p","plan_hash":"h"},
            "cause":{"message":"c"},"timestamp":"2026-01-19T15:32:10.123Z"}"#,
    );
    let contract = builtin("kaiza").unwrap();
    let fault = Fault::new(&contract, given.clone(), &STAMP).unwrap();
    let bytes = fault.envelope(Surface::Mcp, Profile::default());
    let read = contract.read(Surface::Mcp, Profile::default(), &bytes).unwrap();
    assert_eq!(read, Report { retry: Some(fault.retry()), ..given });
}

#[test]
fn k7_a_failure_without_words_gets_the_canonical_message() {
    for empty in ["", "   ", "\u{200b}"] {
        let json = json!({"code": "FILE_READ_FAILED", "message": empty}).to_string();
        assert_eq!(envelope_json("kaiza", &json)["human_message"], "Failed to read file");
    }
    let contract = builtin("kaiza").unwrap();
    assert_eq!(contract.fallback().id, "INTERNAL_ERROR");
    // A code of its own that is registered is kept; one that is not makes way for the condition's.
    let reply = |code: &str| {
        let text = json!({"code": code, "message": "no"}).to_string();
        let line = json!({"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":text}],"isError":true}});
        faultwire_contract::classify(&contract, line.to_string().as_bytes()).unwrap().report.code
    };
    assert_eq!(reply("PLAN_NOT_APPROVED"), "PLAN_NOT_APPROVED");
    assert_eq!(reply("SOMETHING_ELSE"), "UNKNOWN_TOOL_FAILURE");
}

#[test]
fn k8_same_condition_same_code() {
    let contract = builtin("kaiza").unwrap();
    for condition in Condition::ALL {
        let first = contract.code_for(*condition, None).id.clone();
        assert!((0..3).all(|_| contract.code_for(*condition, None).id == first));
        assert!(contract.code(&first).is_some());
    }
}

#[test]
fn k11_the_client_actions_of_section_7() {
    let contract = builtin("kaiza").unwrap();
    let action = |code: &str| contract.code(code).unwrap().action.clone();
    assert!(action("SESSION_NOT_INITIALIZED").contains("Call begin_session"));
    assert!(action("SESSION_LOCKED").contains("docs/reports/"));
    assert!(action("UNAUTHORIZED_ACTION").contains("Check role and permissions"));
    assert!(action("PLAN_NOT_APPROVED").contains("Verify plan is approved"));
    assert!(contract.codes().iter().all(|c| !c.action.is_empty()));
}

#[test]
fn k12_sessions_begin_lock_and_are_unlocked() {
    let contract = builtin("kaiza").unwrap();
    let rules = contract.session.as_ref().unwrap();
    let call = |tool, arguments, read_only| SessionCall {
        tool,
        arguments,
        read_only,
        workspace_root: Some("/w/"),
    };
    let report = json!({ "path": "docs/reports/failure.md" });
    let new = SessionState::default();
    let write = call("write_file", None, false);
    assert_eq!(rules.judge(new, &write), Err(Condition::NotReady));
    assert_eq!(rules.judge(new, &call("begin_session", None, false)), Ok(()));
    let open = rules.after_success(new, "begin_session");
    assert_eq!(rules.judge(open, &write), Ok(()));
    let harmless = contract.code_for(Condition::InvalidArguments, None);
    assert_eq!(rules.after_failure(open, harmless), open);
    let bad = contract.codes().iter().find(|code| code.category == "governance").unwrap();
    let locked = rules.after_failure(open, bad);
    assert!(locked.locked);
    assert_eq!(rules.judge(locked, &write), Err(Condition::Locked));
    assert_eq!(rules.judge(locked, &call("look", None, true)), Ok(()));
    assert_eq!(rules.judge(locked, &call("read_file", None, false)), Ok(()));
    assert_eq!(rules.judge(locked, &call("write_file", Some(&report), false)), Ok(()));
    assert_eq!(rules.after_success(locked, "begin_session"), open);
    assert_eq!(rules.after_success(locked, "end_session"), new);
    assert_eq!(rules.after_success(locked, "read_file"), locked);
}
