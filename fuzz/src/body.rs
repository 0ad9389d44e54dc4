//! The body of an HTTP request: what the gateway accepts as requests, every other parser reads as
//! the same requests (X1).
#![no_main]

use std::collections::BTreeMap;

use faultwire_contract::{BUILTINS, builtin};
use faultwire_gateway::fuzzing::{Request, requests};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use serde_json::value::RawValue;

fuzz_target!(|data: &[u8]| {
    let contract = builtin(BUILTINS[0].name).expect("it is built in");
    for request in requests(&contract, data) {
        last_of_each(&request);
        // Numbers and texts that serde_json cannot hold are left to the parsers that can.
        let Ok(built) = serde_json::from_str::<Value>(&request.line) else { continue };
        same(&request, &built);
        let sorted = sorted(built.clone()).to_string();
        let again = requests(&contract, sorted.as_bytes());
        let [again] = &again[..] else { panic!("{sorted} is refused, {} is not", request.line) };
        same(again, &built);
        assert_eq!(again.is_modern, request.is_modern);
        assert_eq!(again.progress_token, request.progress_token);
    }
});

fn same(request: &Request, built: &Value) {
    assert_eq!(built["method"], request.method.as_str());
    assert_eq!(Some(&built["id"]), serde_json::from_str(&request.id).ok().as_ref());
    if let Some(tool) = &request.tool {
        assert_eq!(built["params"]["name"], tool.as_str());
    }
    if let Some(token) = &request.progress_token {
        assert_eq!(&built["params"]["_meta"]["progressToken"], token);
    }
}

/// The same for a parser that takes the last of two members and looks at nothing else.
fn last_of_each(request: &Request) {
    let message: BTreeMap<String, &RawValue> = object(&request.line);
    assert_eq!(message["id"].get(), request.id);
    let method: String = serde_json::from_str(message["method"].get()).expect("a text");
    assert_eq!(method, request.method);
    if let Some(tool) = &request.tool {
        let params = object(message["params"].get());
        assert_eq!(serde_json::from_str::<String>(params["name"].get()).ok().as_ref(), Some(tool));
    }
}

fn object(text: &str) -> BTreeMap<String, &RawValue> {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// The value with the members of every object in the order of their names.
fn sorted(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        Value::Object(members) => {
            let members: BTreeMap<String, Value> =
                members.into_iter().map(|(name, value)| (name, sorted(value))).collect();
            members.into_iter().collect()
        }
        scalar => scalar,
    }
}
