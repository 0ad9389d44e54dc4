//! Our own question for the tool list, without which no arguments can be checked.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Link, State};
use crate::call::{Call, Stage};
use crate::{edge, wire};

/// How long the tool list may take before calls go on without it.
const LIST_PATIENCE: Duration = Duration::from_secs(5);
/// More pages than that, or one that leads to itself, and the list is taken to be over.
const MOST_PAGES: usize = 256;

/// Our own question for the tool list.
pub(crate) struct Listing {
    pub id: String,
    pub deadline: Instant,
    /// Where the pages after the first began.
    pages: Vec<String>,
    /// What the list was before the server was started again.
    pub before: Option<u64>,
    meta: Option<Value>,
}

impl Link {
    /// Asks for the tool list if a call waits that cannot be checked without it.
    pub(super) fn ask_for_held(&self, state: &mut State) -> Option<Vec<u8>> {
        let era = {
            let tools = self.tools();
            let wants = |call: &&mut Call| {
                call.stage == Stage::Held
                    && call.tool().is_some_and(|tool| tools.must_be_listed(tool))
            };
            state.calls.iter_mut().find(wants)?.story().era()
        };
        Some(self.ask_for_tools(state, era, None))
    }

    /// Asks the server for its tools, in the name of the era that the client speaks.
    pub(crate) fn ask_for_tools(
        &self,
        state: &mut State,
        meta: Option<Value>,
        before: Option<u64>,
    ) -> Vec<u8> {
        let id = state.own_id();
        // The calls that wait for it must have time left.
        let held = state.calls.iter_mut().filter(|call| call.stage == Stage::Held);
        let least = held.filter_map(|call| call.span).min().filter(|_| self.may_hurry());
        let deadline = edge::now() + patience(least.unwrap_or(self.settings().deadlines.default));
        let line = wire::list_tools(&id, None, meta.as_ref());
        state.listing = Some(Listing { id, deadline, pages: Vec::new(), before, meta });
        self.watch(state, Some(deadline));
        line
    }

    /// Whether calls may go on without the list: not where rules for sessions hold.
    pub(crate) fn may_hurry(&self) -> bool {
        self.contract().session.is_none()
    }

    /// The next page of our own question.
    pub(crate) fn next_page(state: &mut State, cursor: &str) -> Option<Vec<u8>> {
        let id = state.own_id();
        let listing = state.listing.as_mut()?;
        if listing.pages.len() >= MOST_PAGES || listing.pages.iter().any(|page| page == cursor) {
            return None;
        }
        listing.pages.push(cursor.to_owned());
        listing.id = id;
        Some(wire::list_tools(&listing.id, Some(cursor), listing.meta.as_ref()))
    }
}

impl State {
    /// The list comes after all.
    pub(crate) fn resume_listing(&mut self) {
        self.listing = self.overdue.take();
        if let Some(listing) = &mut self.listing {
            listing.deadline = edge::now() + LIST_PATIENCE;
        }
    }
}

/// How long a call of so much time waits for the list.
fn patience(span: Duration) -> Duration {
    LIST_PATIENCE.min(span / 4)
}

impl Listing {
    /// Another call waits for it, too, which may have less time. When it is over then.
    pub(crate) fn hurry(&mut self, now: Instant, span: Option<Duration>) -> Option<Instant> {
        self.deadline = self.deadline.min(now + patience(span?));
        Some(self.deadline)
    }

    pub(crate) fn is_first(&self) -> bool {
        self.pages.is_empty()
    }
}
