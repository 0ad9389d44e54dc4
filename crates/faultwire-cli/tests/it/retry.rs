//! `retry`: an envelope in, the answer out.

use serde_json::{Value, json};

use crate::support::{BUILTINS, faultwire};

fn envelope(contract: &str, fault: &Value) -> String {
    faultwire(&["render", "-c", contract], fault.to_string()).fine()
}

fn retry(contract: &str, fault: &Value, options: &[&str]) -> Value {
    let args = [&["retry", "-c", contract], options].concat();
    faultwire(&args, envelope(contract, fault)).json()
}

#[test]
fn o6_stop_wait_or_back_off() {
    let stop = retry("owlclaw", &json!({"code": "auth.forbidden"}), &["--read-only"]);
    assert_eq!(
        (&stop["retry"], &stop["delay_ms"], &stop["reason"]),
        (&json!(false), &Value::Null, &json!("never_retried"))
    );
    let wait =
        retry("owlclaw", &json!({"code": "governance.rate_limited", "retry_after_ms": 2000}), &[]);
    assert_eq!(
        (&wait["retry"], &wait["delay_ms"], &wait["max_delay_ms"]),
        (&json!(true), &json!(2000), &json!(2000))
    );
    assert_eq!(wait["code"], "governance.rate_limited");
    assert_eq!(wait["action"], "Wait for retry_after, then send the same call again.");
    for (attempt, ceiling) in [("1", 500), ("3", 2000), ("7", 30_000), ("4000000000", 30_000)] {
        let answer = retry(
            "owlclaw",
            &json!({"code": "runtime.timeout"}),
            &["--read-only", "--attempt", attempt],
        );
        assert_eq!(answer["max_delay_ms"], ceiling);
        assert!(answer["delay_ms"].as_u64().unwrap() <= ceiling);
    }
}

#[test]
fn o6_what_contradicts_itself_is_not_sent_again() {
    let envelope = |retryable: bool, code: &str| {
        let error = json!({
            "code": code, "message": "x", "category": "governance", "retryable": retryable,
            "incident_id": "inc_20261118_0123456789abcdef", "retry_after": 10,
        });
        json!({ "error": error }).to_string()
    };
    let bodies = [
        envelope(false, "governance.rate_limited"),
        envelope(false, "other.gateway_code"),
        envelope(true, "auth.forbidden"),
        json!({"retryable": false, "retry_after": 10}).to_string(),
        json!({"error": {"code": "auth.forbidden"}}).to_string(),
        json!({"code": "X", "retry": {"kind": "not_retryable", "afterMs": 5}}).to_string(),
    ];
    for body in bodies {
        let answer = faultwire(&["retry", "-c", "owlclaw", "--read-only"], body.clone()).json();
        assert_eq!(answer["retry"], false, "{body}");
    }
}

#[test]
fn a7_what_may_have_run_is_not_sent_again() {
    let timeout = json!({"code": "runtime.timeout"});
    assert_eq!(retry("owlclaw", &timeout, &[])["reason"], "may_have_run");
    assert_eq!(retry("owlclaw", &timeout, &["--idempotent"])["retry"], true);
    assert_eq!(
        retry("owlclaw", &timeout, &["--read-only", "--budget", "0"])["reason"],
        "budget_spent"
    );
    // The code itself says that nothing ran.
    assert_eq!(retry("workrail", &json!({"code": "TOKEN_SESSION_LOCKED"}), &[])["delay_ms"], 1000);
    assert_eq!(retry("workrail", &json!({"code": "TIMEOUT"}), &["--read-only"])["delay_ms"], 0);
}

#[test]
fn the_delay_of_the_row_or_of_the_reset() {
    let bare =
        r#"{"code":"TOKEN_SESSION_LOCKED","message":"m","retry":{"kind":"retryable_after_ms"}}"#;
    assert_eq!(faultwire(&["retry", "-c", "workrail"], bare).json()["delay_ms"], 1000);
    let harbour = crate::support::HARBOUR;
    assert_eq!(retry(harbour, &json!({"code": "H-200"}), &[])["delay_ms"], 3000);
    let past = retry(
        "tuitbot",
        &json!({"code": "x_rate_limited", "rate_limit_reset": "2020-01-01T00:00:00Z"}),
        &[],
    );
    assert_eq!((&past["retry"], &past["delay_ms"]), (&json!(true), &json!(0)));
    let future = retry(
        "tuitbot",
        &json!({"code": "x_rate_limited", "rate_limit_reset": 4_102_444_800u64}),
        &[],
    );
    assert!(future["delay_ms"].as_u64().unwrap() > 86_400_000, "{future}");
    let unknown = r#"{"error":{"code":"runtime.new","message":"m","category":"runtime","retryable":true,"incident_id":"i","retry_after":3}}"#;
    assert_eq!(faultwire(&["retry", "--read-only"], unknown).json()["delay_ms"], 3000);
}

#[test]
fn every_code_gets_an_answer_on_every_surface() {
    for contract in BUILTINS {
        let shown = faultwire(&["contract", "show", contract, "--json"], "").json();
        for (i, code) in shown["codes"].as_array().unwrap().iter().enumerate() {
            let surface = ["mcp", "http", "result"][i % 3];
            let envelope = faultwire(
                &["render", "-c", contract, "--surface", surface],
                json!({"code": code["id"]}).to_string(),
            )
            .fine();
            let answer = faultwire(&["retry", "-c", contract, "--read-only"], envelope).json();
            assert_eq!(
                (&answer["retry"], &answer["code"]),
                (&code["retryable"], &code["id"]),
                "{contract}"
            );
        }
    }
}

#[test]
fn an_unknown_code_goes_by_its_category() {
    let unknown = |category: &str| {
        let envelope = json!({"error": {"code": "runtime.brand_new", "message": "m", "category": category, "retryable": true, "incident_id": "i"}});
        faultwire(&["retry", "-c", "owlclaw", "--read-only"], envelope.to_string()).json()
    };
    assert_eq!(unknown("runtime")["retry"], true);
    assert_eq!(unknown("governance")["retry"], false);
    assert_eq!(unknown("nonsense")["retry"], false);
}

#[test]
fn what_is_no_envelope_is_refused() {
    assert!(faultwire(&["retry"], "{}").refused().contains("help:"));
    assert!(faultwire(&["retry", "--attempt", "0"], "{}").refused().contains("--attempt"));
}
