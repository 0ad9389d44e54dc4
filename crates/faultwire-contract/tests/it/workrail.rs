//! The clauses of `WorkRail` that the contract file carries.

use faultwire_contract::{
    Fault, FaultError, Profile, Report, RetryClass, Surface, builtin, details,
};
use serde_json::{Value, json};

use crate::support::{STAMP, envelope, envelope_json, fault, keys, text};

#[test]
fn w1_one_shape_with_retry_always() {
    let contract = builtin("workrail").unwrap();
    for code in contract.codes() {
        let plain = envelope_json("workrail", &json!({"code": code.id}).to_string());
        assert_eq!(keys(&plain), ["code", "message", "retry"]);
        let full = json!({"code": code.id, "suggestion": "s", "details": {"a": 1}}).to_string();
        assert_eq!(
            keys(&envelope_json("workrail", &full)),
            ["code", "message", "retry", "suggestion", "details"]
        );
    }
}

#[test]
fn w2_the_three_kinds_and_their_delay() {
    let retry = |json: &str| envelope_json("workrail", json)["retry"].clone();
    assert_eq!(retry(r#"{"code":"NOT_FOUND"}"#), json!({"kind":"not_retryable"}));
    assert_eq!(retry(r#"{"code":"TIMEOUT"}"#), json!({"kind":"retryable_immediate"}));
    assert_eq!(
        retry(r#"{"code":"TOKEN_SESSION_LOCKED"}"#),
        json!({"kind":"retryable_after_ms","afterMs":1000})
    );
    assert_eq!(
        retry(r#"{"code":"TOKEN_SESSION_LOCKED","retry_after_ms":2000}"#),
        json!({"kind":"retryable_after_ms","afterMs":2000})
    );
}

#[test]
fn w3_thirteen_codes_and_the_kinds_that_each_may_choose() {
    use RetryClass::{After, Immediate, Never};
    let table: [(&str, &[RetryClass]); 13] = [
        ("VALIDATION_ERROR", &[Never]),
        ("NOT_FOUND", &[Never]),
        ("PRECONDITION_FAILED", &[Never]),
        ("TIMEOUT", &[Immediate, Never, After]),
        ("INTERNAL_ERROR", &[Never, After]),
        ("TOKEN_INVALID_FORMAT", &[Never]),
        ("TOKEN_UNSUPPORTED_VERSION", &[Never]),
        ("TOKEN_BAD_SIGNATURE", &[Never]),
        ("TOKEN_SCOPE_MISMATCH", &[Never]),
        ("TOKEN_UNKNOWN_NODE", &[Never]),
        ("TOKEN_WORKFLOW_HASH_MISMATCH", &[Never]),
        ("TOKEN_SESSION_LOCKED", &[After]),
        ("SESSION_NOT_HEALTHY", &[Never]),
    ];
    let contract = builtin("workrail").unwrap();
    let found: Vec<_> =
        contract.codes().iter().map(|c| (c.id.as_str(), c.retry.as_slice())).collect();
    assert_eq!(found, table);
    for (code, listed) in table {
        for class in RetryClass::ALL {
            let made = fault("workrail", &json!({"code": code, "retry": class}).to_string());
            if listed.contains(&class) {
                assert_eq!(made.unwrap().retry(), class);
            } else {
                assert!(matches!(made, Err(FaultError::RetryNotListed { .. })), "{code} {class:?}");
            }
        }
    }
    // A delay alone chooses the kind that takes one; where there is none it is refused.
    let delayed = fault("workrail", r#"{"code":"INTERNAL_ERROR","retry_after_ms":50}"#).unwrap();
    assert_eq!(delayed.retry(), After);
    let refused = fault("workrail", r#"{"code":"NOT_FOUND","retry_after_ms":50}"#).unwrap_err();
    assert!(matches!(refused, FaultError::DelayNotTaken { .. }));
    let refused =
        fault("workrail", r#"{"code":"TIMEOUT","retry":"immediate","retry_after_ms":50}"#)
            .unwrap_err();
    assert!(matches!(refused, FaultError::DelayNotTaken { .. }));
}

#[test]
fn w5_details_are_json_and_nothing_else() {
    #[derive(serde::Serialize)]
    struct Measured {
        name: &'static str,
        values: Vec<f64>,
    }
    let contract = builtin("workrail").unwrap();
    let report =
        || Report { message: Some("cannot measure".into()), ..Report::new("PRECONDITION_FAILED") };
    let good = Measured { name: "a", values: vec![1.5] };
    let fault = Fault::with_details(&contract, report(), &good, &STAMP).unwrap();
    assert_eq!(fault.public().details, Some(json!({"name":"a","values":[1.5]})));

    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let broken = Measured { name: "a", values: vec![1.5, bad] };
        let fault = Fault::with_details(&contract, report(), &broken, &STAMP).unwrap();
        let envelope: Value =
            serde_json::from_str(&text(&fault, Surface::Mcp, Profile::default())).unwrap();
        assert_eq!(envelope["code"], "INTERNAL_ERROR");
        assert_eq!(envelope["message"], "Error details validation failed");
        assert_eq!(envelope["details"]["originalError"], "cannot measure");
        let why = envelope["details"]["validationErrors"][0].as_str().unwrap();
        assert!(why.starts_with("$.values[1]: "), "{why}");
    }
    let keys = std::collections::HashMap::from([(vec![1u8], 1)]);
    assert_eq!(details::from(&keys).unwrap_err(), ["$: a key that is no string"]);
    // Bounded in depth and size.
    let mut deep = json!("bottom");
    for _ in 0..60 {
        deep = json!([deep]);
    }
    let fault =
        crate::support::fault("workrail", &json!({"code":"NOT_FOUND","details":deep}).to_string())
            .unwrap();
    assert!(!text(&fault, Surface::Mcp, Profile::default()).contains("bottom"));
    let huge = json!({"code":"NOT_FOUND","details":{"x":"y".repeat(100_000)}}).to_string();
    assert!(envelope("workrail", &huge).len() < 9_000);
}

#[test]
fn w6_suggestions_are_cut_at_512_bytes() {
    let suggestion = |s: &str| {
        let json = json!({"code":"NOT_FOUND","suggestion":s}).to_string();
        envelope_json("workrail", &json)["suggestion"].as_str().unwrap().to_owned()
    };
    let fits = "s".repeat(512);
    assert_eq!(suggestion(&fits), fits);
    let cut = suggestion(&"s".repeat(513));
    assert_eq!((cut.len(), cut.ends_with("sss...")), (512, true));
    for c in ['é', '日', '🙂'] {
        let cut = suggestion(&c.to_string().repeat(400));
        assert!(cut.len() <= 512 && cut.len() > 505 && cut.ends_with("..."));
        assert!(cut.trim_end_matches("...").chars().all(|x| x == c));
    }
}

#[test]
fn w7_options_are_named() {
    // A list is no report: nothing can be given by its place.
    let mut places = vec![Value::Null; 23];
    places[0] = json!("NOT_FOUND");
    places[2] = json!("message");
    assert!(serde_json::from_value::<Report>(Value::from(places)).is_err());
    let nested =
        json!({"code": "NOT_FOUND", "session": ["id", "client", "role", "root", "phase", "hash"]});
    assert!(serde_json::from_value::<Report>(nested).is_err());
    let nested = json!({"code": "NOT_FOUND", "hints": ["nearest", "missing", "allowed", "root"]});
    assert!(serde_json::from_value::<Report>(nested).is_err());
    assert!(
        serde_json::from_value::<Report>(
            json!({"code": "NOT_FOUND", "session": null, "meta": null})
        )
        .is_ok()
    );
    let named = Report { suggestion: Some("look again".into()), ..Report::new("NOT_FOUND") };
    let fault = Fault::new(&builtin("workrail").unwrap(), named, &STAMP).unwrap();
    assert_eq!(fault.public().suggestion.as_deref(), Some("look again"));
}
