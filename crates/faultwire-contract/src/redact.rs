//! Redaction: what a client must not see is taken out before anything reaches it.
//!
//! First everything invisible is stripped, since it can hide a secret from any pattern. Then all
//! rules look at the same text, and at a view of it with escapes undone; their findings are
//! merged, and each is replaced by a placeholder that no rule matches. That is repeated until
//! nothing is found, so redacting twice changes nothing. Rules are data:
//! `rules/redaction.toml`, and `[[redact]]` tables of a contract or of a file of their own.

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
use rule::{Finding, Place};
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

/// A text is looked at again at most this often. After a match each rule begins anew, as if the
/// placeholder stood there already, so a further round finds only what one rule hid from another.
const ROUNDS: usize = 8;

/// Texts are redacted up to here; what comes after is dropped, since no bound lets it through.
pub const LONGEST_TEXT: usize = 256 * 1024;

/// Finds and replaces what must not be seen.
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

    /// The text with everything sensitive replaced. What comes after the first 256 KiB is
    /// dropped, since no bound of a contract lets it through; see [`Redactor::redact_all`].
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

    /// The text without credentials; paths, frames and addresses stay. For what is written down
    /// and not sent.
    #[must_use]
    pub fn redact_credentials<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.run(text, &self.credentials())
    }

    /// The same for every string of a JSON value, keys included. A value whose key names a
    /// secret is replaced whole.
    #[must_use]
    pub fn redact_json(&self, value: Value) -> Value {
        self.json(value, &self.everything())
    }

    /// The value without credentials; paths, frames and addresses stay.
    #[must_use]
    pub fn redact_json_credentials(&self, value: Value) -> Value {
        self.json(value, &self.credentials())
    }

    /// The text for one client, for whom at least these kinds are masked. What it said itself
    /// stays.
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
            // The key counts as it was and as it is shown, so that redacting again changes nothing.
            let is_secret =
                || self.is_secret_name(&key) || shown != key && self.is_secret_name(&shown);
            let value = match value {
                value if is_telling(&value) && is_secret() => self.behind_secret(value, reader),
                other => self.json(other, reader),
            };
            let key = shown;
            // Keys that differed only in what was taken out are told apart by a number, which must
            // not make one of them equal to another key.
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

    /// A value behind the name of a secret: its strings and longer numbers go, unless they are
    /// words about it ("is required") or the object is a schema.
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
        // What is invisible goes from the key, and must not keep it from being recognised.
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
        // What one client said is clean for no other.
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

/// For whom a text is made safe.
struct Reader<'a> {
    scope: Scope,
    caller: Option<&'a Caller<'a>>,
}

impl<'a> Reader<'a> {
    /// Whoever reads what was written down.
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

/// Whether an object tells of a value instead of having it: a schema, or what a validator says.
fn describes(members: &Map<String, Value>) -> bool {
    let types = ["string", "number", "integer", "boolean", "object", "array", "null"];
    let typed = members.get("type").and_then(Value::as_str).is_some_and(|t| types.contains(&t));
    typed || ["$ref", "msg", "message"].iter().any(|key| members.contains_key(*key))
}

/// The beginning of an overlong text, up to a sign that ends whatever stands before it, so that no
/// secret is cut in two. Without such a sign nothing of it is safe.
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

/// The rules, and one automaton that tells which of them a text is worth trying on.
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
        let place = Place { text, view, caller: reader.caller };
        for (rule, _) in tried {
            rule.find(&place, findings);
        }
    }

    /// The text with its findings replaced; `None` when there are none.
    fn replace(&self, text: &str, reader: &Reader<'_>) -> Option<String> {
        let mut out: Option<String> = None;
        let mut done = 0;
        for (from, to, placeholder) in self.find(text, reader) {
            if from < done {
                // It overlaps one that is replaced already: its rest goes too.
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
