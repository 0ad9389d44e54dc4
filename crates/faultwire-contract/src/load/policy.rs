//! The tables for text, retries and alerts.

use std::time::Duration;

use crate::contract::{InvalidDetails, RetryPolicy, Switch, TextPolicy};
use crate::level::{Level, Paging};
use crate::redact::Masks;
use crate::retry::{Backoff, RetryClass};
use crate::section::{At, Section};

pub(super) fn text(root: &Section<'_>) -> TextPolicy {
    let mut policy = TextPolicy {
        canonical: false,
        masks: Masks::NONE,
        keeps_tail: false,
        message_bytes: 1024,
        suggestion_bytes: 512,
        details_bytes: 8192,
        details_depth: 16,
        cause_bytes: 4096,
        stack_bytes: 8192,
        envelope_bytes: 65536,
        invalid_details: InvalidDetails {
            message: None,
            original_key: "original_error".to_owned(),
            errors_key: "validation_errors".to_owned(),
        },
    };
    let Some(section) = root.section("text") else {
        return policy;
    };
    section.allow(&[
        "message",
        "masks",
        "message_cut",
        "message_bytes",
        "suggestion_bytes",
        "details_bytes",
        "details_depth",
        "cause_bytes",
        "stack_bytes",
        "envelope_bytes",
        "invalid_details",
    ]);
    policy.canonical = canonical(&section);
    policy.masks = masks(&section);
    policy.keeps_tail = keeps_tail(&section);
    let bounds = [
        ("message_bytes", &mut policy.message_bytes),
        ("suggestion_bytes", &mut policy.suggestion_bytes),
        ("details_bytes", &mut policy.details_bytes),
        ("cause_bytes", &mut policy.cause_bytes),
        ("stack_bytes", &mut policy.stack_bytes),
    ];
    for (key, bound) in bounds {
        set(&section, key, 64..=1_048_576, bound);
    }
    set(&section, "envelope_bytes", 1024..=4_194_304, &mut policy.envelope_bytes);
    set(&section, "details_depth", 1..=64, &mut policy.details_depth);
    if let Some(invalid) = section.section("invalid_details") {
        invalid.allow(&["message", "original_key", "errors_key"]);
        let own = |key| invalid.text(key).map(|t| t.value.to_owned());
        policy.invalid_details.message = own("message");
        if let Some(key) = own("original_key") {
            policy.invalid_details.original_key = key;
        }
        if let Some(key) = own("errors_key") {
            policy.invalid_details.errors_key = key;
        }
    }
    policy
}

fn canonical(section: &Section<'_>) -> bool {
    let Some(word) = section.text("message") else {
        return false;
    };
    match word.value {
        "canonical" => true,
        "redacted" => false,
        other => {
            let what = format!("\"message\" of [text] is {other:?}, which is not a valid value");
            let help = "write \"redacted\" (the failure's own text, redacted) or \"canonical\" (the code's message)";
            section.log.note(&word.at, what, help);
            false
        }
    }
}

fn masks(section: &Section<'_>) -> Masks {
    let mut masks = Masks::NONE;
    for name in section.texts("masks").unwrap_or_default() {
        let kind = Masks::named(name.value);
        masks = masks.with(kind.unwrap_or(Masks::NONE));
        if kind.is_none() {
            let what = format!("\"masks\" of [text] lists the unknown kind {:?}", name.value);
            section.log.note(&name.at, what, format!("use {}", Masks::ALL));
        }
    }
    masks
}

fn keeps_tail(section: &Section<'_>) -> bool {
    let Some(word) = section.text("message_cut") else {
        return false;
    };
    match word.value {
        "middle" => true,
        "end" => false,
        other => {
            let what =
                format!("\"message_cut\" of [text] is {other:?}, which is not a valid value");
            let help = "write \"end\" (the beginning is kept) or \"middle\" (both ends are kept)";
            section.log.note(&word.at, what, help);
            false
        }
    }
}

fn set(section: &Section<'_>, key: &str, range: std::ops::RangeInclusive<i64>, bound: &mut usize) {
    if let Some(value) = section.integer(key, range).and_then(|v| usize::try_from(v).ok()) {
        *bound = value;
    }
}

/// The policy, and which classes the file has words for.
pub(super) struct Retry {
    pub policy: RetryPolicy,
    pub named: Vec<RetryClass>,
    pub at: At,
}

pub(super) fn retry(root: &Section<'_>) -> Retry {
    let mut kinds = [const { None }; RetryClass::ALL.len()];
    let mut backoff = Backoff::default();
    let Some(section) = root.section("retry") else {
        let policy = RetryPolicy::new(kinds, backoff);
        return Retry { policy, named: Vec::new(), at: root.at.clone() };
    };
    section.allow(&["kinds", "base_ms", "cap_ms"]);
    let delay = |key| {
        let ms = section.integer(key, 1..=86_400_000).and_then(|v| u64::try_from(v).ok());
        ms.map(Duration::from_millis)
    };
    backoff.base = delay("base_ms").unwrap_or(backoff.base);
    backoff.cap = delay("cap_ms").unwrap_or(backoff.cap);
    if backoff.cap < backoff.base {
        section
            .note("\"cap_ms\" of [retry] is less than \"base_ms\"", "the cap is the longest delay");
    }
    let mut named = Vec::new();
    if let Some(words) = section.section("kinds") {
        words.allow(&RetryClass::ALL.map(RetryClass::name));
        for class in RetryClass::ALL {
            if let Some(word) = words.text(class.name()) {
                if kinds.iter().flatten().any(|k: &String| k == word.value) {
                    let what = format!("[retry.kinds] uses the word {:?} twice", word.value);
                    words.log.note(
                        &word.at,
                        what,
                        "give each class its own word, so that an envelope can be read back",
                    );
                }
                kinds[class as usize] = Some(word.value.to_owned());
                named.push(class);
            }
        }
    }
    Retry { policy: RetryPolicy::new(kinds, backoff), named, at: section.at.clone() }
}

pub(super) fn levels(root: &Section<'_>) -> Vec<Level> {
    let Some(section) =
        root.need_section("alert", "define the levels, such as [alert.critical] page = \"every\"")
    else {
        return Vec::new();
    };
    let names: Vec<String> = section.keys().map(|k| k.value.to_owned()).collect();
    let read = |name: String| {
        let level = section.section(&name)?;
        level.allow(&["page", "more_than", "within_s"]);
        Some(Level { paging: paging(&level)?, name })
    };
    names.into_iter().filter_map(read).collect()
}

fn paging(level: &Section<'_>) -> Option<Paging> {
    let help = "write page = \"every\", page = \"never\", or more_than = N and within_s = SECONDS";
    if level.has("page") == (level.has("more_than") || level.has("within_s")) {
        level.note(
            format!("{} must have either \"page\" or \"more_than\" with \"within_s\"", level.name),
            help,
        );
        return None;
    }
    if let Some(word) = level.text("page") {
        return match word.value {
            "every" => Some(Paging::Every),
            "never" => Some(Paging::Never),
            other => {
                level.log.note(
                    &word.at,
                    format!("\"page\" of {} is {other:?}, which is not a valid value", level.name),
                    help,
                );
                None
            }
        };
    }
    let (more_than, within) =
        (level.integer("more_than", 0..=1000), level.integer("within_s", 1..=604_800));
    if !(level.has("more_than") && level.has("within_s")) {
        level.note(format!("{} has only one of \"more_than\" and \"within_s\"", level.name), help);
    }
    Some(Paging::MoreThan {
        events: usize::try_from(more_than?).ok()?,
        within: Duration::from_secs(u64::try_from(within?).ok()?),
    })
}

pub(super) fn stack(root: &Section<'_>) -> Option<Switch> {
    let section = root.section("stack")?;
    section.allow(&["variable", "value"]);
    let variable =
        section.need_text("variable", "name the environment variable that shows stacks")?;
    let value = section.need_text("value", "set the value that the variable must have")?;
    Some(Switch { variable: variable.value.to_owned(), value: value.value.to_owned() })
}
