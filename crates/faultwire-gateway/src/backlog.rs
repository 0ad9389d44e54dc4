//! What waits for servers, counted for the whole gateway: requests that are open, and input that a
//! server does not read. Each session may hold a little; beyond that all share one limit, so that
//! many sessions cannot fill the memory where one could not.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::memory_quota::SHORT;

/// The limit that all share.
pub(crate) struct Backlog {
    held: AtomicUsize,
    most: usize,
}

/// What one session holds of something. Dropped, it holds nothing.
pub(crate) struct Part {
    backlog: Arc<Backlog>,
    bytes: usize,
}

impl Backlog {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { held: AtomicUsize::new(0), most })
    }

    /// Nothing yet.
    pub(crate) fn part(self: &Arc<Self>) -> Part {
        Part { backlog: Arc::clone(self), bytes: 0 }
    }
}

impl Part {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// From now on it holds so much.
    pub(crate) fn set(&mut self, bytes: usize) {
        let (before, now) = (shared(self.bytes), shared(bytes));
        self.bytes = bytes;
        // Most sessions never hold more than their own part.
        if before < now {
            self.backlog.held.fetch_add(now - before, Ordering::Relaxed);
        } else if before > now {
            self.backlog.held.fetch_sub(before - now, Ordering::Relaxed);
        }
    }

    /// How much more it may hold.
    pub(crate) fn free(&self) -> usize {
        let own = SHORT.saturating_sub(self.bytes);
        let held = self.backlog.held.load(Ordering::Relaxed);
        self.backlog.most.saturating_sub(held).saturating_add(own)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// What counts for all.
fn shared(bytes: usize) -> usize {
    bytes.saturating_sub(SHORT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x4_all_sessions_share_one_limit() {
        let backlog = Backlog::new(1000);
        let (mut one, mut other) = (backlog.part(), backlog.part());
        one.set(SHORT);
        assert_eq!(one.free(), 1000, "its own part is not counted");
        one.set(SHORT + 900);
        assert_eq!((one.free(), other.free()), (100, SHORT + 100));
        other.set(SHORT + 100);
        assert_eq!((one.free(), other.free()), (0, 0));
        one.set(10);
        assert_eq!(other.free(), 900);
        assert_eq!(
            Backlog::new(usize::MAX).part().free(),
            usize::MAX,
            "of one session there is no end"
        );
        drop(other);
        assert_eq!(backlog.held.load(Ordering::Relaxed), 0);
    }
}
