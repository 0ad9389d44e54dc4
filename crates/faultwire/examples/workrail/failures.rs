//! What can go wrong with a workflow, as types. Each is mapped to its code by a match that names
//! every case: a new one does not compile until it is mapped (W9).

use faultwire::contract::Report;
use faultwire::workrail::{Code, Failure};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What is wrong with a workflow, in words too.
#[derive(Clone, Debug)]
pub struct WorkflowError(pub Wrong, pub String);

#[derive(Clone, Copy, Debug)]
pub enum Wrong {
    WorkflowNotFound,
    InvalidState,
    InvalidLoop,
    MissingContext,
    ConditionEvalFailed,
    MaxIterationsExceeded,
}

/// How a session's log stands (W10).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Health {
    Healthy,
    CorruptTail { reason: Reason },
    CorruptHead { reason: Reason },
    UnknownVersion { reason: Reason },
}

/// Why a step that was done could not be acknowledged (W12).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum AckFailure {
    MissingNodeOrRun,
    WorkflowHashMismatch,
    MissingSnapshot,
    NoPendingStep,
    AdvanceApplyFailed { message: String },
    AdvanceNextFailed { message: String },
    SessionStoreError { error: Reason },
    SnapshotStoreError { error: Reason },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    pub code: String,
    pub message: String,
}

/// When the disk, or another process, may be done.
const BUSY_MS: u64 = 2000;

impl From<WorkflowError> for Failure {
    fn from(WorkflowError(wrong, message): WorkflowError) -> Self {
        let code = match wrong {
            Wrong::WorkflowNotFound => Code::NotFound,
            Wrong::InvalidState | Wrong::InvalidLoop => Code::ValidationError,
            Wrong::MissingContext | Wrong::MaxIterationsExceeded => Code::PreconditionFailed,
            Wrong::ConditionEvalFailed => Code::InternalError,
        };
        Self::tool_failure(code, Report { message: Some(message), ..Report::default() })
    }
}

impl From<Health> for Failure {
    fn from(health: Health) -> Self {
        let message = match &health {
            Health::Healthy => "The session is healthy".to_owned(),
            Health::CorruptTail { reason } => format!("Corrupt session (tail): {}", reason.code),
            Health::CorruptHead { reason } => format!("Corrupt session (head): {}", reason.code),
            Health::UnknownVersion { reason } => format!("Newer session: {}", reason.code),
        };
        let suggestion = "Execution requires a healthy session; start the workflow again.";
        let report = Report {
            message: Some(message),
            suggestion: Some(suggestion.to_owned()),
            details: Some(json!({ "health": health })),
            ..Report::default()
        };
        Self::tool_failure(Code::SessionNotHealthy, report)
    }
}

impl From<AckFailure> for Failure {
    fn from(failure: AckFailure) -> Self {
        let details = json!(failure);
        let message = details["message"].as_str().map(str::to_owned);
        let report = Report { details: Some(details.clone()), message, ..Report::default() };
        match failure {
            AckFailure::MissingNodeOrRun => of_token(Code::TokenUnknownNode, details),
            AckFailure::WorkflowHashMismatch => of_token(Code::TokenWorkflowHashMismatch, details),
            AckFailure::NoPendingStep => Self::tool_failure(Code::PreconditionFailed, report),
            AckFailure::AdvanceApplyFailed { .. } => {
                Self::tool_failure(Code::ValidationError, report)
            }
            AckFailure::MissingSnapshot | AckFailure::AdvanceNextFailed { .. } => {
                Self::tool_failure(Code::InternalError, report)
            }
            AckFailure::SessionStoreError { .. } | AckFailure::SnapshotStoreError { .. } => {
                let report = Report { retry_after_ms: Some(BUSY_MS), ..report };
                Self::tool_failure(Code::InternalError, report)
            }
        }
    }
}

/// A failure that is about a token names its code in the details, too (W11).
pub fn of_token(code: Code, mut details: Value) -> Failure {
    details["tokenErrorCode"] = code.id().into();
    let suggestion = "Use the exact tokens returned by WorkRail; they are opaque.";
    let report = Report {
        details: Some(details),
        suggestion: Some(suggestion.to_owned()),
        retry_after_ms: (code == Code::TokenSessionLocked).then_some(BUSY_MS),
        ..Report::default()
    };
    Failure::tool_failure(code, report)
}
