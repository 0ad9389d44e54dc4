//! What can go wrong with a workflow, as types. Each is mapped to its code by a match that names
//! every case: a new one does not compile until it is mapped (W9).

use faultwire::contract::Report;
use faultwire::workrail::{self as errors, Code, Failure};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What is wrong with a workflow.
#[derive(Debug, Serialize, Deserialize)]
pub enum WorkflowError {
    WorkflowNotFound(String),
    InvalidState(String),
    InvalidLoop(String),
    MissingContext(String),
    MaxIterationsExceeded(String),
    ConditionEvalFailed(String),
}

/// The state of a session's log (W10).
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Health {
    Healthy,
    CorruptTail { reason: Reason },
    CorruptHead { reason: Reason },
    UnknownVersion { reason: Reason },
}

/// Why a step that was done could not be acknowledged (W12).
#[derive(Debug, PartialEq, Serialize, Deserialize)]
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

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reason {
    pub code: String,
    pub message: String,
}

impl From<WorkflowError> for Failure {
    fn from(error: WorkflowError) -> Self {
        use WorkflowError as It;
        let (code, message) = match error {
            It::WorkflowNotFound(m) => (Code::NotFound, m),
            It::InvalidState(m) | It::InvalidLoop(m) => (Code::ValidationError, m),
            It::MissingContext(m) | It::MaxIterationsExceeded(m) => (Code::PreconditionFailed, m),
            It::ConditionEvalFailed(m) => (Code::InternalError, m),
        };
        Self::tool_failure(code, Report { message: Some(message), ..Report::default() })
    }
}

impl From<Health> for Failure {
    fn from(health: Health) -> Self {
        let failure = errors::session_not_healthy().details(&json!({ "health": health }));
        failure.suggestion("Only healthy sessions go on; start the workflow again.").into()
    }
}

impl From<AckFailure> for Failure {
    fn from(failure: AckFailure) -> Self {
        use AckFailure as It;
        let code = match &failure {
            It::MissingNodeOrRun => Code::TokenUnknownNode,
            It::WorkflowHashMismatch => Code::TokenWorkflowHashMismatch,
            It::NoPendingStep => Code::PreconditionFailed,
            It::AdvanceApplyFailed { .. } => Code::ValidationError,
            It::MissingSnapshot | It::AdvanceNextFailed { .. } => Code::InternalError,
            // The disk may be available again later.
            It::SessionStoreError { .. } | It::SnapshotStoreError { .. } => {
                let later = errors::internal_error().after(std::time::Duration::from_secs(2));
                return later.details(&failure).into();
            }
        };
        told(code, json!(failure))
    }
}

/// A failure that is about a token names its code in the details, too (W11).
pub fn told(code: Code, mut details: Value) -> Failure {
    let mut report = Report::default();
    if code.category() == Code::TokenBadSignature.category() {
        details["tokenErrorCode"] = code.id().into();
        report.suggestion = Some("Use the exact tokens that WorkRail returned.".into());
    }
    Failure::tool_failure(code, Report { details: Some(details), ..report })
}
