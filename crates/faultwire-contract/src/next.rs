//! What to do now: one sentence a condition, templates of the contract with slots for what is known.
//!
//! A slot takes facts that the boundary found itself: upstream text never becomes an instruction.

use std::time::Duration;

use crate::condition::Condition;
use crate::origin::Outcome;
use crate::report::Report;
use crate::retry::RetryClass;

/// The `[next]` table of a contract.
#[derive(Clone, Debug, Default)]
pub(crate) struct Next {
    /// The sentences of a condition; the first whose slots are all known is said.
    pub rows: Vec<(Condition, Vec<Sentence>)>,
    /// What is said where the tool may have run and must not run twice (S4): instead of advice to
    /// call again, and after other advice.
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
    /// What to do about a failure; none if the contract has no sentence for it.
    pub fn sentence(
        &self,
        condition: Option<Condition>,
        report: &Report,
        retry: (RetryClass, Option<Duration>),
    ) -> Option<String> {
        let (class, delay) = retry;
        let fill = |all: &[Sentence]| all.iter().find_map(|s| s.fill(report, delay));
        let row = self.rows.iter().find(|(of, _)| Some(*of) == condition);
        let own = row.and_then(|(_, sentences)| fill(sentences));
        // Where no tool is reached, none can have run, although the call was sent.
        let reaches = condition.is_none_or(|c| c.reported_outcome() != Outcome::NotSent);
        let is_unsafe = reaches
            && report.outcome == Some(Outcome::MaybeExecuted)
            && report.repeatable != Some(true);
        let Some(warning) = is_unsafe.then(|| fill(&self.maybe_executed)).flatten() else {
            return own;
        };
        match own.filter(|_| !class.is_retryable()) {
            Some(own) => Some(format!("{own} {warning}")),
            None => Some(warning),
        }
    }
}

impl Sentence {
    /// Reads a sentence; the error is a slot that there is none of.
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

    /// Whether it can always be said.
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
    fn value(self, report: &Report, delay: Option<Duration>) -> Option<String> {
        match self {
            Self::Tool => report.tool.clone(),
            Self::Wait => delay.map(seconds),
            Self::Nearest => report.hints.nearest.clone(),
            Self::Missing => report.hints.missing.clone(),
            Self::Allowed => report.hints.allowed.clone(),
            Self::Directory => report.hints.directory.clone(),
            Self::Check => report.hints.check.clone(),
        }
    }
}

fn seconds(delay: Duration) -> String {
    match delay.as_millis().div_ceil(1000) {
        1 => "1 second".to_owned(),
        n => format!("{n} seconds"),
    }
}
