//! Failures dressed as successes: `{"ok":false}`, `<error>…`, `Error: …` as the only text.
//!
//! With care: a document that merely mentions an error is no failure. The signs are data, in the
//! `[soft]` table of `rules/classification.toml`.

use std::sync::LazyLock;

use aho_corasick::packed::Searcher;
use memchr::memmem::Finder;
use regex::bytes::Regex;
use serde_json::{Map, Value};

use super::context::CallContext;
use super::evidence::Evidence;
use super::peek::Peek;
use super::rule;

/// The signs of a soft failure.
#[derive(Debug)]
pub(crate) struct Signs {
    /// How a text begins that is a failure and nothing else.
    pub text: Vec<Regex>,
    /// How a text begins that a program made of a failure.
    pub machine: Vec<Regex>,
    /// Those that only an SDK makes, whatever the tool returns.
    pub sdk: Regex,
    /// A word that says no.
    pub missing: Regex,
    /// Names of tools that give back what others wrote, byte for byte.
    pub verbatim: Regex,
    /// Names of tools that give back what others wrote, in a form of their own.
    pub documents: Regex,
    /// Names of tools that run what they are given.
    pub outputs: Regex,
    /// Names of tools that change something.
    pub writes: Regex,
    /// Names of tools whose short answers may say that there is nothing.
    pub listing: Regex,
    /// What a success says of itself.
    pub good: Regex,
    /// Members beside an error that help: `available_templates`.
    pub helpful: Regex,
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

/// A statement in prose is no longer than this.
const LONGEST_STATEMENT: usize = 400;

/// One in the place of content is no longer than this.
const SHORT_STATEMENT: usize = 200;

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
    "a",
    "access",
    "an",
    "cannot",
    "call",
    "command",
    "connection",
    "could",
    "couldn",
    "execution",
    "expected",
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
    static NEAR: LazyLock<[Finder<'static>; 6]> = LazyLock::new(|| {
        ["rror", "RROR", "xception", "not found", "not exist", "not allowed"].map(Finder::new)
    });
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

/// How sure it is that a success is a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doubt {
    /// The shape leaves none.
    None,
    /// It may be a document that reads like a failure.
    Some,
}

/// The thorough look: `None` is a success.
pub(super) fn judge(evidence: &mut Evidence, context: &CallContext<'_>) -> Option<Doubt> {
    let signs = rule::signs();
    let as_body = evidence.body.is_some();
    let is_suspect = match &evidence.body {
        Some(body) => body.as_object().is_some_and(|object| signs.body_fails(object)),
        None => evidence.only_text && evidence.texts == 1 && signs.may_be_told(&evidence.text),
    };
    if !is_suspect {
        return None;
    }
    evidence.settle(context);
    let views = evidence.views();
    // Whatever the client sent itself and gets back says nothing.
    let own = views.words.trim();
    if !as_body && !own.bytes().any(|b| b.is_ascii_alphanumeric() || !b.is_ascii())
        || is_echo(evidence, context)
    {
        return None;
    }
    // Of what others wrote or printed, only what names something of the call is the tool's own.
    let prints = returns(&signs.outputs, context);
    let is_theirs = prints || returns(&signs.verbatim, context) && !views.names_whole_argument;
    if as_body {
        return Some(if is_theirs { Doubt::Some } else { Doubt::None });
    }
    let (text, words) = (views.said.trim(), views.words.trim());
    if signs.is_machine_made(text) {
        let by_sdk = signs.sdk.is_match(text.as_bytes());
        return Some(if is_theirs && !by_sdk { Doubt::Some } else { Doubt::None });
    }
    if signs.text_fails(text, words) {
        let is_document = returns(&signs.documents, context) && !views.names_argument;
        return Some(if is_theirs || is_document { Doubt::Some } else { Doubt::None });
    }
    let is_plain = || signs.is_plain_statement(words) && rule::shared(evidence).is_some();
    // Where the text may be content, or say that there is nothing, it must be one line that names
    // what was asked for.
    let content = [&signs.listing, &signs.documents];
    let may_be_content = content.into_iter().any(|names| returns(names, context));
    let prints = prints || returns(&signs.verbatim, context);
    let is_named = if may_be_content {
        views.names_whole_argument && words.len() <= SHORT_STATEMENT && !words.contains('\n')
    } else {
        // A tool that changes something has no document to give back.
        views.names_argument || returns(&signs.writes, context)
    };
    (is_named && !prints && is_plain()).then_some(Doubt::None)
}

/// Whether the tool's name says that it gives back what others wrote.
fn returns(names: &Regex, context: &CallContext<'_>) -> bool {
    context.tool().is_some_and(|tool| names.is_match(tool.as_bytes()))
}

/// Whether the whole body stands in the call.
fn is_echo(evidence: &Evidence, context: &CallContext<'_>) -> bool {
    let body = evidence.bodies.first().map_or(evidence.text.as_str(), String::as_str).trim();
    let quoted = serde_json::to_string(body).unwrap_or_default();
    let inner = quoted.trim_matches('"');
    inner.len() > 8 && context.params.is_some_and(|params| params.contains(inner))
}

impl Signs {
    /// A look at the beginning that is cheaper than taking the text apart.
    fn may_be_told(&self, text: &str) -> bool {
        let text = text.trim();
        text.len() <= LONGEST_TEXT && !self.innocent.is_match(text.as_bytes())
    }

    /// A shape that programs make and people do not write.
    fn is_machine_made(&self, text: &str) -> bool {
        self.machine.iter().any(|sign| sign.is_match(text.as_bytes())) && self.is_one_message(text)
    }

    fn text_fails(&self, text: &str, words: &str) -> bool {
        self.text.iter().any(|sign| sign.is_match(words.as_bytes())) && self.is_one_message(text)
    }

    /// A short statement that does not call itself a success; a rule says what it means.
    fn is_plain_statement(&self, words: &str) -> bool {
        words.len() <= LONGEST_STATEMENT
            && words.lines().count() <= MOST_LINES
            && self.missing.is_match(words.as_bytes())
            && !self.good.is_match(words.as_bytes())
    }

    /// Few lines, or later ones that belong to the first.
    fn is_one_message(&self, text: &str) -> bool {
        // Of several parts each must have failed.
        let is_part = |part: &str| {
            let signs = self.machine.iter().chain(&self.text);
            signs.into_iter().any(|sign| sign.is_match(part.trim().as_bytes()))
        };
        if text.contains("\n---\n") {
            return text.split("\n---\n").all(is_part);
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
        let strange = |k: &str| {
            !self.companions.iter().any(|c| c == k) && !self.helpful.is_match(k.as_bytes())
        };
        let strangers = body.iter().filter(|(k, v)| !is_empty(v) && strange(k));
        let strangers: Vec<&Value> = strangers.map(|(_, value)| value).collect();
        match strangers[..] {
            [] => self.names_error(body) || self.is_in_bad_state(body) || self.has_bad_number(body),
            // What it was about has its own result.
            [Value::Object(part)] if body.len() == 1 => self.part_fails(part),
            // A sentence that says what went wrong, and what it was about.
            [about] => is_scalar(about) && (self.tells_error(body) || self.tells_bad_state(body)),
            _ => {
                let all = body.values().all(|v| v.as_object().is_some_and(|p| self.part_fails(p)));
                all && body.len() <= 64
            }
        }
    }

    /// The result for one of the things that a call names.
    fn part_fails(&self, part: &Map<String, Value>) -> bool {
        let says = |key: &str| part.get(key).is_some_and(|v| v.is_string() && !is_empty(v));
        let is_bad = self.states.iter().any(|key| {
            part.get(key)
                .and_then(Value::as_str)
                .is_some_and(|w| self.bad_states.iter().any(|b| b.eq_ignore_ascii_case(w)))
        });
        let is_told = ["reason", "message", "error", "detail"].iter().any(|key| says(key));
        let is_false = self.flags.iter().any(|key| part.get(key) == Some(&Value::Bool(false)));
        is_told && (is_bad || is_false)
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

    /// A bad state in a word, and a sentence about it.
    fn tells_bad_state(&self, body: &Map<String, Value>) -> bool {
        let is_bad = |key: &String| {
            let word = body.get(key).and_then(Value::as_str).map(str::to_lowercase);
            word.is_some_and(|word| self.bad_states.contains(&word))
        };
        let says = |key: &&str| body.get(*key).is_some_and(|v| v.is_string() && !is_empty(v));
        ["message", "reason", "detail", "msg"].iter().any(says) && self.states.iter().any(is_bad)
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
