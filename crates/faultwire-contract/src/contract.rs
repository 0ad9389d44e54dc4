//! A contract: one TOML file, loaded, checked and immutable (K8).

use std::borrow::Cow;
use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;

use crate::code::Code;
use crate::condition::{Aspect, Condition};
use crate::level::Level;
use crate::mistake::nearest;
use crate::next::Next;
use crate::redact::{Caller, Masks, RedactRule, Redactor};
use crate::retry::{Backoff, RetryClass};
use crate::rule::Rule;
use crate::session::SessionRules;
use crate::template::{Defaults, Template};
use crate::tool_failure_policy::ToolFailurePolicy;

/// Codes by name. A lookup is part of every failure.
pub(crate) type Index = HashMap<String, usize, foldhash::fast::RandomState>;

/// Every fact of one contract file.
#[derive(Clone, Debug)]
pub struct Contract {
    /// The contract's name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What people call it.
    pub title: String,
    /// Whether its codes and shape may never change under the same schema id (C7).
    pub frozen: bool,
    /// What a new code must bring along (O8).
    pub requires: Requires,
    /// The categories that codes are grouped in.
    pub categories: Vec<String>,
    /// The profiles, the default first.
    pub profiles: Vec<String>,
    /// What may reach a client.
    pub text: TextPolicy,
    /// The contract's words for retry classes, and how delays grow.
    pub retry: RetryPolicy,
    /// The alert levels.
    pub levels: Vec<Level>,
    /// The release notes.
    pub releases: Vec<Release>,
    /// The contract's own tests.
    pub examples: Vec<Example>,
    /// When the stack is shown.
    pub stack: Option<Switch>,
    /// How sessions begin, lock and end (K12).
    pub session: Option<SessionRules>,
    /// What the `_meta` of a failed tool's result contains (S5); with none, it is left out.
    pub tool_failure: Option<ToolFailurePolicy>,
    pub(crate) codes: Vec<Code>,
    pub(crate) index: Index,
    pub(crate) fallback: usize,
    pub(crate) invariant: usize,
    pub(crate) conditions: ConditionMap,
    pub(crate) next: Option<Next>,
    pub(crate) mcp: SurfaceSpec,
    pub(crate) http: Option<SurfaceSpec>,
    pub(crate) success: Option<Vec<Template>>,
    pub(crate) defaults: Defaults,
    pub(crate) rules: Vec<Rule>,
    pub(crate) redactor: Redactor,
}

impl Contract {
    /// The same contract with some known secrets, which are always redacted.
    #[must_use]
    pub fn keeping<'s>(&self, secrets: impl IntoIterator<Item = &'s str>) -> Self {
        let rules = secrets.into_iter().map(RedactRule::exact).collect();
        Self { redactor: self.redactor.and(rules), ..self.clone() }
    }

    /// Whether a contract may have this name.
    ///
    /// ```
    /// use faultwire_contract::Contract;
    ///
    /// assert!(Contract::is_name("my-contract"));
    /// assert!(!Contract::is_name("My Contract"));
    /// ```
    #[must_use]
    pub fn is_name(name: &str) -> bool {
        let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        !name.is_empty() && name.bytes().all(is_plain)
    }

    /// The codes, in the order of the file.
    #[must_use]
    pub fn codes(&self) -> &[Code] {
        &self.codes
    }

    /// The row of a code.
    #[must_use]
    pub fn code(&self, id: &str) -> Option<&Code> {
        self.index.get(id).map(|&i| &self.codes[i])
    }

    /// The registered code most like the given word.
    #[must_use]
    pub fn nearest_code(&self, word: &str) -> Option<&str> {
        nearest(word, self.codes.iter().map(|c| c.id.as_str()))
    }

    /// The code for failures without a better one.
    #[must_use]
    pub fn fallback(&self) -> &Code {
        &self.codes[self.fallback]
    }

    /// The code of a violated invariant (K6), or the fallback.
    #[must_use]
    pub fn invariant(&self) -> &Code {
        &self.codes[self.invariant]
    }

    /// The code that the contract gives a condition.
    #[must_use]
    pub fn code_for(&self, condition: Condition, aspect: Option<Aspect>) -> &Code {
        &self.codes[self.conditions.get(condition, aspect)]
    }

    /// The retry class of a code that this contract does not have: never, if its envelope says so;
    /// otherwise the class of its category, if all codes of the category agree; otherwise never.
    #[must_use]
    pub fn class_of_unknown(&self, category: Option<&str>, retryable: Option<bool>) -> RetryClass {
        if retryable == Some(false) {
            return RetryClass::Never;
        }
        let mut classes = self
            .codes
            .iter()
            .filter(|c| Some(c.category.as_str()) == category)
            .map(Code::default_retry);
        let first = classes.next().unwrap_or(RetryClass::Never);
        if classes.all(|class| class == first) { first } else { RetryClass::Never }
    }

    /// The first condition that has this code, if any has.
    pub(crate) fn first_condition(&self, code: &Code) -> Option<Condition> {
        Condition::ALL.iter().copied().find(|c| self.code_for(*c, None).id == code.id)
    }

    /// Every condition with its code; finer cases as `condition.aspect`.
    pub fn conditions(&self) -> impl Iterator<Item = (String, &Code)> {
        self.conditions.entries().map(|(name, i)| (name, &self.codes[i]))
    }

    /// Whether stacks are shown, given a look-up of environment variables (K2).
    pub fn shows_stack(&self, variable: impl FnOnce(&str) -> Option<String>) -> bool {
        let value = |switch: &Switch| variable(&switch.variable).is_some_and(|v| v == switch.value);
        self.stack.as_ref().is_some_and(value)
    }

    /// What redacts text for this contract: the shared rules and its own.
    #[must_use]
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// The text as this client may see it (U2): text that the client sent is kept, and what the
    /// contract masks is always masked.
    #[must_use]
    pub fn redact_for<'t>(&self, text: &'t str, caller: &Caller<'_>) -> Cow<'t, str> {
        self.redactor.redact_for(text, caller, self.text.masks)
    }

    /// The same for every string of a JSON value, keys included.
    #[must_use]
    pub fn redact_json_for(&self, value: Value, caller: &Caller<'_>) -> Value {
        self.redactor.redact_json_for(value, caller, self.text.masks)
    }

    /// Whether successes are wrapped too.
    #[must_use]
    pub fn wraps_success(&self) -> bool {
        self.success.is_some()
    }

    /// The media type of a surface.
    #[must_use]
    pub fn content_type(&self, surface: Surface) -> &str {
        &self.spec(surface).content_type
    }

    /// The schema id of a surface.
    #[must_use]
    pub fn schema_id(&self, surface: Surface) -> Option<&str> {
        self.spec(surface).schema_id.as_deref()
    }

    /// A contract without an HTTP surface uses its MCP surface for HTTP.
    pub(crate) fn spec(&self, surface: Surface) -> &SurfaceSpec {
        match (surface, &self.http) {
            (Surface::Http, Some(http)) => http,
            _ => &self.mcp,
        }
    }

    pub(crate) fn template(&self, surface: Surface, profile: Profile) -> &Template {
        let templates = &self.spec(surface).templates;
        templates.get(profile.0).unwrap_or(&templates[0])
    }

    /// The profile of that name.
    #[must_use]
    pub fn profile(&self, name: &str) -> Option<Profile> {
        self.profiles.iter().position(|p| p == name).map(Profile)
    }

    /// Every profile.
    pub fn all_profiles(&self) -> impl Iterator<Item = Profile> + use<> {
        (0..self.profiles.len()).map(Profile)
    }

    /// The delay that envelopes can express: whole seconds when a template shows seconds.
    pub(crate) fn expressible(&self, delay: Duration) -> Duration {
        let shows_seconds = [Some(&self.mcp), self.http.as_ref()]
            .into_iter()
            .flatten()
            .flat_map(|spec| &spec.templates)
            .any(|t| t.uses(crate::template::slot::Slot::RetryAfterS));
        if shows_seconds {
            Duration::from_secs(delay.as_secs() + u64::from(delay.subsec_nanos() > 0))
        } else {
            delay
        }
    }
}

/// Which envelope: what an MCP client sees, or what an HTTP client sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Surface {
    /// The payload of an MCP answer.
    Mcp,
    /// The body of an HTTP answer.
    Http,
}

impl Surface {
    /// Both surfaces.
    pub const ALL: [Self; 2] = [Self::Mcp, Self::Http];

    /// The name in contract files and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mcp => "mcp",
            Self::Http => "http",
        }
    }
}

/// One of a contract's profiles; the default is the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Profile(pub(crate) usize);

/// One envelope shape, a template for each profile.
#[derive(Clone, Debug)]
pub(crate) struct SurfaceSpec {
    pub content_type: String,
    pub templates: Vec<Template>,
    pub schema_id: Option<String>,
    pub schema_title: Option<String>,
}

/// What a new code must bring along before the check passes (O8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requires {
    /// A `[[test]]`.
    pub test: bool,
    /// A mention in the `[[release]]` of the version that brought it.
    pub release: bool,
}

/// What may reach a client, and how much of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextPolicy {
    /// Whether the client always gets the code's own message (C2).
    pub canonical: bool,
    /// What is always masked (U2).
    pub masks: Masks,
    /// Whether a long message keeps its end, too (U3).
    pub keeps_tail: bool,
    /// The longest message.
    pub message_bytes: usize,
    /// The longest suggestion (W6).
    pub suggestion_bytes: usize,
    /// The largest details, as JSON.
    pub details_bytes: usize,
    /// The deepest details and data.
    pub details_depth: usize,
    /// The largest cause, as JSON.
    pub cause_bytes: usize,
    /// The longest stack.
    pub stack_bytes: usize,
    /// The largest envelope.
    pub envelope_bytes: usize,
    /// The answer for details that are not JSON (W5).
    pub invalid_details: InvalidDetails,
}

/// How to report a failure whose details are not JSON (W5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidDetails {
    /// The message; by default the canonical one.
    pub message: Option<String>,
    /// The key of the message that the failure had.
    pub original_key: String,
    /// The key of the list of problems with the details.
    pub errors_key: String,
}

/// The contract's words for retry classes, and how delays grow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    kinds: [Option<String>; RetryClass::ALL.len()],
    /// How delays grow.
    pub backoff: Backoff,
}

impl RetryPolicy {
    pub(crate) fn new(kinds: [Option<String>; RetryClass::ALL.len()], backoff: Backoff) -> Self {
        Self { kinds, backoff }
    }

    /// The contract's word for a class; its own name where the contract has none.
    #[must_use]
    pub fn kind(&self, class: RetryClass) -> &str {
        self.own_kind(class).unwrap_or(class.name())
    }

    /// The class that the contract's word means.
    #[must_use]
    pub fn class(&self, kind: &str) -> Option<RetryClass> {
        RetryClass::ALL.into_iter().find(|class| self.kind(*class) == kind)
    }

    fn own_kind(&self, class: RetryClass) -> Option<&str> {
        self.kinds[class as usize].as_deref()
    }
}

/// A setting of the environment that must have exactly this value (K2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// The variable.
    pub variable: String,
    /// The value that turns it on.
    pub value: String,
}

/// One release note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// The version.
    pub version: String,
    /// What changed.
    pub note: String,
    /// The codes it brought; empty means that the note names none.
    pub adds: Vec<String>,
}

/// A test that the contract carries: a fault, and the exact envelopes it must become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// The fault, in its JSON form.
    pub fault: String,
    /// The code that the fault names.
    pub code: String,
    /// The profile; by default the first one.
    pub profile: Profile,
    /// The expected envelopes.
    pub expect: Vec<(Surface, String)>,
    /// The line in the file.
    pub line: usize,
}

/// Which code each condition has. Complete by construction.
#[derive(Clone, Debug)]
pub(crate) struct ConditionMap {
    /// In the order of `Condition::ALL`.
    rows: Vec<(usize, Vec<(Aspect, usize)>)>,
}

impl ConditionMap {
    pub(crate) fn new(rows: Vec<(usize, Vec<(Aspect, usize)>)>) -> Self {
        debug_assert_eq!(rows.len(), Condition::ALL.len());
        Self { rows }
    }

    fn get(&self, condition: Condition, aspect: Option<Aspect>) -> usize {
        let (any, finer) = &self.rows[condition as usize];
        let own = aspect.and_then(|a| finer.iter().find(|(of, _)| *of == a));
        own.map_or(*any, |(_, code)| *code)
    }

    fn entries(&self) -> impl Iterator<Item = (String, usize)> {
        Condition::ALL.iter().zip(&self.rows).flat_map(|(condition, (any, finer))| {
            let head = std::iter::once((condition.name().to_owned(), *any));
            let tail =
                finer.iter().map(move |(a, code)| (format!("{condition}.{}", a.name()), *code));
            head.chain(tail)
        })
    }
}
