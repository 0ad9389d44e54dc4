//! The clauses of `TuitBot` that the contract file carries.

use faultwire_contract::{Fault, Meta, Report, ResultOptions, RetryClass, Surface, builtin};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::support::{STAMP, envelope, envelope_json, fault, keys, text};

/// The document's table, row by row.
const TABLE: [(&str, &str, bool); 27] = [
    ("x_rate_limited", "X API", true),
    ("x_auth_expired", "X API", false),
    ("x_forbidden", "X API", false),
    ("x_account_restricted", "X API", false),
    ("x_network_error", "X API", true),
    ("x_not_configured", "X API", false),
    ("x_api_error", "X API", true),
    ("db_error", "Database", true),
    ("validation_error", "Validation", false),
    ("invalid_input", "Validation", false),
    ("tweet_too_long", "Validation", false),
    ("llm_error", "LLM", true),
    ("llm_not_configured", "LLM", false),
    ("unsupported_media_type", "Media", false),
    ("file_read_error", "Media", false),
    ("media_upload_error", "Media", false),
    ("thread_partial_failure", "Thread", true),
    ("policy_error", "Policy", true),
    ("policy_denied_blocked", "Policy", false),
    ("policy_denied_rate_limited", "Policy", false),
    ("policy_denied_hard_rule", "Policy", false),
    ("policy_denied_user_rule", "Policy", false),
    ("context_error", "Context", false),
    ("recommendation_error", "Context", false),
    ("topic_error", "Context", false),
    ("not_found", "Resource", false),
    ("serialization_error", "Internal", false),
];

#[test]
fn t1_one_envelope_for_failures_and_successes() {
    let failure = envelope_json("tuitbot", r#"{"code":"db_error","meta":{"elapsed_ms":4}}"#);
    assert_eq!(keys(&failure), ["success", "data", "error", "meta"]);
    assert_eq!(failure["success"], false);
    let without = envelope_json("tuitbot", r#"{"code":"db_error"}"#);
    assert_eq!(keys(&without), ["success", "data", "error"]);

    let contract = builtin("tuitbot").unwrap();
    let data = RawValue::from_string(r#"{"id": 1.0, "x":[ ]}"#.to_owned()).unwrap();
    let meta = Meta { elapsed_ms: Some(12), ..Meta::default() };
    let wrapped = contract.success(contract.profile("api").unwrap(), &data, &meta).unwrap();
    assert_eq!(
        String::from_utf8(wrapped).unwrap(),
        r#"{"success":true,"data":{"id": 1.0, "x":[ ]},"meta":{"tool_version":"1.0","elapsed_ms":12}}"#
    );
}

#[test]
fn t1_data_is_null_on_failure_except_for_what_was_posted() {
    for (code, _, _) in TABLE {
        let json = json!({"code": code, "data": {"posted": [1, 2]}}).to_string();
        let data = &envelope_json("tuitbot", &json)["data"];
        if code == "thread_partial_failure" {
            assert_eq!(*data, json!({"posted": [1, 2]}));
        } else {
            assert_eq!(*data, Value::Null, "{code}");
        }
    }
}

#[test]
fn t2_the_error_object() {
    assert_eq!(
        envelope(
            "tuitbot",
            r#"{"code":"x_rate_limited","message":"slow down","rate_limit_reset":1772100000,"policy_decision":"denied"}"#
        ),
        r#"{"success":false,"data":null,"error":{"code":"x_rate_limited","message":"slow down","retryable":true,"rate_limit_reset":1772100000,"policy_decision":"denied"}}"#
    );
    let plain = envelope_json("tuitbot", r#"{"code":"not_found"}"#);
    assert_eq!(keys(&plain["error"]), ["code", "message", "retryable"]);
}

#[test]
fn t3_the_27_codes_of_the_table() {
    let contract = builtin("tuitbot").unwrap();
    let found: Vec<(&str, &str, bool)> = contract
        .codes()
        .iter()
        .map(|c| (c.id.as_str(), c.category.as_str(), c.default_retry().is_retryable()))
        .collect();
    assert_eq!(found, TABLE);
    assert_eq!(found.iter().filter(|(_, _, retryable)| *retryable).count(), 7);
}

#[test]
fn t4_nobody_can_set_retryable() {
    for (code, _, retryable) in TABLE {
        let json = json!({ "code": code }).to_string();
        assert_eq!(envelope_json("tuitbot", &json)["error"]["retryable"], retryable);
        // There is no such key, and the class must be the row's own.
        let flag = json!({"code": code, "retryable": !retryable}).to_string();
        assert!(serde_json::from_str::<Report>(&flag).is_err());
        for class in RetryClass::ALL {
            let json = json!({"code": code, "retry": class}).to_string();
            let own = contract_class(code) == class;
            assert_eq!(fault("tuitbot", &json).is_ok(), own, "{code} {class:?}");
        }
    }
}

fn contract_class(code: &str) -> RetryClass {
    builtin("tuitbot").unwrap().code(code).unwrap().default_retry()
}

#[test]
fn t5_profiles_and_their_metadata() {
    let contract = builtin("tuitbot").unwrap();
    let metas = [
        json!({}),
        json!({"elapsed_ms":3}),
        json!({"mode":"composer","approval_mode":true,"elapsed_ms":3}),
    ];
    for (code, _, _) in TABLE {
        for meta in &metas {
            let report: Report =
                serde_json::from_value(json!({"code": code, "meta": meta})).unwrap();
            let fault = Fault::new(&contract, report, &STAMP).unwrap();
            let meta_in = |profile| {
                let text = text(&fault, Surface::Mcp, contract.profile(profile).unwrap());
                serde_json::from_str::<Value>(&text).unwrap()["meta"].clone()
            };
            let api = meta_in("api");
            assert!(api.get("mode").is_none() && api.get("approval_mode").is_none());
            let workflow = meta_in("workflow");
            assert_eq!(keys(&workflow), ["tool_version", "elapsed_ms", "mode", "approval_mode"]);
            assert!(workflow["mode"].is_string() && workflow["approval_mode"].is_boolean());
        }
    }
    // False is written, not left out.
    let contract = builtin("tuitbot").unwrap();
    let data = RawValue::from_string("1".to_owned()).unwrap();
    let success =
        contract.success(contract.profile("workflow").unwrap(), &data, &Meta::default()).unwrap();
    let success: Value = serde_json::from_slice(&success).unwrap();
    assert_eq!(success["meta"]["approval_mode"], false);
}

#[test]
fn t7_a_plain_client_sees_the_failure() {
    let fault = fault("tuitbot", r#"{"code":"llm_error"}"#).unwrap();
    let contract = builtin("tuitbot").unwrap();
    let result = fault.call_tool_result(contract.profile("api").unwrap(), ResultOptions::default());
    let result: Value = serde_json::from_slice(&result).unwrap();
    assert_eq!(result["isError"], true);
    let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, result["structuredContent"]);
    assert_eq!(
        result["_meta"]["dev.faultwire/contract"],
        json!({"name":"tuitbot","version":"1.0.0"})
    );

    let declared = ResultOptions { has_output_schema: true, modern: true };
    let result = fault.call_tool_result(contract.profile("api").unwrap(), declared);
    let result: Value = serde_json::from_slice(&result).unwrap();
    assert!(result.get("structuredContent").is_none());
    assert_eq!(result["resultType"], "complete");
}
