//! Our own request for the tool list, without which no arguments can be checked.

use std::time::{Duration, Instant};

use faultwire_contract::{Answers, Line};
use serde_json::Value;

use super::{Effect, Session};
use crate::call::{Call, Stage};
use crate::sparse::Sparse;
use crate::tools::{Known, Page};
use crate::wire;

/// How long the tool list may take before calls go on without it.
const LIST_PATIENCE: Duration = Duration::from_secs(5);
/// With more pages than that, or one that leads to itself, the list is taken to be over.
const MOST_PAGES: usize = 256;

static LOST: Sparse = Sparse::new();

/// Our own request for the tool list.
pub(super) struct ToolDiscovery {
    pub id: String,
    pub deadline: Instant,
    /// Where the pages after the first began.
    pages: Vec<String>,
    /// What the list was before the server was started again.
    pub before: Option<u64>,
    meta: Option<Value>,
}

impl ToolDiscovery {
    /// Another call waits for it, too, which may have less time. When it is over then.
    pub(super) fn hurry(&mut self, now: Instant, span: Option<Duration>) -> Option<Instant> {
        self.deadline = self.deadline.min(now + patience(span?));
        Some(self.deadline)
    }
}

impl Session {
    /// Asks for the tool list if a call waits that cannot be checked without it.
    pub(super) fn ask_for_held(&mut self, now: Instant) -> Option<Vec<u8>> {
        let wants = |call: &&Call| {
            call.stage == Stage::Held
                && call.tool().is_some_and(|tool| self.tools.must_be_listed(tool))
        };
        let era = self.calls.iter().find(wants)?.details().era();
        Some(self.ask_for_tools(era, None, now))
    }

    /// Asks the server for its tools, in the name of the era that the client speaks.
    pub(super) fn ask_for_tools(
        &mut self,
        meta: Option<Value>,
        before: Option<u64>,
        now: Instant,
    ) -> Vec<u8> {
        let id = self.own_id();
        // The calls that wait for it must have time left.
        let held = self.calls.iter().filter(|call| call.stage == Stage::Held);
        let least = held.filter_map(|call| call.span).min().filter(|_| self.may_hurry());
        let deadline = now + patience(least.unwrap_or(self.settings.deadlines.default));
        let line = wire::list_tools(&id, None, meta.as_ref());
        self.discovery = Some(ToolDiscovery { id, deadline, pages: Vec::new(), before, meta });
        self.watch(Some(deadline));
        line
    }

    /// Whether calls may go on without the list: not where rules for sessions hold.
    pub(super) fn may_hurry(&self) -> bool {
        self.contract().session.is_none()
    }

    fn next_page(&mut self, cursor: &str) -> Option<Vec<u8>> {
        let id = self.own_id();
        let discovery = self.discovery.as_mut()?;
        if discovery.pages.len() >= MOST_PAGES || discovery.pages.iter().any(|page| page == cursor)
        {
            return None;
        }
        discovery.pages.push(cursor.to_owned());
        discovery.id = id;
        Some(wire::list_tools(&discovery.id, Some(cursor), discovery.meta.as_ref()))
    }

    /// A list comes that was given up.
    pub(super) fn resume_discovery(&mut self, now: Instant) {
        self.discovery = self.overdue.take();
        if let Some(discovery) = &mut self.discovery {
            discovery.deadline = now + LIST_PATIENCE;
        }
    }

    /// A list does not come in time.
    pub(super) fn expire_discovery(&mut self, now: Instant) {
        if self.discovery.as_ref().is_some_and(|discovery| discovery.deadline <= now) {
            tracing::warn!("the server does not list its tools yet; arguments are not checked");
            self.overdue = self.discovery.take();
            self.tools.known = Known::Never;
        }
    }

    /// The reply to our own request for the tool list, as far as it could be read.
    pub(crate) fn on_listed(&mut self, page: Option<Page>) {
        let Some(discovery) = self.discovery.as_ref() else { return };
        let (is_first, before) = (discovery.pages.is_empty(), discovery.before);
        let next = page.as_ref().and_then(|page| page.next.clone());
        if let Some(page) = page {
            self.learn(page, is_first);
        } else {
            tracing::warn!("the server does not list its tools; arguments are not checked");
            self.tools.known = Known::Never;
        }
        if let Some(cursor) = next {
            if let Some(more) = self.next_page(&cursor) {
                self.effects.push(Effect::SendUpstream(more));
                return;
            }
            // It has no end: what is known of it must do.
            self.tools.known = Known::Yes;
        }
        self.discovery = None;
        if before.is_some() && self.tools.digest() != before {
            self.event("tools_changed", Value::Null);
            self.effects.push(Effect::Tell(None, wire::tools_changed()));
        }
        self.effects.push(Effect::Release);
    }

    /// A page of the tool list.
    pub(super) fn learn(&mut self, page: Page, is_first: bool) {
        self.tools.learn(page, is_first);
        self.effects.push(Effect::ToolsListed(self.tools.all()));
    }

    /// The reply to something else of our own: a restarted server has answered what the one before
    /// it was told. Whether the connection waits for it.
    pub(crate) fn on_own_reply(&mut self, id: &str, line: &Line<'_>) -> bool {
        if self.questions.remove(id) {
            self.answered = true;
            return true;
        }
        let refused = line.failure(self.contract(), Answers::Other).is_some();
        let lost = self.handshake.replayed.answered(id, refused);
        self.lost_orders(lost);
        false
    }

    /// The server has done what a request asked for that holds from then on. Others are told it
    /// again after a restart.
    pub(super) fn note_order(&mut self, method: &str, params: &str) {
        // A server that several clients share takes orders of none.
        if self.sink.is_somebody() && !self.handshake.replayed.done(method, params) {
            let why = "there are too many to remember";
            self.lost_orders([serde_json::json!({ "method": method, "why": why })]);
        }
    }

    /// From now on the server does not do what the client believes that it does.
    pub(super) fn lost_orders(&mut self, lost: impl IntoIterator<Item = Value>) {
        for order in lost {
            LOST.note(|count| {
                tracing::warn!(count, method = %order["method"], "a request of the client could not be repeated after a restart");
            });
            self.event("order_lost", order);
        }
    }
}

/// How long a call of so much time waits for the list.
fn patience(span: Duration) -> Duration {
    LIST_PATIENCE.min(span / 4)
}
