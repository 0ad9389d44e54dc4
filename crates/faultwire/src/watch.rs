//! Waits for a handler, however it ends.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use faultwire_contract::{Condition, Report};

use crate::failure::Failure;
use crate::typed::TypedCode;
use crate::unknown::Unknown;

/// How a handler ended.
pub(crate) enum Ended<T> {
    Returned(T),
    Panicked(Box<dyn Any + Send>),
    TimedOut,
    /// The client took the call back.
    Cancelled,
}

/// Runs a handler until it ends, its time is over, or its client wants no answer any more.
pub(crate) async fn watch<T>(
    handler: impl Future<Output = T>,
    deadline: Duration,
    cancelled: impl Future<Output = ()>,
) -> Ended<T> {
    let mut handler = pin!(handler);
    let ended = poll_fn(|context| {
        match catch_unwind(AssertUnwindSafe(|| handler.as_mut().poll(context))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(value)) => Poll::Ready(Ended::Returned(value)),
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

impl<T> Ended<T> {
    /// What was returned, or what is told of a handler that returned nothing.
    pub(crate) fn or_report<C: TypedCode>(self) -> Result<T, Box<Report>> {
        match self {
            Self::Returned(value) => Ok(value),
            Self::Panicked(payload) => {
                let unknown = Unknown::panic(&*payload);
                let failure = Failure::<C>::from_unknown(unknown, Report::default());
                Err(Box::new(failure.report().clone()))
            }
            Self::TimedOut => Err(observed::<C>(Condition::Timeout, "No answer in time")),
            Self::Cancelled => {
                Err(observed::<C>(Condition::Cancelled, "The client took the call back"))
            }
        }
    }
}

/// What is told of a condition that was seen.
pub(crate) fn observed<C: TypedCode>(condition: Condition, message: &str) -> Box<Report> {
    Box::new(Report {
        condition: Some(condition),
        message: Some(message.to_owned()),
        ..Report::new(&C::contract().code_for(condition, None).id)
    })
}
