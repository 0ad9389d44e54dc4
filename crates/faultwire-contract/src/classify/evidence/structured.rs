//! The structured part of a failure: its codes, its sentence, and the facts beside it (U4).

use serde_json::Value;

use super::identifiers::spaced;
use super::{Evidence, delay};
use crate::classify::rule::Shape;

impl Evidence {
    /// The codes and numbers of a structured part, at its top, under `error` or in a list.
    pub(super) fn take_codes(&mut self, body: &Value) {
        let object = |name: &str| body.get(name).filter(|member| member.is_object());
        let listed = |list: Option<&'_ Value>| {
            list.and_then(|l| l.get(0)).filter(|i| i.is_object()).cloned()
        };
        let first = listed(Some(body)).or_else(|| listed(body.get("errors")));
        let inner = object("error").and_then(|error| listed(error.get("errors")));
        let extensions =
            |of: Option<&'_ Value>| of?.get("extensions").filter(|e| e.is_object()).cloned();
        let extensions = extensions(first.as_ref()).or_else(|| extensions(Some(body)));
        let parts = [
            Some(body),
            object("error"),
            object("data"),
            object("fault"),
            object("detail"),
            object("details"),
            first.as_ref(),
            inner.as_ref(),
            extensions.as_ref(),
        ];
        for part in parts.into_iter().flatten() {
            let names = [
                "code",
                "error_code",
                "errorCode",
                "statusCode",
                "type",
                "category",
                "error",
                "reason",
            ];
            let named = names.iter().filter_map(|k| part.get(*k)?.as_str()).filter(|c| is_code(c));
            let classes = ["exception", "exceptionType", "exception_class", "errorName", "name"];
            let class = classes.iter().find_map(|k| class_name(part.get(*k)?.as_str()?));
            // gRPC's names stand where others have a number.
            let status = part.get("status").and_then(Value::as_str).filter(|c| is_upper(c));
            self.codes.splice(0..0, named.chain(status).chain(class).map(str::to_owned));
            self.status = self.status.or_else(|| status_of(part));
            self.retry_after = delay::in_body(part).or(self.retry_after);
        }
    }

    /// The words and codes of a text that is JSON, beside a structured part that has none.
    pub(super) fn take_words(&mut self, body: &Value) {
        self.take_codes(body);
        if let Some(said) = said(body) {
            self.facts = merged(self.facts.take(), beside(body, &said));
            self.text = said;
        }
    }

    /// The facts of the structured part. A text that is the body itself has all its facts.
    pub(super) fn take_body(&mut self, body: &Value, is_text: bool) {
        self.take_codes(body);
        // A soft failure speaks through its body; what stands beside it was meant as the success.
        let wordless = self.text.is_empty()
            || self.text.trim_start().starts_with('{')
            || self.shape == Shape::SoftFailure;
        if let Some(said) = said(body).filter(|_| wordless) {
            self.facts = beside(body, &said);
            self.text = said;
        } else if !is_text {
            self.facts = beside(body, &self.text);
        }
        self.aside = named_facts(body);
        self.body = Some(body.clone());
    }
}

/// The last part of `System.IO.FileNotFoundException`, if it names a class of errors.
fn class_name(text: &str) -> Option<&str> {
    let name = text.rsplit(['.', ':', '\\', '/']).next()?;
    let is_class =
        name.ends_with("Error") || name.ends_with("Exception") || name.ends_with("Fault");
    (is_class && is_code(name)).then_some(name)
}

/// Two sets of facts as one: what the first has takes precedence.
fn merged(one: Option<Value>, other: Option<Value>) -> Option<Value> {
    match (one, other) {
        (Some(Value::Object(mut one)), Some(Value::Object(other))) => {
            for (name, value) in other {
                one.entry(name).or_insert(value);
            }
            Some(Value::Object(one))
        }
        (one, other) => one.or(other),
    }
}

/// Whether a text is a code and not a sentence.
fn is_code(text: &str) -> bool {
    let part = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-' | b':' | b'/');
    (2..=64).contains(&text.len()) && text.bytes().all(part)
}

/// What a structured part says in names: `user_not_in_team` is read as "user not in team".
fn named_facts(body: &Value) -> String {
    const KEYS: [&str; 12] = [
        "reason",
        "kind",
        "code",
        "type",
        "status",
        "state",
        "error",
        "cause",
        "error_code",
        "errorCode",
        "subcode",
        "detail",
    ];
    let of = |part: Option<&Value>| -> Vec<String> {
        let names = KEYS.iter().filter_map(|key| part?.get(*key)?.as_str());
        names.filter(|name| is_code(name) && name.len() <= 48).map(spaced).collect()
    };
    let inner = ["error", "data", "details", "detail"].into_iter().map(|key| body.get(key));
    let all: Vec<String> = inner.chain([Some(body)]).flat_map(of).collect();
    all.join("\n")
}

/// Whether it is written as gRPC writes its codes.
fn is_upper(text: &str) -> bool {
    text.len() > 4 && text.bytes().all(|b| b.is_ascii_uppercase() || b == b'_')
}

/// The sentence of a structured failure.
pub(super) fn said(body: &Value) -> Option<String> {
    const WORDS: [&str; 16] = [
        "message",
        "human_message",
        "detail",
        "error_description",
        "error_message",
        "errorMessage",
        "errmsg",
        "error_msg",
        "error_summary",
        "msg",
        "faultstring",
        "Message",
        "Error Message",
        "reason",
        "description",
        "title",
    ];
    let inner = match body.get("error") {
        // A code beside a sentence is a code.
        Some(Value::String(s)) if !is_code(s) || !has_words(body) => return Some(s.clone()),
        Some(inner @ Value::Object(_)) => Some(inner),
        _ => None,
    };
    let of = |part: &Value| WORDS.iter().find_map(|k| part.get(*k)?.as_str().map(str::to_owned));
    let first =
        || body.get("errors")?.get(0).and_then(|e| e.as_str().map(str::to_owned).or_else(|| of(e)));
    // What the call named has its own result, or a page of a proxy stands in the place of words.
    let part = || body.as_object().filter(|b| b.len() == 1)?.values().next().and_then(of);
    let word = |part: &Value| part.get("error")?.as_str().map(str::to_owned);
    let listed = || body.get(0).or_else(|| body.as_object()?.values().find_map(|v| v.get(0)));
    let item = || listed().and_then(of);
    // Above results that failed stands that all of them were tried.
    let result = body.get("error").map_or_else(|| listed().and_then(word), |_| None);
    let page = || body.get("data")?.as_str().map(str::to_owned);
    inner
        .and_then(of)
        .or(result)
        .or_else(|| of(body))
        .or_else(first)
        .or_else(part)
        .or_else(item)
        .or_else(page)
}

fn has_words(body: &Value) -> bool {
    let message = body.get("message").and_then(Value::as_str);
    message.is_some_and(|message| message.contains(' '))
}

/// The facts of a structured failure beside its sentence (U4).
fn beside(body: &Value, said: &str) -> Option<Value> {
    let Value::Object(members) = body else {
        return Some(body.clone())
            .filter(|body| body.as_array().is_some_and(|list| !list.is_empty()));
    };
    // Whether the call failed is told by the envelope.
    let is_flag = |name: &str| ["ok", "success", "isError", "is_error"].contains(&name);
    let tells = |value: &Value| match value {
        Value::Null => false,
        Value::Bool(_) | Value::Number(_) => true,
        Value::String(text) => text != said && !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(members) => !members.is_empty(),
    };
    let kept = members.iter().filter_map(|(name, value)| {
        let value = match value {
            Value::Object(_) => beside(value, said)?,
            other => other.clone(),
        };
        (tells(&value) && !(value.is_boolean() && is_flag(name))).then(|| (name.clone(), value))
    });
    let kept: serde_json::Map<String, Value> = kept.collect();
    (!kept.is_empty()).then_some(Value::Object(kept))
}

fn status_of(part: &Value) -> Option<i64> {
    let number = |key: &&str| {
        let value = part.get(*key)?;
        value.as_i64().or_else(|| value.as_str()?.parse().ok())
    };
    let found = [
        "status",
        "statusCode",
        "status_code",
        "status-code",
        "httpStatus",
        "code",
        "error_code",
        "errorCode",
    ]
    .iter()
    .find_map(number);
    found.filter(|status| (400..=599).contains(status))
}
