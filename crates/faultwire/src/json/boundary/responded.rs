//! HTTP responses that say that something failed, and are no envelopes: of a router, a validator, a
//! framework.

use faultwire_contract::Condition;
use serde::Deserialize;

use super::{Boundary, Failed};
use crate::json::error::{Error, ErrorKind};

/// A response.
#[derive(Deserialize)]
pub(super) struct Responded {
    status: u16,
    #[serde(default)]
    message: String,
    /// The header, in seconds.
    #[serde(default)]
    retry_after: Option<String>,
}

impl Responded {
    pub(super) fn read(text: &str) -> Result<Self, Error> {
        serde_json::from_str(text).map_err(|e| {
            let help = r#"give an object, such as {"status":404,"message":"Not Found"}"#;
            Error::new(ErrorKind::Input, format!("not a valid response: {e}"), help)
        })
    }

    pub(super) fn failed(&self, boundary: &Boundary) -> Failed {
        let mut failed = boundary.seen(Condition::of_status(self.status), self.message.trim());
        let row = boundary.contract().code(&failed.report.code);
        let takes = row.is_some_and(|row| row.retry.iter().any(|class| class.takes_delay()));
        let seconds = self.retry_after.as_deref().filter(|_| takes);
        let seconds: Option<u64> = seconds.and_then(|seconds| seconds.trim().parse().ok());
        failed.report.retry_after_ms = seconds.map(|seconds| seconds.saturating_mul(1000));
        failed
    }
}
