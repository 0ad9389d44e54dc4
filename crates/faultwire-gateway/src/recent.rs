//! The last failures, for whoever looks at the status page.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use faultwire_contract::Fault;
use serde::Serialize;

/// How many are kept.
const KEPT: usize = 50;

/// The last failures, the newest first.
#[derive(Default)]
pub(crate) struct Recent(Mutex<VecDeque<Shown>>);

/// What is shown of a failure: only what its client was told, too.
#[derive(Clone, Serialize)]
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
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let shown = Shown {
            time: text(&public.timestamp),
            code: fault.code().id.clone(),
            tool: text(&public.tool),
            client: text(&public.session.client),
            message: text(&public.message),
            incident: text(&public.incident),
        };
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.truncate(KEPT - 1);
        kept.push_front(shown);
    }

    pub(crate) fn all(&self) -> Vec<Shown> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}
