//! Objects that are failures: `{"ok":false}`, `{"error":"…"}`, `{"status":"failed","message":"…"}`.

use serde_json::{Map, Value};

use super::Signs;
use super::tool::ToolKind;

/// A member that says that an object is a record of something, and not the answer itself.
const RECORD: [&str; 14] = [
    "id",
    "sid",
    "uuid",
    "title",
    "url",
    "description",
    "name",
    "run_id",
    "job_id",
    "task_id",
    "build_id",
    "created_at",
    "started_at",
    "finished_at",
];
/// Members that are sentences.
const WORDS: [&str; 6] = ["message", "reason", "detail", "msg", "error", "errorMessage"];
/// Members that name the failure.
const TOLD: [&str; 5] = ["code", "error_code", "errorCode", "status", "state"];
/// Members that are lists of what is wrong.
const LISTS: [&str; 4] = ["problems", "errors", "issues", "violations"];
/// The members of more things than this are records.
const MOST_PARTS: usize = 64;
/// Facts beside a bad state that a tool which changes something gives.
const MOST_FACTS: usize = 4;

impl Signs {
    pub(super) fn body_fails(&self, body: &Map<String, Value>, kind: &ToolKind<'_>) -> bool {
        if body.get("isError") == Some(&Value::Bool(true)) {
            return true;
        }
        // Whether something is valid was asked, and this is the answer.
        if self.verdicts.iter().any(|key| body.get(key).is_some_and(Value::is_boolean)) {
            return false;
        }
        let strange = |k: &str| {
            !self.companions.iter().any(|c| c == k) && !self.helpful.is_match(k.as_bytes())
        };
        // What the call said and gets back is nothing new.
        let strangers =
            body.iter().filter(|(k, v)| !is_empty(v) && strange(k) && !kind.was_sent(v));
        let strangers: Vec<&Value> = strangers.map(|(_, value)| value).collect();
        if self.flags.iter().any(|key| is_false(body, key)) {
            // Without a word, and with facts of its own, it is a record of something that failed.
            return kind.writes || strangers.len() < 2 || says_why(body);
        }
        self.types_error(body)
            || self.list_fails(body, kind)
            || kind.writes && says_why(body) && self.done.iter().any(|key| is_false(body, key))
            || self.fails_beside(body, &strangers, kind)
    }

    /// `{"type":"error","error":{"message":"…"}}`, whatever stands beside it.
    fn types_error(&self, body: &Map<String, Value>) -> bool {
        let has_message = |key: &String| {
            body.get(key).and_then(Value::as_object).is_some_and(|e| says(e, "message"))
        };
        self.has_bad_state(body) && self.errors.iter().any(has_message)
    }

    /// Whether it fails in the light of what it holds beside the usual members of an error.
    fn fails_beside(
        &self,
        body: &Map<String, Value>,
        strangers: &[&Value],
        kind: &ToolKind<'_>,
    ) -> bool {
        let are_scalars = || strangers.iter().all(|value| is_scalar(value));
        match strangers {
            [] => {
                self.names_error(body)
                    || self.is_in_bad_state(body)
                    || self.has_bad_number(body)
                    || self.names_code(body)
                    || self.holds_error(body)
            }
            // What it was about has its own result.
            [Value::Object(part)] if body.len() == 1 => {
                let is_named = body.keys().any(|key| kind.was_sent(&Value::from(key.as_str())));
                let says_only_error = || self.only_says(part) && self.tells_error(part);
                self.part_fails(part) || is_named && says_only_error()
            }
            // A sentence that says what went wrong, and what it was about.
            [about] if is_scalar(about) && self.tells_about(body, kind) => true,
            // `{"status":"error","message":"…"}` beside what it was about.
            few if few.len() <= MOST_FACTS && Self::says_failed(body) => are_scalars(),
            few if few.len() <= MOST_FACTS && kind.writes => {
                are_scalars() && self.has_bad_state(body)
            }
            _ => {
                let all = body.values().all(|v| v.as_object().is_some_and(|p| self.part_fails(p)));
                all && body.len() <= MOST_PARTS
            }
        }
    }

    fn tells_about(&self, body: &Map<String, Value>, kind: &ToolKind<'_>) -> bool {
        kind.writes && self.names_error(body)
            || self.tells_error(body)
            || !is_record(body) && self.tells_bad_state(body)
    }

    /// Whether it names the failure that the call names: who asks what a code means, or sets a state,
    /// gets it back.
    pub(super) fn is_told_back(&self, body: &Map<String, Value>, kind: &ToolKind<'_>) -> bool {
        let is_sent =
            |key: &&str| body.get(*key).is_some_and(|v| v.is_string() && kind.was_sent(v));
        TOLD.iter().any(is_sent) && !self.flags.iter().any(|key| is_false(body, key))
    }

    /// Whether it is a record of something with a state of its own: a run that was read has failed,
    /// and that is what was asked for.
    pub(super) fn is_read(&self, body: &Map<String, Value>, kind: &ToolKind<'_>) -> bool {
        kind.reads && is_record(body) && self.states.iter().any(|key| says(body, key))
    }

    /// The result for one of the things that a call names.
    fn part_fails(&self, part: &Map<String, Value>) -> bool {
        let is_false = self.flags.iter().any(|key| part.get(key) == Some(&Value::Bool(false)));
        WORDS.iter().any(|key| says(part, key)) && (is_false || self.has_bad_state(part))
    }

    /// A list of findings beside warnings is what a linter answers, and data beside errors is an
    /// answer of which a part failed.
    fn names_error(&self, body: &Map<String, Value>) -> bool {
        let tells = |key: &String| body.get(key).is_some_and(|v| !v.is_number() && !is_empty(v));
        !body.contains_key("warnings")
            && self.errors.iter().any(tells)
            && !(body.contains_key("errors") && body.get("data").is_some_and(has_data))
    }

    /// A code beside a sentence that says no: `{"code":"rest_post_invalid_id","message":"…"}`.
    fn names_code(&self, body: &Map<String, Value>) -> bool {
        let is_bad = |code: &Value| match code {
            Value::String(code) => code.len() > 3 && !code.bytes().all(|b| b.is_ascii_digit()),
            other => other.as_i64().is_some_and(|n| !(0..400).contains(&n)),
        };
        let message = body.get("message").and_then(Value::as_str).unwrap_or_default();
        body.get("code").is_some_and(is_bad)
            && !is_record(body)
            && self.missing.is_match(message.as_bytes())
            && !self.good.is_match(message.as_bytes())
    }

    /// Whether a list has nothing but errors, each with a code and a sentence, or with what the call
    /// named and why it failed.
    pub(super) fn items_fail(&self, items: &[Value], kind: &ToolKind<'_>) -> bool {
        const CODES: [&str; 4] = ["errorCode", "error_code", "code", "statusCode"];
        let is_coded = |item: &Map<String, Value>| {
            CODES[..2].iter().any(|key| says(item, key)) && says(item, "message")
                || self.names_code(item) && self.only_says(item)
        };
        // Where several things were named, each has its own result.
        let listed = kind.listed(items.len());
        let fails = |item: &Value| {
            let fails = |item| is_coded(item) || self.item_fails(item, kind, listed.as_ref());
            item.as_object().is_some_and(fails)
        };
        (1..=MOST_PARTS).contains(&items.len()) && items.iter().all(fails)
    }

    /// Whether it is the result for one of several things, and says that this one failed.
    fn item_fails(
        &self,
        item: &Map<String, Value>,
        kind: &ToolKind<'_>,
        listed: Option<&Vec<Value>>,
    ) -> bool {
        // What is kept of failures has the same form, and so has a row of a table or a finding.
        if kind.is_query
            || kind.is_question
            || kind.is_document
            || self.alarming.is_match(kind.name.as_bytes())
        {
            return false;
        }
        let is_false = || self.flags.iter().any(|key| is_false(item, key));
        let is_place = ["path", "file"].iter().any(|key| says(item, key));
        let is_record = is_record(item);
        // What it is, and not how it is.
        let is_thing = |key: &str| {
            let tells = [&self.states[..], &self.errors, &self.flags];
            !WORDS.contains(&key) && !tells.iter().any(|keys| keys.iter().any(|k| k == key))
        };
        let is_listed = |value: &Value| listed.is_some_and(|listed| listed.contains(value));
        let is_named = || {
            kind.writes && !is_record
                || item.iter().any(|(key, value)| is_thing(key) && is_listed(value))
        };
        self.tells_error(item) && self.only_says(item) && !is_record && !is_place
            || WORDS.iter().any(|key| says(item, key))
                && (is_false() || self.has_bad_state(item) || self.tells_error(item))
                && item.values().all(|value| is_scalar(value) || is_empty(value))
                && is_named()
    }

    /// Whether its one list has the results of a call, and all of them failed.
    fn list_fails(&self, body: &Map<String, Value>, kind: &ToolKind<'_>) -> bool {
        let mut parts = body.iter().filter(|(_, value)| !is_scalar(value) && !is_empty(value));
        let Some((name, Value::Array(items))) = parts.next() else { return false };
        parts.next().is_none()
            && !LISTS.contains(&name.as_str())
            && !self.flags.iter().any(|key| body.get(key) == Some(&Value::Bool(true)))
            && self.items_fail(items, kind)
    }

    /// Whether its one object is an error, with numbers and words beside it.
    fn holds_error(&self, body: &Map<String, Value>) -> bool {
        let mut parts = body.values().filter(|value| !is_scalar(value) && !is_empty(value));
        let Some(Value::Object(part)) = parts.next() else { return false };
        parts.next().is_none() && self.only_says(part) && self.tells_error(part)
    }

    fn tells_error(&self, body: &Map<String, Value>) -> bool {
        self.errors.iter().any(|key| says(body, key))
    }

    /// `"status": "error"` and words, in what is no record.
    fn says_failed(body: &Map<String, Value>) -> bool {
        let state = body.get("status").and_then(Value::as_str).unwrap_or_default();
        let is_error = ["error", "fail"].iter().any(|word| state.eq_ignore_ascii_case(word));
        is_error && !is_record(body) && WORDS.iter().any(|key| says(body, key))
    }

    /// A bad state in a word, and a sentence about it.
    fn tells_bad_state(&self, body: &Map<String, Value>) -> bool {
        WORDS.iter().any(|key| says(body, key)) && self.has_bad_state(body)
    }

    fn has_bad_state(&self, body: &Map<String, Value>) -> bool {
        self.states.iter().any(|key| {
            let word = body.get(key).and_then(Value::as_str);
            word.is_some_and(|word| {
                self.bad_states.iter().any(|b| b.eq_ignore_ascii_case(word))
                    || self.bad_names.is_match(word.as_bytes())
            })
        })
    }

    /// A state alone makes a record; with words about it, and no id or title, a failure.
    fn is_in_bad_state(&self, body: &Map<String, Value>) -> bool {
        if body.len() < 2 || is_record(body) {
            return false;
        }
        let is_status = |n: u64| (400..600).contains(&n);
        let is_bad_number = |value: &Value| match value {
            Value::String(word) => word.parse().is_ok_and(is_status),
            other => other.as_u64().is_some_and(is_status),
        };
        self.has_bad_state(body)
            || self.states.iter().any(|key| body.get(key).is_some_and(is_bad_number))
    }

    fn has_bad_number(&self, body: &Map<String, Value>) -> bool {
        let bad = |key: &String| body.get(key).and_then(Value::as_i64).is_some_and(|n| n != 0);
        self.numbers.iter().any(bad)
    }

    /// Whether all that an object holds are words about something that went wrong, if it did.
    pub(super) fn only_says(&self, body: &Map<String, Value>) -> bool {
        body.len() <= 4 && body.iter().all(|(key, value)| self.describes(key) && is_scalar(value))
    }

    fn describes(&self, key: &str) -> bool {
        self.companions.iter().any(|c| c == key) || self.helpful.is_match(key.as_bytes())
    }
}

/// Whether it says what is wrong, in a sentence or a list.
fn says_why(body: &Map<String, Value>) -> bool {
    let lists =
        |key: &&str| body.get(*key).and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    WORDS.iter().any(|key| says(body, key)) || LISTS.iter().any(lists)
}

fn is_record(body: &Map<String, Value>) -> bool {
    RECORD.iter().any(|key| body.contains_key(*key))
}

fn is_false(body: &Map<String, Value>, key: &str) -> bool {
    match body.get(key) {
        Some(Value::Bool(flag)) => !flag,
        Some(Value::String(word)) => word.eq_ignore_ascii_case("false"),
        _ => false,
    }
}

/// Whether a member is a text that says something.
fn says(body: &Map<String, Value>, key: &str) -> bool {
    body.get(key).is_some_and(|value| value.is_string() && !is_empty(value))
}

/// Whether anything in it is more than nothing.
fn has_data(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_data),
        Value::Object(members) => members.values().any(has_data),
        other => !is_empty(other),
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
