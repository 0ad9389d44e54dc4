//! The rules for servers that cannot start.

use super::rule::pattern;
use crate::mistake::Mistakes;
use crate::pattern::Pattern;
use crate::section::{Section, read_file};

/// What one kind of failed start prints, and what to check then.
#[derive(Debug)]
pub(crate) struct Start {
    pub text: Pattern,
    pub check: String,
}

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
    let text = pattern(section.log, &section.need_text("text", "give a pattern")?)?;
    let check = section.need_text("check", "say what to check")?.value.to_owned();
    Some(Start { text, check })
}
