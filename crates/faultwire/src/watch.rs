//! Waits for the outcome of a handler.

use std::any::Any;
use std::cell::Cell;
use std::future::poll_fn;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Once;
use std::task::Poll;
use std::time::Duration;

use faultwire_contract::{Condition, Report};

use crate::edge;
use crate::failure::Failure;
use crate::typed::TypedCode;
use crate::unknown::Unknown;

/// How a handler ended.
pub(crate) enum Ended<T> {
    Returned(T),
    Panicked(Panic),
    TimedOut,
    /// The client cancelled the call.
    Cancelled,
}

/// What a panic was thrown with, and where, if that is shown.
pub(crate) struct Panic {
    payload: Box<dyn Any + Send>,
    stack: Option<String>,
}

thread_local! {
    /// Where this thread panicked last.
    static STACK: Cell<Option<String>> = const { Cell::new(None) };
}

/// Keeps the stacks of panics, if the contract shows them (K2), because a caught panic has lost its
/// stack.
pub(crate) fn keep_stacks<C: TypedCode>() {
    static ONCE: Once = Once::new();
    if !edge::shows_stack(C::contract()) {
        return;
    }
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            STACK.set(edge::stack(C::contract()));
            before(info);
        }));
    });
}

/// Runs a closure and catches its panic.
pub(crate) fn caught<T>(run: impl FnOnce() -> T) -> Result<T, Panic> {
    // A stack of an earlier panic does not belong to this one.
    STACK.take();
    catch_unwind(AssertUnwindSafe(run)).map_err(|payload| Panic { payload, stack: STACK.take() })
}

/// Runs a handler until it ends, its deadline passes, or its client cancels the call.
pub(crate) async fn watch<T>(
    handler: impl Future<Output = T>,
    deadline: Duration,
    cancelled: impl Future<Output = ()>,
) -> Ended<T> {
    let mut handler = pin!(handler);
    let ended = poll_fn(|context| match caught(|| handler.as_mut().poll(context)) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(value)) => Poll::Ready(Ended::Returned(value)),
        Err(panic) => Poll::Ready(Ended::Panicked(panic)),
    });
    tokio::select! {
        biased;
        ended = ended => ended,
        () = cancelled => Ended::Cancelled,
        () = tokio::time::sleep(deadline) => Ended::TimedOut,
    }
}

impl<T> Ended<T> {
    /// The returned value, or the failure of a handler that returned nothing.
    pub(crate) fn or_report<C: TypedCode>(self) -> Result<T, Box<Report>> {
        match self {
            Self::Returned(value) => Ok(value),
            Self::Panicked(panic) => Err(panic.report::<C>()),
            Self::TimedOut => Err(observed::<C>(Condition::Timeout, "No answer in time")),
            Self::Cancelled => Err(observed::<C>(Condition::Cancelled, "Cancelled by the client")),
        }
    }
}

impl Panic {
    /// The failure to report.
    pub(crate) fn report<C: TypedCode>(self) -> Box<Report> {
        let context = Report { stack: self.stack, ..Report::default() };
        let failure = Failure::<C>::from_unknown(Unknown::panic(&*self.payload), context);
        Box::new(failure.into_report())
    }
}

/// The failure for an observed condition.
pub(crate) fn observed<C: TypedCode>(condition: Condition, message: &str) -> Box<Report> {
    Box::new(Report {
        condition: Some(condition),
        message: Some(message.to_owned()),
        ..Report::new(&C::contract().code_for(condition, None).id)
    })
}
