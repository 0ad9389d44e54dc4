//! The private side of a fault: for the audit log, never for a client.

use std::fmt;

use serde_json::Value;

use crate::report::Report;

/// The texts before redaction. It has no `Display` and no `Serialize`, and its `Debug` shows
/// nothing; code that records it must redact it first.
#[derive(Clone, PartialEq)]
pub struct Private {
    message: Option<String>,
    cause: Option<Value>,
    stack: Option<String>,
}

impl Private {
    pub(super) fn of(report: &Report) -> Self {
        Self {
            message: report.message.clone(),
            cause: report.cause.clone(),
            stack: report.stack.clone(),
        }
    }

    /// The message as it was given.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }

    /// The cause as it was given.
    #[must_use]
    pub fn cause(&self) -> Option<&Value> {
        self.cause.as_ref()
    }

    /// The stack as it was given.
    #[must_use]
    pub fn stack(&self) -> Option<&str> {
        self.stack.as_deref()
    }
}

impl fmt::Debug for Private {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Private(..)")
    }
}
