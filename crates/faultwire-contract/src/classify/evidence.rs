//! What a failing reply says about itself, taken apart once for all rules.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::LazyLock;
use std::time::Duration;

use regex::Regex;
use serde_json::Value;
use serde_json::value::RawValue;

use super::context::CallContext;
use super::lately::Lately;
use super::mask::{self, MaskKind};
use super::own_words::OwnWords;
use super::peek::Peek;
use super::rule::Shape;
use super::{delay_of, embedded, status};

/// Rules look at this much of a text's beginning, and at as much of its end: what a failure is about
/// stands in its first or in its last lines.
const LOOKED_AT: usize = 4096;
const LOOKED_AT_END: usize = 2048;

/// The facts that rules can match.
#[derive(Debug)]
pub(crate) struct Evidence {
    pub shape: Shape,
    /// What the server said, in words.
    pub text: String,
    /// Codes by name, the most telling first.
    pub codes: Vec<String>,
    /// The JSON-RPC number.
    pub rpc: Option<i64>,
    /// An HTTP status in the structured part.
    pub status: Option<i64>,
    pub retry_after: Option<Duration>,
    /// Texts that are JSON, as they came: an envelope may be among them.
    pub bodies: Vec<String>,
    /// The structured part.
    pub body: Option<Value>,
    /// The structured facts beside the words (U4).
    pub facts: Option<Value>,
    /// What else was said, for rules only.
    aside: String,
    /// What rules look at; filled by [`Evidence::settle`].
    views: Views,
    /// Whether the text is all there is.
    pub only_text: bool,
    /// How many text blocks there were.
    pub texts: usize,
}

/// A text as rules see it.
#[derive(Debug, Default)]
pub(crate) struct Views {
    /// Without the client's own words: kinds of failures are read here, quotations included.
    pub said: String,
    /// Without quotations, paths, URLs and code, too: prose is read here.
    pub words: String,
    /// What was masked, and why.
    pub masked: Vec<(String, MaskKind)>,
    /// Whether the text repeats something of the call.
    pub names_argument: bool,
    /// Whether it repeats one value of the call whole: a path, a URL, an id.
    pub names_whole_argument: bool,
}

impl Evidence {
    /// Takes the text apart for the rules, with what the client said itself left out (U1).
    pub(super) fn settle(&mut self, context: &CallContext<'_>) {
        let looked_at = self.looked_at();
        let own = context.params.map(OwnWords::of);
        let masks = mask::masks(&looked_at, own.as_ref());
        self.views = Views {
            said: mask::masked(&looked_at, &masks, |kind| kind == MaskKind::Argument).into_owned(),
            words: mask::masked(&looked_at, &masks, |_| true).into_owned(),
            names_whole_argument: own.as_ref().is_some_and(|own| own.is_named_whole(&looked_at)),
            names_argument: masks.iter().any(|(_, kind)| *kind == MaskKind::Argument),
            masked: masks
                .iter()
                .filter_map(|(range, kind)| Some((looked_at.get(range.clone())?.to_owned(), *kind)))
                .collect(),
        };
        if self.codes.is_empty() {
            self.codes.extend(leading_code(&self.views.said));
        }
        if self.body.is_none() {
            for body in embedded::bodies(&self.views.said) {
                self.take_codes(&body);
                // Its words count as words, although they stand in quotation marks.
                if let Some(said) = said(&body) {
                    self.views.words.push('\n');
                    let inner = mask::masks(&said, own.as_ref());
                    self.views.words.push_str(&mask::masked(&said, &inner, |_| true));
                }
            }
        }
        self.status = self.status.or_else(|| status::in_text(&self.views.said));
    }

    /// The beginning and the end of what was said.
    fn looked_at(&self) -> String {
        let text = &self.text;
        let mut looked_at = if text.len() <= LOOKED_AT + LOOKED_AT_END {
            text.clone()
        } else {
            let head = &text[..text.floor_char_boundary(LOOKED_AT)];
            let tail = &text[text.ceil_char_boundary(text.len() - LOOKED_AT_END)..];
            format!("{head}\n{tail}")
        };
        if !self.aside.is_empty() {
            looked_at.push('\n');
            looked_at.push_str(&self.aside);
        }
        looked_at
    }

    pub(crate) fn views(&self) -> &Views {
        &self.views
    }
}

/// What rules look at.
impl Hash for Evidence {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.shape, &self.codes, self.rpc, self.status).hash(state);
        (&self.views.said, &self.views.words).hash(state);
    }
}

pub(super) fn of_error(raw: &str) -> Evidence {
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
        evidence.take_body(data);
    }
    if let Some(Value::String(text)) = &data {
        evidence.facts = Some(Value::String(text.clone())).filter(|_| !text.is_empty());
    }
    evidence.aside = data
        .as_ref()
        .and_then(Value::as_str)
        .map(|s| s.chars().take(512).collect())
        .unwrap_or_default();
    evidence.rpc = code.as_ref().and_then(Value::as_i64).or(evidence.rpc);
    let is_status = |n: &i64| (400..=599).contains(n);
    evidence.status = evidence.status.or(evidence.rpc.filter(is_status));
    evidence.codes.extend(code.as_ref().and_then(Value::as_str).map(str::to_owned));
    evidence
}

pub(super) fn of_result(result: &Peek<'_>, shape: Shape) -> Evidence {
    let texts: Vec<String> = result.texts().map(|raw| unblock(unescape(raw))).collect();
    let mut evidence = Evidence::new(shape, texts.join("\n"));
    evidence.texts = texts.len();
    let structured = result.structured.or(result.bare).filter(|raw| *raw != "null");
    let structured = structured.filter(|raw| !repeats(raw, &texts));
    evidence.only_text = !result.other_blocks && structured.is_none();
    let structured = structured.map(str::to_owned);
    for candidate in structured.into_iter().chain(texts) {
        let looks_like_json = candidate.trim_start().starts_with(['{', '[']);
        let Some(body) = looks_like_json.then(|| serde_json::from_str(&candidate).ok()).flatten()
        else {
            continue;
        };
        if evidence.body.is_none() {
            evidence.take_body(&body);
        }
        evidence.bodies.push(candidate);
    }
    if evidence.text.is_empty() {
        evidence.text = evidence.bodies.first().cloned().unwrap_or_default();
    }
    evidence
}

/// Some servers put the content list once more, as JSON, into the text.
fn unblock(text: String) -> String {
    if !text.starts_with("[{\"") {
        return text;
    }
    let inner = serde_json::from_str::<[Value; 1]>(&text).ok();
    inner.and_then(|[block]| block.get("text")?.as_str().map(str::to_owned)).unwrap_or(text)
}

/// Some SDKs repeat a text result as `{"result": text}`.
fn repeats(structured: &str, texts: &[String]) -> bool {
    let value: Value = serde_json::from_str(structured).unwrap_or(Value::Null);
    let Some(object) = value.as_object() else {
        return false;
    };
    let [text] = texts else {
        return object.is_empty();
    };
    let parsed: Option<Value> = serde_json::from_str(text).ok();
    let result = object.get("result").filter(|_| object.len() == 1);
    object.is_empty()
        || result.and_then(Value::as_str) == Some(text)
        || parsed.is_some_and(|t| t == value || result == Some(&t))
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

impl Evidence {
    fn new(shape: Shape, text: String) -> Self {
        let mut evidence = Self {
            shape,
            codes: Vec::new(),
            rpc: None,
            status: None,
            retry_after: named_delay(&text),
            bodies: Vec::new(),
            body: None,
            facts: None,
            aside: String::new(),
            views: Views::default(),
            only_text: false,
            texts: 0,
            text,
        };
        // The TypeScript SDK puts the number of a protocol error into the text.
        evidence.rpc = prefixed_number(&evidence.text);
        evidence.codes.extend(leading_code(&evidence.text));
        evidence
    }

    /// The codes and numbers of a structured part, at its top, under `error` or in a list.
    fn take_codes(&mut self, body: &Value) {
        let object = |name: &str| body.get(name).filter(|member| member.is_object());
        let listed = |list: Option<&'_ Value>| {
            list.and_then(|l| l.get(0)).filter(|i| i.is_object()).cloned()
        };
        let first = listed(Some(body)).or_else(|| listed(body.get("errors")));
        let parts = [Some(body), object("error"), object("data"), first.as_ref()];
        for part in parts.into_iter().flatten() {
            let names = ["code", "error_code", "errorCode", "type", "category", "error", "reason"];
            let named = names.iter().filter_map(|k| part.get(*k)?.as_str()).filter(|c| is_code(c));
            self.codes.splice(0..0, named.map(str::to_owned));
            self.status = self.status.or_else(|| status_of(part));
            self.retry_after = delay_of(part).or(self.retry_after);
        }
    }

    /// The facts of the structured part.
    fn take_body(&mut self, body: &Value) {
        self.take_codes(body);
        // A soft failure speaks through its body; what stands beside it was meant as the success.
        let wordless = self.text.is_empty()
            || self.text.trim_start().starts_with('{')
            || self.shape == Shape::SoftFailure;
        // A text that is the body itself has all its facts.
        let is_whole = self.text.trim_start().starts_with(['{', '[']);
        if let Some(said) = said(body).filter(|_| wordless) {
            self.facts = beside(body, &said);
            self.text = said;
        } else if !is_whole {
            self.facts = beside(body, &self.text);
        }
        self.body = Some(body.clone());
    }
}

/// Whether a text is a code and not a sentence.
fn is_code(text: &str) -> bool {
    let part = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-' | b':' | b'/');
    (2..=64).contains(&text.len()) && text.bytes().all(part)
}

/// The sentence of a structured failure.
fn said(body: &Value) -> Option<String> {
    const WORDS: [&str; 9] = [
        "message",
        "human_message",
        "detail",
        "error_description",
        "error_message",
        "errorMessage",
        "errmsg",
        "reason",
        "title",
    ];
    let inner = match body.get("error") {
        Some(Value::String(s)) => return Some(s.clone()),
        Some(inner @ Value::Object(_)) => Some(inner),
        _ => None,
    };
    let of = |part: &Value| WORDS.iter().find_map(|k| part.get(*k)?.as_str().map(str::to_owned));
    let first =
        || body.get("errors")?.get(0).and_then(|e| e.as_str().map(str::to_owned).or_else(|| of(e)));
    // What the call named has its own result, or a page of a proxy stands in the place of words.
    let part = || body.as_object().filter(|b| b.len() == 1)?.values().next().and_then(of);
    let page = || body.get("data")?.as_str().map(str::to_owned);
    inner.and_then(of).or_else(|| of(body)).or_else(first).or_else(part).or_else(page)
}

/// The facts of a structured failure beside its sentence (U4).
fn beside(body: &Value, said: &str) -> Option<Value> {
    let Value::Object(members) = body else {
        return Some(body.clone())
            .filter(|body| body.as_array().is_some_and(|list| !list.is_empty()));
    };
    let tells = |value: &Value| match value {
        Value::Null | Value::Bool(_) => false,
        Value::String(text) => text != said && !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(members) => !members.is_empty(),
        Value::Number(_) => true,
    };
    let kept = members.iter().filter_map(|(name, value)| {
        let value = match value {
            Value::Object(_) => beside(value, said)?,
            other => other.clone(),
        };
        tells(&value).then(|| (name.clone(), value))
    });
    let kept: serde_json::Map<String, Value> = kept.collect();
    (!kept.is_empty()).then_some(Value::Object(kept))
}

fn status_of(part: &Value) -> Option<i64> {
    let number = |key: &&str| {
        let value = part.get(*key)?;
        value.as_i64().or_else(|| value.as_str()?.parse().ok())
    };
    let found = ["status", "statusCode", "status_code", "status-code", "httpStatus", "code"]
        .iter()
        .find_map(number);
    found.filter(|status| (400..=599).contains(status))
}

static DELAY: LazyLock<Regex> = LazyLock::new(|| {
    fixed(
        r"(?i-u)\b(?:retry|try again|wait|resets?)[a-z0-9_]*(?:(?:[ -](?:in|after|for|at)[:\s]+(?:about )?|:\s*)|[:\s]+(?:about )?)\d{1,6}(?:\.\d+)?\s*(?:ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?)?\b",
    )
});

/// A pattern of this file.
fn fixed(pattern: &str) -> Regex {
    match Regex::new(pattern) {
        Ok(regex) => regex,
        Err(e) => unreachable!("a pattern of this file does not compile: {e}"),
    }
}

/// `MCP error -32602: what happened`.
fn prefixed_number(text: &str) -> Option<i64> {
    let (number, _) = text.trim_start().strip_prefix("MCP error -")?.split_once(':')?;
    let digits = number.len() == 5 && number.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| number.parse::<i64>().ok()).flatten().map(|n| -n)
}

/// `CODE: what happened`, as many servers write it, or `[CODE]`.
fn leading_code(text: &str) -> Option<String> {
    let text = text.trim_start();
    let text = text.strip_prefix("Error: ").unwrap_or(text);
    let (text, boxed) = text.strip_prefix('[').map_or((text, false), |inner| (inner, true));
    let part = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
    let end = text.bytes().position(|b| !part(b)).unwrap_or(text.len());
    let (code, rest) = text.split_at(end);
    let shaped = (3..=64).contains(&code.len()) && code.as_bytes()[0].is_ascii_alphabetic();
    let ended = if boxed {
        rest.starts_with(']')
    } else {
        let told = rest.strip_prefix(':').is_some_and(|r| r.starts_with(char::is_whitespace));
        told || rest.starts_with('\n') || rest.trim_start().is_empty()
    };
    (shaped && ended).then(|| code.to_owned())
}

fn named_delay(text: &str) -> Option<Duration> {
    static DECIDED: LazyLock<Lately<Option<Duration>>> = LazyLock::new(Lately::new);
    let words = &text[..text.floor_char_boundary(LOOKED_AT)];
    DECIDED.decided(words, || delay_in(words))
}

fn delay_in(words: &str) -> Option<Duration> {
    // Captures are slow; what was found is taken apart by hand.
    let found = DELAY.find(words)?.as_str().to_ascii_lowercase();
    let (before, rest) = found.split_at(found.find(|c: char| c.is_ascii_digit())?);
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let (number, unit) = (rest[..end].trim_end_matches('.'), rest[end..].trim());
    // Without a unit the number counts only where a word says that it is a time.
    let before = before.trim_end().trim_end_matches("about").trim_end();
    let timed =
        ["in", "after", "for", "at"].iter().any(|w| before.trim_end_matches(':').ends_with(w));
    if unit.is_empty() && !timed && !before.ends_with(':') {
        return None;
    }
    let number: f64 = number.parse().ok()?;
    let seconds = match unit {
        unit if unit.starts_with("ms") || unit.starts_with("mil") => number / 1000.0,
        unit if unit.starts_with('m') => number * 60.0,
        _ => number,
    };
    (seconds > 0.0 && seconds <= 86_400.0).then(|| Duration::from_secs_f64(seconds))
}
