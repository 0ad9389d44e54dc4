//! The failure underneath, as JSON (K4).

use std::error::Error;

use serde_json::{Map, Value, json};

/// How many causes are kept below the first.
pub const NESTED: usize = 3;

/// An error and its sources as `{message, code, name, cause?}`.
///
/// ```
/// let bad = "x".parse::<u8>().unwrap_err();
/// let cause = faultwire_contract::cause::from_error(&bad);
/// assert_eq!(cause["name"], "ParseIntError");
/// assert_eq!(cause["message"], "invalid digit found in string");
/// ```
#[must_use]
pub fn from_error<E: Error + 'static>(error: &E) -> Value {
    let path = std::any::type_name::<E>();
    let plain = path.split('<').next().unwrap_or(path);
    let name = plain.rsplit("::").next().unwrap_or(plain);
    link(error, name, NESTED)
}

/// The same for a type-erased error.
#[must_use]
pub fn from_dyn(error: &(dyn Error + 'static)) -> Value {
    link(error, "Error", NESTED)
}

fn link(error: &(dyn Error + 'static), name: &str, left: usize) -> Value {
    let code = error.downcast_ref::<std::io::Error>().map(|io| format!("{:?}", io.kind()));
    let mut object = json!({ "message": error.to_string(), "code": code, "name": name });
    if let (Some(source), true) = (error.source(), left > 0) {
        object["cause"] = link(source, "Error", left - 1);
    }
    object
}

/// Normalizes a cause that was given as JSON: a string stays a string, an object keeps its shape
/// with a shortened chain, anything else is wrapped.
#[must_use]
pub fn normalise(cause: Value) -> Option<Value> {
    match cause {
        Value::Null => None,
        Value::String(s) => Some(Value::String(s)),
        Value::Object(mut object) => {
            cut_chain(&mut object, NESTED);
            Some(Value::Object(object))
        }
        other => Some(json!({ "message": other.to_string(), "code": null, "name": null })),
    }
}

fn cut_chain(object: &mut Map<String, Value>, left: usize) {
    if left == 0 {
        object.shift_remove("cause");
    } else if let Some(Value::Object(inner)) = object.get_mut("cause") {
        cut_chain(inner, left - 1);
    }
}
