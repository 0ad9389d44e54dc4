//! What is known about the failed call, besides the fault itself.

use faultwire_contract::{Redactor, bound};
use serde::Serialize;
use serde_json::Value;

use crate::audit::hash::Hash;

/// Facts about a call. The arguments are only recorded as a keyed hash, see
/// [`Log::fingerprint`](crate::audit::Log::fingerprint).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Call {
    /// The id of the request, as the client sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<Value>,
    /// Who called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The keyed hash of the arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Fingerprint>,
    /// The code under which the server itself reported the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream_code: Option<Value>,
    /// The tool does not declare the code that it answered.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub undeclared: bool,
    /// How long the call took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elapsed_ms: Option<u64>,
    /// Which attempt it was, from 1, where the call was sent more than once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// The hash of the envelope that the client got.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub envelope: Option<Digest>,
    /// The address of the request, if nothing else is known about the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// How many requests of that source were refused so far; not all of them are recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusals: Option<u64>,
}

impl Call {
    /// The same without credentials, each part bounded: they come from outside.
    pub(crate) fn safe(&self, redactor: &Redactor) -> Self {
        let word = |w: &String| bound::cut(&redactor.redact_credentials(w), LONGEST).into_owned();
        let value = |v: &Value| match v {
            Value::String(s) => Value::String(word(s)),
            Value::Number(_) | Value::Bool(_) | Value::Null => v.clone(),
            other => bound::json(redactor.redact_json_credentials(other.clone()), 2, LONGEST),
        };
        Self {
            request: self.request.as_ref().map(value),
            client: self.client.as_ref().map(word),
            upstream_code: self.upstream_code.as_ref().map(value),
            peer: self.peer.as_ref().map(word),
            ..*self
        }
    }

    /// Whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The longest id, name or code that is written down.
const LONGEST: usize = 256;

/// A keyed hash. It can only be made of plain text with the log's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(pub(crate) Hash);

impl Serialize for Fingerprint {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&named(KEYED, &self.0))
    }
}

/// The SHA-256 of bytes that were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(pub(crate) Hash);

impl Digest {
    /// The digest of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Hash::of(bytes))
    }
}

impl Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&named(PLAIN, &self.0))
    }
}

/// The prefixes of a keyed hash and of a plain one.
pub(crate) const KEYED: &str = "hmac-sha256:";
pub(crate) const PLAIN: &str = "sha256:";

/// The hash behind the name of its kind.
fn named(kind: &str, hash: &Hash) -> String {
    let digits = hash.hex();
    [kind, str::from_utf8(&digits).unwrap_or_default()].concat()
}
