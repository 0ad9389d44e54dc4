//! Where a server's own messages go in a session over HTTP: to the answer of an open call, else
//! to the stream that the client opened for them, else they wait until it does.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock, Weak};

use crate::client_sink::{ClientSink, Reach};
use crate::connection::Connection;
use crate::exchange::Exchange;
use crate::memory_quota::{MemoryQuota, SHORT};
use crate::sparse::Sparse;
use parking_lot::{Mutex, MutexGuard};

/// All streams of a session.
pub(crate) struct Streams {
    connection: OnceLock<Weak<Connection>>,
    state: Mutex<State>,
    quota: Arc<MemoryQuota>,
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
    pub(crate) fn new(quota: &Arc<MemoryQuota>) -> Self {
        Self { connection: OnceLock::new(), state: Mutex::default(), quota: Arc::clone(quota) }
    }

    /// The calls of this connection have answers that messages can go with.
    pub(crate) fn belong_to(&self, connection: &Arc<Connection>) {
        let _ = self.connection.set(Arc::downgrade(connection));
    }

    /// Opens the client's own stream, in place of the one before.
    pub(crate) fn open(&self) -> Arc<Exchange> {
        let exchange = Arc::new(Exchange::endless(&self.quota));
        let mut state = self.state();
        for line in state.waiting.drain(..) {
            exchange.send(&line);
        }
        state.bytes = 0;
        if let Some(before) = state.standing.replace(Arc::clone(&exchange)) {
            before.end();
        }
        drop(state);
        if let Some(connection) = self.connection() {
            connection.session().all_heard();
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

    fn connection(&self) -> Option<Arc<Connection>> {
        self.connection.get().and_then(Weak::upgrade)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

static UNHEARD: Sparse = Sparse::new();

impl ClientSink for Streams {
    fn reach(&self, bytes: usize) -> Reach {
        let state = self.state();
        match &state.standing {
            Some(standing) if standing.takes_messages() => Reach::Now,
            _ if state.bytes + bytes < SHORT => Reach::Later,
            _ => Reach::Never,
        }
    }

    fn send(&self, lines: &[u8]) {
        if let Some(open) =
            self.connection().and_then(|connection| connection.session().latest_sink())
        {
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
                        tracing::warn!(count, "dropped messages of servers: no client reads them");
                    });
                }
            }
        }
    }
}
