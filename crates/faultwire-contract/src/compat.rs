//! Compatibility: what changed between two versions of a contract, and whether it breaks readers
//! (A3, C7, O8).

use crate::code::Code;
use crate::condition::Condition;
use crate::contract::{Contract, Profile, Surface};
use crate::origin::Outcome;
use crate::retry::RetryClass;
use crate::rule::{Rule, Then};
use crate::template::slot::Slot;
use crate::template::{Member, Node, Template};
use crate::tool_failure_policy::ToolFailurePolicy;

/// How much a change affects readers of envelopes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Impact {
    /// Nothing on the wire changed.
    None,
    /// Something was added that old readers can do without.
    Additive,
    /// An old reader may get it wrong.
    Breaking,
}

impl Impact {
    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Additive => "additive",
            Self::Breaking => "breaking",
        }
    }
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// What it asks of readers.
    pub impact: Impact,
    /// What changed.
    pub what: String,
}

/// Every difference that matters from `old` to `new`.
#[must_use]
pub fn changes(old: &Contract, new: &Contract) -> Vec<Change> {
    let mut diff = Diff { old, new, changes: Vec::new() };
    diff.codes();
    diff.conditions();
    diff.envelopes();
    diff.settings();
    diff.tool_failures();
    diff.version();
    diff.changes.sort_by_key(|change| std::cmp::Reverse(change.impact));
    diff.changes
}

/// The greatest impact of all changes.
#[must_use]
pub fn impact(changes: &[Change]) -> Impact {
    changes.iter().map(|c| c.impact).max().unwrap_or(Impact::None)
}

struct Diff<'a> {
    old: &'a Contract,
    new: &'a Contract,
    changes: Vec<Change>,
}

impl Diff<'_> {
    fn note(&mut self, impact: Impact, what: String) {
        self.changes.push(Change { impact, what });
    }

    /// A frozen contract keeps its schema id: a new version needs a new id (C7).
    fn frozen(&self) -> bool {
        self.old.frozen && self.old.schema_id(Surface::Mcp) == self.new.schema_id(Surface::Mcp)
    }

    /// What is harmless elsewhere breaks a frozen contract.
    fn unless_frozen(&self, impact: Impact) -> Impact {
        if self.frozen() { Impact::Breaking } else { impact }
    }

    fn codes(&mut self) {
        for old in &self.old.codes {
            match self.new.code(&old.id) {
                None => self.note(
                    Impact::Breaking,
                    format!(
                        "code {:?} was removed: retire it instead and name a successor",
                        old.id
                    ),
                ),
                Some(new) => self.code(old, new),
            }
        }
        let added: Vec<&Code> =
            self.new.codes.iter().filter(|new| self.old.code(&new.id).is_none()).collect();
        for code in added {
            self.added(code);
        }
    }

    fn added(&mut self, code: &Code) {
        let impact = self.unless_frozen(Impact::Additive);
        let why = if self.frozen() {
            ": the contract is frozen, and a new version needs a new schema_id"
        } else {
            ""
        };
        self.note(impact, format!("code {:?} was added{why}", code.id));
        for missing in self.new.missing(code) {
            self.note(Impact::Breaking, format!("the added code {:?} {missing}", code.id));
        }
    }

    fn code(&mut self, old: &Code, new: &Code) {
        let names =
            |code: &Code| code.retry.iter().map(|c| c.name()).collect::<Vec<_>>().join(", ");
        let statuses = |code: &Code| {
            code.status.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        };
        let outcome = |code: &Code| code.outcome.map_or("", Outcome::name).to_owned();
        let harmless = self.unless_frozen(Impact::None);
        let additive = self.unless_frozen(Impact::Additive);
        let facts = [
            (Impact::Breaking, "category", old.category.clone(), new.category.clone()),
            (Impact::Breaking, "retry", names(old), names(new)),
            (Impact::Breaking, "status", statuses(old), statuses(new)),
            (
                Impact::Breaking,
                "type",
                text(old.problem_type.as_ref()),
                text(new.problem_type.as_ref()),
            ),
            (
                Impact::Breaking,
                "keeps_data",
                old.keeps_data.to_string(),
                new.keeps_data.to_string(),
            ),
            (Impact::Breaking, "outcome", outcome(old), outcome(new)),
            (additive, "after_ms", delay(old), delay(new)),
            (additive, "alert", alerts(old), alerts(new)),
            (additive, "message", old.message.clone(), new.message.clone()),
            (harmless, "action", old.action.clone(), new.action.clone()),
            (harmless, "meaning", old.meaning.clone(), new.meaning.clone()),
        ];
        for (impact, fact, was, is) in facts {
            if was != is {
                self.note(impact, format!("{fact} of {:?} changed from {was:?} to {is:?}", old.id));
            }
        }
        match (&old.retired, &new.retired) {
            (Some(was), Some(is)) if was.successor != is.successor => self.note(
                Impact::Breaking,
                format!(
                    "the successor of {:?} changed from {:?} to {:?}",
                    old.id, was.successor, is.successor
                ),
            ),
            (None, Some(retired)) => self.note(
                self.unless_frozen(Impact::Additive),
                format!("code {:?} was retired in favour of {:?}", old.id, retired.successor),
            ),
            (Some(_), None) => self.note(
                Impact::Breaking,
                format!(
                    "code {:?} was retired and is used again: names must not be reused",
                    old.id
                ),
            ),
            _ => {}
        }
    }

    /// A condition keeps its code (K8), also in its special cases.
    fn conditions(&mut self) {
        let (old, new) = (self.old, self.new);
        for condition in Condition::ALL {
            let aspects = condition.aspects().iter().copied().map(Some);
            for aspect in std::iter::once(None).chain(aspects) {
                let (was, is) =
                    (old.code_for(*condition, aspect), new.code_for(*condition, aspect));
                let retired = new.code(&was.id).and_then(|code| code.retired.as_ref());
                let follows = retired.is_some_and(|r| r.successor == is.id);
                if was.id != is.id && !follows {
                    let finer = aspect.map(|a| format!(".{}", a.name())).unwrap_or_default();
                    let what = format!(
                        "{condition}{finer} changed its code from {:?} to {:?}",
                        was.id, is.id
                    );
                    self.note(Impact::Breaking, what);
                }
            }
        }
    }

    fn envelopes(&mut self) {
        let (old, new) = (self.old, self.new);
        for (i, profile) in old.profiles.iter().enumerate() {
            let Some(new_profile) = new.profile(profile) else {
                self.note(Impact::Breaking, format!("profile {profile:?} was removed"));
                continue;
            };
            for surface in Surface::ALL {
                let place = format!("{} envelope, profile {profile:?}", surface.name());
                let was = old.template(surface, Profile(i));
                self.template(&place, was, new.template(surface, new_profile));
            }
            match (&old.success, &new.success) {
                (Some(was), Some(is)) => {
                    self.template(
                        &format!("success, profile {profile:?}"),
                        &was[i],
                        &is[new_profile.0],
                    );
                }
                (Some(_), None) => {
                    self.note(Impact::Breaking, "successes are no longer wrapped".to_owned());
                }
                (None, Some(_)) => {
                    self.note(Impact::Breaking, "successes are wrapped now".to_owned());
                }
                (None, None) => {}
            }
        }
        for profile in new.profiles.iter().filter(|p| !old.profiles.contains(p)) {
            self.note(
                self.unless_frozen(Impact::Additive),
                format!("profile {profile:?} was added"),
            );
        }
        for surface in Surface::ALL {
            let (was, is) = (old.content_type(surface), new.content_type(surface));
            if was != is {
                self.note(
                    Impact::Breaking,
                    format!("{} content type changed from {was} to {is}", surface.name()),
                );
            }
        }
    }

    fn template(&mut self, place: &str, was: &Template, is: &Template) {
        self.node(place, &was.root, &is.root);
    }

    fn node(&mut self, place: &str, was: &Node, is: &Node) {
        match (was, is) {
            (Node::Object(was), Node::Object(is)) => self.members(place, was, is),
            (Node::List(was), Node::List(is)) if was.len() == is.len() => {
                for (i, (was, is)) in was.iter().zip(is).enumerate() {
                    self.node(&format!("{place}, item {i}"), was, is);
                }
            }
            _ if was == is => {}
            _ => self.note(Impact::Breaking, format!("{place}: the shape changed")),
        }
    }

    /// Readers are strict: a member more or less, or in another place, is another envelope.
    fn members(&mut self, place: &str, was: &[Member], is: &[Member]) {
        for old in was {
            let Some(new) = is.iter().find(|m| m.key == old.key) else {
                self.note(Impact::Breaking, format!("{place}: {:?} was removed", old.key));
                continue;
            };
            if old.optional != new.optional {
                let how = if new.optional { "is optional now" } else { "is required now" };
                self.note(Impact::Breaking, format!("{place}: {:?} {how}", old.key));
            }
            self.node(&format!("{place}: {:?}", old.key), &old.node, &new.node);
        }
        for new in is.iter().filter(|new| was.iter().all(|old| old.key != new.key)) {
            self.note(Impact::Breaking, format!("{place}: {:?} was added", new.key));
        }
        let order = |members: &[Member], others: &[Member]| {
            let shared = members.iter().filter(|m| others.iter().any(|o| o.key == m.key));
            shared.map(|m| m.key.clone()).collect::<Vec<_>>()
        };
        if order(was, is) != order(is, was) {
            self.note(Impact::Breaking, format!("{place}: the order of members changed"));
        }
    }

    /// What clients rely on besides codes and shapes.
    fn settings(&mut self) {
        let (old, new) = (self.old, self.new);
        let additive = self.unless_frozen(Impact::Additive);
        for class in RetryClass::ALL {
            let (was, is) = (old.retry.kind(class), new.retry.kind(class));
            self.compare(Impact::Breaking, &format!("the word for {:?}", class.name()), was, is);
        }
        let describe = |c: &Contract| {
            if c.text.canonical { "canonical" } else { "redacted" }
        };
        self.compare(Impact::Breaking, "text.message", describe(old), describe(new));
        let masks = |c: &Contract| c.text.masks.to_string();
        self.compare(Impact::Breaking, "text.masks", &masks(old), &masks(new));
        self.compare(Impact::Breaking, "the fallback", &old.fallback().id, &new.fallback().id);
        let (was, is) = (&old.invariant().id, &new.invariant().id);
        self.compare(Impact::Breaking, "the code of a violated invariant", was, is);
        self.compare(Impact::Breaking, "the default profile", &old.profiles[0], &new.profiles[0]);
        let session = |c: &Contract| c.session.as_ref().map(|s| format!("{s:?}"));
        self.compare(
            Impact::Breaking,
            "the rules for sessions",
            &text(session(old).as_ref()),
            &text(session(new).as_ref()),
        );
        let stack = |c: &Contract| c.stack.as_ref().map(|s| format!("{}={}", s.variable, s.value));
        self.compare(
            Impact::Breaking,
            "the setting that shows stacks",
            &text(stack(old).as_ref()),
            &text(stack(new).as_ref()),
        );
        for slot in Slot::ALL {
            let default = |c: &Contract| {
                c.defaults.get(slot.name()).map(ToString::to_string).unwrap_or_default()
            };
            let what = format!("the default of ${}", slot.name());
            self.compare(Impact::Breaking, &what, &default(old), &default(new));
        }
        for level in &old.levels {
            let same = new.levels.iter().find(|l| l.name == level.name);
            let (was, is) =
                (format!("{:?}", level.paging), same.map(|l| format!("{:?}", l.paging)));
            self.compare(
                additive,
                &format!("paging of {:?}", level.name),
                &was,
                &text(is.as_ref()),
            );
        }
        if rules(old) != rules(new) {
            self.note(additive, "the classification rules changed".to_owned());
        }
        self.compare(
            additive,
            "the bounds of [text]",
            &format!("{:?}", old.text),
            &format!("{:?}", new.text),
        );
        let pace =
            |c: &Contract| format!("{:?} up to {:?}", c.retry.backoff.base, c.retry.backoff.cap);
        self.compare(additive, "the retry delays", &pace(old), &pace(new));
        let needs = |c: &Contract| format!("{:?}", c.requires);
        self.compare(Impact::Breaking, "what a code requires", &needs(old), &needs(new));
        if old.frozen && !new.frozen && self.frozen() {
            self.note(
                Impact::Breaking,
                "the contract is no longer frozen, but its schema_id is the same".to_owned(),
            );
        }
    }

    /// What clients do first about a failure depends on its class.
    fn tool_failures(&mut self) {
        let additive = self.unless_frozen(Impact::Additive);
        let (was, is) = match (&self.old.tool_failure, &self.new.tool_failure) {
            (Some(was), Some(is)) => (was, is),
            (Some(_), None) => {
                return self.note(Impact::Breaking, "[tool_failure] was removed".to_owned());
            }
            (None, Some(_)) => return self.note(additive, "[tool_failure] was added".to_owned()),
            (None, None) => return,
        };
        for (category, class) in &was.classes {
            let what = format!("the class of {category:?} in [tool_failure]");
            let now = is.class(category).unwrap_or(*class);
            self.compare(Impact::Breaking, &what, class.name(), now.name());
        }
        let warning = |p: &ToolFailurePolicy| text(p.maybe_executed.as_ref());
        let what = "maybe_executed of [tool_failure]";
        self.compare(self.unless_frozen(Impact::None), what, &warning(was), &warning(is));
    }

    fn compare(&mut self, impact: Impact, what: &str, was: &str, is: &str) {
        if was != is {
            self.note(impact, format!("{what} changed from {was:?} to {is:?}"));
        }
    }

    /// A changed contract needs a new version, and a broken one a new major version.
    fn version(&mut self) {
        let (was, is) = (self.old.version.clone(), self.new.version.clone());
        if self.old.name != self.new.name {
            let what = format!("the name changed from {:?} to {:?}", self.old.name, self.new.name);
            self.note(Impact::Breaking, what);
        }
        let parts = |v: &str| v.split('.').map(|p| p.parse().unwrap_or(0)).collect::<Vec<u64>>();
        if parts(&is) < parts(&was) {
            self.note(Impact::Breaking, format!("the version went back from {was} to {is}"));
        }
        let id = |c: &Contract| c.schema_id(Surface::Mcp).map(str::to_owned);
        let renamed = id(self.old) != id(self.new);
        let changed = renamed || self.changes.iter().any(|c| c.impact > Impact::None);
        if changed && was == is {
            self.note(
                Impact::Additive,
                format!("the contract changed, but its version is still {was}"),
            );
        }
    }
}

fn text(value: Option<&String>) -> String {
    value.cloned().unwrap_or_default()
}

fn delay(code: &Code) -> String {
    code.after.map(|d| d.as_millis().to_string()).unwrap_or_default()
}

/// The rules without their places in the file.
fn rules(contract: &Contract) -> Vec<String> {
    let describe = |rule: &Rule| {
        let code = match rule.then {
            Then::Code(code) => contract.codes[code].id.as_str(),
            Then::Condition(condition, _) => condition.name(),
        };
        format!("{:?} {code}", rule.when)
    };
    contract.rules.iter().map(describe).collect()
}

/// The levels of a code, as a person reads them.
fn alerts(code: &Code) -> String {
    let own = code.alerts.iter().map(|(origin, level)| format!(", {}: {level}", origin.name()));
    std::iter::once(code.alert.clone()).chain(own).collect()
}
