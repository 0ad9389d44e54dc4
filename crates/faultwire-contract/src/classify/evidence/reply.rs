//! From a reply, as it came, to the evidence: its texts, its structured part, its other blocks.

use std::collections::HashMap;

use serde_json::Value;
use serde_json::value::RawValue;

use super::Evidence;
use crate::classify::peek::Peek;
use crate::classify::rule::Shape;

pub(in crate::classify) fn of_error(raw: &str) -> Evidence {
    // Each member on its own: data that is too deep to be built does not hide the rest.
    let members: HashMap<String, &RawValue> = serde_json::from_str(raw).unwrap_or_default();
    let member =
        |key: &str| -> Option<Value> { serde_json::from_str(members.get(key)?.get()).ok() };
    let whole = || serde_json::from_str::<String>(raw).ok();
    let text = member("message").and_then(|m| m.as_str().map(str::to_owned)).or_else(whole);
    let (data, code) = (member("data"), member("code"));
    let mut evidence = Evidence::new(Shape::RpcError, text.unwrap_or_default());
    if let Some(data) = data.as_ref().filter(|d| d.is_object() || d.is_array()) {
        evidence.bodies.push(data.to_string());
        evidence.take_body(data, false);
    }
    if let Some(Value::String(text)) = &data {
        evidence.facts = Some(Value::String(text.clone())).filter(|_| !text.is_empty());
    }
    if let Some(Value::String(text)) = &data {
        evidence.aside = text.chars().take(512).collect();
    }
    evidence.rpc = code.as_ref().and_then(Value::as_i64).or(evidence.rpc);
    let is_status = |n: &i64| (400..=599).contains(n);
    evidence.status = evidence.status.or(evidence.rpc.filter(is_status));
    evidence.codes.extend(code.as_ref().and_then(Value::as_str).map(str::to_owned));
    evidence
}

pub(in crate::classify) fn of_result(result: &Peek<'_>, shape: Shape) -> Evidence {
    let texts: Vec<String> = result.texts().map(|raw| unblock(unescape(raw))).collect();
    let mut evidence = Evidence::new(shape, texts.join("\n"));
    evidence.texts = texts.len();
    evidence.says_error = result.says_error;
    let structured = result.structured.or(result.bare).filter(|raw| *raw != "null");
    let repeats = structured.map(|raw| repeats(raw, &texts)).unwrap_or_default();
    evidence.is_mirrored = repeats == Repeats::Object;
    let structured = structured.filter(|_| repeats == Repeats::Nothing);
    evidence.only_text = !result.other_blocks && structured.is_none();
    let structured = structured.map(|raw| (raw.to_owned(), false));
    for (candidate, is_text) in structured.into_iter().chain(texts.into_iter().map(|t| (t, true))) {
        let looks_like_json = candidate.trim_start().starts_with(['{', '[']);
        let Some(body) = looks_like_json.then(|| serde_json::from_str(&candidate).ok()).flatten()
        else {
            continue;
        };
        if evidence.body.is_none() {
            evidence.take_body(&body, is_text);
        } else if is_text && evidence.text == candidate {
            evidence.take_words(&body);
        }
        evidence.bodies.push(candidate);
    }
    if evidence.text.is_empty() {
        evidence.text = evidence.bodies.first().cloned().unwrap_or_default();
    }
    evidence
}

/// The content blocks of a reply that have no text of their own.
pub(in crate::classify) fn other_blocks(line: &str) -> Vec<Value> {
    #[derive(serde::Deserialize)]
    struct Reply<'a> {
        #[serde(borrow)]
        result: Content<'a>,
    }
    #[derive(serde::Deserialize)]
    struct Content<'a> {
        #[serde(borrow)]
        content: Vec<&'a RawValue>,
    }
    let blocks = serde_json::from_str(line).map(|Reply { result }| result.content);
    let blocks = blocks.unwrap_or_default().into_iter();
    // Each on its own: one that is too deep to be built does not hide the rest, and is counted.
    let built = blocks
        .map(|block| serde_json::from_str(block.get()).unwrap_or_else(|_| block.get().into()));
    built.filter(|block: &Value| block.get("text").is_none_or(|text| !text.is_string())).collect()
}

/// Some servers put the content list once more, as JSON, into the text.
fn unblock(text: String) -> String {
    if !text.starts_with("[{\"") {
        return text;
    }
    let inner = serde_json::from_str::<[Value; 1]>(&text).ok();
    inner.and_then(|[block]| block.get("text")?.as_str().map(str::to_owned)).unwrap_or(text)
}

/// How the structured part repeats the text.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Repeats {
    /// It says something of its own, or nothing at all.
    #[default]
    Nothing,
    /// It has the text: some SDKs write `{"result": text}`, or the content's blocks.
    Text,
    /// It is the object that the text is. The tool made it, and gave back none that was stored.
    Object,
}

fn repeats(structured: &str, texts: &[String]) -> Repeats {
    let value: Value = serde_json::from_str(structured).unwrap_or(Value::Null);
    let Some(object) = value.as_object() else { return Repeats::Nothing };
    if object.is_empty() {
        return Repeats::Text;
    }
    let [text] = texts else { return Repeats::Nothing };
    let result = object.get("result").filter(|_| object.len() == 1);
    let block = result.and_then(|blocks| blocks.get(0)?.get("text"));
    if [result, block].into_iter().flatten().any(|part| part.as_str() == Some(text)) {
        return Repeats::Text;
    }
    let listed = result.and_then(Value::as_array).and_then(|list| match &list[..] {
        [one] => Some(one),
        _ => None,
    });
    match serde_json::from_str::<Value>(text) {
        Ok(parsed) if parsed != value && ![result, listed].contains(&Some(&parsed)) => {
            Repeats::Nothing
        }
        Ok(Value::Object(_)) => Repeats::Object,
        Ok(_) => Repeats::Text,
        Err(_) => Repeats::Nothing,
    }
}

/// A JSON string's text. Lone surrogates, which no Rust string can hold, become replacement
/// characters.
fn unescape(raw: &str) -> String {
    serde_json::from_str(raw).unwrap_or_else(|_| {
        let bytes = serde_json::from_str::<serde_bytes_lossy::Lossy>(raw);
        bytes.map_or_else(|_| raw.trim_matches('"').to_owned(), |b| b.0)
    })
}

mod serde_bytes_lossy {
    //! `serde_json` hands strings over as bytes, surrogates included, to those who ask for bytes.

    use std::fmt;

    pub(super) struct Lossy(pub String);

    impl<'de> serde::Deserialize<'de> for Lossy {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_bytes(LossyVisitor)
        }
    }

    struct LossyVisitor;

    impl serde::de::Visitor<'_> for LossyVisitor {
        type Value = Lossy;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string")
        }

        fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Lossy, E> {
            Ok(Lossy(String::from_utf8_lossy(bytes).into_owned()))
        }
    }
}
