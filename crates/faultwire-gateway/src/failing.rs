//! A failure on its way to the responder: what is known of it, and what the server said.

use std::time::Duration;

use faultwire::output::Mismatch;
use faultwire_contract::{Aspect, Condition, Contract, Failure, Origin, Outcome, Report};
use serde_json::Value;

/// A failure on its way to the responder.
#[derive(Clone)]
pub(crate) struct CallFailure {
    /// Boxed, since it is large and goes through many hands.
    pub report: Box<Report>,
    pub upstream_code: Option<Value>,
    /// The number of the JSON-RPC error that it was.
    pub rpc: Option<i64>,
    /// What the server said, where that matters for the answer.
    pub said: Said,
    /// Whether it is an error of JSON-RPC even where failures are results: the request was wrong,
    /// and no tool was asked.
    pub is_protocol: bool,
    /// What the protocol wants beside the envelope in the data of such an error.
    pub beside: Option<Value>,
    /// Content blocks that stood beside its text.
    pub blocks: Vec<Value>,
}

/// What the server said, where that matters for the answer.
#[derive(Clone, Default)]
pub(crate) enum Said {
    /// It does not.
    #[default]
    Whatever,
    /// An error that the protocol wants as it is, as a line for the client.
    Protocol(Vec<u8>),
    /// Cancelled by the client, which gets no answer.
    Nothing,
}

impl CallFailure {
    pub(crate) fn observed(contract: &Contract, condition: Condition) -> Self {
        Self::finer(contract, condition, None)
    }

    pub(crate) fn finer(contract: &Contract, condition: Condition, aspect: Option<Aspect>) -> Self {
        let code = contract.code_for(condition, aspect);
        Self::from(Report { condition: Some(condition), ..Report::new(&code.id) })
    }

    pub(crate) fn classified(failure: Failure) -> Self {
        let Failure { report, upstream_code, rpc, blocks, .. } = failure;
        Self { upstream_code, rpc, blocks, ..Self::from(report) }
    }

    pub(crate) fn saying(mut self, message: impl Into<String>) -> Self {
        self.report.message = Some(message.into());
        self
    }

    pub(crate) fn outcome(mut self, outcome: Outcome) -> Self {
        self.report.outcome = Some(outcome);
        self
    }

    /// A result that does not match the tool's output schema.
    pub(crate) fn mismatched(contract: &Contract, tool: &str, mismatch: &Mismatch) -> Self {
        let mut failing = Self::observed(contract, Condition::UpstreamProtocol)
            .saying(mismatch.message(tool))
            .outcome(Outcome::Executed);
        failing.report.origin = Some(Origin::Upstream);
        failing.report.details = Some(mismatch.details());
        failing
    }

    /// With a delay, where the code takes one.
    pub(crate) fn after(mut self, contract: &Contract, delay: Option<Duration>) -> Self {
        let row = contract.code(&self.report.code);
        let takes = row.is_some_and(|row| row.retry.iter().any(|class| class.takes_delay()));
        let delay = delay.filter(|_| takes);
        self.report.retry_after_ms = delay.and_then(|d| u64::try_from(d.as_millis()).ok());
        self
    }
}

impl From<Report> for CallFailure {
    fn from(report: Report) -> Self {
        Self::from(Box::new(report))
    }
}

impl From<Box<Report>> for CallFailure {
    fn from(report: Box<Report>) -> Self {
        Self {
            report,
            upstream_code: None,
            rpc: None,
            said: Said::default(),
            is_protocol: false,
            beside: None,
            blocks: Vec::new(),
        }
    }
}
