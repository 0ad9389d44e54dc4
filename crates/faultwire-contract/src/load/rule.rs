//! Classification rules: those of a contract name a code, those of the shared list a condition.

use regex::bytes::{Regex, RegexBuilder};

use super::contract::{Known, owned};
use super::section::{Log, Section, Text, read_file};
use crate::classify::rule::{Rule, Shape, Then, When};
use crate::classify::soft::Signs;
use crate::condition::{Aspect, Condition};
use crate::mistake::{Mistakes, nearest};

const WHEN: &[&str] = &["shape", "text", "words", "rpc", "code", "status", "generic"];

/// The `[[rule]]` tables of a contract.
pub(super) fn contract_rules(root: &Section<'_>, known: &Known<'_>) -> Vec<Rule> {
    let read = |section: Section<'_>| {
        section.allow(&["name", "when", "code"]);
        let when = when(&section);
        let code = section.need_text("code", "name the code that the rule leads to")?;
        let code = known.living(&section, &code, "the rule")?;
        let name = section.text("name").map_or_else(
            || format!("rule at line {}", section.log.line(&section.at)),
            |t| t.value.to_owned(),
        );
        Some(Rule { name, when: when?, then: Then::Code(code) })
    };
    root.list("rule").into_iter().filter_map(read).collect()
}

/// The shared list: `[[rule]]` tables with conditions, and the signs of a soft failure.
pub(crate) fn shared_rules(file: &str, text: &str) -> Result<(Vec<Rule>, Signs), Mistakes> {
    read_file(file, text, "mend the file", |root| {
        root.allow(&["rule", "soft"]);
        let rules = root.list("rule").into_iter().filter_map(|s| shared_rule(&s)).collect();
        let soft = root.need_section("soft", "say how a soft failure is told")?;
        Some((rules, signs(&soft)?))
    })
}

fn signs(section: &Section<'_>) -> Option<Signs> {
    section.allow(&[
        "machine",
        "text",
        "sdk",
        "missing",
        "verbatim",
        "documents",
        "outputs",
        "listing",
        "writes",
        "good",
        "helpful",
        "innocent",
        "continuation",
        "flags",
        "errors",
        "states",
        "bad_states",
        "numbers",
        "companions",
    ]);
    let words = |key| section.texts(key).map(|list| owned(&list));
    let patterns = |key| -> Option<Vec<Regex>> {
        Some(section.texts(key)?.iter().filter_map(|p| regex(section.log, p)).collect())
    };
    let pattern = |key| regex(section.log, &section.need_text(key, "give a pattern")?);
    Some(Signs {
        machine: patterns("machine")?,
        text: patterns("text")?,
        sdk: pattern("sdk")?,
        missing: pattern("missing")?,
        verbatim: pattern("verbatim")?,
        documents: pattern("documents")?,
        outputs: pattern("outputs")?,
        writes: pattern("writes")?,
        listing: pattern("listing")?,
        good: pattern("good")?,
        helpful: pattern("helpful")?,
        innocent: pattern("innocent")?,
        continuation: pattern("continuation")?,
        flags: words("flags")?,
        errors: words("errors")?,
        states: words("states")?,
        bad_states: words("bad_states")?,
        numbers: words("numbers")?,
        companions: words("companions")?,
    })
}

fn shared_rule(section: &Section<'_>) -> Option<Rule> {
    section.allow(&["name", "when", "condition", "aspect"]);
    let name = section.need_text("name", "name the rule: it shows in the answer")?;
    let when = when(section)?;
    let word = section.need_text("condition", "name the condition that the rule leads to")?;
    let Ok(condition) = word.value.parse::<Condition>() else {
        let near = nearest(word.value, Condition::ALL.iter().map(|c| c.name()));
        let help = near
            .map_or("see the list of conditions".to_owned(), |n| format!("did you mean {n:?}?"));
        section.log.note(&word.at, format!("there is no condition {:?}", word.value), help);
        return None;
    };
    let aspect = section.text("aspect").and_then(|word| aspect(section, condition, &word));
    Some(Rule { name: name.value.to_owned(), when, then: Then::Condition(condition, aspect) })
}

fn aspect(section: &Section<'_>, condition: Condition, word: &Text<'_>) -> Option<Aspect> {
    let found = condition.aspects().iter().copied().find(|a| a.name() == word.value);
    if found.is_none() {
        let what = format!("{condition} has no aspect {:?}", word.value);
        section.log.note(&word.at, what, "see the list of aspects");
    }
    found
}

fn when(section: &Section<'_>) -> Option<When> {
    let when = section
        .need_section("when", "say what the rule matches, such as when = { text = \"…\" }")?;
    when.allow(WHEN);
    if WHEN.iter().all(|key| *key == "generic" || !when.has(key)) {
        when.note(
            "a rule that matches everything",
            format!("give \"when\" one of {}", WHEN.join(", ")),
        );
        return None;
    }
    let pattern = |key| when.text(key).and_then(|text| regex(when.log, &text));
    Some(When {
        generic: when.boolean("generic").unwrap_or(false),
        shape: shape(&when),
        text: pattern("text"),
        words: pattern("words"),
        code: pattern("code"),
        rpc: when.integers("rpc").unwrap_or_default().into_iter().map(|(i, _)| i).collect(),
        status: when.integers("status").unwrap_or_default().into_iter().map(|(i, _)| i).collect(),
    })
}

fn shape(when: &Section<'_>) -> Option<Shape> {
    let word = when.text("shape")?;
    let found = Shape::ALL.into_iter().find(|s| s.name() == word.value);
    if found.is_none() {
        let names = Shape::ALL.map(Shape::name).join(", ");
        let what = format!("there is no shape {:?}", word.value);
        when.log.note(&word.at, what, format!("write one of {names}"));
    }
    found
}

/// Compiles a pattern of the file; a mistake when it cannot be. Patterns see bytes: that compiles
/// many times faster, and a contract is loaded at every start.
pub(super) fn regex(log: &Log<'_>, pattern: &Text<'_>) -> Option<Regex> {
    let compiled = RegexBuilder::new(pattern.value).unicode(false).size_limit(1 << 20).build();
    compiled
        .map_err(|e| {
            let reason = e.to_string();
            let last = reason.lines().last().unwrap_or_default().trim_start_matches("error: ");
            let what = format!("the pattern {:?} does not compile: {last}", pattern.value);
            log.note(&pattern.at, what, "write it in the syntax of Rust's regex crate");
        })
        .ok()
}
