//! Every rendered envelope validates against the schema of its surface.

use faultwire_contract::{Fault, Meta, Report, ResultOptions, SchemaOf, Surface};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::support::{STAMP, every_contract, text};

fn full(code: &str) -> Report {
    serde_json::from_value(json!({
        "code": code, "message": "m", "tool": "t", "method": "tools/call", "origin": "upstream", "outcome": "executed",
        "suggestion": "s", "details": {"a": [1, null]}, "data": [1], "cause": {"message": "c"}, "invariant": "I",
        "rate_limit_reset": 12, "policy_decision": "denied", "condition": "tool_error",
        "session": {"id": "i", "client": "c", "role": "r", "workspace_root": "w", "phase": "p", "plan_hash": "h"},
        "meta": {"tool_version": "1", "elapsed_ms": 3, "mode": "composer", "approval_mode": true},
    }))
    .unwrap()
}

fn validator(schema: &Value) -> jsonschema::Validator {
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    jsonschema::draft202012::new(schema).unwrap()
}

#[test]
fn every_envelope_validates() {
    let mut checked = 0;
    for contract in every_contract() {
        for profile in contract.all_profiles() {
            for surface in Surface::ALL {
                let schema = contract.schema(SchemaOf::Surface(surface), profile).unwrap();
                let validator = validator(&schema);
                for code in contract.codes() {
                    for report in [Report::new(&code.id), full(&code.id)] {
                        let fault = Fault::new(&contract, report, &STAMP).unwrap();
                        let envelope: Value =
                            serde_json::from_slice(&fault.envelope(surface, profile)).unwrap();
                        let errors: Vec<_> =
                            validator.iter_errors(&envelope).map(|e| e.to_string()).collect();
                        assert!(
                            errors.is_empty(),
                            "{} {}: {errors:?} {envelope}",
                            contract.name,
                            code.id
                        );
                        checked += 1;
                    }
                }
                // It can fail: a member more, a member less, another code.
                assert!(!validator.is_valid(&json!({})));
                assert!(!validator.is_valid(&json!({"error": {"code": "nope", "message": "m"}})));
            }
        }
    }
    assert!(checked > 400);
}

#[test]
fn every_result_validates() {
    for contract in every_contract() {
        for profile in contract.all_profiles() {
            let validator = validator(&contract.schema(SchemaOf::CallToolResult, profile).unwrap());
            for code in contract.codes() {
                let fault = Fault::new(&contract, full(&code.id), &STAMP).unwrap();
                for options in [
                    ResultOptions::default(),
                    ResultOptions { has_output_schema: true, modern: true },
                ] {
                    let result: Value =
                        serde_json::from_slice(&fault.call_tool_result(profile, options)).unwrap();
                    assert!(validator.is_valid(&result), "{} {result}", contract.name);
                }
            }
            assert!(!validator.is_valid(&json!({"content": [], "isError": true})));
        }
    }
}

#[test]
fn t7_the_text_of_a_result_is_its_envelope() {
    let hostile = "say \"no\"\n\\ to é \u{1f98a} \u{7} \t and much more than sixteen bytes";
    for contract in every_contract() {
        for profile in contract.all_profiles() {
            for code in contract.codes() {
                let empty = Report::new(&code.id);
                let full = full(&code.id);
                let rude = Report {
                    message: Some(hostile.to_owned()),
                    suggestion: Some(hostile.to_owned()),
                    tool: Some(hostile.to_owned()),
                    details: Some(json!({ hostile: [hostile, null, 1.5] })),
                    cause: Some(json!({ "message": hostile })),
                    ..full.clone()
                };
                for report in [empty, full, rude] {
                    let fault = Fault::new(&contract, report, &STAMP).unwrap();
                    let envelope = text(&fault, Surface::Mcp, profile);
                    for has_output_schema in [false, true] {
                        let options = ResultOptions { has_output_schema, modern: false };
                        let result = fault.call_tool_result(profile, options);
                        assert_eq!(fault.result_around(envelope.as_bytes(), options), result);
                        let result: Value = serde_json::from_slice(&result).unwrap();
                        assert_eq!(result["content"][0]["text"], envelope, "{}", contract.name);
                        let told = &result["structuredContent"];
                        if has_output_schema || !envelope.starts_with('{') {
                            assert!(told.is_null());
                        } else {
                            assert_eq!(*told, serde_json::from_str::<Value>(&envelope).unwrap());
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn every_success_validates() {
    for contract in every_contract().iter().filter(|c| c.wraps_success()) {
        for profile in contract.all_profiles() {
            let validator = validator(&contract.schema(SchemaOf::Success, profile).unwrap());
            let data = RawValue::from_string("[1,2]".to_owned()).unwrap();
            let wrapped = contract.success(profile, &data, &Meta::default()).unwrap();
            assert!(validator.is_valid(&serde_json::from_slice(&wrapped).unwrap()));
            assert!(!validator.is_valid(&json!({"success": false, "data": 1})));
        }
    }
}
