//! The server's life: it ends, its calls fail, and it is started again.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use faultwire_contract::{Caller, Condition, Outcome};
use rustix::process::Signal;
use serde_json::json;

use super::ear::Ear;
use super::{Event, GRACE, LAST_WORDS, Server, Source, Supervisor};
use crate::call::{Call, Method, Stage};
use crate::failing::Failing;
use crate::link::Phase;
use crate::upstream::process::{IN_ORDER, is_fault_of_command};
use crate::upstream::restart::Next;
use crate::upstream::stderr::{LastOutput, Stderr};
use crate::{edge, wire};

impl Server {
    /// Whether the same message waits for the client as when this was asked last, or one does and
    /// it was not asked before.
    fn waits_for_client(&mut self) -> bool {
        let handing = self.listener.as_ref().and_then(Ear::is_handing);
        let before = std::mem::replace(&mut self.handing, handing);
        handing.is_some() && (before.is_none() || before == handing)
    }
}

impl Supervisor {
    /// Whether the server is still there.
    pub(super) fn attend_server(&mut self, now: Instant) {
        let Some(server) = &mut self.server else { return };
        let late = server.patience.is_some_and(|patience| patience <= now);
        match (server.exited.is_some(), server.silent, late) {
            // Its last answers wait for a client that takes its time. The calls have deadlines.
            (true, false, true) if self.ending.is_none() && server.waits_for_client() => {
                server.patience = Some(now + LAST_WORDS);
            }
            (true, true, _) | (true, false, true) => self.bury(),
            // It says nothing any more, and does not end either.
            (false, true, true) => {
                server.patience = None;
                self.signal(Signal::KILL);
            }
            _ => {}
        }
    }

    /// The server is gone, and has said its last.
    fn bury(&mut self) {
        let Some(mut server) = self.server.take() else { return };
        if let Some(listener) = server.listener.take() {
            listener.end(server.silent);
        }
        let how = server.exited.unwrap_or_else(|| "ended".to_owned());
        let output = self.last_output(&server.stderr);
        let mut pipe = self.link.inlet.lock();
        let written = pipe.written();
        pipe.disconnect();
        let mut state = self.link.state();
        // One that was up for long without anything to do may end, too.
        let restart = &self.link.settings().restart;
        let lasted = edge::now().saturating_duration_since(server.since) >= restart.cap;
        let served = state.answered && (state.employed || lasted);
        let rested = state.answered && !state.employed && how == IN_ORDER;
        let next = match self.ending {
            Some(_) => Next::GiveUp,
            None if rested && !served => self.history.rested(restart),
            None => self.history.ended(served, restart),
        };
        // One that answered before, and ends at a call without an answer, may have ended of the call.
        let is_called = state.calls.iter_mut().any(|call| {
            call.method == Method::ToolsCall
                && matches!(call.stage, Stage::Sent { .. })
                && call.is_out(written)
        });
        let failed_start = output.filter(|_| !(state.answered || self.has_answered && is_called));
        self.has_answered |= state.answered;
        let why = match (&next, self.ending) {
            (Next::GiveUp, None) => {
                format!("{how}, {} times in a row without an answer", self.history.in_vain())
            }
            _ if failed_start.is_some() => format!("{how} before its first answer"),
            _ => how.clone(),
        };
        let until = match next {
            Next::After(wait) => Some(edge::now() + wait),
            Next::GiveUp => None,
        };
        state.phase = Phase::Down { until, why: why.clone(), failed_start: failed_start.clone() };
        // To compare lists after a restart is not what it died of.
        if state.listing.take().is_some_and(|listing| listing.before.is_none()) {
            self.link.tools().died_of_it();
        }
        state.overdue = None;
        (state.answered, state.employed) = (false, false);
        state.questions.clear();
        let lost = state.handshake.orders.interrupted();
        let asked = std::mem::take(&mut state.asked);
        // What the server never got is for the next one.
        for call in state.calls.iter_mut() {
            if matches!(call.stage, Stage::Sent { .. }) && !call.is_out(written) {
                call.stage = Stage::Held;
            }
        }
        let sent = |call: &Call| matches!(call.stage, Stage::Sent { .. });
        let crashed = state.calls.take_all(sent);
        drop(state);
        drop(pipe);
        if self.ending.is_none() {
            tracing::warn!(run = server.run, "the server {how}");
            if until.is_none() {
                tracing::error!("the server {why}; it is not started again");
            }
            let mut facts = json!({ "run": server.run, "how": how });
            if let Some(output) = &failed_start {
                facts["output"] = json!(output.text);
            }
            self.link.event("server_ended", &facts);
        }
        self.link.lost_orders(lost);
        for id in asked.keys() {
            self.link.door.tell(&self.link.client, wire::cancelled(id, "the server ended"));
        }
        self.link.fail_together(crashed, || match &failed_start {
            Some(output) => self
                .link
                .start_failed(format!("The server {how} before its first answer"), output)
                .outcome(Outcome::MaybeExecuted),
            None => Failing::observed(self.link.contract(), Condition::UpstreamCrashed)
                .saying(format!("The server {how} with the call open")),
        });
        self.fail_stranded();
    }

    /// What a server said last that ended before its first answer. Made with no lock held.
    fn last_output(&self, stderr: &Stderr) -> Option<Arc<LastOutput>> {
        let answered = self.link.state().answered;
        // When the session ends, nothing that was written is to be lost.
        if !answered || self.ending.is_some() {
            stderr.wait(LAST_WORDS);
        }
        let caller = Caller::new(self.link.settings().masks);
        (!answered).then(|| Arc::new(stderr.last_output(self.link.contract(), &caller)))
    }

    /// Fails what waits for a server, when none will come.
    fn fail_stranded(&self) {
        let mut state = self.link.state();
        let Phase::Down { until: None, why, failed_start } = &state.phase else { return };
        let (why, failed_start) = (why.clone(), failed_start.clone());
        let stranded = state.calls.take_all(|_| true);
        drop(state);
        for call in stranded {
            self.link.fail(call, self.link.unreachable(None, &why, failed_start.as_deref()));
        }
    }

    /// Starts the server again when it is time.
    pub(super) fn attend_restart(&mut self, now: Instant) {
        let phase = self.link.state().phase.clone();
        match phase {
            Phase::Down { until: Some(until), .. } if until <= now && self.ending.is_none() => {
                match self.run() {
                    Ok(server) => self.server = Some(server),
                    Err(e) => {
                        let next = self.history.ended(false, &self.link.settings().restart);
                        let until = match next {
                            Next::After(wait) => Some(now + wait),
                            Next::GiveUp => None,
                        };
                        self.cannot_start(&e, until);
                    }
                }
            }
            Phase::Opening { until } if until <= now && self.is_remote() => self.give_up_opening(),
            Phase::Opening { until } if until <= now => {
                tracing::warn!("the server was started again and does not answer the handshake");
                self.link.state().phase = Phase::Opening { until: now + GRACE };
                self.signal(Signal::KILL);
            }
            _ => {}
        }
    }

    /// The server's command cannot be run.
    pub(crate) fn cannot_start(&self, error: &io::Error, until: Option<Instant>) {
        let failed_start =
            is_fault_of_command(error).then(|| Arc::new(LastOutput::of_error(error)));
        let why = format!("cannot be started ({error})");
        tracing::error!("the server {why}");
        self.link.event("server_not_started", &json!({ "why": error.to_string() }));
        self.link.state().phase = Phase::Down { until, why, failed_start };
        self.fail_stranded();
    }

    /// Starts a run of the server, and says the handshake again if there was one.
    pub(super) fn run(&mut self) -> io::Result<Server> {
        let Source::Command(pool) = &self.source else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        let started = pool.take()?;
        self.link.inlet.connect(started.stdin)?;
        self.runs += 1;
        let run = self.runs;
        let listener = Ear::lent(&self.link, run, started.stdout)?;
        let (events, process) = (self.link.events.clone(), started.process);
        thread::Builder::new().name("waiter".to_owned()).spawn(move || {
            let _ = events.send(Event::Exited(run, process.wait()));
        })?;
        self.open_again(run);
        tracing::info!(run, "the server is started");
        Ok(Server {
            run,
            since: edge::now(),
            handing: None,
            group: started.group,
            stderr: started.stderr,
            listener: Some(listener),
            exited: None,
            silent: false,
            patience: None,
        })
    }

    fn open_again(&self, run: u64) {
        if run == 1 {
            return;
        }
        self.link.event("server_started", &json!({ "run": run }));
        if let Some(metrics) = &self.link.door.metrics {
            metrics.restarted();
        }
        let mut pipe = self.link.inlet.lock();
        let mut state = self.link.state();
        let opening = state.handshake.opening().map(<[u8]>::to_vec);
        if let Some(opening) = opening {
            let until = edge::now() + self.link.settings().deadlines.start;
            state.phase = Phase::Opening { until };
            drop(state);
            self.link.inlet.send(&mut pipe, &opening);
        } else {
            state.phase = Phase::Up;
            self.link.tools().forget();
        }
    }

    pub(super) fn signal(&self, signal: Signal) {
        if let Some(server) = &self.server {
            server.group.signal(signal);
        }
    }
}
