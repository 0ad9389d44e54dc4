//! Redaction: removes what a client must not see.
//!
//! First, invisible characters are stripped, because they can hide a secret from any pattern. Then
//! all rules are matched against the same text, and against a view of it without escapes. Their
//! findings are merged, and each is replaced by a placeholder that no rule matches. This is
//! repeated until nothing is found, so redacting twice changes nothing. Rules are data:
//! `rules/redaction.toml`, and `[[redact]]` tables of a contract or a separate file.

mod caller;
mod check;
mod clean;
mod fold;
mod home;
mod joins;
#[cfg(test)]
mod keywords;
mod masks;
pub(crate) mod rule;
mod said;
mod scope;
mod strip;
pub(crate) mod view;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use serde_json::{Map, Value};

pub use caller::Caller;
use clean::Clean;
pub use home::shorten_home;
pub use masks::Masks;
use rule::{Finding, Position};
pub use rule::{RedactRule, RuleKind};
use scope::Scope;
pub use strip::strip;
use view::View;

static SHARED: LazyLock<Vec<RedactRule>> = LazyLock::new(|| {
    let text = include_str!("../rules/redaction.toml");
    match rule::read_shared("rules/redaction.toml", text) {
        Ok(rules) => rules,
        // The file is part of this build, and a test loads it.
        Err(mistakes) => panic!("the shared redaction rules do not load: {mistakes}"),
    }
});

static SHARED_FINDER: LazyLock<Finder> = LazyLock::new(|| Finder::new(SHARED.to_vec()));

/// The most rounds for a text. After a match, each rule restarts as if the placeholder were already
/// there, so another round only finds what one rule hid from another.
const ROUNDS: usize = 8;

/// Texts are redacted up to this length; the rest is dropped, because no bound allows it.
pub const LONGEST_TEXT: usize = 256 * 1024;

/// Finds and replaces text that clients must not see.
#[derive(Clone, Debug)]
pub struct Redactor {
    own: Option<Arc<Finder>>,
    masks: Masks,
}

impl Default for Redactor {
    fn default() -> Self {
        Self::with(Vec::new())
    }
}

impl Redactor {
    /// The shared rules and some more. The shared ones are compiled when first needed.
    #[must_use]
    pub fn with(own: Vec<RedactRule>) -> Self {
        if own.is_empty() {
            return Self { own: None, masks: Masks::default() };
        }
        let all = SHARED.iter().cloned().chain(own).collect();
        Self { own: Some(Arc::new(Finder::new(all))), masks: Masks::default() }
    }

    /// The same rules and some more.
    #[must_use]
    pub fn and(&self, more: Vec<RedactRule>) -> Self {
        let rules = self.own.as_ref().map_or(&*SHARED, |own| &own.rules);
        let all = rules.iter().cloned().chain(more).collect();
        Self { own: Some(Arc::new(Finder::new(all))), masks: self.masks }
    }

    /// The same rules, with other kinds masked than paths, addresses and frames.
    ///
    /// ```
    /// use faultwire_contract::{Masks, Redactor};
    ///
    /// let redactor = Redactor::default();
    /// let text = "no account for jane@example.com";
    /// assert_eq!(redactor.redact(text), text);
    /// let strict = redactor.masking(Masks::ALL);
    /// assert_eq!(strict.redact(text), "no account for [redacted:personal]");
    /// ```
    #[must_use]
    pub fn masking(&self, masks: Masks) -> Self {
        Self { own: self.own.clone(), masks }
    }

    /// The text with everything sensitive replaced. Text after the first 256 KiB is dropped,
    /// because no bound of a contract allows it; see [`Redactor::redact_all`].
    ///
    /// ```
    /// let redactor = faultwire_contract::Redactor::default();
    /// assert_eq!(
    ///     redactor.redact("login failed: password=hunter2"),
    ///     "login failed: password=[redacted]",
    /// );
    /// assert_eq!(redactor.redact("the author's monkey"), "the author's monkey");
    /// ```
    #[must_use]
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.run(text, &self.everything())
    }

    /// The same for a text of any length.
    #[must_use]
    pub fn redact_all<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.rounds(strip(text), &self.everything())
    }

    /// The text without credentials; paths, frames and addresses are kept. For text that is
    /// recorded and not sent.
    #[must_use]
    pub fn redact_credentials<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.run(text, &self.credentials())
    }

    /// The same for every string of a JSON value, keys included. A value whose key names a secret
    /// is replaced as a whole.
    #[must_use]
    pub fn redact_json(&self, value: Value) -> Value {
        self.json(value, &self.everything())
    }

    /// The value without credentials; paths, frames and addresses stay.
    #[must_use]
    pub fn redact_json_credentials(&self, value: Value) -> Value {
        self.json(value, &self.credentials())
    }

    /// The text for one client, with at least these kinds masked. Text that the client sent is
    /// kept.
    pub(crate) fn redact_for<'t>(
        &self,
        text: &'t str,
        caller: &Caller<'_>,
        floor: Masks,
    ) -> Cow<'t, str> {
        self.run(text, &Reader::of(caller, floor))
    }

    /// The same for every string of a JSON value.
    pub(crate) fn redact_json_for(&self, value: Value, caller: &Caller<'_>, floor: Masks) -> Value {
        self.json(value, &Reader::of(caller, floor))
    }

    fn json(&self, value: Value, reader: &Reader<'_>) -> Value {
        match value {
            Value::String(s) => Value::String(self.run(&s, reader).into_owned()),
            Value::Array(items) => items.into_iter().map(|v| self.json(v, reader)).collect(),
            Value::Object(members) => Value::Object(self.members(members, reader)),
            scalar => scalar,
        }
    }

    fn members(&self, members: Map<String, Value>, reader: &Reader<'_>) -> Map<String, Value> {
        let mut kept = Map::new();
        let mut seen: HashMap<String, usize> = HashMap::new();
        for (key, value) in members {
            let shown = self.run(&key, reader).into_owned();
            // Both the original and the redacted key count, so that redacting again changes
            // nothing.
            let is_secret =
                || self.is_secret_name(&key) || shown != key && self.is_secret_name(&shown);
            let value = match value {
                value if is_telling(&value) && is_secret() => self.behind_secret(value, reader),
                other => self.json(other, reader),
            };
            let key = shown;
            // Keys that only differed in what was redacted get a number, which must not make one of
            // them equal to another key.
            let times = seen.entry(key.clone()).and_modify(|n| *n += 1).or_insert(1);
            let mut numbered = if *times > 1 { format!("{key} {times}") } else { key.clone() };
            while kept.contains_key(&numbered) {
                *times += 1;
                numbered = format!("{key} {times}");
            }
            kept.insert(numbered, value);
        }
        kept
    }

    /// A value under the name of a secret: its strings and longer numbers are replaced, unless they
    /// describe it ("is required") or the object is a schema.
    fn behind_secret(&self, value: Value, reader: &Reader<'_>) -> Value {
        match value {
            Value::Object(members) if describes(&members) => {
                Value::Object(self.members(members, reader))
            }
            Value::Object(members) => {
                let members = members.into_iter();
                let sealed = members.map(|(k, v)| (k, self.behind_secret(v, reader))).collect();
                Value::Object(self.members(sealed, reader))
            }
            Value::Array(items) if items.iter().any(Value::is_object) => {
                items.into_iter().map(|item| self.behind_secret(item, reader)).collect()
            }
            Value::Array(items) if items.iter().any(|item| self.is_secret(item)) => {
                rule::SECRET.into()
            }
            value if self.is_secret(&value) => rule::SECRET.into(),
            other => self.json(other, reader),
        }
    }

    /// Whether the rules would take out this value behind the name of a secret.
    fn is_secret(&self, value: &Value) -> bool {
        match value {
            Value::String(s) if s.len() > 256 || s.contains(['"', '\\', '\n']) => true,
            Value::String(s) => self.has_credential(&format!("password=\"{s}\"")),
            Value::Array(items) => items.iter().any(|item| self.is_secret(item)),
            other => is_telling(other),
        }
    }

    /// Whether the rules would take out a value behind this key, if it stood in a text.
    fn is_secret_name(&self, key: &str) -> bool {
        // Invisible characters are removed from the key, and must not prevent its recognition.
        let key = strip(key);
        let tail = &key[key.ceil_char_boundary(key.len().saturating_sub(128))..];
        self.has_credential(&format!("{tail}=x8q"))
    }

    fn has_credential(&self, text: &str) -> bool {
        !self.finder().find(text, &Reader::RECORD).is_empty()
    }

    fn everything(&self) -> Reader<'static> {
        Reader { scope: Scope::for_client(self.masks), caller: None }
    }

    fn credentials(&self) -> Reader<'static> {
        Reader { scope: Scope::for_record(self.masks), caller: None }
    }

    fn run<'t>(&self, text: &'t str, reader: &Reader<'_>) -> Cow<'t, str> {
        let clean = self.finder().clean(reader.scope);
        if clean.knows(text) {
            return Cow::Borrowed(text);
        }
        let redacted = self.rounds(strip(prefix(text, LONGEST_TEXT)), reader);
        // Text that is clean for one client is not clean for another.
        let kept = reader.caller.is_some_and(Caller::take_kept);
        if redacted == text && !kept {
            clean.remember(text);
        }
        redacted
    }

    fn rounds<'t>(&self, mut text: Cow<'t, str>, reader: &Reader<'_>) -> Cow<'t, str> {
        for _ in 0..ROUNDS {
            match self.finder().replace(&text, reader) {
                Some(replaced) => text = Cow::Owned(replaced),
                None => break,
            }
        }
        text
    }

    fn finder(&self) -> &Finder {
        self.own.as_deref().unwrap_or(&SHARED_FINDER)
    }
}

/// The reader for whom a text is made safe.
struct Reader<'a> {
    scope: Scope,
    caller: Option<&'a Caller<'a>>,
}

impl<'a> Reader<'a> {
    /// The reader of records.
    const RECORD: Reader<'static> = Reader { scope: Scope::CREDENTIALS, caller: None };

    fn of(caller: &'a Caller<'a>, floor: Masks) -> Self {
        Self { scope: Scope::for_client(caller.masks.with(floor)), caller: Some(caller) }
    }
}

/// Whether a value behind the name of a secret can be one: not a flag, a small number or nothing.
fn is_telling(value: &Value) -> bool {
    match value {
        Value::String(s) => !s.is_empty(),
        Value::Number(n) => n.to_string().len() >= 4,
        Value::Array(items) => items.iter().any(is_telling),
        Value::Object(members) => members.values().any(is_telling),
        Value::Null | Value::Bool(_) => false,
    }
}

/// Whether an object describes a value instead of containing it: a schema, or a validator's
/// message.
fn describes(members: &Map<String, Value>) -> bool {
    let types = ["string", "number", "integer", "boolean", "object", "array", "null"];
    let typed = members.get("type").and_then(Value::as_str).is_some_and(|t| types.contains(&t));
    typed || ["$ref", "msg", "message"].iter().any(|key| members.contains_key(*key))
}

/// The beginning of a text that is too long, up to a character that ends any token, so that no
/// secret is cut in two. Without such a character, no part of it is safe.
pub(crate) fn prefix(text: &str, longest: usize) -> &str {
    if text.len() <= longest {
        return text;
    }
    let kept = &text[..text.floor_char_boundary(longest)];
    let ends = |c: char| {
        c.is_whitespace()
            || matches!(c, '"' | '\'' | ',' | ';' | '{' | '}' | '[' | ']' | '<' | '>' | '|')
    };
    &kept[..kept.rfind(ends).unwrap_or(0)]
}

/// The rules, and one automaton that selects the rules to try on a text.
#[derive(Debug)]
struct Finder {
    rules: Vec<RedactRule>,
    keywords: AhoCorasick,
    /// For each keyword, the rule it belongs to.
    owners: Vec<usize>,
    /// For each scope, texts in which nothing is.
    clean: [Clean; Scope::COUNT],
}

impl Finder {
    fn new(rules: Vec<RedactRule>) -> Self {
        let owned = |(i, rule): (usize, &RedactRule)| vec![i; rule.keywords.len()];
        let owners = rules.iter().enumerate().flat_map(owned).collect();
        let words = rules.iter().flat_map(|rule| rule.keywords.iter());
        let mut builder = AhoCorasick::builder();
        // Every text passes through this one: it is worth a table.
        builder.ascii_case_insensitive(true).kind(Some(AhoCorasickKind::DFA));
        let built = builder.build(words);
        let keywords = built.unwrap_or_else(|_| unreachable!("keywords are short and few"));
        Self { rules, keywords, owners, clean: Default::default() }
    }

    /// The texts in which nothing of the wanted kinds is.
    fn clean(&self, scope: Scope) -> &Clean {
        &self.clean[scope.index()]
    }

    fn find<'f>(&'f self, text: &str, reader: &Reader<'_>) -> Vec<Finding<'f>> {
        let mut findings = Vec::new();
        self.find_in(text, &View::plain(text), reader, &mut findings);
        if let Some(view) = View::decoded(text) {
            self.find_in(text, &view, reader, &mut findings);
        }
        findings.sort_unstable_by_key(|(from, to, _)| (*from, std::cmp::Reverse(*to)));
        findings
    }

    fn find_in<'f>(
        &'f self,
        text: &str,
        view: &View<'_>,
        reader: &Reader<'_>,
        findings: &mut Vec<Finding<'f>>,
    ) {
        let mut tried = vec![false; self.rules.len()];
        for hit in self.keywords.find_overlapping_iter(&*view.bytes) {
            tried[self.owners[hit.pattern().as_usize()]] = true;
        }
        let takes = |rule: &RedactRule| reader.scope.takes(rule.kind);
        let tried = self.rules.iter().zip(tried).filter(|(rule, hit)| *hit && takes(rule));
        let place = Position { text, view, caller: reader.caller };
        for (rule, _) in tried {
            rule.find(&place, findings);
        }
    }

    /// The text with its findings replaced; `None` if there are none.
    fn replace(&self, text: &str, reader: &Reader<'_>) -> Option<String> {
        let mut out: Option<String> = None;
        let mut done = 0;
        for (from, to, placeholder) in self.find(text, reader) {
            if from < done {
                // It overlaps one that is already replaced: its rest is removed, too.
                done = done.max(to);
                continue;
            }
            let out = out.get_or_insert_with(|| String::with_capacity(text.len()));
            out.push_str(&text[done..from]);
            out.push_str(placeholder);
            done = to;
        }
        out.map(|mut out| {
            out.push_str(&text[done..]);
            out
        })
    }
}
