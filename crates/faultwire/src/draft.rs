//! A failure under construction: its code is chosen, and other facts are set by name (W7).

use std::error::Error;
use std::marker::PhantomData;
use std::time::Duration;

use faultwire_contract::{Report, Reset, RetryClass, cause, details};
use serde::Serialize;
use serde_json::Value;

use crate::edge;
use crate::typed::{HasStatus, KeepsData, MayRepeat, MayStop, Row, TakesDelay, TypedCode};

/// A failure of one code. The available options depend on the code's row.
///
/// ```
/// use std::time::Duration;
/// use faultwire::owlclaw;
///
/// let failure = owlclaw::governance_rate_limited()
///     .message("Ten calls a minute are enough")
///     .after(Duration::from_secs(6));
/// let fault = owlclaw::Failure::from(failure).into_fault();
/// assert_eq!(fault.retry_after(), Some(Duration::from_secs(6)));
/// ```
///
/// A delay on a code that is never retried does not compile:
///
/// ```compile_fail
/// # use std::time::Duration;
/// faultwire::owlclaw::auth_forbidden().after(Duration::from_secs(6));
/// ```
#[derive(Clone, Debug)]
#[must_use = "a failure has no effect unless it is returned"]
pub struct Draft<R> {
    report: Report,
    /// Why its details are not JSON, if they are not.
    unfit: Vec<String>,
    row: PhantomData<R>,
}

impl<R: Row> Draft<R> {
    /// One that knows nothing but its code.
    pub fn new() -> Self {
        Self { report: Report::new(R::ID), unfit: Vec::new(), row: PhantomData }
    }

    pub(crate) fn into_report(self) -> Report {
        let contract = R::Code::contract();
        let mut report = self.report;
        report.stack = report.stack.or_else(|| edge::stack(contract));
        if self.unfit.is_empty() {
            return report;
        }
        // Only done here, so that the order of the setters does not matter.
        details::settle(contract, report, Err(self.unfit))
    }

    /// What to tell the client.
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.report.message = Some(message.into());
        self
    }

    /// What the client could try instead.
    pub fn suggestion(mut self, suggestion: impl Into<String>) -> Self {
        self.report.suggestion = Some(suggestion.into());
        self
    }

    /// Facts for the client. Details that are not JSON make it the contract's internal failure
    /// (W5).
    pub fn details<T: Serialize + ?Sized>(mut self, facts: &T) -> Self {
        (self.report.details, self.unfit) = match details::from(facts) {
            Ok(value) => (Some(value), Vec::new()),
            Err(why) => (None, why),
        };
        self
    }

    /// The failure underneath.
    pub fn cause<E: Error + 'static>(mut self, error: &E) -> Self {
        self.report.cause = Some(cause::from_error(error));
        self
    }

    /// The underlying failure, if it is not a Rust error.
    pub fn cause_value(mut self, value: Value) -> Self {
        self.report.cause = Some(value);
        self
    }

    /// The tool that failed, if the boundary does not know.
    pub fn tool(mut self, tool: impl Into<String>) -> Self {
        self.report.tool = Some(tool.into());
        self
    }

    /// The invariant that was violated.
    pub fn invariant(mut self, invariant: impl Into<String>) -> Self {
        self.report.invariant = Some(invariant.into());
        self
    }

    /// When a limit resets, in the platform's own form.
    pub fn resets_at(mut self, reset: Reset) -> Self
    where
        R: TakesDelay,
    {
        self.report.rate_limit_reset = Some(reset);
        self
    }

    /// What the policy decided.
    pub fn policy_decision(mut self, decision: impl Into<String>) -> Self {
        self.report.policy_decision = Some(decision.into());
        self
    }

    /// How long to wait before the next attempt.
    pub fn after(mut self, delay: Duration) -> Self
    where
        R: TakesDelay,
    {
        self.report.retry_after_ms = Some(u64::try_from(delay.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// This one cannot succeed, although others of its code may.
    pub fn not_again(mut self) -> Self
    where
        R: MayStop,
    {
        self.report.retry = Some(RetryClass::Never);
        self
    }

    /// The call can be sent again at once.
    pub fn at_once(mut self) -> Self
    where
        R: MayRepeat,
    {
        self.report.retry = Some(RetryClass::Immediate);
        self
    }

    /// One of the statuses of its row.
    pub fn status<const STATUS: u16>(mut self) -> Self
    where
        R: HasStatus<STATUS>,
    {
        self.report.status = Some(STATUS);
        self
    }

    /// What was done before it failed.
    pub fn keeping(mut self, data: Value) -> Self
    where
        R: KeepsData,
    {
        self.report.data = Some(data);
        self
    }
}

impl<R: Row> Default for Draft<R> {
    fn default() -> Self {
        Self::new()
    }
}
