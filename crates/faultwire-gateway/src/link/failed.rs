//! What becomes of a call that fails: it is sent again where that is allowed, else answered.

use std::time::{Duration, Instant};

use faultwire_contract::{Condition, Outcome};
use serde_json::Value;

use crate::call::{Call, Method, Stage};
use crate::failing::{Failing, Said};
use crate::guard::breaker::Breaker;
use crate::link::{Link, Phase};
use crate::supervisor::Event;
use crate::tools::Known;
use crate::upstream::stderr::LastOutput;
use crate::{door, edge, wire};

/// For a message that is no call, a lost session is begun again after this long at the earliest.
const REST: Duration = Duration::from_secs(1);

impl Link {
    /// A call failed. It is sent again if that is allowed, else it is answered.
    pub(crate) fn fail(&self, call: Call, failing: Failing) {
        self.count(&call, &failing);
        self.settle(call, failing);
    }

    /// The server did not do what it was asked for. A greeting that it refuses may be no failure,
    /// if somebody has doubts.
    pub(crate) fn refused(&self, call: Call, failing: Failing) {
        let doubts = match call.method {
            Method::Initialize => self.state().doubts.take(),
            _ => None,
        };
        let refused = match doubts {
            Some(doubts) => doubts.send((call, failing)).err(),
            None => Some((call, failing)),
        };
        if let Some((call, failing)) = refused {
            self.fail(call, failing);
        }
    }

    /// Calls failed together, of one cause: it counts once.
    pub(crate) fn fail_together(&self, calls: Vec<Call>, why: impl Fn() -> Failing) {
        if let Some(call) = calls.iter().find(|call| call.method == Method::ToolsCall) {
            self.count(call, &why());
        }
        for call in calls {
            self.settle(call, why());
        }
    }

    /// Tells the breaker of it.
    fn count(&self, call: &Call, failing: &Failing) {
        if let Some(breaker) = self.breaker.as_ref().filter(|_| call.method == Method::ToolsCall) {
            let condition = failing.report.condition;
            let unheard = failing.report.outcome.is_none_or(|outcome| outcome == Outcome::NotSent);
            if Breaker::counts(condition) {
                if breaker.failed(edge::now()) {
                    self.event("breaker_opened", &Value::Null);
                }
            } else if unheard {
                breaker.let_go();
            } else {
                breaker.worked();
            }
        }
    }

    fn settle(&self, mut call: Call, mut failing: Failing) {
        self.turn_lost(&call, &failing.report.code);
        let Some(at) = self.again(&mut call, &mut failing) else { return call.fail(failing) };
        let mut state = self.state();
        if state.calls.contains(call.id()) {
            drop(state);
            return call.fail(failing);
        }
        call.stage = Stage::Again(at);
        state.calls.insert(call);
        self.watch(&mut state, Some(at));
    }

    /// A call is taken back, and nobody will know what the server would have said.
    pub(crate) fn unheard(&self) {
        if let Some(breaker) = &self.breaker {
            breaker.let_go();
        }
    }

    /// The head of an answer says how long to wait, should it be a failure.
    pub(crate) fn told_to_wait(&self, id: &str, wait: Duration) {
        if let Some(call) = self.state().calls.get_mut(id) {
            call.wait = Some(wait);
        }
    }

    /// When a failed call is sent again, if it is; this try is recorded then.
    fn again(&self, call: &mut Call, failing: &mut Failing) -> Option<Instant> {
        let retry = self.settings().retry;
        let is_left_alone = |breaker: &Breaker| breaker.is_open(edge::now());
        if retry.times == 0 || self.breaker.as_deref().is_some_and(is_left_alone) {
            return None;
        }
        let fault = door::fault(call.party()?, call, failing.report.clone(), &call.story());
        let safety = call.facts().safety;
        let at = {
            let mut state = self.state();
            let over = state.closing || matches!(state.phase, Phase::Down { until: None, .. });
            if over {
                return None;
            }
            state.budget.again(retry, call, &fault, safety, edge::now())?
        };
        self.door.record_try(call, &fault, failing.upstream_code.take());
        call.attempt += 1;
        call.wait = None;
        call.reached = fault.public().outcome.unwrap_or(Outcome::MaybeExecuted);
        Some(at)
    }

    /// An open call failed in a way that only whoever sent it knows.
    pub(crate) fn fail_open(&self, id: &str, failing: Failing) {
        let mut state = self.state();
        let opening = matches!(state.phase, Phase::Opening { .. }) && state.handshake.is_answer(id);
        let call = state.calls.answered(id);
        let asked = state.questions.remove(id).is_some();
        if state.listing.as_ref().is_some_and(|listing| listing.id == id) {
            state.listing = None;
            self.tools().known = Known::Never;
        }
        drop(state);
        match call {
            Some(call) => {
                let _together = self.door.burst();
                self.refused(call, failing);
            }
            None if asked => {}
            None if opening => drop(self.events.send(Event::Refused)),
            None => self.release(),
        }
    }

    /// The server does not know the session any more. It is begun again, and the call is sent
    /// then; once. Something that is no call may be told so for ever, and does it only after a rest.
    pub(crate) fn session_lost(&self, id: Option<&str>) {
        let mut pipe = self.inlet.lock();
        let mut state = self.state();
        let (opening, now) = (state.handshake.opening().map(<[u8]>::to_vec), edge::now());
        let rested = state.reopened.is_none_or(|at| now.saturating_duration_since(at) > REST);
        let call = id.and_then(|id| state.calls.get_mut(id));
        let again = call.map_or(rested, |call| {
            call.stage = Stage::Held;
            !std::mem::replace(&mut call.lost, true)
        });
        match (&state.phase, opening) {
            (Phase::Up, Some(opening)) if again => {
                let until = now + self.settings().deadlines.start;
                state.phase = Phase::Opening { until };
                state.reopened = Some(now);
                self.watch(&mut state, Some(until));
                drop(state);
                self.event("session_lost", &Value::Null);
                self.inlet.send(&mut pipe, &opening);
            }
            (Phase::Opening { .. }, _) if again => {}
            _ => {
                let call = id.and_then(|id| state.calls.give_up(id, "session lost"));
                drop(state);
                drop(pipe);
                if let Some(call) = call {
                    let failing =
                        Failing::observed(self.contract(), Condition::UpstreamUnreachable)
                            .saying("The server does not know the session")
                            .outcome(Outcome::NotSent);
                    self.fail(call, failing);
                }
            }
        }
    }

    /// A call was sent in a session that was lost, and there is another one already: once more in
    /// that one.
    pub(crate) fn send_again(&self, id: Option<&str>) {
        let mut state = self.state();
        let Some(call) = id.and_then(|id| state.calls.get_mut(id)) else { return };
        if std::mem::replace(&mut call.lost, true) {
            drop(state);
            return self.session_lost(id);
        }
        call.stage = Stage::Held;
        drop(state);
        self.release();
    }

    /// The failure of calls while there is no server.
    pub(crate) fn unreachable(
        &self,
        until: Option<Instant>,
        why: &str,
        failed_start: Option<&LastOutput>,
    ) -> Failing {
        let now = edge::now();
        let wait = until.map(|until| until.saturating_duration_since(now));
        let next = match wait {
            Some(_) => "it is being started again",
            None => "it is not started again",
        };
        let message = format!("The server {why}; {next}");
        let failing = match failed_start {
            Some(output) => self.start_failed(message, output),
            None => {
                Failing::observed(self.contract(), Condition::UpstreamUnreachable).saying(message)
            }
        };
        failing
            .outcome(Outcome::NotSent)
            .after(self.contract(), wait.map(|w| w + Duration::from_millis(100)))
    }

    /// The failure of calls to a server that does not start: what it said last is in the message
    /// (U6), what to do is ours.
    pub(crate) fn start_failed(&self, message: String, output: &LastOutput) -> Failing {
        let message = match output.text.as_str() {
            "" => message,
            text => format!("{message}. Its last output:\n{text}"),
        };
        let mut failing =
            Failing::observed(self.contract(), Condition::StartFailed).saying(message);
        failing.report.hints.check = output.check.map(str::to_owned);
        failing
    }

    /// A client that closed its stream has taken the call back.
    pub(crate) fn left(&self, id: &str) {
        let Some(call) = self.state().calls.give_up(id, "cancelled") else { return };
        let outcome = call.withdraw(&mut self.inlet.lock());
        if outcome != Outcome::NotSent {
            self.tell_server(&wire::cancelled(id, "the client left"));
        }
        let mut failing = Failing::observed(self.contract(), Condition::Cancelled)
            .saying("The client left before the answer")
            .outcome(outcome);
        failing.said = Said::Nothing;
        self.unheard();
        call.fail(failing);
    }
}
