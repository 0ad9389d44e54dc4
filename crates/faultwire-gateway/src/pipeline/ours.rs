//! Answers to what we ask a server ourselves: the handshake and the client's orders again after a
//! restart, and its tool list.

use faultwire_contract::{Answers, Line};
use serde_json::Value;

use super::outbound::result_of;
use crate::link::{Link, Phase};
use crate::sparse::Sparse;
use crate::supervisor::Event;
use crate::tools::{Known, Page};
use crate::wire;

static LOST: Sparse = Sparse::new();

impl Link {
    /// A new server has answered the handshake.
    pub(super) fn opened(&self, line: &Line<'_>) {
        if line.failure(self.contract(), Answers::Other).is_some() {
            tracing::warn!("the server was started again and refuses the handshake");
            let _ = self.events.send(Event::Refused);
            return;
        }
        let mut pipe = self.inlet.lock();
        let mut state = self.state();
        state.phase = Phase::Up;
        state.answered = true;
        let closing = state.handshake.closing().map(<[u8]>::to_vec);
        // A server behind a URL takes requests in any order: what the client asks for meanwhile
        // would be undone.
        let ordered = if pipe.is_remote() { Vec::new() } else { state.ordered_again() };
        let before = self.tools().digest();
        let ask = before.is_some().then(|| self.ask_for_tools(&mut state, None, before));
        drop(state);
        for line in closing.iter().chain(&ask).chain(&ordered) {
            self.inlet.send(&mut pipe, line);
        }
        drop(pipe);
        self.release();
    }

    /// A new server has answered what the one before it was told. Anything else of ours is a list
    /// that comes too late, and of no use.
    pub(super) fn ordered(&self, id: &str, line: &Line<'_>) {
        let refused = line.failure(self.contract(), Answers::Other).is_some();
        let lost = self.state().handshake.orders.answered(id, refused);
        self.lost_orders(lost);
    }

    /// From now on the server does not do what the client believes that it does.
    pub(crate) fn lost_orders(&self, lost: impl IntoIterator<Item = Value>) {
        for order in lost {
            LOST.note(|count| {
                tracing::warn!(count, method = %order["method"], "an order of the client is lost");
            });
            self.event("order_lost", &order);
        }
    }

    /// The answer to our own question for the tool list.
    pub(super) fn listed(&self, bytes: &[u8]) {
        let page = result_of(bytes).and_then(Page::read);
        let mut state = self.state();
        let Some(listing) = state.listing.as_ref() else { return };
        let (first, before) = (listing.is_first(), listing.before);
        let next = page.as_ref().and_then(|page| page.next.clone());
        if let Some(page) = page {
            self.tools().learn(page, first);
        } else {
            tracing::warn!("the server does not tell its tools; arguments are not checked");
            self.tools().known = Known::Never;
        }
        if let Some(cursor) = next {
            if let Some(more) = Self::next_page(&mut state, &cursor) {
                drop(state);
                return self.tell_server(&more);
            }
            // It has no end: what is known of it must do.
            self.tools().known = Known::Yes;
        }
        state.listing = None;
        let changed = before.is_some() && self.tools().digest() != before;
        drop(state);
        if changed {
            self.event("tools_changed", &Value::Null);
            self.client.send(&wire::tools_changed());
        }
        self.release();
    }
}
