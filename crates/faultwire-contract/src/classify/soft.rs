//! Failures dressed as successes: `{"ok":false}`, `<error>…`, `Error: …` as the only text.
//!
//! With care: a document that merely mentions an error is no failure. The signs are data, in the
//! `[soft]` table of `rules/classification.toml`.

use std::sync::LazyLock;

use aho_corasick::packed::Searcher;
use memchr::memmem::Finder;
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
    /// What reads like a failure and only says that there is nothing.
    pub innocent: Regex,
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

/// Texts are looked at this far for the words that a failure begins with.
const BEGINNING: usize = 320;

/// A cheap look that lets almost every success pass: no text is unescaped, nothing is parsed.
pub(super) fn may_fail(result: &Peek<'_>) -> bool {
    let structured = || result.structured.or(result.bare).is_some_and(body_hints);
    let Some(raw) = result.only_text() else { return structured() };
    let first = raw.as_bytes().iter().skip(1).find(|b| !b.is_ascii_whitespace());
    let hints = match first {
        Some(b'{' | b'[') => body_hints(raw),
        _ => text_hints(&raw.as_bytes()[..raw.len().min(BEGINNING)]),
    };
    hints || structured()
}

/// The words that a text begins with when it is a failure without the word "error" in it.
const OPENERS: &[&str] = &[
    "access",
    "call",
    "command",
    "connection",
    "could",
    "couldn",
    "execution",
    "failed",
    "fatal",
    "fehler",
    "erreur",
    "http",
    "invalid",
    "missing",
    "no",
    "operation",
    "panic",
    "permission",
    "query",
    "rate",
    "request",
    "search",
    "thread",
    "too",
    "tool",
    "traceback",
    "unable",
    "unknown",
    "validation",
];

/// Whether a text may begin as one of the signs does. It is told by its first word, or by the
/// word "error" near the beginning: no pattern runs on what is neither.
fn text_hints(raw: &[u8]) -> bool {
    static NEAR: LazyLock<[Finder<'static>; 3]> =
        LazyLock::new(|| ["rror", "RROR", "xception"].map(Finder::new));
    static FOREIGN: LazyLock<Option<Searcher>> =
        LazyLock::new(|| Searcher::new(["错误", "出错", "エラー", "오류", "шибка"]));
    let text = raw.strip_prefix(b"\"").unwrap_or(raw);
    let begins = text.iter().position(u8::is_ascii_alphanumeric).unwrap_or(text.len());
    let word = &text[begins..];
    let word = &word[..word.iter().position(|b| !b.is_ascii_alphanumeric()).unwrap_or(word.len())];
    let opens = || OPENERS.iter().any(|opener| word.eq_ignore_ascii_case(opener.as_bytes()));
    let is_errno = || word.len() > 2 && word[0] == b'E' && word.iter().all(u8::is_ascii_uppercase);
    let is_status = || word.len() == 3 && matches!(word[0], b'4' | b'5');
    let foreign = || match text.first() {
        Some(0x80..) => FOREIGN.as_ref().is_none_or(|words| words.find(raw).is_some()),
        // A letter that is no ASCII may be written as an escape.
        Some(b'\\') => text.get(1) == Some(&b'u'),
        _ => false,
    };
    opens() || is_errno() || is_status() || foreign() || NEAR.iter().any(|n| n.find(raw).is_some())
}

/// What an object that is a failure has somewhere: the name of an error, or a flag that is false.
fn body_hints(raw: &str) -> bool {
    static ERRORS: LazyLock<Option<Searcher>> = LazyLock::new(|| {
        Searcher::new([
            "rror", "RROR", "xception", "fail", "FAIL", "Fail", "ault", "errcode", "err_code",
            "errno", "tatus",
        ])
    });
    static FLAGS: LazyLock<Option<Searcher>> =
        LazyLock::new(|| Searcher::new(["ok", "uccess", "ucceeded"]));
    let has = |words: &Option<Searcher>| words.as_ref().is_none_or(|w| w.find(raw).is_some());
    has(&ERRORS) || (memchr::memmem::find(raw.as_bytes(), b"false").is_some() && has(&FLAGS))
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
        let begins = || self.text.iter().any(|sign| sign.is_match(text.as_bytes()));
        if text.len() > LONGEST_TEXT || !begins() || self.innocent.is_match(text.as_bytes()) {
            return false;
        }
        let mut later = text.lines().skip(1).filter(|line| !line.trim().is_empty());
        later.clone().count() < MOST_LINES
            || later.all(|line| self.continuation.is_match(line.as_bytes()))
    }

    fn body_fails(&self, body: &Map<String, Value>) -> bool {
        let is_false = |key: &String| match body.get(key) {
            Some(Value::Bool(flag)) => !flag,
            Some(Value::String(word)) => word.eq_ignore_ascii_case("false"),
            _ => false,
        };
        if self.flags.iter().any(is_false) || body.get("isError") == Some(&Value::Bool(true)) {
            return true;
        }
        let strangers = body.iter().filter(|(k, v)| !is_empty(v) && !self.companions.contains(k));
        let strangers: Vec<&Value> = strangers.map(|(_, value)| value).collect();
        match strangers[..] {
            [] => self.names_error(body) || self.is_in_bad_state(body) || self.has_bad_number(body),
            // A sentence that says what went wrong, and what it was about.
            [about] => is_scalar(about) && self.tells_error(body),
            _ => false,
        }
    }

    /// A list of findings beside warnings is what a linter answers.
    fn names_error(&self, body: &Map<String, Value>) -> bool {
        let tells = |key: &String| body.get(key).is_some_and(|v| !v.is_number() && !is_empty(v));
        !body.contains_key("warnings") && self.errors.iter().any(tells)
    }

    fn tells_error(&self, body: &Map<String, Value>) -> bool {
        let is_text = |key: &String| body.get(key).is_some_and(|v| v.is_string() && !is_empty(v));
        self.errors.iter().any(is_text)
    }

    /// A state alone makes a record; with words about it, and no id or title, a failure.
    fn is_in_bad_state(&self, body: &Map<String, Value>) -> bool {
        const RECORD: [&str; 5] = ["id", "title", "url", "description", "name"];
        if body.len() < 2 || RECORD.iter().any(|key| body.contains_key(*key)) {
            return false;
        }
        self.states.iter().any(|key| match body.get(key) {
            Some(Value::String(word)) => {
                let lower = word.to_lowercase();
                let status = lower.parse::<u16>().is_ok_and(|n| (400..600).contains(&n));
                status || self.bad_states.contains(&lower)
            }
            Some(Value::Number(n)) => n.as_u64().is_some_and(|n| (400..600).contains(&n)),
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

fn is_scalar(value: &Value) -> bool {
    !value.is_array() && !value.is_object()
}
