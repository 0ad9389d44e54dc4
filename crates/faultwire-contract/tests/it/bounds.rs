//! Nothing is larger than the contract says, whatever comes in.

use faultwire_contract::bound::{cut, json as bound_json};
use faultwire_contract::{Fault, Report, ResultOptions, Surface};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{STAMP, every_contract, text};

#[test]
fn an_envelope_is_never_larger_than_its_bound() {
    let filler = "\"\\\u{1f600}".repeat(20_000);
    for contract in every_contract() {
        for code in contract.codes() {
            let report = Report {
                message: Some(filler.clone()),
                suggestion: Some(filler.clone()),
                details: Some(
                    json!({"a": filler.clone(), "b": vec![filler[..3000].to_owned(); 300]}),
                ),
                data: Some(json!([filler.clone()])),
                cause: Some(json!({"message": filler.clone()})),
                tool: Some(filler.clone()),
                incident: Some(filler.clone()),
                ..Report::new(&code.id)
            };
            let fault = Fault::new(&contract, report, &STAMP).unwrap();
            for profile in contract.all_profiles() {
                for surface in Surface::ALL {
                    let envelope = text(&fault, surface, profile);
                    assert!(
                        envelope.len() <= contract.text.envelope_bytes,
                        "{} {}",
                        contract.name,
                        envelope.len()
                    );
                    serde_json::from_str::<Value>(&envelope).unwrap();
                }
            }
        }
    }
}

#[test]
fn a_small_envelope_bound_keeps_the_code() {
    let file = include_str!("../data/harbour.toml")
        .replace("[text]\n", "[text]\nenvelope_bytes = 1024\ndetails_bytes = 8000\n");
    let contract =
        std::sync::Arc::new(faultwire_contract::Contract::load("small.toml", &file).unwrap());
    let report = Report { details: Some(json!({"x": "y".repeat(5000)})), ..Report::new("H-900") };
    let fault = Fault::new(&contract, report, &STAMP).unwrap();
    let envelope = text(&fault, Surface::Mcp, contract.profile("full").unwrap());
    assert!(envelope.len() <= 1024 && envelope.contains("H-900"), "{envelope}");
    let profile = contract.profile("full").unwrap();
    let result = fault.call_tool_result(profile, ResultOptions::default());
    let result: Value = serde_json::from_slice(&result).unwrap();
    assert_eq!(result["content"][0]["text"], envelope);
}

#[test]
fn depth_is_limited() {
    let mut deep = json!(1);
    for _ in 0..1000 {
        deep = json!({ "d": deep });
    }
    let kept = bound_json(deep, 5, 10_000).to_string();
    assert_eq!(kept, r#"{"d":{"d":{"d":{"d":{"d":"..."}}}}}"#);
}

proptest! {
    #[test]
    fn a_cut_text_fits_and_begins_the_same(text in "\\PC{0,200}", max in 3usize..64) {
        let kept = cut(&text, max);
        prop_assert!(kept.len() <= max.max(text.len().min(max)));
        if text.len() <= max {
            prop_assert_eq!(&*kept, &text);
        } else {
            prop_assert!(kept.ends_with("..."));
            prop_assert!(text.starts_with(kept.trim_end_matches("...")) || kept == "...");
            prop_assert!(kept.len() + 4 > max);
        }
    }

    #[test]
    fn bounded_json_fits(value in any_json(), depth in 1usize..6, bytes in 64usize..2048) {
        let kept = bound_json(value.clone(), depth, bytes);
        let size = kept.to_string().len();
        prop_assert!(size <= bytes, "{size} of {bytes}: {kept}");
        prop_assert!(depth_of(&kept) <= depth);
        if value.to_string().len() * 2 < bytes && depth_of(&value) <= depth {
            prop_assert_eq!(kept, value);
        }
    }
}

fn depth_of(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth_of).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth_of).max().unwrap_or(0),
        _ => 0,
    }
}

pub fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9f64..1e9).prop_map(Value::from),
        "\\PC{0,40}".prop_map(Value::from),
        ".{0,40}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::vec(("\\PC{0,12}", inner), 0..8)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}
