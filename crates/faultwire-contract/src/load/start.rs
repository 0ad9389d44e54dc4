//! The rules for servers that cannot start.

use super::rule::regex;
use super::section::{Section, read_file};
use crate::mistake::Mistakes;
use crate::start::Start;

/// The `[[start]]` tables of the shared file.
pub(crate) fn shared_starts(file: &str, text: &str) -> Result<Vec<Start>, Mistakes> {
    read_file(file, text, "correct the file", |root| {
        root.allow(&["start"]);
        Some(root.list("start").into_iter().filter_map(|section| start(&section)).collect())
    })
}

fn start(section: &Section<'_>) -> Option<Start> {
    section.allow(&["name", "text", "check"]);
    section.need_text("name", "name the rule")?;
    let text = regex(section.log, &section.need_text("text", "give a pattern")?)?;
    let check = section.need_text("check", "say what to check")?.value.to_owned();
    Some(Start { text, check })
}
