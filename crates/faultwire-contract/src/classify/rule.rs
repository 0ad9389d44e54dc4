//! A rule: what it looks for in a failing reply, and where it leads.

use std::sync::LazyLock;

use regex::bytes::Regex;

use super::evidence::Evidence;
use super::lately::Lately;
use super::soft::Signs;
use crate::condition::{Aspect, Condition};
use crate::load::rule::shared_rules;

/// One rule. The first that matches decides.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub name: String,
    pub when: When,
    pub then: Then,
}

/// What must be so, all of it.
#[derive(Clone, Debug)]
pub(crate) struct When {
    pub shape: Option<Shape>,
    /// What was said, but for the client's own words.
    pub text: Option<Regex>,
    /// The same without quotations, paths, URLs and code.
    pub words: Option<Regex>,
    /// One of the codes by name.
    pub code: Option<Regex>,
    /// One of these JSON-RPC numbers; empty is any.
    pub rpc: Vec<i64>,
    /// One of these HTTP statuses; empty is any.
    pub status: Vec<i64>,
    /// Only where no shared rule knows more than the shape.
    pub generic: bool,
}

/// Where a rule leads: a contract's rule to a code, a shared one to a condition.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Then {
    Code(usize),
    Condition(Condition, Option<Aspect>),
}

/// How a failure was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Shape {
    RpcError,
    ToolError,
    SoftFailure,
}

impl Shape {
    pub(crate) const ALL: [Self; 3] = [Self::RpcError, Self::ToolError, Self::SoftFailure];

    /// The condition of a failure about which nothing else is known.
    pub(crate) const fn condition(self) -> Condition {
        match self {
            Self::RpcError => Condition::RpcError,
            Self::ToolError => Condition::ToolError,
            Self::SoftFailure => Condition::SoftFailure,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        self.condition().name()
    }
}

impl When {
    pub(crate) fn matches(&self, evidence: &Evidence) -> bool {
        self.shape.is_none_or(|shape| shape == evidence.shape)
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

/// The shared list, compiled when the first failure needs it.
static SHARED: LazyLock<(Vec<Rule>, Signs)> = LazyLock::new(|| {
    let text = include_str!("../../rules/classification.toml");
    match shared_rules("rules/classification.toml", text) {
        Ok(shared) => shared,
        // The file is part of this build, and a test loads it.
        Err(mistakes) => panic!("the shared rules do not load: {mistakes}"),
    }
});

/// The first shared rule that matches.
pub(super) fn shared(evidence: &Evidence) -> Option<&'static Rule> {
    static DECIDED: LazyLock<Lately<Option<usize>>> = LazyLock::new(Lately::new);
    let rules = &SHARED.0;
    let find = || rules.iter().position(|rule| rule.when.matches(evidence));
    DECIDED.decided(evidence, find).map(|at| &rules[at])
}

/// All shared rules, in order.
pub(super) fn all_shared() -> &'static [Rule] {
    &SHARED.0
}

/// The signs of a soft failure.
pub(super) fn signs() -> &'static Signs {
    &SHARED.1
}
