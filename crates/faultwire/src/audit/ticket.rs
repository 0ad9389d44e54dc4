//! A ticket for a record that is on its way to disk.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::audit::batch::Fate;
use crate::audit::error::AuditFailed;
use crate::audit::log::Receipt;
use crate::audit::queue::{Admission, BatchPosition, Shared};
use crate::audit::record::Entry;

/// Resolves when a record is on disk: await it with any runtime, or call [`wait`](Ticket::wait)
/// without one. Once the record is in the queue it is written, even if the ticket is dropped.
#[must_use = "only the ticket says whether the record is on disk"]
pub struct Ticket {
    shared: Arc<Shared>,
    state: State,
}

enum State {
    /// The queue was full.
    Outside(Entry),
    Queued(BatchPosition),
    Over(Fate),
    Told,
}

impl Ticket {
    pub(crate) fn new(shared: Arc<Shared>, entry: Entry) -> Self {
        let state = State::of(shared.enqueue(entry, None));
        Self { shared, state }
    }

    /// Waits until the record is on disk.
    pub fn wait(self) -> Result<Receipt, AuditFailed> {
        match self.state {
            State::Outside(entry) => self.shared.append(entry),
            State::Queued(place) => place.receipt(place.batch.wait()),
            State::Over(fate) => BatchPosition::nowhere().receipt(fate),
            State::Told => Err(AuditFailed::closed()),
        }
    }
}

impl State {
    fn of(admission: Admission) -> Self {
        match admission {
            Admission::Full(entry) => Self::Outside(entry),
            Admission::Queued(place) => Self::Queued(place),
            Admission::Refused(fate) => Self::Over(fate),
        }
    }
}

impl Future for Ticket {
    type Output = Result<Receipt, AuditFailed>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = std::mem::replace(&mut self.state, State::Told);
        if let State::Outside(entry) = state {
            state = State::of(self.shared.enqueue(entry, Some(context.waker())));
        }
        match state {
            State::Outside(entry) => {
                self.state = State::Outside(entry);
                Poll::Pending
            }
            State::Queued(place) => match place.batch.poll(context.waker()) {
                Poll::Ready(fate) => Poll::Ready(place.receipt(fate)),
                Poll::Pending => {
                    self.state = State::Queued(place);
                    Poll::Pending
                }
            },
            State::Over(fate) => Poll::Ready(BatchPosition::nowhere().receipt(fate)),
            State::Told => Poll::Ready(Err(AuditFailed::closed())),
        }
    }
}
