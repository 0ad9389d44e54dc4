//! What is due: deadlines, and the end.

use std::time::Instant;

use faultwire_contract::{Condition, Outcome};

use super::effect::Effect;
use super::lifecycle::GRACE;
use super::{Phase, Session};
use crate::call::{Call, Stage};
use crate::failing::CallFailure;
use crate::method::Method;
use crate::wire;

impl Session {
    /// Everything that is due. What may go to the server now is sent by
    /// [`on_release`](Self::on_release), which follows.
    pub(crate) fn on_tick(&mut self, now: Instant) {
        if self.closed {
            return;
        }
        self.expire_discovery(now);
        self.expire_calls(now);
        match self.phase {
            Phase::Down { until: Some(until), .. }
                if until <= now && !self.starting && !self.draining =>
            {
                self.starting = true;
                self.effects.push(Effect::Start);
            }
            Phase::Opening { until } if until <= now && self.is_remote => {
                self.on_handshake_refused(now);
            }
            Phase::Opening { until } if until <= now => {
                tracing::warn!("the server was started again and does not answer the handshake");
                self.on_handshake_refused(now);
            }
            _ => {}
        }
        self.effects.push(Effect::Release);
    }

    fn expire_calls(&mut self, now: Instant) {
        // A user may take long to answer what the server asked; the call waits for that.
        let longest = self.settings.deadlines.hard;
        self.asked.retain(|_, asked| now.saturating_duration_since(asked.since) < longest);
        let thought_about = self.asked.values().filter(|asked| asked.takes_time && asked.is_heard);
        let waiting = thought_about.map(|asked| asked.after).max().unwrap_or(0);
        let mut over = Vec::new();
        for call in self.calls.iter_mut() {
            let is_hard = call.hard.is_some_and(|hard| hard <= now);
            if call.deadline.is_some_and(|deadline| deadline <= now) {
                if call.order <= waiting && !is_hard {
                    call.progress(now);
                } else {
                    over.push(call.id().to_owned());
                }
            }
        }
        for id in over {
            let Some(call) = self.calls.give_up(&id, "timeout") else { continue };
            let took = now.saturating_duration_since(call.since);
            let message = format!("No answer within {} ms", took.as_millis());
            let failure = self.observed(Condition::Timeout, message);
            let tell = (call.method != Method::Initialize).then_some("timeout");
            self.effects.push(Effect::Recall { call, failure, tell, counts: true });
        }
    }

    /// The server refuses the handshake that follows a restart, or does not answer it.
    pub(crate) fn on_handshake_refused(&mut self, now: Instant) {
        if !self.is_remote {
            if matches!(self.phase, Phase::Opening { .. }) {
                self.phase = Phase::Opening { until: now + GRACE };
            }
            self.effects.push(Effect::Kill);
            return;
        }
        self.phase = Phase::Up;
        for call in self.calls.take_all(|call| call.stage == Stage::Held) {
            let message = "The server lost the session and does not start another";
            let failure = self.refused(Condition::UpstreamUnreachable, message);
            self.fail(call, failure);
        }
    }

    /// The session ends: whatever is open fails, and nothing is taken any more.
    pub(crate) fn on_close(&mut self) {
        (self.closing, self.draining, self.closed) = (true, true, true);
        for call in self.calls.take_all(|_| true) {
            let failure = self.ended(&call);
            self.effects.push(Effect::Recall { call, failure, tell: None, counts: false });
        }
        self.effects.push(Effect::Close);
    }

    fn ended(&self, call: &Call) -> CallFailure {
        if call.method.name() == wire::LISTEN {
            let why = "The server is being replaced or stopped; listen again";
            return self.observed(Condition::NotReady, why);
        }
        let why = "The session ended before the server answered";
        self.observed(Condition::Timeout, why).outcome(Outcome::MaybeExecuted)
    }
}
