//! What the name of a tool, its annotations and its schema say about the texts that it returns.

use serde_json::Value;

use super::Signs;
use crate::classify::context::CallContext;
use crate::pattern::Pattern;

/// Most words of a statement that are compared with the tool's name.
const SUBJECT: usize = 5;

/// Words that name nothing.
const EMPTY: [&str; 10] = ["the", "not", "and", "for", "was", "has", "any", "all", "this", "your"];

/// What a tool returns, as far as that can be told.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "a tool may be of several kinds at once")]
pub(super) struct ToolKind<'a> {
    pub name: &'a str,
    /// What was sent to it.
    params: &'a str,
    /// It runs what it is given: the text is what was run.
    pub prints: bool,
    /// It gives back what others wrote, byte for byte.
    pub is_verbatim: bool,
    /// It may give back an object as it was stored.
    pub is_raw: bool,
    /// It gives back what others wrote, in a form of its own.
    pub is_document: bool,
    /// It looks for something, and may find nothing.
    pub is_listing: bool,
    /// It is asked whether something holds: that it does not is an answer.
    pub is_question: bool,
    /// Its text was written for the call, by a model or a person.
    pub is_authored: bool,
    /// It puts a query to a database.
    pub is_query: bool,
    /// A model wrote its text for the call.
    pub is_generated: bool,
    /// It looks up a page.
    pub is_lookup: bool,
    /// The same, and the call does not speak of failures.
    pub is_page: bool,
    /// It reads something.
    pub reads: bool,
    /// It changes something.
    pub writes: bool,
}

impl<'a> ToolKind<'a> {
    pub fn of(signs: &Signs, context: &CallContext<'a>) -> Self {
        let name = context.tool().unwrap_or_default();
        let at = |names: &Pattern| names.find(name.as_bytes()).map(|found| found.start());
        let has = |names: &Pattern| at(names).is_some();
        // Of several verbs the first says what the tool does: `stop_search`, `get_update`.
        let reading = [&signs.reads, &signs.listing, &signs.questions];
        let reads_at = reading.into_iter().filter_map(at).min();
        let writes_by_name = at(&signs.writes).is_some_and(|at| reads_at.is_none_or(|r| at < r));
        let writes = writes_by_name && context.read_only != Some(true)
            || context.read_only == Some(false) && reads_at.is_none();
        let params = context.params.unwrap_or_default();
        let is_about = |text: &str| signs.alarming.is_match(text.as_bytes());
        let is_about_failures = has(&signs.authored) && (is_about(name) || is_about(params));
        let is_lookup = has(&signs.pages) && !has(&signs.generated);
        let is_page = is_lookup && !is_about_failures;
        Self {
            name,
            params,
            // What a database answers to a query is no output of what was run.
            prints: has(&signs.outputs) && !has(&signs.queries) && !has(&signs.manages),
            is_verbatim: has(&signs.verbatim),
            is_raw: !writes && has(&signs.raw),
            is_document: !writes && has(&signs.documents),
            is_listing: !writes && has(&signs.listing),
            is_question: !writes && has(&signs.questions),
            is_authored: !is_page
                && at(&signs.authored).is_some_and(|a| at(&signs.writes).is_none_or(|w| a <= w)),
            is_query: has(&signs.queries),
            is_generated: is_about_failures || has(&signs.generated),
            is_lookup,
            is_page,
            reads: !writes && has(&signs.reads),
            writes,
        }
    }

    /// Whether its short texts are answers that it made itself.
    pub fn makes_answers(&self) -> bool {
        let is_of_others = self.prints || self.is_verbatim || self.is_authored;
        !self.name.is_empty() && !is_of_others && !self.is_question
    }

    /// Whether a value stands in the call.
    pub fn was_sent(&self, value: &Value) -> bool {
        let text = value.to_string();
        let is_there = |text: &str| self.params.contains(text);
        match value {
            Value::String(word) => word.len() > 1 && is_there(&text),
            Value::Number(_) => text.len() > 1 && is_there(&text),
            _ => false,
        }
    }

    /// What stands in the call's one list of so many things: the things, and what tells them.
    pub fn listed(&self, many: usize) -> Option<Vec<Value>> {
        let params: Value = serde_json::from_str(self.params).ok()?;
        let arguments = params.get("arguments")?.as_object()?;
        let list = arguments.values().filter_map(Value::as_array).find(|l| l.len() == many)?;
        let parts = list.iter().filter_map(Value::as_object).flat_map(|part| part.values());
        Some(list.iter().chain(parts).cloned().collect())
    }

    /// Whether each item has something that the call named.
    pub fn names_all(&self, items: &[Value]) -> bool {
        let names = |item: &Value| {
            item.as_object().is_some_and(|item| item.values().any(|value| self.was_sent(value)))
        };
        items.iter().all(names)
    }

    /// Whether a statement says that the tool failed to do what its name says: "Could not retrieve
    /// a transcript" of `get_transcript`.
    pub fn is_act_of(&self, failing: &Pattern, line: &str) -> bool {
        let Some(begins) = failing.find(line.as_bytes()) else { return false };
        !self.prints && !self.is_authored && self.is_subject_of(&line[begins.end()..])
    }

    /// The same, of the verb of the tool's name and of what it is done to: "Error getting the
    /// transcript: …" of `get_transcript`.
    pub fn does_own_act(&self, failing: &Pattern, words: &str) -> bool {
        let line = words.lines().next().unwrap_or_default();
        let Some(begins) = failing.find(line.as_bytes()) else { return false };
        let act = line[..begins.end()].split_whitespace().next_back().unwrap_or_default();
        let act = act.to_ascii_lowercase();
        let verb = self.name.split(|c: char| !c.is_ascii_lowercase()).find(|part| part.len() > 2);
        let is_verb = verb.is_some_and(|verb| {
            let stem = act.strip_suffix("ing").unwrap_or_default();
            let verb = verb.strip_suffix('e').unwrap_or(verb);
            stem == verb || stem.strip_prefix(verb).is_some_and(|rest| verb.ends_with(rest))
        });
        is_verb && self.is_subject_of(&line[begins.end()..])
    }

    /// Whether a statement says that what the tool's name says is done: "Door d1 is locked" of
    /// `lock_door`.
    pub fn is_done(&self, words: &str) -> bool {
        const NO: [&str; 6] = ["not", "cannot", "already", "could", "failed", "unable"];
        let verb = self.name.split(|c: char| !c.is_ascii_lowercase()).find(|part| part.len() > 2);
        let acts = self.writes || !self.reads && !self.is_listing && !self.is_question;
        let Some(verb) = verb.filter(|_| acts) else { return false };
        let stem = verb.strip_suffix('e').unwrap_or(verb);
        let words = words.to_ascii_lowercase();
        let words: Vec<&str> = words
            .split(|c: char| !c.is_alphanumeric() && c != '\'')
            .filter(|word| !word.is_empty())
            .collect();
        let is_act = |word: &&str| {
            let ending = word.strip_prefix(stem).and_then(|rest| rest.strip_suffix("ed"));
            ending.is_some_and(|more| more.is_empty() || more.len() == 1 && stem.ends_with(more))
        };
        let Some(at) = words.iter().position(is_act) else { return false };
        let says_no = |word: &&str| NO.contains(word) || word.ends_with("n't");
        !words[..at].iter().any(says_no) && words.get(at + 1) != Some(&"by")
    }

    /// Whether a title says that the act or the thing of the tool's name failed: "Move Failed" of
    /// `move_note`, "Note Not Found" of `read_note`.
    pub fn is_act_that(&self, failed: &Pattern, line: &str) -> bool {
        let found = failed.find(line.as_bytes());
        let is_own = |words: &str| !self.prints && !self.is_authored && self.is_subject_of(words);
        found.is_some_and(|found| is_own(&line[..found.end()]))
    }

    /// Whether a statement is about what the tool's name is about: "Task not found" of `get_task`.
    pub fn is_subject_of(&self, words: &str) -> bool {
        let name = self.name.to_ascii_lowercase();
        let named = |word: &str| {
            let stem = word.trim_end_matches('s');
            let begins = |part: &str| {
                let part = part.trim_end_matches('s');
                part == stem || part.len() > 3 && (part.starts_with(stem) || stem.starts_with(part))
            };
            stem.len() > 2 && name.split(|c: char| !c.is_alphanumeric()).any(begins)
        };
        let mut subject = words.split_whitespace().take(SUBJECT);
        subject.any(|word| {
            let word = word.trim_matches(|c: char| !c.is_alphanumeric()).to_ascii_lowercase();
            !EMPTY.contains(&word.as_str()) && word.len() > 2 && (named(&word) || name == word)
        })
    }
}
