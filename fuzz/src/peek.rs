//! The peek: whatever a line is, looking at it never panics, and it sees what a parser that
//! builds everything sees.
#![no_main]

use faultwire_contract::{Answers, BUILTINS, Sort, builtin, peek};
use faultwire_gateway::salvage_id;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use serde_json::value::RawValue;

fuzz_target!(|data: &[u8]| {
    let line = peek(data);
    if let Some(id) = salvage_id(data) {
        assert!(id.starts_with('"') || id.starts_with('-') || id.as_bytes()[0].is_ascii_digit());
    }
    let built = serde_json::from_slice::<Value>(data).ok().filter(Value::is_object);
    if let (Some(built), Some(id)) = (&built, line.id)
        && let Ok(id) = serde_json::from_str::<Value>(id)
    {
        assert_eq!(built["id"], id);
    }
    if let (Some(built), Some(method)) = (&built, &line.method) {
        assert_eq!(built["method"], **method);
        let params = line.params.map(|params| serde_json::from_str::<Value>(params).ok());
        if let Some(Some(params)) = params {
            assert_eq!(built["params"], params);
        }
    }
    if serde_json::from_slice::<&RawValue>(data.trim_ascii()).is_err() {
        assert!(matches!(line.sort(), Sort::Malformed(_)));
    }
    match line.sort() {
        Sort::Request | Sort::Notification => assert!(line.method.is_some()),
        Sort::Reply => assert!(line.method.is_none()),
        Sort::Malformed(_) => {}
    }
    for known in &BUILTINS {
        let contract = builtin(known.name).expect("it is built in");
        for answers in [Answers::ToolCall, Answers::Other] {
            if let Some(failure) = line.failure(&contract, answers) {
                assert!(contract.code(&failure.report.code).is_some());
            }
        }
    }
});
