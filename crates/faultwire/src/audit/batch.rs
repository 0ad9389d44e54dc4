//! A batch: records that are written to disk together, and the callers that wait for them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use crate::audit::error::AuditFailed;

/// What became of a batch.
#[derive(Clone, Debug)]
pub(crate) enum Fate {
    /// It is on disk, and its first record has this number.
    Durable(u64),
    /// It is not on disk, but the log is set to continue regardless.
    Missed,
    /// It is not.
    Failed(AuditFailed),
}

/// Shared by all who have a record in it.
#[derive(Default)]
pub(crate) struct Batch {
    state: Mutex<State>,
    done: Condvar,
}

#[derive(Default)]
struct State {
    fate: Option<Fate>,
    /// The waiting threads and tasks. Notifying costs a system call even if there are none.
    waiting: usize,
    wakers: Vec<Waker>,
}

/// Wakes tasks. What their runtimes do then is not ours, and must not end us.
pub(crate) fn wake_all(wakers: Vec<Waker>) {
    for waker in wakers {
        let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
    }
}

/// Remembers a task to wake, once.
pub(crate) fn remember(wakers: &mut Vec<Waker>, waker: &Waker) {
    if !wakers.iter().any(|known| known.will_wake(waker)) {
        wakers.push(waker.clone());
    }
}

impl Batch {
    /// Tells everybody.
    pub fn settle(&self, fate: Fate) {
        let mut state = self.lock();
        state.fate.get_or_insert(fate);
        let (waiting, wakers) = (state.waiting, std::mem::take(&mut state.wakers));
        drop(state);
        if waiting > 0 {
            self.done.notify_all();
        }
        wake_all(wakers);
    }

    /// Waits.
    pub fn wait(&self) -> Fate {
        let mut state = self.lock();
        loop {
            if let Some(fate) = &state.fate {
                return fate.clone();
            }
            state.waiting += 1;
            state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
    }

    /// Looks, and asks to be woken.
    pub fn poll(&self, waker: &Waker) -> Poll<Fate> {
        let mut state = self.lock();
        if let Some(fate) = &state.fate {
            return Poll::Ready(fate.clone());
        }
        remember(&mut state.wakers, waker);
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
