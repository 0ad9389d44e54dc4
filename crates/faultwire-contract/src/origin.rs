//! Whose failure it is, and how far the call got (A6).

use serde::{Deserialize, Serialize};

/// Whose failure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The caller asked for something that cannot be.
    Client,
    /// Faultwire itself.
    Gateway,
    /// The MCP server, or something behind it.
    Upstream,
    /// A rule of the operator refused the call.
    Policy,
}

impl Origin {
    /// Every origin.
    pub const ALL: [Self; 4] = [Self::Client, Self::Gateway, Self::Upstream, Self::Policy];

    /// The wire name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Gateway => "gateway",
            Self::Upstream => "upstream",
            Self::Policy => "policy",
        }
    }
}

/// How far the call got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The tool did not receive the call, so sending it again is safe.
    NotSent,
    /// It is not known whether the tool ran.
    MaybeExecuted,
    /// The tool ran.
    Executed,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Self; 3] = [Self::NotSent, Self::MaybeExecuted, Self::Executed];

    /// The wire name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotSent => "not_sent",
            Self::MaybeExecuted => "maybe_executed",
            Self::Executed => "executed",
        }
    }
}
