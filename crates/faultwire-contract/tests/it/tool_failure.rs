//! What the `_meta` of a failed tool's result says (S5).

use std::sync::Arc;

use faultwire_contract::{
    BUILTINS, CONTRACT_META, Code, Condition, Contract, ENVELOPE_META, FailureClass, Fault,
    Outcome, Profile, Report, ResultOptions, Stamp, Surface, TOOL_FAILURE_META, ToolFailure,
    builtin,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{STAMP, every_contract, fault, harbour, keys};

/// The built-in contracts that forbid it.
const FORBID: [&str; 1] = ["context-resolve"];

fn result(fault: &Fault, has_output_schema: bool) -> Value {
    let options = ResultOptions { has_output_schema, modern: true };
    serde_json::from_slice(&fault.call_tool_result(Profile::default(), options)).unwrap()
}

fn told(contract: &str, json: &str) -> Value {
    result(&fault(contract, json).unwrap(), false)["_meta"][TOOL_FAILURE_META].clone()
}

fn of(contract: &Arc<Contract>, report: Report) -> Fault {
    Fault::new(contract, report, &STAMP).unwrap()
}

/// Every code, in each of its retry classes.
fn reports(code: &Code) -> impl Iterator<Item = Report> {
    code.retry.iter().map(|class| Report { retry: Some(*class), ..Report::new(&code.id) })
}

#[test]
fn s5_every_result_has_it_in_every_contract_that_does_not_forbid_it() {
    let mut seen = 0;
    for contract in every_contract() {
        for report in contract.codes().iter().flat_map(reports) {
            let place = format!("{} {}", contract.name, report.code);
            let fault = of(&contract, report);
            for has_output_schema in [false, true] {
                let result = result(&fault, has_output_schema);
                let failure = &result["_meta"][TOOL_FAILURE_META];
                if FORBID.contains(&&*contract.name) {
                    assert!(failure.is_null(), "{place}");
                    continue;
                }
                let retryable = fault.retry().is_retryable();
                assert_eq!(failure["code"], fault.code().id, "{place}");
                assert_eq!(failure["retryable"], retryable, "{place}");
                let id = fault.public().incident.as_deref().unwrap();
                assert!(!id.is_empty() && failure["correlationId"] == id, "{place}: {failure}");
                let table = contract.tool_failure.as_ref().unwrap();
                let class = table.class(&fault.code().category).unwrap();
                let class = if retryable { FailureClass::Reliability } else { class };
                assert_eq!(failure["class"], class.name(), "{place}");
                assert_eq!(ToolFailure::read(&result), fault.tool_failure(), "{place}");
                seen += 1;
            }
        }
    }
    assert!(seen > 200, "{seen}");
}

/// Code, class, retryable.
#[test]
fn s5_the_classes_of_the_standard_contract() {
    let classes = |class| {
        let contract = builtin("standard").unwrap();
        let of_class = |code: &&Code| {
            told("standard", &json!({ "code": code.id }).to_string())["class"] == class
        };
        contract.codes().iter().filter(of_class).map(|c| c.id.clone()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        classes("capability"),
        "invalid_arguments unknown_tool unknown_method unsupported_version cancelled not_found \
         already_exists failed_precondition conflict tool_failed",
    );
    assert_eq!(
        classes("reliability"),
        "locked rate_limited timeout unavailable server_crashed bad_response start_failed internal",
    );
    assert_eq!(classes("governance"), "unauthenticated permission_denied quota_exceeded");
}

#[test]
fn s5_the_members_in_their_order() {
    let limited = r#"{"code":"rate_limited","condition":"rate_limited","outcome":"not_sent",
        "retry_after_ms":1500,"timestamp":"2026-01-19T15:32:10.123Z","incident":"inc_1"}"#;
    let failure = told("standard", limited);
    let order = ["class", "code", "retryable", "retryNotBefore", "correlationId", "agentGuidance"];
    assert_eq!(keys(&failure), order);
    assert_eq!(failure["agentGuidance"], "Wait 2 seconds, then call again.");
    for has_output_schema in [false, true] {
        let result = result(&fault("standard", limited).unwrap(), has_output_schema);
        let meta = [CONTRACT_META, TOOL_FAILURE_META, ENVELOPE_META];
        assert_eq!(keys(&result["_meta"]), meta[..if has_output_schema { 3 } else { 2 }]);
    }
}

#[test]
fn s5_where_a_tool_declares_an_output_schema_the_structured_form_is_in_meta() {
    for contract in every_contract() {
        for code in contract.codes() {
            let fault = of(&contract, Report::new(&code.id));
            let envelope = fault.envelope(Surface::Mcp, Profile::default());
            let envelope: Value = serde_json::from_slice(&envelope).unwrap();
            let declared = result(&fault, true);
            assert!(declared.get("structuredContent").is_none(), "{}", code.id);
            assert_eq!(declared["_meta"][ENVELOPE_META], envelope, "{}", code.id);
            let plain = result(&fault, false);
            assert_eq!(plain.get("structuredContent").is_some(), envelope.is_object());
            assert!(plain["_meta"].get(ENVELOPE_META).is_none(), "{}", code.id);
        }
    }
}

/// The fault, and the moment in milliseconds.
#[test]
fn s5_there_is_a_moment_only_where_there_is_a_delay_and_a_retry() {
    let at = STAMP.now_ms;
    let rows = [
        ("standard", json!({ "code": "rate_limited", "retry_after_ms": 1500 }), Some(at + 2000)),
        ("kaiza", json!({ "code": "FILE_READ_FAILED", "retry_after_ms": 1500 }), Some(at + 1500)),
        ("standard", json!({ "code": "rate_limited" }), None),
        ("standard", json!({ "code": "not_found" }), None),
        ("workrail", json!({ "code": "TOKEN_SESSION_LOCKED" }), Some(at + 1000)),
        ("workrail", json!({ "code": "TIMEOUT" }), None),
        (
            "workrail",
            json!({ "code": "TIMEOUT", "retry": "after", "retry_after_ms": 5 }),
            Some(at + 5),
        ),
        (
            "standard",
            json!({ "code": "timeout", "retry_after_ms": 3000, "timestamp": "1970-01-01T00:00:01.000Z" }),
            Some(4000),
        ),
        (
            "tuitbot",
            json!({ "code": "x_rate_limited", "rate_limit_reset": "2026-01-19T15:33:00Z" }),
            Some(1_768_836_780_000),
        ),
        ("tuitbot", json!({ "code": "x_forbidden", "rate_limit_reset": 1_768_836_780 }), None),
        (
            "kaiza",
            json!({ "code": "FILE_READ_FAILED", "retry_after_ms": u64::MAX }),
            Some((1 << 53) - 1),
        ),
    ];
    for (contract, report, expected) in rows {
        let failure = told(contract, &report.to_string());
        assert_eq!(failure.get("retryNotBefore"), expected.map(Value::from).as_ref(), "{report}");
        assert!(expected.is_none() || failure["retryable"] == true, "{report}");
    }
}

#[test]
fn s4_guidance_never_advises_to_repeat_what_may_have_run() {
    for contract in every_contract().iter().filter(|c| c.tool_failure.is_some()) {
        let is_built_in = builtin(&contract.name).is_some();
        for code in contract.codes() {
            for condition in Condition::ALL.iter().copied().map(Some).chain([None]) {
                let outcomes = Outcome::ALL.map(Some);
                for (outcome, repeatable) in
                    outcomes.into_iter().flat_map(|o| [(o, true), (o, false)])
                {
                    let fault = of(
                        contract,
                        Report {
                            condition,
                            outcome,
                            repeatable: Some(repeatable),
                            ..Report::new(&code.id)
                        },
                    );
                    let place = format!("{} {} {condition:?} {outcome:?}", contract.name, code.id);
                    let failure = fault.tool_failure().unwrap();
                    let guidance = failure.agent_guidance.as_deref();
                    let is_its = |c: &Condition| contract.code_for(*c, None).id == code.id;
                    let first = || Condition::ALL.iter().copied().find(is_its);
                    let reached = condition.or_else(first);
                    let reaches = reached.is_none_or(|c| c.reported_outcome() != Outcome::NotSent);
                    let is_unsafe =
                        reaches && outcome == Some(Outcome::MaybeExecuted) && !repeatable;
                    // A7: it ran, and twice may do harm.
                    let forbidden = reaches
                        && !repeatable
                        && outcome == Some(Outcome::Executed)
                        && failure.retryable;
                    if failure.retryable && (is_unsafe || forbidden) {
                        let silent = guidance.is_none() && !is_built_in;
                        let warned =
                            guidance.is_some_and(|g| g.starts_with("The tool may have run"));
                        assert!(silent || warned, "{place}: {guidance:?}");
                    } else if is_unsafe {
                        let warned = guidance.is_some_and(|g| g.contains("The tool may have run"));
                        assert!(warned || !is_built_in, "{place}: {guidance:?}");
                    } else if outcome == Some(Outcome::NotSent) || repeatable {
                        let warned = guidance.is_some_and(|g| g.contains("may have run"));
                        assert!(guidance.is_some() && !warned, "{place}: {guidance:?}");
                    }
                    let next = fault.public().next.as_deref();
                    assert!(next.is_none() || next == guidance, "{place}: {guidance:?}");
                }
            }
        }
    }
}

/// The author's own sentence is held to the same where the contract's `[next]` does not warn.
#[test]
fn s4_a_given_sentence_is_no_way_around_it() {
    let given = |code: &str, repeatable: bool| {
        let report = json!({ "code": code, "next": "Call again.", "outcome": "maybe_executed",
            "repeatable": repeatable });
        told("kaiza", &report.to_string())["agentGuidance"].clone()
    };
    let warning = "The tool may have run: check its effect before you call it again.";
    assert_eq!(given("FILE_READ_FAILED", false), warning);
    assert_eq!(given("FILE_READ_FAILED", true), "Call again.");
    assert_eq!(given("PATCH_INVALID", false), format!("Call again. {warning}"));
}

#[test]
fn c4_s5_context_resolve_answers_the_same_bytes_whenever_and_whatever_the_id() {
    let contract = builtin("context-resolve").unwrap();
    for code in contract.codes() {
        for has_output_schema in [false, true] {
            let bytes = |now_ms, random| {
                let stamp = Stamp { now_ms, random, show_stack: false };
                let fault = Fault::new(&contract, Report::new(&code.id), &stamp).unwrap();
                let options = ResultOptions { has_output_schema, modern: false };
                fault.call_tool_result(Profile::default(), options)
            };
            assert_eq!(bytes(1, 2), bytes(1_768_836_730_123, 7), "{}", code.id);
        }
    }
    let fault = Fault::new(&contract, Report::new("io_error"), &STAMP).unwrap();
    assert_eq!(keys(&result(&fault, false)["_meta"]), [CONTRACT_META]);
}

#[test]
fn s5_a_contract_without_the_table_loads_and_writes_none() {
    let text = include_str!("../data/harbour.toml");
    let without = &text[..text.find("[tool_failure.class]").unwrap()];
    let contract = Arc::new(Contract::load("harbour.toml", without).unwrap());
    let fault = of(&contract, Report::new("H-300"));
    assert_eq!(fault.tool_failure(), None);
    assert_eq!(keys(&result(&fault, false)["_meta"]), [CONTRACT_META]);
    assert!(harbour().tool_failure.is_some());
    let without = BUILTINS.iter().filter(|b| b.contract().tool_failure.is_none());
    assert_eq!(without.map(|b| b.name).collect::<Vec<_>>(), FORBID);
}

/// What another server says, and what is read of it: class, code, retryable, moment.
#[test]
fn s5_what_another_server_says_is_read_with_care() {
    use FailureClass::{Capability, Governance, Reliability};
    let moment = 1_768_836_730_123_i64;
    let rows = [
        (
            json!({ "class": "reliability", "code": "busy", "retryable": true, "retryNotBefore": moment }),
            Some((Reliability, "busy", true, Some(moment))),
        ),
        (
            json!({ "class": "reliability", "code": "busy", "retryable": true, "retryNotBefore": 1500.2 }),
            Some((Reliability, "busy", true, Some(1501))),
        ),
        (
            json!({ "class": "reliability", "code": "busy", "retryable": true, "retryNotBefore": null }),
            Some((Reliability, "busy", true, None)),
        ),
        // Nobody could wait for that.
        (
            json!({ "class": "reliability", "code": "busy", "retryable": true, "retryNotBefore": "soon" }),
            Some((Reliability, "busy", false, None)),
        ),
        (
            json!({ "class": "reliability", "code": "busy", "retryable": true, "retryNotBefore": 1e300 }),
            Some((Reliability, "busy", false, None)),
        ),
        // A claim is `true`, and nothing like it.
        (
            json!({ "class": "reliability", "code": "busy", "retryable": "true" }),
            Some((Reliability, "busy", false, None)),
        ),
        (
            json!({ "class": "reliability", "code": "busy", "retryable": 1 }),
            Some((Reliability, "busy", false, None)),
        ),
        (
            json!({ "class": "reliability", "code": "busy" }),
            Some((Reliability, "busy", false, None)),
        ),
        // The proposal: no other class is retried.
        (
            json!({ "class": "capability", "code": "x", "retryable": true, "retryNotBefore": moment }),
            Some((Capability, "x", false, None)),
        ),
        (
            json!({ "class": "governance", "code": "x", "retryable": true }),
            Some((Governance, "x", false, None)),
        ),
        (json!({ "class": "Reliability", "code": "x", "retryable": true }), None),
        (json!({ "class": ["reliability"], "code": "x" }), None),
        (json!({ "code": "x", "retryable": true }), None),
        (json!({ "class": "reliability", "retryable": true }), None),
        (json!({ "class": "reliability", "code": "", "retryable": true }), None),
        (json!({ "class": "reliability", "code": 5, "retryable": true }), None),
        (json!({ "class": "reliability", "code": "x".repeat(257), "retryable": true }), None),
        (json!([{ "class": "reliability", "code": "x" }]), None),
        (json!("reliability"), None),
        (json!(null), None),
    ];
    for (said, expected) in rows {
        let result = json!({ "isError": true, "_meta": { TOOL_FAILURE_META: said } });
        let read = ToolFailure::read(&result);
        let seen = read.as_ref().map(|f| (f.class, &*f.code, f.retryable, f.retry_not_before_ms));
        assert_eq!(seen, expected, "{said}");
    }
    let beside = |id: Value, guidance: Value| {
        let said = json!({ "class": "capability", "code": "x", "correlationId": id, "agentGuidance": guidance });
        let result = json!({ "_meta": { TOOL_FAILURE_META: said } });
        let read = ToolFailure::read(&result).unwrap().into_owned();
        (read.correlation_id.map(String::from), read.agent_guidance.map(String::from))
    };
    assert_eq!(
        beside(json!("7f"), json!("a\u{1b}[31mb\u{202e}")),
        (Some("7f".into()), Some("ab".into()))
    );
    assert_eq!(beside(json!(7), json!({})), (None, None));
    assert_eq!(beside(json!("7".repeat(257)), json!("a".repeat(2049))), (None, None));
    assert_eq!(beside(json!(" "), json!("\u{200b}")), (None, None));
}

#[test]
fn s5_a_delay_is_what_is_left_of_it() {
    let failure = |moment: i64| ToolFailure {
        class: FailureClass::Reliability,
        code: "busy".into(),
        retryable: true,
        retry_not_before_ms: Some(moment),
        correlation_id: None,
        agent_guidance: None,
    };
    let left = |moment, now| failure(moment).delay(now).unwrap().as_millis();
    assert_eq!(left(5000, 2000), 3000);
    assert_eq!(left(5000, 6000), 0);
    assert_eq!(left(i64::MIN, i64::MAX), 0);
    assert_eq!(left(i64::MAX, i64::MIN), u128::from(i64::MAX.unsigned_abs()));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::hash_map("[a-z]{1,3}", inner, 0..3).prop_map(|m| json!(m)),
        ]
    })
}

proptest! {
    /// Only one shape of a claim is ever believed.
    #[test]
    fn s5_nothing_else_is_retryable(
        class in prop_oneof![3 => "capability|reliability|governance".prop_map(Value::from), 1 => any_json()],
        code in prop_oneof![3 => "[a-z]{1,8}".prop_map(Value::from), 1 => any_json()],
        retryable in prop_oneof![any::<bool>().prop_map(Value::from), any_json()],
        moment in any_json(), id in any_json(), guidance in any_json(),
    ) {
        let said = json!({ "class": class, "code": code, "retryable": retryable,
            "retryNotBefore": moment, "correlationId": id, "agentGuidance": guidance });
        let result = json!({ "_meta": { TOOL_FAILURE_META: said } });
        if let Some(failure) = ToolFailure::read(&result) {
            prop_assert!(!failure.code.is_empty());
            prop_assert!(!failure.retryable || (class == "reliability" && retryable == true));
            prop_assert!(failure.retryable || failure.retry_not_before_ms.is_none());
            prop_assert!(failure.delay(0).is_some() == failure.retry_not_before_ms.is_some());
        }
    }
}
