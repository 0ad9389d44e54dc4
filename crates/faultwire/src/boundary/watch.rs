//! Waits for a handler, however it ends.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use faultwire_contract::Report;

use crate::boundary::slot;

/// How a handler ended.
pub(super) enum Ended<T> {
    /// It returned, and may have said more than rmcp can carry.
    Returned(T, Option<Box<Report>>),
    Panicked(Box<dyn Any + Send>),
    TimedOut,
    /// The client took the call back.
    Cancelled,
}

/// Runs a handler until it ends, its time is over, or its client wants no answer any more.
pub(super) async fn watch<T>(
    handler: impl Future<Output = T>,
    deadline: Duration,
    cancelled: impl Future<Output = ()>,
) -> Ended<T> {
    let mut handler = pin!(handler);
    let ended = poll_fn(|context| {
        // Others may have run on this thread since.
        drop(slot::take());
        match catch_unwind(AssertUnwindSafe(|| handler.as_mut().poll(context))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(value)) => Poll::Ready(Ended::Returned(value, slot::take())),
            Err(payload) => Poll::Ready(Ended::Panicked(payload)),
        }
    });
    tokio::select! {
        biased;
        ended = ended => ended,
        () = cancelled => Ended::Cancelled,
        () = tokio::time::sleep(deadline) => Ended::TimedOut,
    }
}
