//! Members that occur twice: the quick walk finds one exactly where a reader that builds every
//! object does, and no bytes make it panic (X1).
#![no_main]

use std::collections::HashSet;
use std::fmt;

use faultwire_contract::{Ambiguity, ambiguity, peek};
use libfuzzer_sys::fuzz_target;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

fuzz_target!(|data: &[u8]| {
    let line = peek(data);
    let found = ambiguity(&line);
    let Ok(json) = serde_json::from_str::<&RawValue>(line.text) else { return };
    let doubled = is_doubled(json);
    match found {
        None => assert_eq!(doubled, Some(false), "{}", line.text),
        Some(Ambiguity::Twice { .. }) => assert_ne!(doubled, Some(false), "{}", line.text),
        Some(other) => assert!(!other.to_string().is_empty()),
    }
});

/// Whether an object at any depth has two members of one name; none if a name is no text.
fn is_doubled(json: &RawValue) -> Option<bool> {
    let values: Vec<&RawValue> = match json.get().as_bytes()[0] {
        b'[' => serde_json::from_str(json.get()).ok()?,
        b'{' => {
            let Members(members) = serde_json::from_str(json.get()).ok()?;
            let mut names = HashSet::new();
            if !members.iter().all(|(name, _)| names.insert(name)) {
                return Some(true);
            }
            members.into_iter().map(|(_, value)| value).collect()
        }
        _ => return Some(false),
    };
    for value in values {
        if is_doubled(value)? {
            return Some(true);
        }
    }
    Some(false)
}

/// Every member of an object, in the order of the text.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;

        impl<'de> Visitor<'de> for Each {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Each)
    }
}
