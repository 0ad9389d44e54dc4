//! A code: the name of a failure, and every fact about it in one row.

use std::time::Duration;

use crate::origin::{Origin, Outcome};
use crate::retry::RetryClass;

/// One `[[code]]` row of a contract.
#[derive(Clone, Debug, PartialEq)]
pub struct Code {
    /// The stable name.
    pub id: String,
    /// The group it belongs to.
    pub category: String,
    /// The retry classes that a failure may have; the first is the default.
    pub retry: Vec<RetryClass>,
    /// The delay of the class `after` when the failure names none.
    pub after: Option<Duration>,
    /// The HTTP statuses that a failure may have; the first is the default.
    pub status: Vec<u16>,
    /// The alert level.
    pub alert: String,
    /// The levels of failures of some origins, where they differ from `alert` (S3).
    pub alerts: Vec<(Origin, String)>,
    /// The canonical message.
    pub message: String,
    /// What the code means, for people.
    pub meaning: String,
    /// What the client should do.
    pub action: String,
    /// The contract version that brought it.
    pub since: String,
    /// The problem type URI (RFC 9457).
    pub problem_type: Option<String>,
    /// Where in MCP it shows, as the contract's document words it.
    pub mcp: Option<String>,
    /// Whether a failure keeps the data of what was done before it.
    pub keeps_data: bool,
    /// How far a call with this answer certainly got, if the code implies it.
    pub outcome: Option<Outcome>,
    /// Set if the code is no longer used.
    pub retired: Option<Retired>,
    /// The line of its row in the file.
    pub line: usize,
}

/// The retirement of a code. A code is never removed and its name never reused (A3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retired {
    /// The contract version that retired it.
    pub since: String,
    /// The code that replaces it.
    pub successor: String,
}

impl Code {
    /// The alert level of a failure of this origin.
    #[must_use]
    pub fn alert_of(&self, origin: Option<Origin>) -> &str {
        let own = self.alerts.iter().find(|(of, _)| Some(*of) == origin);
        own.map_or(&self.alert, |(_, level)| level)
    }

    /// The retry class when the failure chooses none.
    #[must_use]
    pub fn default_retry(&self) -> RetryClass {
        self.retry.first().copied().unwrap_or(RetryClass::Never)
    }

    /// The HTTP status when the failure chooses none.
    #[must_use]
    pub fn default_status(&self) -> u16 {
        self.status.first().copied().unwrap_or(500)
    }
}
