//! Redaction: it ends, what it lets through it lets through again, and it neither loses members
//! nor grows a text out of proportion.
#![no_main]

use faultwire_contract::Redactor;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

/// A placeholder is longer than the shortest text that it stands for.
const GROWTH: usize = 8;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = str::from_utf8(data) else { return };
    let redactor = Redactor::default();
    for redact in [Redactor::redact, Redactor::redact_all, Redactor::redact_credentials] {
        let once = redact(&redactor, text).into_owned();
        assert!(once.len() <= GROWTH * text.len() + 64, "{once:?}");
        let twice = redact(&redactor, &once);
        assert_eq!(twice, once, "redacting again changes the text");
    }
    let value = match serde_json::from_str::<Value>(text) {
        Ok(value) => value,
        Err(_) => {
            let (key, rest) = text.split_once(['\n', '=']).unwrap_or((text, ""));
            json!({ key: rest, "list": [text, { rest: key }] })
        }
    };
    for redact in [Redactor::redact_json, Redactor::redact_json_credentials] {
        let once = redact(&redactor, value.clone());
        same_members(&value, &once);
        assert_eq!(redact(&redactor, once.clone()), once, "redacting again changes the value");
    }
});

/// A value may be replaced whole, but no member and no item goes missing.
fn same_members(before: &Value, after: &Value) {
    match (before, after) {
        (Value::Array(before), Value::Array(after)) => {
            assert_eq!(before.len(), after.len());
            before.iter().zip(after).for_each(|(before, after)| same_members(before, after));
        }
        (Value::Object(before), Value::Object(after)) => {
            assert_eq!(before.len(), after.len(), "{before:?} became {after:?}");
            before.values().zip(after.values()).for_each(|(b, a)| same_members(b, a));
        }
        (_, Value::String(_)) => {}
        (before, after) => assert_eq!(before, after),
    }
}
