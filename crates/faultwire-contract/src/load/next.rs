//! `[next]`: what to do next, by condition.

use crate::condition::Condition;
use crate::next::{Next, Sentence};
use crate::section::{Section, Text};

/// The key of the sentences for a tool that may have run already.
const MAYBE_EXECUTED: &str = "maybe_executed";

pub(super) fn next(root: &Section<'_>) -> Option<Next> {
    let section = root.section("next")?;
    let mut names: Vec<&str> = Condition::ALL.iter().map(|c| c.name()).collect();
    names.push(MAYBE_EXECUTED);
    section.allow(&names);
    let row = |condition: &Condition| {
        section.has(condition.name()).then(|| (*condition, sentences(&section, condition.name())))
    };
    Some(Next {
        rows: Condition::ALL.iter().filter_map(row).collect(),
        maybe_executed: sentences(&section, MAYBE_EXECUTED),
    })
}

fn sentences(section: &Section<'_>, key: &str) -> Vec<Sentence> {
    let texts = section.texts(key).unwrap_or_default();
    let read: Vec<Sentence> = texts.iter().filter_map(|text| sentence(section, text)).collect();
    if let (Some(last), Some(text)) = (read.last(), texts.last())
        && !last.is_plain()
    {
        let what = format!("the last sentence of {key:?} in [next] has a slot");
        section.log.note(&text.at, what, "end with a sentence without slots, which always applies");
    }
    read
}

fn sentence(section: &Section<'_>, text: &Text<'_>) -> Option<Sentence> {
    match Sentence::parse(text.value) {
        Ok(sentence) => Some(sentence),
        Err(slot) => {
            let what = format!("{{{slot}}} is not a slot of [next]");
            let help = format!("the slots are {}", Sentence::slots().join(", "));
            section.log.note(&text.at, what, help);
            None
        }
    }
}
