//! What holds for every contract.

use faultwire_contract::lint::lint;
use faultwire_contract::{Condition, Fault, Profile, Report, ResultOptions, Surface, classify};
use serde_json::{Value, json};

use crate::support::{STAMP, every_contract, text};

#[test]
fn a1_every_code_has_every_fact() {
    for contract in every_contract() {
        for code in contract.codes() {
            let place = format!("{} {}", contract.name, code.id);
            assert!(contract.categories.contains(&code.category), "{place}");
            assert!(!code.retry.is_empty() && !code.status.is_empty(), "{place}");
            assert!(code.status.iter().all(|s| (400..600).contains(s)), "{place}");
            assert!(contract.levels.iter().any(|l| l.name == code.alert), "{place}");
            assert!(
                !code.message.is_empty() && !code.action.is_empty() && !code.meaning.is_empty(),
                "{place}"
            );
        }
        assert_eq!(lint(&contract), [], "{}", contract.name);
    }
}

#[test]
fn a2_every_condition_has_a_code() {
    for contract in every_contract() {
        for condition in Condition::ALL {
            for aspect in [None].into_iter().chain(condition.aspects().iter().copied().map(Some)) {
                let code = contract.code_for(*condition, aspect);
                assert!(contract.code(&code.id).is_some() && code.retired.is_none());
            }
        }
        assert!(contract.conditions().count() >= Condition::ALL.len());
    }
    assert_eq!(Condition::ALL.len(), 29);
}

#[test]
fn a2_six_conditions_may_be_left_out_and_stand_for_their_parent() {
    let harbour = crate::support::harbour();
    let optional: Vec<_> = Condition::ALL.iter().filter(|c| c.parent().is_some()).collect();
    assert_eq!(optional.len(), 6);
    for condition in optional {
        let parent = condition.parent().unwrap();
        assert_eq!(harbour.code_for(*condition, None).id, harbour.code_for(parent, None).id);
    }
}

#[test]
fn a2_every_built_in_contract_maps_every_condition_itself() {
    for builtin in &faultwire_contract::BUILTINS {
        for condition in Condition::ALL {
            let row = format!("\n{condition} = ");
            assert!(builtin.text.contains(&row), "{} {condition}", builtin.name);
        }
    }
}

#[test]
fn a2_a_state_that_does_not_fit_never_asks_for_a_retry() {
    let state = ["not_found", "already_exists", "failed_precondition", "conflict"];
    for contract in
        every_contract().into_iter().filter(|c| faultwire_contract::builtin(&c.name).is_some())
    {
        for name in state {
            let code = contract.code_for(name.parse().unwrap(), None);
            assert!(!code.default_retry().is_retryable(), "{} {name}", contract.name);
        }
    }
}

#[test]
fn a3_a_retired_code_leads_to_its_successor() {
    let harbour = crate::support::harbour();
    let retired = harbour.code("H-201").unwrap().retired.as_ref().unwrap();
    assert_eq!(retired.successor, "H-200");
    // It is still read and written: old envelopes do not become unreadable.
    let fault = Fault::new(&harbour, Report::new("H-201"), &STAMP).unwrap();
    let bytes = fault.envelope(Surface::Mcp, Profile::default());
    assert_eq!(harbour.read(Surface::Mcp, Profile::default(), &bytes).unwrap().code, "H-201");
}

#[test]
fn a4_every_envelope_passes_through_unwrapped() {
    for contract in every_contract() {
        for code in contract.codes() {
            for profile in contract.all_profiles() {
                let fault = Fault::new(&contract, Report::new(&code.id), &STAMP).unwrap();
                for has_output_schema in [false, true] {
                    let options = ResultOptions { has_output_schema, modern: false };
                    let result =
                        String::from_utf8(fault.call_tool_result(profile, options)).unwrap();
                    let line = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
                    let failure = classify(&contract, line.as_bytes()).unwrap();
                    assert_eq!(failure.report.code, code.id, "{} {}", contract.name, code.id);
                    assert!(failure.envelope.is_some(), "{} {} {line}", contract.name, code.id);
                }
                let envelope = text(&fault, Surface::Mcp, profile);
                let line = format!(
                    r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":-32603,"message":"x","data":{envelope}}}}}"#
                );
                let failure = classify(&contract, line.as_bytes()).unwrap();
                assert_eq!(failure.report.code, code.id);
            }
        }
    }
}

#[test]
fn a6_origin_and_outcome_follow_from_the_condition() {
    for contract in every_contract() {
        for condition in Condition::ALL {
            let row = contract.code_for(*condition, None);
            let report = Report { condition: Some(*condition), ..Report::new(&row.id) };
            let fault = Fault::new(&contract, report, &STAMP).unwrap();
            assert_eq!(fault.public().origin, Some(condition.origin()));
            assert!(fault.public().outcome.is_some());
        }
    }
}

/// No secret reaches a client, whatever the code, the surface, the profile or the field.
#[test]
fn nothing_leaks_on_any_surface() {
    let secret = "hunter2xyzzy";
    let text_with =
        format!("failed: password={secret} at /home/{secret}/app.js:10:5 via http://u:{secret}@h/");
    for contract in every_contract() {
        for code in contract.codes() {
            let report = Report {
                message: Some(text_with.clone()),
                suggestion: Some(text_with.clone()),
                details: Some(
                    json!({"password": secret, "nested": [{"note": text_with.clone()}], &text_with: 1}),
                ),
                data: Some(json!({"token": format!("Bearer {secret}1234567890")})),
                cause: Some(
                    json!({"message": text_with.clone(), "cause": {"message": text_with.clone()}}),
                ),
                ..Report::new(&code.id)
            };
            let fault = Fault::new(&contract, report, &STAMP).unwrap();
            for profile in contract.all_profiles() {
                for surface in Surface::ALL {
                    let envelope = text(&fault, surface, profile);
                    assert!(
                        !envelope.contains(secret),
                        "{} {}: {envelope}",
                        contract.name,
                        code.id
                    );
                }
            }
            assert_eq!(fault.private().message(), Some(text_with.as_str()));
            assert!(!format!("{fault:?}").contains(secret), "Debug shows nothing private");
        }
    }
}

#[test]
fn the_http_surface_falls_back_to_the_mcp_one() {
    let contract = faultwire_contract::builtin("kaiza").unwrap();
    let fault = Fault::new(&contract, Report::new("INVALID_PATH"), &STAMP).unwrap();
    let surface = |s| serde_json::from_str::<Value>(&text(&fault, s, Profile::default())).unwrap();
    assert_eq!(surface(Surface::Http), surface(Surface::Mcp));
    assert_eq!(contract.content_type(Surface::Http), "application/json");
}
