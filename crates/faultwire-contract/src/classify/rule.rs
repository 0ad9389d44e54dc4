//! Finding the rule that a failing reply matches.

use std::sync::LazyLock;

use super::cache::Cache;
use super::evidence::Evidence;
use super::prefilter::Prefilter;
use crate::condition::Condition;
use crate::load::rule::{built_in, shared_rules};
pub(crate) use crate::rule::{Rule, Shape, Then};
use crate::rule::{Signs, When};

impl When {
    pub(crate) fn matches(&self, evidence: &Evidence) -> bool {
        self.shape.is_none_or(|shape| shape == evidence.shape)
            && self.retry.is_none_or(|retry| retry == evidence.may_be_retried())
            && one_of(&self.rpc, evidence.rpc)
            && one_of(&self.status, evidence.status)
            && self
                .code
                .as_ref()
                .is_none_or(|c| evidence.codes.iter().any(|code| c.is_match(code.as_bytes())))
            && self.text.as_ref().is_none_or(|t| t.is_match(evidence.views().said.as_bytes()))
            && self.words.as_ref().is_none_or(|w| w.is_match(evidence.views().words.as_bytes()))
    }
}

fn one_of(wanted: &[i64], found: Option<i64>) -> bool {
    wanted.is_empty() || found.is_some_and(|f| wanted.contains(&f))
}

/// The shared list, and what tells which of it is worth trying.
struct Shared {
    rules: Vec<Rule>,
    signs: Signs,
    filter: Prefilter,
}

impl Shared {
    /// The number of the first rule that matches.
    fn first(&self, evidence: &Evidence) -> Option<usize> {
        let views = evidence.views();
        let [said, words] = self.filter.candidates([&views.said, &views.words]);
        let is_tried = |at: usize, rule: &Rule| {
            said.has(at) && words.has(at) && (!rule.weak || evidence.is_short())
        };
        self.rules
            .iter()
            .enumerate()
            .find(|(at, rule)| is_tried(*at, rule) && rule.when.matches(evidence))
            .map(|(at, _)| at)
    }
}

/// The shared list, read when the first failure needs it.
static SHARED: LazyLock<Shared> = LazyLock::new(|| {
    let text = include_str!("../../rules/classification.toml");
    match shared_rules("rules/classification.toml", text, built_in) {
        Ok((rules, signs)) => Shared {
            filter: Prefilter::new(
                rules.iter().map(|rule| [rule.when.text.as_ref(), rule.when.words.as_ref()]),
            ),
            rules,
            signs,
        },
        // The file is part of this build, and a test loads it.
        Err(mistakes) => panic!("the shared rules do not load: {mistakes}"),
    }
});

/// The first shared rule that matches.
pub(super) fn shared(evidence: &Evidence) -> Option<&'static Rule> {
    static DECIDED: LazyLock<Cache<Option<usize>>> = LazyLock::new(Cache::new);
    let shared = &*SHARED;
    DECIDED.decided(evidence, || shared.first(evidence)).map(|at| &shared.rules[at])
}

/// Whether a rule matches that knows the words.
pub(super) fn is_known(evidence: &Evidence) -> bool {
    shared(evidence).is_some_and(|rule| !rule.vague)
}

/// Whether a rule matches that is a sign of a failure itself.
pub(super) fn is_told(evidence: &Evidence) -> bool {
    shared(evidence).is_some_and(|rule| !rule.weak)
}

/// Whether it says what is wrong with the call or with who sent it, and not with what it is about.
pub(super) fn is_of_call(evidence: &Evidence) -> bool {
    use Condition as C;
    const OF_CALL: [Condition; 4] =
        [C::InvalidArguments, C::Unauthorized, C::RateLimited, C::BudgetExceeded];
    let of_call = |rule: &Rule| matches!(rule.then, Then::Condition(c, _) if OF_CALL.contains(&c));
    shared(evidence).is_some_and(|rule| !rule.weak && of_call(rule))
}

/// All shared rules, in order.
pub(super) fn all_shared() -> &'static [Rule] {
    &SHARED.rules
}

/// The signs of a soft failure.
pub(super) fn signs() -> &'static Signs {
    &SHARED.signs
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use serde_json::Value;

    use super::*;

    /// All texts of a value.
    fn texts(value: &Value, into: &mut Vec<String>) {
        match value {
            Value::String(text) => into.push(text.chars().take(1024).collect()),
            Value::Array(all) => all.iter().for_each(|one| texts(one, into)),
            Value::Object(all) => all.values().for_each(|one| texts(one, into)),
            _ => {}
        }
    }

    #[test]
    fn a_rule_that_matches_is_always_tried() {
        let mut all = Vec::new();
        for folder in ["useful", "more/servers", "more/made", "more/aside"] {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus").join(folder);
            for entry in fs::read_dir(folder).unwrap() {
                let text = fs::read_to_string(entry.unwrap().path()).unwrap_or_default();
                texts(&serde_json::from_str(&text).unwrap_or_default(), &mut all);
            }
        }
        let shared = &*SHARED;
        let mut matches = 0;
        // All would take a minute.
        for text in all.iter().filter(|text| text.len() > 12).step_by(9) {
            for text in [text.clone(), text.to_uppercase()] {
                let found = shared.filter.candidates([&text, &text]);
                for (at, Rule { name, when, .. }) in shared.rules.iter().enumerate() {
                    for (pattern, found) in [&when.text, &when.words].into_iter().zip(&found) {
                        let is_match =
                            pattern.as_ref().is_some_and(|p| p.is_match(text.as_bytes()));
                        assert!(!is_match || found.has(at), "{name}: {text}");
                        matches += usize::from(is_match);
                    }
                }
            }
        }
        assert!(matches > 1000, "{matches}");
    }
}
