//! Calls that waited: for the server, for its tool list, or to be sent again.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use faultwire_contract::Condition;
use hashbrown::HashMap;

use super::admission::LEFT_ALONE;
use super::effect::{Effect, UpstreamSlot};
use super::inbound::{Checked, Request};
use super::{Phase, Session, pipeline};
use crate::call::{Call, Stage};
use crate::failing::CallFailure;
use crate::guard::arguments;
use crate::settings::Settings;
use crate::tools::ListedTool;

/// A call that waits, whose arguments are to be checked before it is sent.
pub(crate) struct Waiting {
    id: String,
    name: String,
    tool: Arc<ListedTool>,
    arguments: Option<Box<str>>,
}

impl Waiting {
    /// What the schema of its tool says of its arguments, under its id.
    pub(crate) fn check(self, settings: &Settings) -> (String, Checked<'static>) {
        let Self { id, name, tool, arguments } = self;
        let objection = arguments::objection(settings, &name, &tool, arguments.as_deref());
        let arguments = arguments.map(|arguments| Cow::Owned(arguments.into()));
        (id, Checked { tool, arguments, objection })
    }
}

impl Session {
    /// The calls that could be sent now but for the check of their arguments, which can take its
    /// time and is made outside of the session.
    pub(crate) fn unchecked(&self) -> Vec<Waiting> {
        if self.phase != Phase::Up || self.discovery.is_some() {
            return Vec::new();
        }
        let held = self.calls.iter().filter(|call| is_unchecked(call));
        let waiting = held.filter_map(|call| {
            let name = call.tool()?;
            let tool = Arc::clone(self.tools.get(name)?);
            let (id, name) = (call.id().to_owned(), name.to_owned());
            Some(Waiting { id, name, tool, arguments: written_arguments(call) })
        });
        waiting.collect()
    }

    /// Sends everything that waited and may go now. Whether calls are left that have to be checked
    /// first.
    pub(crate) fn on_release(
        &mut self,
        checked: &HashMap<String, Checked<'static>>,
        mut slot: UpstreamSlot,
    ) -> bool {
        let now = slot.now;
        if self.phase != Phase::Up {
            return false;
        }
        if self.discovery.is_none()
            && let Some(ask) = self.ask_for_held(now)
        {
            self.send(ask, &mut slot);
        }
        let is_listing = self.discovery.is_some();
        let tools = &self.tools;
        let mut is_left = false;
        let goes = |call: &Call| match call.stage {
            Stage::Held if call.tool().is_none() => true,
            Stage::Held if is_listing => false,
            Stage::Held if is_unchecked(call) => {
                let is_known = call.tool().is_some_and(|name| tools.get(name).is_some());
                let is_checked = !is_known || checked.contains_key(call.id());
                is_left |= !is_checked;
                is_checked
            }
            Stage::Held => true,
            Stage::Again(at) => at <= now,
            Stage::Sent { .. } => false,
        };
        for mut call in self.calls.take_all(goes) {
            if let Some(failure) = self.objection_to_held(&call, checked.get(call.id()), slot) {
                self.fail(call, failure);
                continue;
            }
            call.stage = Stage::Sent { at: slot.at };
            self.send(call.line().to_vec(), &mut slot);
            self.employed = true;
            self.calls.insert(call);
        }
        is_left
    }

    /// What is against a call that waited, now that it is sent.
    fn objection_to_held(
        &self,
        call: &Call,
        checked: Option<&Checked<'_>>,
        slot: UpstreamSlot,
    ) -> Option<CallFailure> {
        if call.attempt > 1 {
            return self.objection_to_retry(slot.now);
        }
        let tool = self.tools.get(call.tool()?);
        let arguments = written_arguments(call);
        let arguments = arguments.as_deref();
        let request = Request { call, params: None, tool, arguments, checked, slot };
        pipeline::objection(pipeline::TOOL, self, &request)
    }

    /// Why a call is not sent again, if the breaker has opened meanwhile.
    fn objection_to_retry(&self, now: Instant) -> Option<CallFailure> {
        self.breaker.as_ref().filter(|breaker| breaker.is_open(now))?;
        Some(self.refused(Condition::UpstreamUnreachable, LEFT_ALONE))
    }

    /// Has a line sent, and moves the slot behind it.
    pub(super) fn send(&mut self, line: Vec<u8>, slot: &mut UpstreamSlot) {
        slot.at += line.len() as u64;
        self.effects.push(Effect::SendUpstream(line));
    }
}

/// Whether a call's arguments have still to be checked.
fn is_unchecked(call: &Call) -> bool {
    call.stage == Stage::Held && call.attempt == 1 && call.tool().is_some()
}

/// A call's arguments, as text.
fn written_arguments(call: &Call) -> Option<Box<str>> {
    call.details().arguments.map(|arguments| arguments.to_string().into())
}
