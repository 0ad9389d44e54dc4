//! An exchange: one HTTP answer in the making. The session's sink puts messages in, the
//! writer of the answer takes them out; neither waits for the other with a lock held.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};

use crate::client_sink::{ClientSink, FailedReply};
use crate::memory_quota::MemoryQuota;
use crate::rewrite::Rewrite;
use crate::sparse::Sparse;

/// One answer: a reply, or a stream of messages that may end with one.
pub(crate) struct Exchange {
    state: Mutex<State>,
    /// Whether the client takes more than a reply.
    pub streams: bool,
    /// What waits for a client that does not read takes its share of this.
    quota: Arc<MemoryQuota>,
}

struct State {
    pieces: VecDeque<Piece>,
    /// How much of that answers nothing.
    waiting: usize,
    /// How many replies are still to come; none for a stream without an end.
    owed: Option<usize>,
    waker: Option<Waker>,
    /// Whether the answer is not read any more.
    abandoned: bool,
}

/// What is sent next.
pub(crate) enum Piece {
    /// Something that answers nothing.
    Message(Bytes),
    /// The reply of a request that went well.
    Reply(Bytes),
    /// The reply of a request that failed.
    Failed(Bytes, HttpError),
}

/// What HTTP tells of a failure beside the body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HttpError {
    /// The number, if it is a JSON-RPC error.
    pub number: Option<i64>,
    /// The status of the code's row.
    pub status: u16,
    /// In seconds, rounded up.
    pub retry_after: Option<u64>,
}

impl HttpError {
    fn of(failed: &FailedReply<'_>) -> Self {
        let retry_after = failed.fault.retry_after().map(|d| d.as_millis().div_ceil(1000));
        Self {
            number: failed.number,
            status: failed.fault.status(),
            retry_after: retry_after.and_then(|s| u64::try_from(s).ok()),
        }
    }
}

impl Exchange {
    /// For an answer with so many replies.
    pub(crate) fn owing(replies: usize, streams: bool, quota: &Arc<MemoryQuota>) -> Self {
        Self::new(Some(replies), streams, quota)
    }

    /// For a stream without a fixed end.
    pub(crate) fn endless(quota: &Arc<MemoryQuota>) -> Self {
        Self::new(None, true, quota)
    }

    fn new(owed: Option<usize>, streams: bool, quota: &Arc<MemoryQuota>) -> Self {
        let state =
            State { pieces: VecDeque::new(), waiting: 0, owed, waker: None, abandoned: false };
        Self { state: Mutex::new(state), streams, quota: Arc::clone(quota) }
    }

    /// The next piece; none when all is said.
    pub(crate) fn poll_piece(&self, context: &Context<'_>) -> Poll<Option<Piece>> {
        let mut state = self.state();
        if let Some(piece) = state.pieces.pop_front() {
            if let Piece::Message(line) = &piece {
                state.waiting -= line.len();
            }
            return Poll::Ready(Some(piece));
        }
        if state.owed == Some(0) {
            return Poll::Ready(None);
        }
        if !state.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            state.waker = Some(context.waker().clone());
        }
        Poll::Pending
    }

    /// Whether nothing is there yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.state().pieces.is_empty()
    }

    /// Whether all has been taken out that was owed.
    pub(crate) fn is_over(&self) -> bool {
        let state = self.state();
        state.owed == Some(0) && state.pieces.is_empty()
    }

    /// The answer is not read any more. How many replies are still owed.
    pub(crate) fn abandon(&self) -> usize {
        let mut state = self.state();
        state.abandoned = true;
        state.pieces.clear();
        state.owed.unwrap_or(0)
    }

    /// Ends a stream, once it has said what it has.
    pub(crate) fn end(&self) {
        self.put(|state| state.owed = Some(0));
    }

    fn put(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        if state.abandoned {
            return;
        }
        change(&mut state);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// One reply less is to come.
    fn waive(&self) {
        self.put(|state| state.owed = state.owed.map(|owed| owed.saturating_sub(1)));
    }

    fn push_last(&self, piece: Piece) {
        self.put(|state| {
            state.owed = state.owed.map(|owed| owed.saturating_sub(1));
            state.pieces.push_back(piece);
        });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

static DROPPED: Sparse = Sparse::new();

impl ClientSink for Exchange {
    /// Messages that find no room are dropped: a client that does not read must not fill our
    /// memory. Replies always have room, since they were asked for.
    fn send(&self, lines: &[u8]) {
        if !self.streams {
            return;
        }
        for line in lines.split_inclusive(|b| *b == b'\n') {
            let line = line.trim_ascii_end();
            self.put(|state| {
                if let Some(line) = self.quota.hold_if_free(line, state.waiting) {
                    state.waiting += line.len();
                    state.pieces.push_back(Piece::Message(line));
                } else {
                    DROPPED.note(|count| {
                        tracing::warn!(count, "dropped messages: their client does not read");
                    });
                }
            });
        }
    }

    fn reply(&self, line: &Rewrite<'_>) {
        self.push_last(Piece::Reply(self.quota.hold(line.to_vec())));
    }

    fn keep_silent(&self) {
        self.waive();
    }

    fn takes_messages(&self) -> bool {
        let state = self.state();
        self.streams && !state.abandoned && state.owed != Some(0)
    }

    fn fail(&self, failed: &[FailedReply<'_>]) {
        for one in failed {
            let body = self.quota.hold(one.line.trim_ascii_end().to_vec());
            self.push_last(Piece::Failed(body, HttpError::of(one)));
        }
    }
}

/// A part of an answer to several requests. Let go of without a reply, none is to come.
pub(crate) struct ExchangeShare {
    exchange: Arc<Exchange>,
    settled: AtomicBool,
}

impl ExchangeShare {
    pub(crate) fn of(exchange: &Arc<Exchange>) -> Self {
        Self { exchange: Arc::clone(exchange), settled: AtomicBool::new(false) }
    }
}

impl ClientSink for ExchangeShare {
    fn send(&self, lines: &[u8]) {
        self.exchange.send(lines);
    }

    fn reply(&self, line: &Rewrite<'_>) {
        self.settled.store(true, Ordering::Relaxed);
        self.exchange.reply(line);
    }

    fn takes_messages(&self) -> bool {
        self.exchange.takes_messages()
    }

    fn fail(&self, failed: &[FailedReply<'_>]) {
        self.settled.store(true, Ordering::Relaxed);
        self.exchange.fail(failed);
    }
}

impl Drop for ExchangeShare {
    fn drop(&mut self) {
        if !*self.settled.get_mut() {
            self.exchange.waive();
        }
    }
}
