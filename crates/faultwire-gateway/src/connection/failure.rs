//! Where a call fails: every failure of a call, on whichever path, comes by [`Connection::fail`].

use std::time::Instant;

use faultwire_contract::{Condition, Outcome};
use serde_json::Value;

use super::Connection;
use crate::call::{Call, Compared, OpenCall};
use crate::edge;
use crate::failing::CallFailure;
use crate::guard::breaker::Breaker;
use crate::method::Method;
use crate::responder;

impl Connection {
    /// A call failed. It is sent again if that is allowed, else the responder records and answers
    /// it. `counts` says whether the breaker counts it, as it does one of several that failed of
    /// the same cause.
    pub(crate) fn fail(&self, mut call: OpenCall, mut failure: CallFailure, counts: bool) {
        call.facts = self.session().facts_of(&call);
        // What was refused did nothing: it changes neither the client's session nor the breaker.
        if !call.was_open() {
            return call.fail(failure);
        }
        self.session().note_failure(&call, &failure.report.code);
        self.count(&call, &failure, counts);
        let Some(at) = self.retry(&mut call, &mut failure) else { return call.fail(failure) };
        let unheld = self.with(|session| session.hold(call, at));
        if let Some(call) = unheld {
            call.fail(failure);
        }
    }

    /// The server did not do what it was asked for. A handshake that it refuses may be no failure,
    /// if the front has doubts.
    pub(super) fn refused(&self, call: OpenCall, failure: CallFailure) {
        let doubts = match call.method {
            Method::Initialize => self.doubts.lock().take(),
            _ => None,
        };
        let refused = match doubts {
            Some(doubts) => doubts.send((call, failure)).err(),
            None => Some((call, failure)),
        };
        if let Some((call, failure)) = refused {
            self.fail(call, failure, true);
        }
    }

    /// Tells the breaker of it.
    fn count(&self, call: &Call, failure: &CallFailure, counts: bool) {
        let is_call = call.method == Method::ToolsCall;
        let Some(breaker) = self.breaker.as_ref().filter(|_| is_call) else { return };
        let condition = failure.report.condition;
        let outcome = failure.report.outcome;
        let unheard = outcome.is_none_or(|outcome| outcome == Outcome::NotSent);
        // A server that did what it was asked for is up, whatever its reply is worth.
        if counts && Breaker::counts(condition) && outcome != Some(Outcome::Executed) {
            if breaker.failed(edge::now()) {
                self.event("breaker_opened", &Value::Null);
            }
        } else if unheard || !counts || condition == Some(Condition::Cancelled) {
            breaker.let_go();
        } else {
            breaker.worked();
        }
    }

    /// When a failed call is sent again, if it is; this try is recorded then.
    fn retry(&self, call: &mut Call, failure: &mut CallFailure) -> Option<Instant> {
        let now = edge::now();
        let is_left_alone = |breaker: &Breaker| breaker.is_open(now);
        if self.settings.retry.times == 0 || self.breaker.as_deref().is_some_and(is_left_alone) {
            return None;
        }
        let report = failure.report.clone();
        let fault = responder::fault(call.client()?, call, report, &call.details());
        let random = edge::random();
        let at = self.with(|session| session.retry(call, &fault, random, now))?;
        self.responder.record_try(call, &fault, failure.upstream_code.take());
        call.attempt += 1;
        call.wait = None;
        call.compared = Compared::No;
        call.reached = fault.public().outcome.unwrap_or(Outcome::MaybeExecuted);
        Some(at)
    }
}
