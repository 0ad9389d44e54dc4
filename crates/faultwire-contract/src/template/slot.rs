//! The slots of a template: every fact that an envelope can carry, by name.

use serde_json::Value;

/// The kind of JSON that a slot has; the schema is made from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One of the contract's codes.
    Code,
    /// One of the contract's categories.
    Category,
    /// One of the contract's names for retry classes.
    RetryClass,
    /// One of the contract's alert levels.
    Alert,
    Origin,
    Outcome,
    Condition,
    /// A string that is never empty.
    Words,
    Text,
    Timestamp,
    Status,
    Count,
    Flag,
    /// A string or an object.
    Cause,
    /// A string or a number.
    Reset,
    /// Any JSON value.
    Json,
}

/// One row defines the variant, its name in templates, and facts about its value.
macro_rules! slots {
    ($( $variant:ident = $name:literal, $kind:ident, $presence:ident; )+) => {
        /// A place in a template that a fact of the failure fills.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum Slot { $( $variant ),+ }

        impl Slot {
            pub(crate) const ALL: &'static [Self] = &[$( Self::$variant ),+];

            pub(crate) const fn name(self) -> &'static str {
                match self { $( Self::$variant => $name, )+ }
            }

            pub(crate) const fn kind(self) -> Kind {
                match self { $( Self::$variant => Kind::$kind, )+ }
            }

            /// Whether every fault has a value for it.
            pub(crate) const fn is_always(self) -> bool {
                match self { $( Self::$variant => slots!(@ $presence), )+ }
            }
        }
    };
    (@ always) => { true };
    (@ maybe) => { false };
}

slots! {
    Code = "code", Code, always;
    Message = "message", Words, always;
    Title = "title", Words, always;
    Category = "category", Category, always;
    Action = "action", Words, always;
    Next = "next", Words, always;
    Alert = "alert", Alert, always;
    Status = "status", Status, always;
    ProblemType = "type", Words, always;
    Retryable = "retryable", Flag, always;
    RetryKind = "retry.kind", RetryClass, always;
    RetryAfterMs = "retry.after_ms", Count, maybe;
    RetryAfterS = "retry.after_s", Count, maybe;
    Incident = "incident", Words, always;
    Timestamp = "timestamp", Timestamp, always;
    Trace = "trace", Text, maybe;
    Condition = "condition", Condition, maybe;
    Origin = "origin", Origin, maybe;
    Outcome = "outcome", Outcome, maybe;
    Tool = "tool", Text, maybe;
    Method = "method", Text, maybe;
    Suggestion = "suggestion", Text, maybe;
    Details = "details", Json, maybe;
    Data = "data", Json, maybe;
    Cause = "cause", Cause, maybe;
    Stack = "stack", Text, maybe;
    Invariant = "invariant", Text, maybe;
    RateLimitReset = "rate_limit_reset", Reset, maybe;
    PolicyDecision = "policy_decision", Text, maybe;
    SessionId = "session.id", Text, maybe;
    SessionClient = "session.client", Text, maybe;
    SessionRole = "session.role", Text, maybe;
    SessionWorkspaceRoot = "session.workspace_root", Text, maybe;
    SessionPhase = "session.phase", Text, maybe;
    SessionPlanHash = "session.plan_hash", Text, maybe;
    MetaToolVersion = "meta.tool_version", Text, maybe;
    MetaElapsedMs = "meta.elapsed_ms", Count, maybe;
    MetaMode = "meta.mode", Text, maybe;
    MetaApprovalMode = "meta.approval_mode", Flag, maybe;
}

impl Slot {
    /// Whether a default may be this. Facts that the contract derives have none.
    pub(crate) fn takes(self, value: &Value) -> bool {
        match self.kind() {
            Kind::Text | Kind::Words => value.is_string(),
            Kind::Reset => value.is_string() || value.is_number(),
            Kind::Flag => value.is_boolean(),
            Kind::Count => value.is_u64() && self.name().starts_with("meta."),
            Kind::Cause | Kind::Json => true,
            Kind::Code
            | Kind::Category
            | Kind::RetryClass
            | Kind::Alert
            | Kind::Origin
            | Kind::Outcome
            | Kind::Condition
            | Kind::Timestamp
            | Kind::Status => false,
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|slot| slot.name() == name)
    }
}
