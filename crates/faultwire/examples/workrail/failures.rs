//! What can go wrong with a workflow, as types. Each is mapped to its code by a match that names
//! every case: a new one does not compile until it is mapped (W9).

use std::time::Duration;

use faultwire::contract::Report;
use faultwire::workrail::{self as errors, Code, Failure};
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

/// What is wrong with a token, or with the session behind it.
#[derive(Clone, Copy, Debug)]
pub struct TokenError(pub Code);

/// When the disk may be there again.
const BUSY: Duration = Duration::from_secs(2);

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
        let details = json!({ "health": health });
        let what = format!("The session is not healthy: {}", details["health"]["reason"]["code"]);
        let suggestion = "Execution requires a healthy session; start the workflow again.";
        let failure = errors::session_not_healthy().message(what).suggestion(suggestion);
        failure.details(&details).into()
    }
}

impl From<AckFailure> for Failure {
    fn from(failure: AckFailure) -> Self {
        let code = match &failure {
            AckFailure::MissingNodeOrRun => Code::TokenUnknownNode,
            AckFailure::WorkflowHashMismatch => Code::TokenWorkflowHashMismatch,
            AckFailure::NoPendingStep => Code::PreconditionFailed,
            AckFailure::AdvanceApplyFailed { .. } => Code::ValidationError,
            AckFailure::MissingSnapshot | AckFailure::AdvanceNextFailed { .. } => {
                Code::InternalError
            }
            // The disk may be there again in a while.
            AckFailure::SessionStoreError { .. } | AckFailure::SnapshotStoreError { .. } => {
                return errors::internal_error().details(&failure).after(BUSY).into();
            }
        };
        told(code, json!(failure))
    }
}

impl From<TokenError> for Failure {
    fn from(TokenError(code): TokenError) -> Self {
        told(code, json!({}))
    }
}

/// A failure that is about a token names its code in the details, too (W11).
fn told(code: Code, mut details: Value) -> Failure {
    let message = details["message"].as_str().map(str::to_owned);
    let about_token = code.category() == Code::TokenBadSignature.category();
    if about_token {
        details["tokenErrorCode"] = code.id().into();
    }
    let suggestion = "Use the exact tokens returned by WorkRail; they are opaque.";
    let suggestion = about_token.then(|| suggestion.to_owned());
    let details = Some(details);
    Failure::tool_failure(code, Report { message, details, suggestion, ..Report::default() })
}
