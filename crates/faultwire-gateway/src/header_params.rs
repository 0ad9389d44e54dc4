//! Arguments that the head repeats, so that others can go by them: a tool's schema names a header
//! for them (`x-mcp-header`). What head and body say must be the same.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

/// How such headers begin.
pub(crate) const PREFIX: &str = "mcp-param-";
/// How a schema asks for one.
const ASKS: &str = "x-mcp-header";
/// Deeper ones are not looked for.
const DEEPEST: usize = 16;

/// An argument that is repeated in a header.
pub(crate) struct HeaderParam {
    path: Vec<String>,
    header: HeaderName,
    is_number: bool,
}

/// What a head repeats of the arguments.
pub(crate) type Head = Box<[(HeaderName, HeaderValue)]>;

/// The part of a head that repeats arguments.
pub(crate) fn head(headers: &HeaderMap) -> Head {
    let ours = headers.iter().filter(|(name, _)| name.as_str().starts_with(PREFIX));
    ours.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The arguments that a schema wants repeated.
pub(crate) fn declared(schema: &str) -> Vec<HeaderParam> {
    if memchr::memmem::find(schema.as_bytes(), ASKS.as_bytes()).is_none() {
        return Vec::new();
    }
    let mut found = Vec::new();
    if let Ok(schema) = serde_json::from_str::<Value>(schema) {
        look(&schema, &mut Vec::new(), &mut found);
    }
    found
}

fn look(schema: &Value, path: &mut Vec<String>, found: &mut Vec<HeaderParam>) {
    let asked = schema.get(ASKS).and_then(Value::as_str).filter(|name| !name.is_empty());
    let header = asked.and_then(|name| format!("{PREFIX}{name}").to_ascii_lowercase().parse().ok());
    if let Some(header) = header.filter(|_| !path.is_empty()) {
        let kind = schema.get("type").and_then(Value::as_str);
        let is_number = matches!(kind, Some("integer" | "number"));
        found.push(HeaderParam { path: path.clone(), header, is_number });
    }
    if path.len() == DEEPEST {
        return;
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        path.push(name.clone());
        look(property, path, found);
        path.pop();
    }
}

/// What is wrong with a head, if it does not say what the arguments do.
pub(crate) fn disagreement(
    declared: &[HeaderParam],
    arguments: &Value,
    head: &Head,
) -> Option<String> {
    declared.iter().find_map(|header_params| {
        let body = header_params.said(arguments)?;
        let name = &header_params.header;
        let mut said = head.iter().filter(|(header, _)| header == name).map(|(_, value)| value);
        let only = said.next().filter(|_| said.next().is_none());
        let Some(only) = only else {
            return Some(format!("The header {name} must be present exactly once"));
        };
        let Some(head) = only.to_str().ok().and_then(decoded) else {
            return Some(format!("The header {name} cannot be read"));
        };
        let same = head == body || header_params.is_number && same_number(&head, &body);
        (!same).then(|| format!("The header {name} differs from the argument"))
    })
}

/// The headers that go with these arguments.
pub(crate) fn repeat(declared: &[HeaderParam], arguments: &Value, headers: &mut HeaderMap) {
    for header_params in declared {
        let value = header_params.said(arguments).map(|body| encoded(&body));
        if let Some(value) = value.and_then(|value| HeaderValue::from_str(&value).ok()) {
            headers.insert(&header_params.header, value);
        }
    }
}

impl HeaderParam {
    /// The argument as a header says it. None when there is nothing to repeat.
    fn said(&self, arguments: &Value) -> Option<String> {
        let value = self.path.iter().try_fold(arguments, |at, name| at.get(name))?;
        match value {
            Value::String(text) => Some(text.clone()),
            Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }
}

/// `42` and `42.0` are the same.
fn same_number(one: &str, other: &str) -> bool {
    let number = |text: &str| text.parse::<f64>().ok().filter(|n| n.is_finite());
    number(one).zip(number(other)).is_some_and(|(one, other)| one.total_cmp(&other).is_eq())
}

/// A header's text, which may be wrapped up because headers cannot hold every text.
pub(crate) fn decoded(value: &str) -> Option<String> {
    let value = value.trim();
    let wrapped = value.strip_suffix("?=").and_then(|v| {
        let (mark, rest) = v.split_at_checked("=?base64?".len())?;
        mark.eq_ignore_ascii_case("=?base64?").then_some(rest)
    });
    match wrapped {
        None => Some(value.to_owned()),
        Some(wrapped) => String::from_utf8(STANDARD.decode(wrapped).ok()?).ok(),
    }
}

/// The same the other way: a text as a header can hold it.
pub(crate) fn encoded(text: &str) -> String {
    let plain = text.bytes().all(|b| (0x20..0x7f).contains(&b)) && text.trim() == text;
    if plain && !text.to_ascii_lowercase().starts_with("=?base64?") {
        return text.to_owned();
    }
    format!("=?base64?{}?=", STANDARD.encode(text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> String {
        json!({ "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
            "plain": { "type": "string" },
            "deep": { "properties": { "count": { "type": "integer", "x-mcp-header": "Count" } } },
        } })
        .to_string()
    }

    fn said(pairs: &[(&'static str, &str)]) -> Head {
        let pair = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn head_and_arguments_say_the_same() {
        let declared = declared(&schema());
        let check = |arguments: Value, head: &[(&'static str, &str)], fine: bool| {
            let found = disagreement(&declared, &arguments, &said(head));
            assert_eq!(found.is_none(), fine, "{arguments} {head:?}: {found:?}");
        };
        check(json!({}), &[], true);
        check(json!({ "plain": "x" }), &[], true);
        check(json!({ "region": null }), &[("mcp-param-region", "eu")], true);
        check(json!({ "region": "eu" }), &[("mcp-param-region", "eu")], true);
        check(json!({ "region": "eu" }), &[("mcp-param-region", "EU")], false);
        check(json!({ "region": "eu" }), &[], false);
        check(json!({ "region": "eu" }), &[("mcp-param-region", "=?base64?ZXU=?=")], true);
        check(json!({ "region": "eu" }), &[("mcp-param-region", "=?base64?ZXU?=")], false);
        check(json!({ "region": "eu" }), &[("mcp-param-region", "=?base64?**?=")], false);
        check(
            json!({ "region": "eu" }),
            &[("mcp-param-region", "eu"), ("mcp-param-region", "us")],
            false,
        );
        check(json!({ "deep": { "count": 42 } }), &[("mcp-param-count", "42.0")], true);
        check(json!({ "deep": { "count": 42 } }), &[("mcp-param-count", "43")], false);
        check(json!({ "deep": [42] }), &[], true);
    }

    #[test]
    fn what_is_repeated_agrees() {
        let declared = declared(&schema());
        for region in ["eu", " größer ", "=?base64?eA==?="] {
            let arguments = json!({ "region": region, "deep": { "count": 7 } });
            let mut headers = HeaderMap::new();
            repeat(&declared, &arguments, &mut headers);
            assert_eq!(headers.len(), 2);
            assert_eq!(disagreement(&declared, &arguments, &head(&headers)), None);
        }
    }

    #[test]
    fn names_travel_in_headers_and_back() {
        for name in ["search", "größe", "", " padded ", "=?base64?eA==?=", "line\nend", "日本"]
        {
            assert_eq!(decoded(&encoded(name)).as_deref(), Some(name), "{name:?}");
            assert!(HeaderValue::from_str(&encoded(name)).is_ok(), "{name:?}");
        }
        assert_eq!(decoded("=?BASE64?eA==?=").as_deref(), Some("x"));
        assert_eq!(decoded("=?base64?***?="), None);
    }
}
