//! The last failures, for the status page.

use std::collections::VecDeque;

use faultwire_contract::Fault;
use parking_lot::Mutex;
use serde::Serialize;

/// How many are kept.
const KEPT: usize = 50;

/// The last failures, the newest first.
#[derive(Default)]
pub(crate) struct Recent(Mutex<VecDeque<Shown>>);

/// What is shown of a failure: only what its client was told, too.
#[derive(Clone, Default, Serialize)]
pub(crate) struct Shown {
    pub time: String,
    pub code: String,
    pub tool: String,
    pub client: String,
    pub message: String,
    pub incident: String,
}

impl Recent {
    pub(crate) fn add(&self, fault: &Fault) {
        let public = fault.public();
        let mut kept = self.0.lock();
        // The oldest one's room is used again.
        let oldest = if kept.len() < KEPT { None } else { kept.pop_back() };
        let mut shown = oldest.unwrap_or_default();
        for (place, text) in [
            (&mut shown.time, public.timestamp.as_deref()),
            (&mut shown.code, Some(&*fault.code().id)),
            (&mut shown.tool, public.tool.as_deref()),
            (&mut shown.client, public.session.client.as_deref()),
            (&mut shown.message, public.message.as_deref()),
            (&mut shown.incident, public.incident.as_deref()),
        ] {
            place.clear();
            place.push_str(text.unwrap_or_default());
        }
        kept.push_front(shown);
    }

    pub(crate) fn all(&self) -> Vec<Shown> {
        self.0.lock().iter().cloned().collect()
    }
}
