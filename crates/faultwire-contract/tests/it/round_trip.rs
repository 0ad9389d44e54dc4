//! A4: fault → envelope → fault, for every code, contract, surface and profile.

use faultwire_contract::{
    Condition, Contract, Fault, Meta, Origin, Outcome, Profile, ReadError, Report, Reset, Session,
    Surface, builtin,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::bounds::any_json;
use crate::support::{STAMP, every_contract, harbour};

/// Writes, reads, writes again: the bytes are the same, and so is all that the envelope can say.
fn check(contract: &std::sync::Arc<Contract>, fault: &Fault) {
    for profile in contract.all_profiles() {
        for surface in Surface::ALL {
            let bytes = fault.envelope(surface, profile);
            let read = contract
                .read(surface, profile, &bytes)
                .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&bytes)));
            assert_eq!(read.code, fault.code().id);
            assert_eq!(read.retry, Some(fault.retry()), "{}", read.code);
            same_where_told(fault.public(), &read);
            let again = Fault::new(contract, read, &STAMP).unwrap();
            let rewritten = again.envelope(surface, profile);
            assert_eq!(String::from_utf8_lossy(&rewritten), String::from_utf8_lossy(&bytes));
            // Members may come in any order.
            let shuffled = reversed(serde_json::from_slice(&bytes).unwrap()).to_string();
            let read_again = contract.read(surface, profile, shuffled.as_bytes()).unwrap();
            assert_eq!(read_again.code, again.code().id);
        }
    }
}

/// Every fact that the reading has is the fault's own, defaults aside.
fn same_where_told(fault: &Report, read: &Report) {
    let (fault, read) = (serde_json::to_value(fault).unwrap(), serde_json::to_value(read).unwrap());
    for (key, value) in read.as_object().unwrap() {
        match (key.as_str(), fault.get(key)) {
            ("meta" | "session", told) => {
                for (inner, value) in value.as_object().unwrap() {
                    if let Some(told) = told.and_then(|t| t.get(inner)) {
                        assert_eq!(value, told, "{key}.{inner}");
                    }
                }
            }
            ("tool", None) => {}
            (_, told) => assert_eq!(Some(value), told, "{key}"),
        }
    }
}

fn reversed(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            Value::Object(members.into_iter().rev().map(|(k, v)| (k, reversed(v))).collect())
        }
        other => other,
    }
}

#[test]
fn a4_every_code_bare_and_with_every_choice() {
    let mut faults = 0;
    for contract in every_contract() {
        for code in contract.codes() {
            for retry in code.retry.iter().map(|r| Some(*r)).chain([None]) {
                for status in code.status.iter().map(|s| Some(*s)).chain([None]) {
                    for delay in [None, Some(2500)] {
                        let report = Report {
                            retry,
                            status,
                            retry_after_ms: delay,
                            ..Report::new(&code.id)
                        };
                        let Ok(fault) = Fault::new(&contract, report, &STAMP) else {
                            assert!(delay.is_some());
                            continue;
                        };
                        check(&contract, &fault);
                        faults += 1;
                    }
                }
            }
        }
    }
    assert!(faults > 250, "{faults}");
}

prop_compose! {
    fn any_report()(
        message in prop::option::of(".{0,300}"),
        suggestion in prop::option::of("\\PC{0,700}"),
        details in prop::option::of(any_json()),
        data in prop::option::of(any_json()),
        cause in prop::option::of(any_json()),
        (tool, invariant, decision) in (prop::option::of(".{0,40}"), prop::option::of("[A-Z_]{1,20}"), prop::option::of(".{0,20}")),
        reset in prop::option::of(prop_oneof![".{0,30}".prop_map(Reset::Text), any::<u32>().prop_map(|n| Reset::Epoch(n.into()))]),
        (id, role, phase) in (prop::option::of(".{0,40}"), prop::option::of("\\PC{0,20}"), prop::option::of(".{0,20}")),
        (elapsed_ms, mode, approval_mode) in (prop::option::of(any::<u64>()), prop::option::of(".{0,20}"), prop::option::of(any::<bool>())),
        (incident, trace) in (prop::option::of("\\PC{1,40}"), prop::option::of(".{0,60}")),
        condition in prop::option::of(prop::sample::select(Condition::ALL)),
        origin in prop::option::of(prop::sample::select(&Origin::ALL[..])),
        outcome in prop::option::of(prop::sample::select(&Outcome::ALL[..])),
    ) -> Report {
        Report {
            message, suggestion, details, data, cause, tool, invariant, policy_decision: decision,
            rate_limit_reset: reset, condition, origin, outcome, incident, trace,
            session: Session { id, role, phase, ..Session::default() },
            meta: Meta { elapsed_ms, mode, approval_mode, tool_version: None },
            ..Report::default()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn a4_any_report_of_any_code(report in any_report(), pick in any::<prop::sample::Index>()) {
        for contract in every_contract() {
            let code = &contract.codes()[pick.index(contract.codes().len())];
            let fault = Fault::new(&contract, Report { code: code.id.clone(), ..report.clone() }, &STAMP).unwrap();
            check(&contract, &fault);
        }
    }

    #[test]
    fn reading_never_panics(text in ".{0,200}", value in any_json()) {
        for contract in every_contract() {
            for json in [text.clone(), value.to_string()] {
                let _ = contract.read_any(Surface::Mcp, json.as_bytes());
                let _ = contract.read_any(Surface::Http, json.as_bytes());
            }
        }
    }
}

#[test]
fn what_contradicts_its_code_is_no_envelope() {
    let owlclaw = builtin("owlclaw").unwrap();
    let refuse =
        |json: &str| owlclaw.read(Surface::Mcp, Profile::default(), json.as_bytes()).unwrap_err();
    let error = |code: &str, category: &str, retryable: bool, more: &str| {
        format!(
            r#"{{"error":{{"code":"{code}","message":"m","category":"{category}","retryable":{retryable},"incident_id":"i"{more}}}}}"#
        )
    };
    assert!(
        owlclaw
            .read(
                Surface::Mcp,
                Profile::default(),
                error("auth.forbidden", "auth", false, "").as_bytes()
            )
            .is_ok()
    );
    for (json, contradiction) in [
        (error("auth.forbidden", "runtime", false, ""), true),
        (error("auth.forbidden", "auth", true, ""), true),
        (error("auth.forbidden", "auth", false, r#","retry_after":3"#), true),
        (error("auth.forbidden", "auth", false, r#","extra":3"#), false),
        (error("auth.forbidden", "auth", false, r#","code":"auth.forbidden""#), false),
        (r#"{"error":{"code":"auth.forbidden"}}"#.to_owned(), false),
        ("[]".to_owned(), false),
        (String::new(), false),
    ] {
        let refused = refuse(&json);
        assert_eq!(
            matches!(refused, ReadError::Contradiction { .. }),
            contradiction,
            "{json}: {refused}"
        );
    }
    let unknown = refuse(&error("runtime.new", "runtime", true, ""));
    let ReadError::UnknownCode { code, category, .. } = unknown else { panic!("{unknown}") };
    assert_eq!((code.as_str(), category.as_deref()), ("runtime.new", Some("runtime")));
    assert!(owlclaw.class_of_unknown(Some("runtime"), Some(true)).is_retryable());
    assert!(
        !owlclaw.class_of_unknown(Some("governance"), None).is_retryable(),
        "its codes do not agree"
    );
    assert!(!owlclaw.class_of_unknown(None, None).is_retryable());
    assert!(!owlclaw.class_of_unknown(Some("runtime"), Some(false)).is_retryable());
}

#[test]
fn a_list_is_read_item_by_item() {
    let harbour = harbour();
    let read =
        |json: Value| harbour.read(Surface::Mcp, Profile::default(), json.to_string().as_bytes());
    assert!(read(json!(["failure", "H-100", {"text": "t", "again": "no"}])).is_ok());
    assert!(read(json!(["failure", "H-100", {"text": "t", "again": "no"}, 1])).is_err());
    assert!(read(json!(["failure", "H-100"])).is_err());
    assert!(read(json!(["notice", "H-100", {"text": "t", "again": "no"}])).is_err());
    assert!(read(json!(["failure", "H-100", {"text": "t", "again": "later"}])).is_err());
}
