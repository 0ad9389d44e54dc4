//! What to do next: one sentence per condition, from the contract's templates with slots for known
//! facts.
//!
//! A slot only takes facts that the boundary found itself, and only names, paths and numbers:
//! upstream text never becomes an instruction.

use std::time::Duration;

use crate::code::Code;
use crate::condition::Condition;
use crate::origin::Outcome;
use crate::report::Report;
use crate::retry::RetryClass;

/// The `[next]` table of a contract.
#[derive(Clone, Debug, Default)]
pub(crate) struct Next {
    /// The sentences of a condition; the first whose slots are all known is used.
    pub rows: Vec<(Condition, Vec<Sentence>)>,
    /// The sentence if the tool may have run and must not run twice (S4): it replaces advice to
    /// call again, and follows other advice.
    pub maybe_executed: Vec<Sentence>,
}

/// A sentence: texts and slots in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sentence(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Slot(Slot),
}

/// What a sentence can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    Tool,
    Wait,
    Nearest,
    Missing,
    Allowed,
    Directory,
    Check,
}

const SLOTS: [(&str, Slot); 7] = [
    ("tool", Slot::Tool),
    ("wait", Slot::Wait),
    ("nearest", Slot::Nearest),
    ("missing", Slot::Missing),
    ("allowed", Slot::Allowed),
    ("directory", Slot::Directory),
    ("check", Slot::Check),
];

impl Next {
    /// What to do about a failure: the condition's sentence, otherwise the code's `action`.
    /// `warned` is whether the tool may have run and must not run twice.
    pub fn sentence(
        &self,
        condition: Option<Condition>,
        report: &Report,
        retry: (RetryClass, Option<Duration>),
        warned: bool,
        action: &str,
    ) -> String {
        let (class, delay) = retry;
        let fill = |all: &[Sentence]| all.iter().find_map(|s| s.fill(report, delay));
        let row = self.rows.iter().find(|(of, _)| Some(*of) == condition);
        let own = row.and_then(|(_, sentences)| fill(sentences));
        let own = own.unwrap_or_else(|| action.to_owned());
        let Some(warning) = warned.then(|| fill(&self.maybe_executed)).flatten() else {
            return own;
        };
        if class.is_retryable() { warning } else { format!("{own} {warning}") }
    }
}

/// Whether the call must not be repeated before its effect is checked (S4): the tool may have run,
/// and is not known to do no harm when it runs twice (A7).
pub(crate) fn warns(
    row: &Code,
    condition: Option<Condition>,
    report: &Report,
    class: RetryClass,
) -> bool {
    // Where no tool is reached, none can have run, although the call was sent.
    let reaches = condition.is_none_or(|c| c.reported_outcome() != Outcome::NotSent);
    if !reaches || report.repeatable == Some(true) {
        return false;
    }
    match report.outcome {
        Some(Outcome::NotSent) => false,
        // What a code says that promises to have run is written for that.
        Some(Outcome::Executed) => class.is_retryable() && row.outcome != report.outcome,
        Some(Outcome::MaybeExecuted) | None => true,
    }
}

impl Sentence {
    /// Parses a sentence; the error is the name of an unknown slot.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let Some((name, after)) = after.split_once('}') else { break };
            let known = SLOTS.iter().find(|(known, _)| *known == name);
            let Some((_, slot)) = known else { return Err(name.to_owned()) };
            parts.push(Part::Text(before.to_owned()));
            parts.push(Part::Slot(*slot));
            rest = after;
        }
        parts.push(Part::Text(rest.to_owned()));
        Ok(Self(parts))
    }

    /// The names of all slots.
    pub fn slots() -> Vec<&'static str> {
        SLOTS.iter().map(|(name, _)| *name).collect()
    }

    /// Whether it has no slots.
    pub fn is_plain(&self) -> bool {
        self.0.iter().all(|part| matches!(part, Part::Text(_)))
    }

    fn fill(&self, report: &Report, delay: Option<Duration>) -> Option<String> {
        let mut out = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Slot(slot) => out.push_str(&slot.value(report, delay)?),
            }
        }
        Some(out)
    }
}

impl Slot {
    /// What is known for it, if that can stand in an instruction.
    fn value(self, report: &Report, delay: Option<Duration>) -> Option<String> {
        let hints = &report.hints;
        let (known, is_harmless): (_, fn(&str) -> bool) = match self {
            Self::Wait => return delay.map(seconds),
            Self::Tool => (&report.tool, is_name),
            Self::Nearest => (&hints.nearest, is_name),
            Self::Missing => (&hints.missing, are_names),
            Self::Allowed => (&hints.allowed, are_names),
            Self::Directory => (&hints.directory, is_short),
            Self::Check => (&hints.check, is_short),
        };
        known.clone().filter(|text| is_harmless(text))
    }
}

/// The longest list of names, and the longest path.
const LONGEST: usize = 200;
/// The most names in a list.
const MOST_NAMES: usize = 8;

/// A name of a tool, a property or a value; no prose.
fn is_name(text: &str) -> bool {
    let is_part = |b: u8| b.is_ascii_alphanumeric() || b"_-.:/+".contains(&b);
    (1..=128).contains(&text.len()) && text.bytes().all(is_part)
}

fn are_names(text: &str) -> bool {
    is_short(text) && text.split(", ").count() <= MOST_NAMES && text.split(", ").all(is_name)
}

fn is_short(text: &str) -> bool {
    (1..=LONGEST).contains(&text.len()) && !text.chars().any(char::is_control)
}

fn seconds(delay: Duration) -> String {
    match delay.as_millis().div_ceil(1000) {
        1 => "1 second".to_owned(),
        n => format!("{n} seconds"),
    }
}
