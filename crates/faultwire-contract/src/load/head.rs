//! `[contract]`: name, version and basic properties of the contract.

use super::contract::owned;
use super::rule;
use crate::contract::{Contract, Requires};
use crate::pattern::Pattern;
use crate::section::{Section, Text};

/// The head of the file.
pub(super) struct Head {
    pub name: Option<String>,
    pub version: Option<String>,
    pub title: Option<String>,
    pub frozen: bool,
    pub requires: Requires,
    pub categories: Vec<String>,
    pub profiles: Vec<String>,
    pub code_pattern: Option<Pattern>,
}

impl Head {
    pub(super) fn read(section: &Section<'_>) -> Self {
        section.allow(&[
            "name",
            "version",
            "title",
            "fallback",
            "invariant",
            "frozen",
            "requires",
            "categories",
            "profiles",
            "code_pattern",
        ]);
        let name = section.need_text("name", "set a name in lower case, such as \"my-contract\"");
        let version = section.need_text("version", "set a version such as \"1.0.0\"");
        let title = section.text("title").or_else(|| name.clone());
        let help = "list the categories of the contract's codes";
        let categories = match section.texts("categories") {
            Some(list) => owned(&list),
            None if section.has("categories") => Vec::new(),
            None => {
                section.note("[contract] has no \"categories\"", help);
                Vec::new()
            }
        };
        Self {
            name: name.and_then(|n| {
                well_formed(section, &n, Contract::is_name, "lower-case letters, digits and -")
            }),
            version: version.and_then(|v| {
                well_formed(section, &v, is_version, "MAJOR.MINOR.PATCH, such as 1.0.0")
            }),
            title: title.map(|t| t.value.to_owned()),
            frozen: section.boolean("frozen").unwrap_or(false),
            requires: requires(section),
            categories,
            profiles: profiles(section),
            code_pattern: section.text("code_pattern").and_then(|p| rule::pattern(section.log, &p)),
        }
    }
}

/// The text, when it has the form that it must have.
pub(super) fn well_formed(
    section: &Section<'_>,
    text: &Text<'_>,
    check: fn(&str) -> bool,
    shape: &str,
) -> Option<String> {
    if check(text.value) {
        return Some(text.value.to_owned());
    }
    section.log.note(&text.at, format!("{:?} is not valid", text.value), format!("write {shape}"));
    None
}

pub(super) fn is_version(version: &str) -> bool {
    let parts: Vec<&str> = version.split('.').collect();
    parts.len() == 3
        && parts.iter().all(|p| p.bytes().all(|b| b.is_ascii_digit()) && p.parse::<u32>().is_ok())
}

fn requires(section: &Section<'_>) -> Requires {
    let mut requires = Requires::default();
    for word in section.texts("requires").unwrap_or_default() {
        match word.value {
            "test" => requires.test = true,
            "release" => requires.release = true,
            other => section.log.note(
                &word.at,
                format!("{other:?} cannot be required"),
                "write \"test\", \"release\" or both",
            ),
        }
    }
    requires
}

fn profiles(section: &Section<'_>) -> Vec<String> {
    let Some(list) = section.texts("profiles") else {
        return vec!["default".to_owned()];
    };
    for (i, profile) in list.iter().enumerate() {
        if list[..i].iter().any(|p| p.value == profile.value) {
            let what = format!("the profile {:?} is listed twice", profile.value);
            section.log.note(&profile.at, what, "list each profile once, the default first");
        }
    }
    owned(&list)
}
