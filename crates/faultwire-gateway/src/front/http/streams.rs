//! Where a server's own messages go in a session over HTTP: to the answer of an open call, else
//! to the stream that the client opened for them, else they wait until it does.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use crate::exchange::Exchange;
use crate::link::Link;
use crate::outlet::{Outlet, Reach};
use crate::room::{Room, SHORT};
use crate::sparse::Sparse;

/// All streams of a session.
pub(crate) struct Streams {
    link: OnceLock<Weak<Link>>,
    state: Mutex<State>,
    room: Arc<Room>,
}

#[derive(Default)]
struct State {
    /// The stream that the client opened for messages that belong to no call.
    standing: Option<Arc<Exchange>>,
    /// What no client has come for yet: little, since perhaps none ever does.
    waiting: VecDeque<Box<[u8]>>,
    bytes: usize,
}

impl Streams {
    pub(crate) fn new(room: &Arc<Room>) -> Self {
        Self { link: OnceLock::new(), state: Mutex::default(), room: Arc::clone(room) }
    }

    /// The calls of this link have answers that messages can go with.
    pub(crate) fn belong_to(&self, link: &Arc<Link>) {
        let _ = self.link.set(Arc::downgrade(link));
    }

    /// Opens the client's own stream, in place of the one before.
    pub(crate) fn open(&self) -> Arc<Exchange> {
        let exchange = Arc::new(Exchange::endless(&self.room));
        let mut state = self.state();
        for line in state.waiting.drain(..) {
            exchange.send(&line);
        }
        state.bytes = 0;
        if let Some(before) = state.standing.replace(Arc::clone(&exchange)) {
            before.end();
        }
        drop(state);
        if let Some(link) = self.link() {
            link.state().all_heard();
        }
        exchange
    }

    /// Whether the client listens on a stream of its own.
    pub(crate) fn has_listener(&self) -> bool {
        self.state().standing.as_ref().is_some_and(|standing| standing.takes_messages())
    }

    /// Ends the client's own stream.
    pub(crate) fn close(&self) {
        if let Some(exchange) = self.state().standing.take() {
            exchange.end();
        }
    }

    fn link(&self) -> Option<Arc<Link>> {
        self.link.get().and_then(Weak::upgrade)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

static UNHEARD: Sparse = Sparse::new();

impl Outlet for Streams {
    fn reach(&self, bytes: usize) -> Reach {
        if self.link().and_then(|link| link.latest_outlet()).is_some() {
            return Reach::Now;
        }
        let state = self.state();
        match &state.standing {
            Some(standing) if standing.takes_messages() => Reach::Now,
            _ if state.bytes + bytes < SHORT => Reach::Later,
            _ => Reach::Never,
        }
    }

    fn send(&self, lines: &[u8]) {
        if let Some(open) = self.link().and_then(|link| link.latest_outlet()) {
            return open.send(lines);
        }
        let mut state = self.state();
        match &state.standing {
            Some(standing) if standing.takes_messages() => standing.send(lines),
            _ => {
                if state.bytes + lines.len() < SHORT {
                    state.bytes += lines.len();
                    state.waiting.push_back(lines.into());
                } else {
                    UNHEARD.note(|count| {
                        tracing::warn!(count, "messages of servers were dropped: no client reads");
                    });
                }
            }
        }
    }
}
