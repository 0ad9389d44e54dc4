//! What a boundary can observe: a closed list that every contract maps to its own codes (A2).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::origin::{Origin, Outcome};

/// One row makes the variant, its wire name, its docs and everything the boundary assumes of it.
macro_rules! conditions {
    ($( $(#[doc = $doc:literal])+ $variant:ident = $name:literal, $origin:ident, $outcome:ident, $reported:ident, $rpc:literal; )+) => {
        /// Something a boundary saw go wrong, before any contract gave it a code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum Condition {
            $( $(#[doc = $doc])+ #[serde(rename = $name)] $variant, )+
        }

        impl Condition {
            /// Every condition, in the order of the list.
            pub const ALL: &'static [Self] = &[$( Self::$variant ),+];

            /// The name in contract files and in the JSON form of a fault.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $( Self::$variant => $name, )+ }
            }

            /// What the condition means, in one sentence.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self { $( Self::$variant => concat!($($doc),+).trim_start(), )+ }
            }

            /// The default origin (A6).
            #[must_use]
            pub const fn origin(self) -> Origin {
                match self { $( Self::$variant => Origin::$origin, )+ }
            }

            /// The default outcome (A6).
            #[must_use]
            pub const fn outcome(self) -> Outcome {
                match self { $( Self::$variant => Outcome::$outcome, )+ }
            }

            /// How far the call got if the server itself reported the condition: it was sent, so
            /// only conditions that never reach a tool prove that it did not run.
            #[must_use]
            pub const fn reported_outcome(self) -> Outcome {
                match self { $( Self::$variant => Outcome::$reported, )+ }
            }

            /// The JSON-RPC error number for answers that are not tool results.
            #[must_use]
            pub const fn rpc_code(self) -> i64 {
                match self { $( Self::$variant => $rpc, )+ }
            }
        }
    };
}

conditions! {
    /// The tool is not in the server's list.
    UnknownTool = "unknown_tool", Client, NotSent, NotSent, -32602;
    /// The server does not know the method.
    UnknownMethod = "unknown_method", Client, NotSent, NotSent, -32601;
    /// The arguments do not match the tool's input schema.
    InvalidArguments = "invalid_arguments", Client, NotSent, NotSent, -32602;
    /// The caller is not authenticated.
    Unauthorized = "unauthorized", Policy, NotSent, MaybeExecuted, -32600;
    /// The caller is known and may not do this.
    Forbidden = "forbidden", Policy, NotSent, MaybeExecuted, -32600;
    /// Too many calls in too short a time.
    RateLimited = "rate_limited", Policy, NotSent, MaybeExecuted, -32600;
    /// The caller's budget for the period is used up.
    BudgetExceeded = "budget_exceeded", Policy, NotSent, MaybeExecuted, -32600;
    /// The protocol version asked for is not served here.
    UnsupportedVersion = "unsupported_version", Client, NotSent, NotSent, -32022;
    /// Header and body name different protocol versions.
    VersionConflict = "version_conflict", Client, NotSent, NotSent, -32020;
    /// The server or session is not ready for calls yet.
    NotReady = "not_ready", Policy, NotSent, MaybeExecuted, -32600;
    /// The session is locked.
    Locked = "locked", Policy, NotSent, MaybeExecuted, -32600;
    /// No answer within the deadline.
    Timeout = "timeout", Upstream, MaybeExecuted, MaybeExecuted, -32603;
    /// The caller cancelled the call.
    Cancelled = "cancelled", Client, MaybeExecuted, MaybeExecuted, -32603;
    /// The server, or what it needs, could not be reached.
    UpstreamUnreachable = "upstream_unreachable", Upstream, NotSent, MaybeExecuted, -32603;
    /// The server went away with the call open.
    UpstreamCrashed = "upstream_crashed", Upstream, MaybeExecuted, MaybeExecuted, -32603;
    /// The server sent an invalid answer: malformed, oversize, wrong or duplicate id.
    UpstreamProtocol = "upstream_protocol", Upstream, MaybeExecuted, MaybeExecuted, -32603;
    /// The tool reported a failure without a code of the contract.
    ToolError = "tool_error", Upstream, Executed, Executed, -32603;
    /// The server answered with a JSON-RPC error of no clearer meaning.
    RpcError = "rpc_error", Upstream, MaybeExecuted, MaybeExecuted, -32603;
    /// A failure that was dressed as a success.
    SoftFailure = "soft_failure", Upstream, Executed, Executed, -32603;
    /// The tool's handler panicked.
    Panic = "panic", Upstream, MaybeExecuted, MaybeExecuted, -32603;
    /// The audit record could not be written.
    AuditFailed = "audit_failed", Gateway, MaybeExecuted, MaybeExecuted, -32603;
    /// The program could not start.
    BootstrapFailed = "bootstrap_failed", Gateway, NotSent, MaybeExecuted, -32603;
    /// Any other error on Faultwire's side.
    Internal = "internal", Gateway, MaybeExecuted, MaybeExecuted, -32603;
    /// What the call names does not exist: a file, a row, a page, a reference.
    NotFound = "not_found", Client, Executed, Executed, -32602;
    /// What the call would make exists already.
    AlreadyExists = "already_exists", Client, Executed, Executed, -32603;
    /// The state that the call needs is not there: nothing staged, not connected, not empty.
    FailedPrecondition = "failed_precondition", Client, Executed, Executed, -32603;
    /// What the call would change was changed by another meanwhile.
    Conflict = "conflict", Client, Executed, Executed, -32603;
    /// The file system or a remote service denied access; `forbidden` is the policy's.
    PermissionDenied = "permission_denied", Upstream, Executed, Executed, -32603;
    /// The server ended before its first answer.
    StartFailed = "start_failed", Upstream, NotSent, MaybeExecuted, -32603;
}

impl Condition {
    /// The condition that replaces this one in a contract that leaves it out. All others must be
    /// mapped (A2).
    #[must_use]
    pub const fn parent(self) -> Option<Self> {
        match self {
            Self::NotFound
            | Self::AlreadyExists
            | Self::FailedPrecondition
            | Self::Conflict
            | Self::PermissionDenied => Some(Self::ToolError),
            Self::StartFailed => Some(Self::UpstreamCrashed),
            _ => None,
        }
    }

    /// What the status of an HTTP response that is no envelope says.
    #[must_use]
    pub const fn of_status(status: u16) -> Self {
        match status {
            401 => Self::Unauthorized,
            403 => Self::Forbidden,
            404 | 405 => Self::UnknownMethod,
            408 | 504 => Self::Timeout,
            429 => Self::RateLimited,
            400..=499 => Self::InvalidArguments,
            502 | 503 => Self::UpstreamUnreachable,
            _ => Self::Internal,
        }
    }

    /// The finer cases that a contract may give codes of their own.
    #[must_use]
    pub const fn aspects(self) -> &'static [Aspect] {
        match self {
            Self::InvalidArguments => {
                &[Aspect::Missing, Aspect::Type, Aspect::Value, Aspect::Format]
            }
            Self::UpstreamProtocol => {
                &[Aspect::Malformed, Aspect::Oversize, Aspect::WrongId, Aspect::DuplicateId]
            }
            Self::AuditFailed => &[Aspect::Lock],
            Self::BootstrapFailed => &[Aspect::SelfAudit],
            _ => &[],
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Condition {
    type Err = UnknownCondition;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .iter()
            .copied()
            .find(|c| c.name() == name)
            .ok_or_else(|| UnknownCondition(name.to_owned()))
    }
}

/// A name that is not a condition.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("unknown condition {0:?}")]
pub struct UnknownCondition(String);

/// A finer case of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Aspect {
    /// A required argument is absent.
    Missing,
    /// An argument has the wrong type.
    Type,
    /// An argument's value is not allowed.
    Value,
    /// An argument could not be parsed.
    Format,
    /// The bytes are not a JSON-RPC message.
    Malformed,
    /// The message is larger than the limit.
    Oversize,
    /// The reply answers no open request.
    WrongId,
    /// The request was answered before.
    DuplicateId,
    /// Another process holds the audit log.
    Lock,
    /// The program's check of itself found a change.
    SelfAudit,
}

impl Aspect {
    /// The name in contract files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Type => "type",
            Self::Value => "value",
            Self::Format => "format",
            Self::Malformed => "malformed",
            Self::Oversize => "oversize",
            Self::WrongId => "wrong_id",
            Self::DuplicateId => "duplicate_id",
            Self::Lock => "lock",
            Self::SelfAudit => "self_audit",
        }
    }
}
