//! The one JSON form of a failure, not yet checked by a contract.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Number, Value};

use crate::condition::Condition;
use crate::origin::{Origin, Outcome};
use crate::retry::RetryClass;

/// The report of one failure. Only the code is required.
///
/// `render` reads it, `decode` and `classify` write it, audit lines contain it. Options are set
/// by name, so that no two of them can be mixed up (W7):
///
/// ```
/// use faultwire_contract::Report;
///
/// let report = Report {
///     message: Some("Cache directory is gone".into()),
///     tool: Some("resolve".into()),
///     ..Report::new("cache_missing")
/// };
/// let json = serde_json::to_string(&report)?;
/// assert_eq!(json, r#"{"code":"cache_missing","message":"Cache directory is gone","tool":"resolve"}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Report {
    /// The code's name in the contract.
    pub code: String,
    /// What the boundary saw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Condition>,
    /// The message for the client; by default the code's canonical message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The tool that was called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The MCP method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Whose failure it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// How far the call got.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// The retry class, where the code's row lists more than one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryClass>,
    /// How long to wait before the next attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// The HTTP status, where the code's row lists more than one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// What to do next, in one sentence; by default from the contract's `[next]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// What is known that helps to act: texts for the slots of `[next]`.
    #[serde(default, skip_serializing_if = "Hints::is_empty", deserialize_with = "or_null")]
    pub hints: Hints,
    /// Whether the tool only reads or is idempotent, so that calling it twice does no harm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeatable: Option<bool>,
    /// What the client could try instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
    /// Structured facts for the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// What was done before the failure, for the codes that keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// The failure underneath: a string, or an object such as `{message, code, name, cause}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Value>,
    /// The invariant that was violated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invariant: Option<String>,
    /// When the rate limit resets: ISO 8601 or epoch seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit_reset: Option<Reset>,
    /// What the policy decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_decision: Option<String>,
    /// The session in which it happened.
    #[serde(default, skip_serializing_if = "Session::is_empty", deserialize_with = "or_null")]
    pub session: Session,
    /// Facts about the call.
    #[serde(default, skip_serializing_if = "Meta::is_empty", deserialize_with = "or_null")]
    pub meta: Meta,
    /// The id under which client, audit log and trace meet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incident: Option<String>,
    /// When it happened: ISO 8601, UTC, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    /// The trace it belongs to: a trace id or a `traceparent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// The stack, for contracts that can show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
}

impl Report {
    /// A report that knows nothing but the code.
    #[must_use]
    pub fn new(code: impl Into<String>) -> Self {
        Self { code: code.into(), ..Self::default() }
    }
}

/// Known facts that help to act. A text is not used if it is not a name, a list of names or a path,
/// or if the client may not see it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Hints {
    /// The tool, method or property of nearly the name that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nearest: Option<String>,
    /// The arguments that are missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    /// The values that are allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<String>,
    /// The directories that may be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// What to check, where a server does not start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
}

impl Hints {
    /// Whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn all(&mut self) -> [&mut Option<String>; 5] {
        let Self { nearest, missing, allowed, directory, check } = self;
        [nearest, missing, allowed, directory, check]
    }
}

impl Report {
    /// The delay that the failure names: directly, or by the moment when a limit resets.
    #[must_use]
    pub fn delay(&self, now_ms: i64) -> Option<Duration> {
        let named = self.retry_after_ms.map(Duration::from_millis);
        named.or_else(|| {
            let reset = self.rate_limit_reset.as_ref()?.epoch_ms()?;
            Some(Duration::from_millis(u64::try_from(reset.saturating_sub(now_ms)).unwrap_or(0)))
        })
    }
}

impl Reset {
    fn epoch_ms(&self) -> Option<i64> {
        match self {
            Self::Text(text) => text.parse::<Timestamp>().ok().map(Timestamp::as_millisecond),
            Self::Epoch(seconds) => seconds.as_i64()?.checked_mul(1000),
        }
    }
}

/// When a rate limit resets, in the platform's own form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Reset {
    /// ISO 8601.
    Text(String),
    /// Epoch seconds.
    Epoch(Number),
}

/// The session in which a failure happened.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Session {
    /// The session's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The client's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The role that the session plays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The directory that the session works in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_root: Option<String>,
    /// The phase of the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// The hash of the approved plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_hash: Option<String>,
}

impl Session {
    /// Whether nothing is known of it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Facts about the call that failed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Meta {
    /// The tool's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_version: Option<String>,
    /// How long the call took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elapsed_ms: Option<u64>,
    /// The operating mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Whether a person approves each step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_mode: Option<bool>,
}

impl Meta {
    /// Whether nothing is known of it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Serde would also read a struct from a list, by position. A fault is only read by names (W7).
macro_rules! only_objects {
    ($($type:ident, $what:literal);+ $(;)?) => { $(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                Self::serialize(self, serializer)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Members;

                impl<'de> Visitor<'de> for Members {
                    type Value = $type;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($what)
                    }

                    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<$type, A::Error> {
                        $type::deserialize(MapAccessDeserializer::new(map))
                    }
                }

                deserializer.deserialize_map(Members)
            }
        }
    )+ };
}

only_objects! {
    Report, "a fault, which is an object";
    Hints, "an object of hints";
    Session, "an object of session facts";
    Meta, "an object of facts about the call";
}

fn or_null<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(d: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(d)?.unwrap_or_default())
}
