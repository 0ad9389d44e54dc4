//! A ticket for a record that is on its way to disk.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake};

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
    /// The outcome was returned.
    Finished,
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
            State::Finished => Err(AuditFailed::closed()),
        }
    }
}

/// What is called with the receipt.
type Callback = Box<dyn FnOnce(Result<Receipt, AuditFailed>) + Send>;

/// A ticket without a runtime: each wake-up polls it again.
struct Waiting(Mutex<Option<(Ticket, Callback)>>);

impl Ticket {
    /// Calls this function when the record is on disk, on the thread that wrote it, or here if that
    /// is already known. It must be quick, and must not append to the log or close it.
    ///
    /// ```
    /// # use faultwire::audit::{Entry, Log, Options};
    /// # use faultwire::contract::Redactor;
    /// # let dir = std::env::temp_dir().join(format!("faultwire-then-{}", std::process::id()));
    /// let log = Log::open(&dir, Options::default())?;
    /// let entry = Entry::event("deployed", None, &serde_json::json!({}), &Redactor::default());
    /// let (done, receipt) = std::sync::mpsc::channel();
    /// log.submit(entry).then(move |receipt| done.send(receipt).unwrap());
    /// assert_eq!(receipt.recv()??.seq, Some(1));
    /// # log.close()?;
    /// # std::fs::remove_dir_all(dir)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn then(self, callback: impl FnOnce(Result<Receipt, AuditFailed>) + Send + 'static) {
        let waiting = Waiting(Mutex::new(Some((self, Box::new(callback)))));
        Arc::new(waiting).wake();
    }
}

impl Wake for Waiting {
    fn wake(self: Arc<Self>) {
        // The lock is held while polling, so that a wake-up in between is not lost.
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((mut ticket, callback)) = slot.take() else { return };
        let waker = Arc::clone(&self).into();
        match Pin::new(&mut ticket).poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(receipt) => {
                drop(slot);
                callback(receipt);
            }
            Poll::Pending => *slot = Some((ticket, callback)),
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
        let mut state = std::mem::replace(&mut self.state, State::Finished);
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
            State::Finished => Poll::Ready(Err(AuditFailed::closed())),
        }
    }
}
