//! Lists of a server without what a client may not know of. The items that stay keep their bytes.

use faultwire_contract::fold;
use hashbrown::HashMap;
use serde_json::value::RawValue;

/// The list in a result, and the same with those items alone whose name is allowed. None if it
/// cannot be told which list or which name a client would read.
pub(crate) fn permitted<'a>(
    result: &'a RawValue,
    list: &str,
    name: &str,
    is_allowed: impl Fn(&str) -> bool,
) -> Option<(&'a str, String)> {
    let all = only(result, list)?;
    let items: Vec<&RawValue> = serde_json::from_str(all.get()).ok()?;
    let is_kept = |item: &&&RawValue| {
        let named =
            only(item, name).and_then(|raw| serde_json::from_str::<Box<str>>(raw.get()).ok());
        named.is_some_and(|name| is_allowed(&name))
    };
    let kept: Vec<&str> = items.iter().filter(is_kept).map(|item| item.get()).collect();
    Some((all.get(), format!("[{}]", kept.join(","))))
}

/// A member of an object, if every parser finds that one and no other under its name.
fn only<'a>(object: &'a RawValue, name: &str) -> Option<&'a RawValue> {
    let members: Members<'a> = serde_json::from_str(object.get()).ok()?;
    let folded = fold(name);
    let mut alike = members.0.iter().filter(|(other, _)| fold(other) == folded);
    let (only, none) = (alike.next()?, alike.next());
    (none.is_none() && **only.0 == *name).then_some(only.1)
}

/// The members of an object, none of which occurs twice.
struct Members<'a>(HashMap<Box<str>, &'a RawValue>);

impl<'de: 'a, 'a> serde::Deserialize<'de> for Members<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = HashMap<Box<str>, &'de RawValue>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<Self::Value, A::Error> {
                let mut members = HashMap::new();
                while let Some((name, value)) = map.next_entry::<Box<str>, &RawValue>()? {
                    if members.insert(name, value).is_some() {
                        return Err(serde::de::Error::custom("a member occurs twice"));
                    }
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(Visitor).map(Members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(result: &str, expected: Option<&str>) {
        let raw: &RawValue = serde_json::from_str(result).unwrap();
        let found = permitted(raw, "tools", "name", |name| name.starts_with("read"));
        assert_eq!(found.map(|(_, kept)| kept).as_deref(), expected, "{result}");
    }

    #[test]
    fn x1_a_list_has_what_every_client_would_read_in_it() {
        check(r#"{"tools":[{"name":"read_a"},{"name":"write"}]}"#, Some(r#"[{"name":"read_a"}]"#));
        check(r#"{"tools":[{"name":"read_a","name":"write"}]}"#, Some("[]"));
        check(r#"{"tools":[{"name":"read_a","Name":"write"}]}"#, Some("[]"));
        check(r#"{"tools":[{"Name":"read_a"},7,null]}"#, Some("[]"));
        check(r#"{"tools":[],"Tools":[{"name":"write"}]}"#, None);
        check(r#"{"tools":[],"toolſ":[{"name":"write"}]}"#, None);
        check(r#"{"tools":[],"tools":[{"name":"write"}]}"#, None);
        check(r#"{"Tools":[{"name":"write"}]}"#, None);
        check(r#"{"tools":{}}"#, None);
    }
}
