//! Failures dressed as successes: `{"ok":false}`, `<error>…`, `Error: …` as the only text.
//!
//! With care: a document that merely mentions an error is no failure. The signs are data, in the
//! `[soft]` table of `rules/classification.toml`.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use regex::bytes::Regex;
use serde_json::{Map, Value};

use super::evidence::Evidence;
use super::peek::Peek;
use super::rule;

/// The signs of a soft failure.
#[derive(Debug)]
pub(crate) struct Signs {
    /// How a text begins that is a failure and nothing else.
    pub text: Vec<Regex>,
    /// Later lines of such a text, when there are many: frames and the like.
    pub continuation: Regex,
    /// Members that are `false` in a failure.
    pub flags: Vec<String>,
    /// Members that hold the error.
    pub errors: Vec<String>,
    /// Members that say how it went, and the words that say badly.
    pub states: Vec<String>,
    pub bad_states: Vec<String>,
    /// Members that are a number other than 0 in a failure.
    pub numbers: Vec<String>,
    /// Members that describe a failure: an object with others beside them is a document.
    pub companions: Vec<String>,
}

/// A text longer than this is a document.
const LONGEST_TEXT: usize = 4096;

/// A text with more lines than this is a failure only if they are all continuations.
const MOST_LINES: usize = 5;

/// A cheap look that lets almost every success pass: no text is unescaped, nothing is parsed.
pub(super) fn may_fail(result: &Peek<'_>) -> bool {
    if !result.has_content {
        return false;
    }
    let [text] = result.texts[..] else {
        return result.texts.is_empty() && result.structured.is_some_and(|s| hints(s.get()));
    };
    let raw = text.get();
    let first = raw.as_bytes().iter().skip(1).find(|b| !b.is_ascii_whitespace());
    let looked_at = if matches!(first, Some(b'{' | b'[')) { raw } else { &raw[..raw.floor_char_boundary(160)] };
    hints(looked_at) || result.structured.is_some_and(|s| hints(s.get()))
}

fn hints(raw: &str) -> bool {
    static WORDS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
        const WORDS: &[&str] = &[
            "error", "exception", "traceback", "fail", "false", "panic", "enoent", "eacces", "econn",
            "errcode", "denied", "too many requests", "rate limit", "could not", "couldn't", "unable to",
            "fatal", "not found", "status\\\":4", "status\\\":5", "status\\\":\\\"4", "status\\\":\\\"5", "fehler",
            "erreur", "ошибка", "错误", "出错", "エラー", "오류",
        ];
        AhoCorasick::builder().ascii_case_insensitive(true).build(WORDS).ok()
    });
    WORDS.as_ref().is_none_or(|words| words.is_match(raw))
}

/// The thorough look.
pub(super) fn fails(evidence: &Evidence) -> bool {
    let signs = rule::signs();
    if let Some(body) = &evidence.body {
        return body.as_object().is_some_and(|object| signs.body_fails(object));
    }
    evidence.only_text && evidence.texts == 1 && signs.text_fails(evidence.text.trim())
}

impl Signs {
    fn text_fails(&self, text: &str) -> bool {
        if text.len() > LONGEST_TEXT || !self.text.iter().any(|sign| sign.is_match(text.as_bytes())) {
            return false;
        }
        let mut later = text.lines().skip(1).filter(|line| !line.trim().is_empty());
        later.clone().count() < MOST_LINES || later.all(|line| self.continuation.is_match(line.as_bytes()))
    }

    fn body_fails(&self, body: &Map<String, Value>) -> bool {
        let is_false = |key: &String| body.get(key) == Some(&Value::Bool(false));
        if self.flags.iter().any(is_false) || body.get("isError") == Some(&Value::Bool(true)) {
            return true;
        }
        let describes = || body.iter().all(|(key, value)| is_empty(value) || self.companions.contains(key));
        (self.names_error(body) || self.is_in_bad_state(body) || self.has_bad_number(body)) && describes()
    }

    fn names_error(&self, body: &Map<String, Value>) -> bool {
        let tells = |key: &String| body.get(key).is_some_and(|v| !is_empty(v));
        self.errors.iter().any(tells)
    }

    fn is_in_bad_state(&self, body: &Map<String, Value>) -> bool {
        self.states.iter().any(|key| match body.get(key) {
            Some(Value::String(word)) => {
                let lower = word.to_lowercase();
                let status = lower.parse::<u16>().is_ok_and(|n| (400..600).contains(&n));
                body.len() > 1 && (status || self.bad_states.contains(&lower))
            }
            Some(Value::Number(n)) => {
                body.len() > 1 && n.as_u64().is_some_and(|n| (400..600).contains(&n))
            }
            _ => false,
        })
    }

    fn has_bad_number(&self, body: &Map<String, Value>) -> bool {
        let bad = |key: &String| body.get(key).and_then(Value::as_i64).is_some_and(|n| n != 0);
        self.numbers.iter().any(bad)
    }
}

/// Nothing said: null, false, zero, an empty string, list or object.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(b) => !b,
        Value::Number(n) => n.as_f64() == Some(0.0),
        Value::String(s) => s.trim().is_empty() || s.eq_ignore_ascii_case("none"),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
    }
}
