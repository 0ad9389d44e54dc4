//! The server's life: it is started, it ends, its calls fail, and it is started again.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use faultwire_contract::{Condition, Fault, Outcome};
use serde_json::{Value, json};

use super::effect::{Effect, Exit, UpstreamSlot};
use super::restart::Next;
use super::{Phase, Session, is_sent};
use crate::call::{Call, OpenCall, Stage};
use crate::last_output::LastOutput;
use crate::method::Method;
use crate::tools::Known;
use crate::wire;

/// How long a server may take to end by itself, before it is told to, and before it is made to.
pub(crate) const GRACE: Duration = Duration::from_secs(2);
/// For a message that is no call, a lost session is begun again after this long at the earliest.
const REST: Duration = Duration::from_secs(1);

impl Session {
    /// A run of the server was started. One that follows another gets the handshake first.
    pub(crate) fn on_started(&mut self, run: u64, mut slot: UpstreamSlot) {
        self.starting = false;
        if run == 1 {
            return;
        }
        self.event("server_started", json!({ "run": run }));
        let Some(opening) = self.handshake.opening().map(<[u8]>::to_vec) else {
            self.phase = Phase::Up;
            self.tools.forget();
            return;
        };
        let until = slot.now + self.settings.deadlines.start;
        self.phase = Phase::Opening { until };
        self.send(opening, &mut slot);
        self.watch(Some(until));
    }

    /// The server has taken the handshake that follows a restart.
    pub(crate) fn on_opened(&mut self, mut slot: UpstreamSlot) {
        self.phase = Phase::Up;
        self.answered = true;
        let closing = self.handshake.closing().map(<[u8]>::to_vec);
        let before = self.tools.digest();
        let ask = before.is_some().then(|| self.ask_for_tools(None, before, slot.now));
        // A server behind a URL takes requests in any order: what the client asks for meanwhile
        // would be undone.
        let orders = if self.is_remote { Vec::new() } else { self.orders_again() };
        for line in closing.into_iter().chain(ask).chain(orders) {
            self.send(line, &mut slot);
        }
        self.effects.push(Effect::Release);
    }

    /// The lasting requests that a restarted server gets again.
    fn orders_again(&mut self) -> Vec<Vec<u8>> {
        let mut replayed = std::mem::take(&mut self.handshake.replayed);
        let lines = replayed.again(|| self.own_id());
        self.handshake.replayed = replayed;
        lines
    }

    /// The server's command cannot be run.
    pub(crate) fn on_start_error(&mut self, error: &io::Error, is_final: bool, now: Instant) {
        self.starting = false;
        let next = match self.history.ended(false, &self.settings.restart) {
            next if !is_final => next,
            _ => Next::GiveUp,
        };
        let until = match next {
            Next::After(wait) => Some(now + wait),
            Next::GiveUp => None,
        };
        let failed_start =
            LastOutput::is_fault_of_command(error).then(|| Arc::new(LastOutput::of_error(error)));
        let why = format!("cannot be started ({error})");
        tracing::error!("the server {why}");
        self.event("server_not_started", json!({ "why": error.to_string() }));
        self.phase = Phase::Down { until, why, failed_start };
        self.watch(until);
        self.fail_stranded(now);
    }

    /// The server ended, and has said its last. It was given so many bytes.
    pub(crate) fn on_exit(&mut self, exit: Exit, written: u64, now: Instant) {
        let restart = &self.settings.restart;
        // One that was up for long without anything to do may end, too.
        let served = self.answered && (self.employed || exit.lasted >= restart.cap);
        let rested = self.answered && !self.employed && exit.is_in_order;
        let next = match exit.is_wanted {
            true => Next::GiveUp,
            false if rested && !served => self.history.rested(restart),
            false => self.history.ended(served, restart),
        };
        // One that answered before, and ends at a call without an answer, may have ended of the
        // call.
        let is_out = |call: &Call| is_sent(call) && call.is_out(written);
        let is_called =
            self.calls.iter().any(|call| call.method == Method::ToolsCall && is_out(call));
        let failed_start =
            exit.output.filter(|_| !(self.answered || self.has_answered && is_called));
        self.has_answered |= self.answered;
        let how = &exit.how;
        let why = match &next {
            Next::GiveUp if !exit.is_wanted => {
                format!("{how}, {} times in a row without an answer", self.history.in_vain())
            }
            _ if failed_start.is_some() => format!("{how} before its first answer"),
            _ => how.clone(),
        };
        let until = match next {
            Next::After(wait) => Some(now + wait),
            Next::GiveUp => None,
        };
        if !exit.is_wanted {
            tracing::warn!(run = exit.run, "the server {how}");
            if until.is_none() {
                tracing::error!("the server {why}; it is not started again");
            }
            let mut facts = json!({ "run": exit.run, "how": how });
            if let Some(output) = &failed_start {
                facts["output"] = json!(output.text);
            }
            self.event("server_ended", facts);
        }
        self.phase = Phase::Down { until, why, failed_start: failed_start.clone() };
        self.forget_run();
        // What the server never got is for the next one.
        for call in self.calls.iter_mut() {
            if is_sent(call) && !call.is_out(written) {
                call.stage = Stage::Held;
            }
        }
        let crashed = self.calls.take_all(is_sent);
        self.fail_crashed(crashed, &exit.how, failed_start.as_deref());
        self.fail_stranded(now);
        self.watch(until);
    }

    /// What was known of the run that ended.
    fn forget_run(&mut self) {
        // To compare lists after a restart is not what it died of.
        if self.discovery.take().is_some_and(|discovery| discovery.before.is_none()) {
            self.tools.died_of_it();
        }
        self.overdue = None;
        (self.answered, self.employed) = (false, false);
        self.questions.clear();
        let lost = self.handshake.replayed.interrupted();
        self.lost_orders(lost);
        for (id, _) in std::mem::take(&mut self.asked) {
            self.effects.push(Effect::Tell(None, wire::cancelled(&id, "the server ended")));
        }
    }

    /// Calls that failed together, of one cause: it counts once.
    fn fail_crashed(&mut self, crashed: Vec<OpenCall>, how: &str, output: Option<&LastOutput>) {
        let first = crashed.iter().position(|call| call.method == Method::ToolsCall);
        for (at, call) in crashed.into_iter().enumerate() {
            let failure = if let Some(output) = output {
                let message = format!("The server {how} before its first answer");
                self.start_failed(message, output).outcome(Outcome::MaybeExecuted)
            } else {
                let message = format!("The server {how} with the call open");
                self.observed(Condition::UpstreamCrashed, message)
            };
            self.effects.push(Effect::Fail { call, failure, counts: first == Some(at) });
        }
    }

    /// Fails what waits for a server, when none will come.
    fn fail_stranded(&mut self, now: Instant) {
        let Phase::Down { until: None, why, failed_start } = &self.phase else { return };
        let (why, failed_start) = (why.clone(), failed_start.clone());
        for call in self.calls.take_all(|_| true) {
            let failure = self.unreachable(None, &why, failed_start.as_deref(), now);
            self.fail(call, failure);
        }
    }

    /// A server behind a URL does not know the session any more. It is begun again, and the call
    /// is sent then; once. Something that is no call may be told so for ever, and does it only
    /// after a rest.
    pub(crate) fn on_session_lost(&mut self, id: Option<&str>, mut slot: UpstreamSlot) {
        let now = slot.now;
        let opening = self.handshake.opening().map(<[u8]>::to_vec);
        let rested = self.reopened.is_none_or(|at| now.saturating_duration_since(at) > REST);
        let call = id.and_then(|id| self.calls.get_mut(id));
        let again = call.map_or(rested, |call| {
            call.stage = Stage::Held;
            !std::mem::replace(&mut call.lost, true)
        });
        match (&self.phase, opening) {
            (Phase::Up, Some(opening)) if again => {
                let until = now + self.settings.deadlines.start;
                self.phase = Phase::Opening { until };
                self.reopened = Some(now);
                self.watch(Some(until));
                self.event("session_lost", Value::Null);
                self.send(opening, &mut slot);
            }
            (Phase::Opening { .. }, _) if again => {}
            _ => {
                let call = id.and_then(|id| self.calls.give_up(id, "session lost"));
                if let Some(call) = call {
                    let message = "The server does not know the session";
                    let failure = self.refused(Condition::UpstreamUnreachable, message);
                    self.fail(call, failure);
                }
            }
        }
    }

    /// A call was sent in a session that was lost, and there is another one already: once more in
    /// that one.
    pub(crate) fn on_session_replaced(&mut self, id: Option<&str>, slot: UpstreamSlot) {
        let Some(call) = id.and_then(|id| self.calls.get_mut(id)) else { return };
        if std::mem::replace(&mut call.lost, true) {
            return self.on_session_lost(id, slot);
        }
        call.stage = Stage::Held;
        self.effects.push(Effect::Release);
    }

    /// A message failed in a way that only the one who sent it knows. Its call, if it was one.
    pub(crate) fn on_send_error(&mut self, id: &str, now: Instant) -> Option<OpenCall> {
        let opening = matches!(self.phase, Phase::Opening { .. }) && self.handshake.is_answer(id);
        let call = self.calls.answered(id);
        let asked = self.questions.remove(id);
        if self.discovery.as_ref().is_some_and(|discovery| discovery.id == id) {
            self.discovery = None;
            self.tools.known = Known::Never;
        }
        match call {
            None if asked => {}
            None if opening => self.on_handshake_refused(now),
            None => self.effects.push(Effect::Release),
            Some(_) => {}
        }
        call
    }

    /// A failed call is sent again then, if its id is still free. The call, if it is not.
    pub(crate) fn hold(&mut self, mut call: OpenCall, at: Instant) -> Option<OpenCall> {
        if self.calls.contains(call.id()) {
            return Some(call);
        }
        call.stage = Stage::Again(at);
        self.calls.insert(call);
        self.watch(Some(at));
        None
    }

    /// When a failed call is sent again, if it is. `random` spreads the waits.
    pub(crate) fn retry(
        &mut self,
        call: &Call,
        fault: &Fault,
        random: u64,
        now: Instant,
    ) -> Option<Instant> {
        let is_over = self.closing || matches!(self.phase, Phase::Down { until: None, .. });
        if is_over {
            return None;
        }
        self.budget.again(self.settings.retry, call, fault, random, now)
    }
}
