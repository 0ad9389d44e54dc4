//! Codes as types, and failures from anything.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use faultwire::contract::lint::lint;
use faultwire::contract::{Contract, Profile, Report, RetryClass, Session, Surface};
use faultwire::{Failure, ResultExt, Row, TypedCode, Unknown};
use faultwire::{context_resolve, kaiza, owlclaw, tuitbot, workrail};
use serde_json::{Value, json};

/// The facts of every code, as type and as data.
fn check<C: TypedCode + fmt::Display>(
    all: &[C],
    facts: impl Fn(C) -> (RetryClass, u16, &'static str, &'static str),
) {
    let contract = C::contract();
    assert_eq!(all.len(), contract.codes().len());
    for (code, row) in all.iter().zip(contract.codes()) {
        assert_eq!(code.id(), row.id);
        assert_eq!(code.to_string(), row.id);
        assert_eq!(C::from_id(&row.id), Some(*code));
        let (retry, status, category, alert) = facts(*code);
        assert_eq!((retry, status), (row.default_retry(), row.default_status()), "{}", row.id);
        assert_eq!((category, alert), (&*row.category, &*row.alert), "{}", row.id);
    }
    assert_eq!(C::from_id("no such code"), None);
}

#[test]
fn k3_the_five_built_in_modules_say_what_their_contracts_say() {
    check(kaiza::Code::ALL, |c| (c.retry(), c.status(), c.category(), c.alert()));
    check(tuitbot::Code::ALL, |c| (c.retry(), c.status(), c.category(), c.alert()));
    check(workrail::Code::ALL, |c| (c.retry(), c.status(), c.category(), c.alert()));
    check(context_resolve::Code::ALL, |c| (c.retry(), c.status(), c.category(), c.alert()));
    check(owlclaw::Code::ALL, |c| (c.retry(), c.status(), c.category(), c.alert()));
}

/// Facts are known when the crate is compiled.
const FORBIDDEN: (&str, RetryClass, &str, u16, &str) = (
    owlclaw::Code::AuthForbidden.id(),
    owlclaw::Code::AuthForbidden.retry(),
    owlclaw::Code::AuthForbidden.category(),
    owlclaw::Code::AuthForbidden.status(),
    owlclaw::Code::AuthForbidden.alert(),
);

#[test]
fn facts_are_constants() {
    assert_eq!(FORBIDDEN, ("auth.forbidden", RetryClass::Never, "auth", 403, "critical"));
    assert_eq!(<owlclaw::row::AuthForbidden as Row>::CODE, owlclaw::Code::AuthForbidden);
}

fn envelope<C: TypedCode>(failure: impl Into<Failure<C>>) -> Value {
    let fault = failure.into().into_fault();
    serde_json::from_slice(&fault.envelope(Surface::Mcp, Profile::default())).unwrap()
}

#[test]
fn w3_w7_options_are_named_and_are_those_of_the_row() {
    let locked = workrail::token_session_locked().after(Duration::from_millis(2500));
    assert_eq!(
        envelope::<workrail::Code>(locked)["retry"],
        json!({ "kind": "retryable_after_ms", "afterMs": 2500 })
    );
    let stopped = workrail::timeout().not_again().suggestion("Ask for less");
    let told = envelope::<workrail::Code>(stopped);
    assert_eq!(told["retry"], json!({ "kind": "not_retryable" }));
    assert_eq!(told["suggestion"], "Ask for less");
    let upgrade = owlclaw::protocol_unsupported_version().status::<426>();
    assert_eq!(owlclaw::Failure::from(upgrade).into_fault().status(), 426);
    let posted = json!({ "posted": ["1", "2"] });
    let partly = tuitbot::thread_partial_failure().keeping(posted.clone());
    assert_eq!(envelope::<tuitbot::Code>(partly)["data"], posted);
}

#[test]
fn w5_details_that_are_no_json_are_an_internal_failure() {
    let told = envelope::<workrail::Code>(
        workrail::not_found().message("No such node").details(&f64::NAN),
    );
    assert_eq!(told["code"], "INTERNAL_ERROR");
    assert_eq!(told["message"], "Error details validation failed");
    assert_eq!(told["details"]["originalError"], "No such node");
    let told = envelope::<workrail::Code>(workrail::not_found().details(&json!({ "node": "a" })));
    assert_eq!(told["details"], json!({ "node": "a" }));
}

/// An error with another underneath.
#[derive(Debug)]
struct Outer(std::num::ParseIntError);

impl fmt::Display for Outer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the settings are wrong")
    }
}

impl Error for Outer {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

#[test]
fn k4_k6_k7_k14_anything_that_is_thrown_becomes_the_envelope() {
    let outer = || Outer("x".parse::<u8>().unwrap_err());
    let session = Session {
        id: Some("s1".into()),
        workspace_root: Some("/work".into()),
        phase: Some("P1".into()),
        plan_hash: Some("abc".into()),
        ..Session::default()
    };
    let context = || Report {
        tool: Some("read_file".into()),
        session: session.clone(),
        ..kaiza::Code::FileReadFailed.into()
    };
    // 1. An error, 2. a text, 3. an object, and one with a code of its own.
    let raw = envelope(kaiza::Failure::from_unknown(outer(), context()));
    assert_eq!(raw["error_code"], "FILE_READ_FAILED");
    assert_eq!(raw["human_message"], "the settings are wrong");
    assert_eq!(raw["cause"]["name"], "Outer");
    assert_eq!(raw["cause"]["cause"]["message"], "invalid digit found in string");
    let text = envelope(kaiza::Failure::from_unknown(Unknown::text("boom"), context()));
    assert_eq!((&text["human_message"], &text["cause"]), (&json!("boom"), &json!("boom")));
    let object = json!({ "why": "unclear", "n": 1 });
    let thrown = Unknown::value(object.clone());
    let told = envelope(kaiza::Failure::from_unknown(thrown, context()));
    assert_eq!(told["cause"], object);
    assert_eq!(told["human_message"], kaiza::Code::FileReadFailed.message());
    let own = Unknown::value(json!({ "code": "INVALID_PATH", "message": "no" }));
    let own = envelope(kaiza::Failure::from_unknown(own, context()));
    assert_eq!(own["error_code"], "INVALID_PATH");
    let stranger = Unknown::value(json!({ "code": "ENOENT", "message": "no" }));
    let stranger = kaiza::Failure::from_unknown(stranger, Report::default());
    assert_eq!(stranger.code(), kaiza::Code::InternalError);
    // 4. An invariant, 5. before the session, 6. with phase and plan.
    let violated = Report { cause: Some(json!("x")), ..Report::default() };
    let violated = kaiza::Failure::invariant_violation("MANDATORY_DIAGNOSTICS", violated);
    let violated = envelope(violated);
    assert_eq!(violated["error_code"], "INVARIANT_VIOLATION");
    assert_eq!(violated["invariant_id"], "MANDATORY_DIAGNOSTICS");
    assert_eq!(violated["cause"], "x");
    let early = kaiza::Failure::startup_failure(kaiza::Code::BootstrapFailure, Report::default());
    let early = envelope(early);
    assert_eq!(early["tool_name"], "startup");
    assert_eq!((&early["session_id"], &early["workspace_root"]), (&Value::Null, &Value::Null));
    let tool = envelope(kaiza::Failure::tool_failure(kaiza::Code::InvalidPath, context()));
    assert_eq!(tool["error_code"], "INVALID_PATH");
    assert_eq!((&tool["phase_id"], &tool["plan_hash"]), (&json!("P1"), &json!("abc")));
    assert_eq!((&tool["session_id"], &tool["workspace_root"]), (&json!("s1"), &json!("/work")));
    // 7. All eleven fields, always.
    for told in [raw, text, told, own, violated, early, tool] {
        assert_eq!(told.as_object().unwrap().len(), 11, "{told}");
    }
}

#[test]
fn k9_a_panic_becomes_the_contracts_code_for_it() {
    let payload = std::panic::catch_unwind(|| panic!("at {}", "the disco")).unwrap_err();
    let failure = owlclaw::Failure::from_unknown(Unknown::panic(&*payload), Report::default());
    assert_eq!(failure.code(), owlclaw::Code::InternalUnexpected);
    assert_eq!(failure.report().message.as_deref(), Some("at the disco"));
    let silent = Unknown::panic(&(7_u8));
    let silent = envelope(owlclaw::Failure::from_unknown(silent, Report::default()));
    assert_eq!(silent["error"]["message"], owlclaw::Code::InternalUnexpected.message());
}

#[test]
fn k3_a_code_by_name_must_be_registered() {
    let why = kaiza::Failure::from_report(Report::new("INVALID_PTAH")).unwrap_err();
    assert_eq!(
        why.to_string(),
        r#"kaiza has no code "INVALID_PTAH"; did you mean "INVALID_PATH"?"#
    );
    assert!(kaiza::Failure::from_report(Report::new("INVALID_PATH")).is_ok());
}

#[test]
fn k6_no_maker_drops_what_it_was_given() {
    let told = |name: &str| Some(format!("the {name}"));
    let context = || Report {
        message: told("message"),
        tool: told("tool"),
        invariant: told("invariant"),
        cause: Some(json!("the cause")),
        timestamp: Some("2026-01-19T15:32:10.123Z".into()),
        session: Session {
            id: told("id"),
            client: told("client"),
            role: told("role"),
            workspace_root: told("root"),
            phase: told("phase"),
            plan_hash: told("plan"),
        },
        ..kaiza::Code::InvalidPath.into()
    };
    let mut all = envelope(kaiza::Failure::tool_failure(kaiza::Code::InvalidPath, context()));
    assert!(all.as_object().unwrap().values().all(|value| !value.is_null()), "{all}");
    assert_eq!(envelope(kaiza::Failure::from_unknown(Unknown::text("other"), context())), all);
    let started = kaiza::Failure::startup_failure(kaiza::Code::InvalidPath, context());
    let violated = kaiza::Failure::invariant_violation("I1", context());
    all["tool_name"] = json!("startup");
    assert_eq!(envelope(started), all, "all but the tool, which there is none of");
    all["tool_name"] = json!("the tool");
    all["invariant_id"] = json!("I1");
    assert_eq!(envelope(violated), all, "all but the invariant, which it is made of");
}

#[test]
fn o8_a_code_needs_a_row_a_test_and_a_release_note() {
    for contract in [owlclaw::contract(), kaiza::contract(), tuitbot::contract()] {
        assert_eq!(lint(contract), [], "{}", contract.name);
    }
    let text = include_str!("../../../../contracts/owlclaw.toml");
    let row = r#"
[[code]]
id = "runtime.busy"
category = "runtime"
retry = "backoff"
status = 503
alert = "warning"
message = "Busy"
meaning = "m"
action = "a"
since = "1.1.0"
type = "https://owlclaw.dev/problems/busy"
"#;
    let longer = Contract::load("owlclaw.toml", &format!("{text}{row}")).unwrap();
    assert_eq!(lint(&std::sync::Arc::new(longer)).len(), 2, "no test, and no note");
}

#[test]
fn k7_errors_pass_with_a_question_mark() {
    fn parse(text: &str) -> Result<u8, workrail::Failure> {
        Ok(text.parse()?)
    }
    fn coded(text: &str) -> Result<u8, workrail::Failure> {
        text.parse().fault(workrail::Code::ValidationError)
    }
    assert_eq!(parse("7").unwrap(), 7);
    assert_eq!(parse("x").unwrap_err().code(), workrail::Code::InternalError);
    let failure = coded("x").unwrap_err();
    assert_eq!(failure.code(), workrail::Code::ValidationError);
    assert_eq!(failure.report().cause.as_ref().unwrap()["name"], "ParseIntError");
}

#[test]
fn a4_what_types_make_is_read_back() {
    let failures = [
        owlclaw::Failure::from(owlclaw::governance_rate_limited().after(Duration::from_secs(3))),
        owlclaw::auth_forbidden().message("Not you").into(),
        owlclaw::runtime_timeout().details(&json!({ "ms": 3 })).into(),
    ];
    for failure in failures {
        let fault = failure.into_fault();
        for surface in [Surface::Mcp, Surface::Http] {
            let bytes = fault.envelope(surface, Profile::default());
            let read = owlclaw::contract().read(surface, Profile::default(), &bytes).unwrap();
            assert_eq!(read.code, fault.code().id);
            assert_eq!(read.incident, fault.public().incident);
            assert_eq!(read.details, fault.public().details);
        }
    }
}
