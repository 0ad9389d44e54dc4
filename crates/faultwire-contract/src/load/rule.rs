//! Classification rules: those of a contract name a code, those of the shared list a condition.

use super::contract::{Known, owned};
use crate::condition::{Aspect, Condition};
use crate::mistake::{Mistakes, nearest};
use crate::pattern::Pattern;
use crate::rule::{Rule, Shape, Signs, Then, When};
use crate::section::{Log, Section, Text, read_file};

const WHEN: &[&str] = &["shape", "text", "words", "rpc", "code", "status", "retry", "generic"];

/// The `[[rule]]` tables of a contract.
pub(super) fn contract_rules(root: &Section<'_>, known: &Known<'_>) -> Vec<Rule> {
    let read = |section: Section<'_>| {
        section.allow(&["name", "when", "code"]);
        let when = when(&section, pattern);
        let code = section.need_text("code", "name the code that the rule leads to")?;
        let code = known.living(&section, &code, "the rule")?;
        let name = section.text("name").map_or_else(
            || format!("rule at line {}", section.log.line(&section.at)),
            |t| t.value.to_owned(),
        );
        Some(Rule { name, when: when?, then: Then::Code(code), weak: false, vague: false })
    };
    root.list("rule").into_iter().filter_map(read).collect()
}

/// The shared list: `[[rule]]` tables with conditions, and the signs of a soft failure.
pub(crate) fn shared_rules(
    file: &str,
    text: &str,
    read: ReadPattern,
) -> Result<(Vec<Rule>, Signs), Mistakes> {
    read_file(file, text, "fix the file", |root| {
        root.allow(&["rule", "soft"]);
        let rules = root.list("rule").into_iter().filter_map(|s| shared_rule(&s, read)).collect();
        let soft = root.need_section("soft", "describe how a soft failure is recognised")?;
        Some((rules, signs(&soft, read)?))
    })
}

/// What `[soft]` may have.
const SIGNS: [&str; 44] = [
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
    "loose",
    "acts",
    "absent",
    "service",
    "refusal",
    "reads",
    "questions",
    "queries",
    "authored",
    "done",
    "markup",
    "failing",
    "failed",
    "raw",
    "bad_names",
    "verdicts",
    "heads",
    "general",
    "templates",
    "refusals",
    "generated",
    "pages",
    "runs",
    "manages",
    "alarming",
];

fn signs(section: &Section<'_>, read: ReadPattern) -> Option<Signs> {
    section.allow(&SIGNS);
    let words = |key| section.texts(key).map(|list| owned(&list));
    let patterns = |key| -> Option<Vec<Pattern>> {
        Some(section.texts(key)?.iter().filter_map(|p| read(section.log, p)).collect())
    };
    let pattern = |key| read(section.log, &section.need_text(key, "give a pattern")?);
    Some(Signs {
        machine: patterns("machine")?,
        text: patterns("text")?,
        sdk: pattern("sdk")?,
        loose: patterns("loose")?,
        acts: section
            .list("acts")
            .iter()
            .filter_map(|act| {
                act.allow(&["tools", "text"]);
                let pattern = |key| read(act.log, &act.need_text(key, "give a pattern")?);
                Some((pattern("tools")?, pattern("text")?))
            })
            .collect(),
        heads: pattern("heads")?,
        general: pattern("general")?,
        templates: patterns("templates")?,
        refusals: patterns("refusals")?,
        generated: pattern("generated")?,
        pages: pattern("pages")?,
        runs: pattern("runs")?,
        manages: pattern("manages")?,
        alarming: pattern("alarming")?,
        failing: pattern("failing")?,
        failed: pattern("failed")?,
        absent: pattern("absent")?,
        service: pattern("service")?,
        missing: pattern("missing")?,
        refusal: pattern("refusal")?,
        verbatim: pattern("verbatim")?,
        raw: pattern("raw")?,
        bad_names: pattern("bad_names")?,
        documents: pattern("documents")?,
        outputs: pattern("outputs")?,
        writes: pattern("writes")?,
        reads: pattern("reads")?,
        questions: pattern("questions")?,
        queries: pattern("queries")?,
        authored: pattern("authored")?,
        listing: pattern("listing")?,
        good: pattern("good")?,
        markup: pattern("markup")?,
        helpful: pattern("helpful")?,
        innocent: pattern("innocent")?,
        continuation: pattern("continuation")?,
        flags: words("flags")?,
        done: words("done")?,
        verdicts: words("verdicts")?,
        errors: words("errors")?,
        states: words("states")?,
        bad_states: words("bad_states")?,
        numbers: words("numbers")?,
        companions: words("companions")?,
    })
}

fn shared_rule(section: &Section<'_>, read: ReadPattern) -> Option<Rule> {
    section.allow(&["name", "when", "condition", "aspect", "weak", "vague"]);
    let name = section.need_text("name", "name the rule; the answer shows this name")?;
    let when = when(section, read)?;
    let word = section.need_text("condition", "name the condition that the rule leads to")?;
    let Ok(condition) = word.value.parse::<Condition>() else {
        let near = nearest(word.value, Condition::ALL.iter().map(|c| c.name()));
        let help = near
            .map_or("see the list of conditions".to_owned(), |n| format!("did you mean {n:?}?"));
        section.log.note(&word.at, format!("unknown condition {:?}", word.value), help);
        return None;
    };
    let aspect = section.text("aspect").and_then(|word| aspect(section, condition, &word));
    let then = Then::Condition(condition, aspect);
    let weak = section.boolean("weak").unwrap_or(false);
    let vague = section.boolean("vague").unwrap_or(false);
    Some(Rule { name: name.value.to_owned(), when, then, weak: weak || vague, vague })
}

fn aspect(section: &Section<'_>, condition: Condition, word: &Text<'_>) -> Option<Aspect> {
    let found = condition.aspects().iter().copied().find(|a| a.name() == word.value);
    if found.is_none() {
        let what = format!("{condition} has no aspect {:?}", word.value);
        section.log.note(&word.at, what, "see the list of aspects");
    }
    found
}

fn when(section: &Section<'_>, read: ReadPattern) -> Option<When> {
    let when = section
        .need_section("when", "say what the rule matches, such as when = { text = \"…\" }")?;
    when.allow(WHEN);
    if WHEN.iter().all(|key| *key == "generic" || !when.has(key)) {
        when.note(
            "this rule matches everything",
            format!("add one of these to \"when\": {}", WHEN.join(", ")),
        );
        return None;
    }
    let pattern = |key| when.text(key).and_then(|text| read(when.log, &text));
    Some(When {
        retry: when.boolean("retry"),
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
        let what = format!("unknown shape {:?}", word.value);
        when.log.note(&word.at, what, format!("write one of {names}"));
    }
    found
}

/// How a pattern of a file is read: [`pattern`] or [`built_in`].
pub(crate) type ReadPattern = fn(&Log<'_>, &Text<'_>) -> Option<Pattern>;

/// A pattern of the file; a mistake when it does not compile.
pub(super) fn pattern(log: &Log<'_>, text: &Text<'_>) -> Option<Pattern> {
    let checked = Pattern::checked(text.value);
    checked
        .map_err(|e| {
            let reason = e.to_string();
            let last = reason.lines().last().unwrap_or_default().trim_start_matches("error: ");
            let what = format!("the pattern {:?} does not compile: {last}", text.value);
            log.note(&text.at, what, "use the syntax of Rust's regex crate");
        })
        .ok()
}

/// A pattern of a file that is part of this build, where a test checks that it compiles.
#[allow(clippy::unnecessary_wraps, reason = "the callers also pass a function that can fail")]
pub(crate) fn built_in(_: &Log<'_>, text: &Text<'_>) -> Option<Pattern> {
    Some(Pattern::built_in(text.value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_patterns_of_the_shared_rules_compile() {
        let text = include_str!("../../rules/classification.toml");
        let (rules, _) = shared_rules("rules/classification.toml", text, pattern).unwrap();
        assert!(rules.len() > 100, "{}", rules.len());
    }
}
