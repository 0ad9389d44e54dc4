//! What is known of a call.

use faultwire_contract::Session;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::json::error::{Error, ErrorKind};

/// The method without which a call is one of a tool.
const TOOLS_CALL: &str = "tools/call";

/// What is known of a call, all of it optional: `method` (`tools/call`), `tool`, `arguments`,
/// `request` (its id), `client`, `trace`, `elapsed_ms`, `session`, and `turn` ([`Standing::turn`] when
/// it came).
///
/// [`Standing::turn`]: super::Standing::turn
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Call {
    pub(super) method: Option<String>,
    pub(super) tool: Option<String>,
    pub(super) arguments: Option<Box<RawValue>>,
    pub(super) request: Option<Value>,
    pub(super) client: Option<String>,
    pub(super) trace: Option<String>,
    pub(super) elapsed_ms: Option<u64>,
    pub(super) session: Session,
    pub(super) turn: Option<u64>,
}

impl Call {
    /// Reads the JSON of a call.
    pub fn read(text: &str) -> Result<Self, Error> {
        serde_json::from_str(text).map_err(|e| {
            let help = r#"give an object, such as {"tool":"read","arguments":{"path":"a.md"}}"#;
            Error::new(ErrorKind::Input, format!("not a valid call: {e}"), help)
        })
    }

    pub(super) fn method(&self) -> &str {
        self.method.as_deref().unwrap_or(TOOLS_CALL)
    }

    pub(super) fn is_tool(&self) -> bool {
        self.method() == TOOLS_CALL
    }

    /// The arguments, read.
    pub(super) fn arguments(&self) -> Option<Value> {
        serde_json::from_str(self.arguments.as_ref()?.get()).ok()
    }

    /// The params of the request, as far as they matter for what the client said itself.
    pub(super) fn params(&self) -> Option<String> {
        let arguments = self.arguments.as_deref().map_or("null", RawValue::get);
        let name = serde_json::to_string(self.tool.as_deref().unwrap_or_default()).ok()?;
        let known = self.tool.is_some() || self.arguments.is_some();
        known.then(|| format!(r#"{{"name":{name},"arguments":{arguments}}}"#))
    }
}
