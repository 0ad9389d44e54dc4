//! The `[[code]]` rows.

use std::time::Duration;

use super::head::is_version;
use crate::code::{Code, Retired};
use crate::contract::TextPolicy;
use crate::level::Level;
use crate::mistake::nearest;
use crate::origin::{Origin, Outcome};
use crate::pattern::Pattern;
use crate::redact::Redactor;
use crate::retry::RetryClass;
use crate::section::{At, Section, Text};

const KEYS: &[&str] = &[
    "id",
    "category",
    "retry",
    "after_ms",
    "status",
    "alert",
    "message",
    "meaning",
    "action",
    "since",
    "type",
    "mcp",
    "keeps_data",
    "outcome",
    "retired",
];

/// What a row is checked against.
pub(super) struct Rows<'a> {
    pub categories: &'a [String],
    pub pattern: Option<&'a Pattern>,
    pub levels: &'a [Level],
    pub text: &'a TextPolicy,
    /// None for a file that is part of the build: a test checks its messages, and compiling all
    /// redaction rules would dominate the start time.
    pub redactor: Option<&'a Redactor>,
}

impl Rows<'_> {
    /// The rows that could be read, and their places.
    pub(super) fn read(&self, root: &Section<'_>) -> (Vec<Code>, Vec<At>) {
        let sections = root.list("code");
        if sections.is_empty() {
            root.note("the contract has no [[code]]", "a contract needs at least one code");
        }
        let mut codes: Vec<Code> = Vec::with_capacity(sections.len());
        let mut places: Vec<At> = Vec::with_capacity(sections.len());
        for mut section in sections {
            let Some(code) = self.row(&mut section) else {
                continue;
            };
            if let Some(i) = codes.iter().position(|c| c.id == code.id) {
                let first = section.log.line(&places[i]);
                let what =
                    format!("the code {:?} is defined twice, first on line {first}", code.id);
                section.note(what, "remove or rename one of the rows");
                continue;
            }
            places.push(section.at.clone());
            codes.push(code);
        }
        successors(root, &codes, &places);
        (codes, places)
    }

    fn row(&self, section: &mut Section<'_>) -> Option<Code> {
        section.allow(KEYS);
        let id = section.need_text("id", "give the code its stable name")?;
        section.name = format!("code {:?}", id.value);
        self.check_id(section, &id);
        let retry = classes(section);
        let message = section.need_text("message", "write the canonical message");
        if let Some(message) = &message {
            self.check_message(section, message);
        }
        let (alert, alerts) = self.alert(section).unwrap_or_default();
        Some(Code {
            after: after(section, &retry),
            retry,
            category: self.category(section).unwrap_or_default(),
            status: statuses(section),
            alert,
            alerts,
            message: owned(message),
            meaning: owned(section.need_text("meaning", "say what the code means, for people")),
            action: owned(section.need_text("action", "say what the client should do")),
            since: since(section),
            problem_type: section.text("type").map(|t| t.value.to_owned()),
            mcp: section.text("mcp").map(|t| t.value.to_owned()),
            keeps_data: section.boolean("keeps_data").unwrap_or(false),
            outcome: outcome(section),
            retired: retired(section),
            line: section.log.line(&section.at),
            id: id.value.to_owned(),
        })
    }

    fn check_id(&self, section: &Section<'_>, id: &Text<'_>) {
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-' | b':');
        let fits = self.pattern.is_none_or(|p| p.is_match(id.value.as_bytes()));
        if id.value.bytes().all(plain) && id.value.len() <= 128 && fits {
            return;
        }
        let help = match self.pattern {
            Some(pattern) => format!("the contract's code_pattern is {}", pattern.as_str()),
            None => "use letters, digits, and _ . - :, at most 128".to_owned(),
        };
        section.log.note(&id.at, format!("{:?} is not a valid code", id.value), help);
    }

    fn category(&self, section: &Section<'_>) -> Option<String> {
        let category = section.need_text("category", "name one of the contract's categories")?;
        one_of(section, &category, "category", self.categories.iter().map(String::as_str))
    }

    /// The level, and those of some origins: one word, or a table with `any`.
    fn alert(&self, section: &Section<'_>) -> Option<(String, Vec<(Origin, String)>)> {
        const HELP: &str = "name one of the contract's alert levels";
        let levels = self.levels.iter().map(|l| l.name.as_str());
        let level = |section: &Section<'_>, word: &Text<'_>| {
            one_of(section, word, "alert level", levels.clone())
        };
        if !section.has("alert") {
            section.need_text("alert", HELP);
            return None;
        }
        match section.text_or_section("alert")? {
            Ok(word) => Some((level(section, &word)?, Vec::new())),
            Err(table) => {
                let mut keys = vec!["any"];
                keys.extend(Origin::ALL.map(Origin::name));
                table.allow(&keys);
                let any = level(&table, &table.need_text("any", HELP)?)?;
                let own = Origin::ALL.into_iter().filter_map(|origin| {
                    Some((origin, level(&table, &table.text(origin.name())?)?))
                });
                Some((any, own.collect()))
            }
        }
    }

    /// A canonical message is sent to clients unchanged, so it must not need redaction.
    fn check_message(&self, section: &Section<'_>, message: &Text<'_>) {
        if message.value.len() > self.text.message_bytes {
            let what = format!("the message of {} is longer than text.message_bytes", section.name);
            section.log.note(&message.at, what, "shorten it, or raise the bound");
        }
        if self.redactor.is_some_and(|redactor| redactor.redact(message.value) != message.value) {
            let what = format!("the message of {} would be redacted", section.name);
            section.log.note(&message.at, what, "leave out paths, addresses and the like");
        }
    }
}

fn one_of<'k>(
    section: &Section<'_>,
    word: &Text<'_>,
    what: &str,
    known: impl Iterator<Item = &'k str> + Clone,
) -> Option<String> {
    if known.clone().any(|k| k == word.value) {
        return Some(word.value.to_owned());
    }
    let help = match nearest(word.value, known.clone()) {
        Some(near) => format!("did you mean {near:?}?"),
        None if known.clone().next().is_none() => format!("the contract defines no {what} yet"),
        None => format!("use one of {}", known.collect::<Vec<_>>().join(", ")),
    };
    let what = format!("{} has the {what} {:?}, which is not defined", section.name, word.value);
    section.log.note(&word.at, what, help);
    None
}

fn owned(text: Option<Text<'_>>) -> String {
    text.map(|t| t.value.to_owned()).unwrap_or_default()
}

fn classes(section: &Section<'_>) -> Vec<RetryClass> {
    let names = RetryClass::ALL.map(RetryClass::name).join(", ");
    let Some(words) = section.texts("retry") else {
        if !section.has("retry") {
            section.note(
                format!("{} has no \"retry\"", section.name),
                format!("write one of {names}"),
            );
        }
        return vec![];
    };
    let mut classes = Vec::new();
    for word in words {
        match RetryClass::from_name(word.value) {
            None => section.log.note(
                &word.at,
                format!("{} has the unknown retry class {:?}", section.name, word.value),
                format!("write one of {names}"),
            ),
            Some(class) if classes.contains(&class) => section.log.note(
                &word.at,
                format!("{} lists the retry class {:?} twice", section.name, word.value),
                "list each class once, the default first",
            ),
            Some(class) => classes.push(class),
        }
    }
    classes
}

fn after(section: &Section<'_>, retry: &[RetryClass]) -> Option<Duration> {
    let ms = section.integer("after_ms", 1..=86_400_000);
    let lists = retry.contains(&RetryClass::After);
    if lists && !section.has("after_ms") {
        let what = format!("{} is retried after a delay, but has no \"after_ms\"", section.name);
        section.note(what, "set the delay for failures that name none");
    }
    if !lists && section.has("after_ms") {
        let what = format!("{} has \"after_ms\", but is not retried after a delay", section.name);
        section.note(what, "remove it, or list the retry class \"after\"");
    }
    Some(Duration::from_millis(u64::try_from(ms?).ok()?))
}

fn statuses(section: &Section<'_>) -> Vec<u16> {
    let help = "set an HTTP status from 400 to 599";
    if !section.has("status") {
        section.note(format!("{} has no \"status\"", section.name), help);
    }
    let mut statuses = Vec::new();
    for (value, at) in section.integers("status").unwrap_or_default() {
        match u16::try_from(value) {
            Ok(status) if (400..=599).contains(&status) => statuses.push(status),
            _ => {
                let what =
                    format!("{} has the status {value}, which is not 4xx or 5xx", section.name);
                section.log.note(&at, what, help);
            }
        }
    }
    statuses
}

fn since(section: &Section<'_>) -> String {
    let Some(since) = section.need_text("since", "name the version that brought the code") else {
        return String::new();
    };
    if !is_version(since.value) {
        let what =
            format!("{} has \"since\" {:?}, which is not a version", section.name, since.value);
        section.log.note(&since.at, what, "write MAJOR.MINOR.PATCH, such as 1.0.0");
    }
    since.value.to_owned()
}

fn outcome(section: &Section<'_>) -> Option<Outcome> {
    let word = section.text("outcome")?;
    let found = Outcome::ALL.into_iter().find(|o| o.name() == word.value);
    if found.is_none() {
        let names = Outcome::ALL.map(Outcome::name).join(", ");
        let what = format!("{} has the unknown outcome {:?}", section.name, word.value);
        section.log.note(&word.at, what, format!("write one of {names}"));
    }
    found
}

fn retired(section: &Section<'_>) -> Option<Retired> {
    let retired = section.section("retired")?;
    retired.allow(&["since", "successor"]);
    let since = retired.need_text("since", "name the version that retired the code")?;
    let successor = retired.need_text("successor", "name the code that replaces it")?;
    Some(Retired { since: since.value.to_owned(), successor: successor.value.to_owned() })
}

/// A retired code leads to one that is still answered (A3).
fn successors(root: &Section<'_>, codes: &[Code], places: &[At]) {
    for (code, at) in codes.iter().zip(places) {
        let Some(retired) = &code.retired else {
            continue;
        };
        let living = codes.iter().any(|c| c.id == retired.successor && c.retired.is_none());
        if !living {
            let what = format!(
                "the successor {:?} of code {:?} is missing or retired",
                retired.successor, code.id
            );
            root.log.note(at, what, "name a code of this contract that is not retired");
        }
    }
}
