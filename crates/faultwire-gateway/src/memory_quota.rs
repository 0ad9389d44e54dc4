//! Memory for long messages: one quota for the whole gateway. Everything that is read or held beyond
//! a short line takes a part of it, so that neither servers that say much nor clients that do not
//! read can fill our memory.
//!
//! Most of the time there is enough for all. When there is not, one at a time may take more, so
//! that one of them always gets to the end of a line; the others wait for that, and not for ever.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// Shorter than this is not counted.
pub(crate) const SHORT: usize = 64 * 1024;
/// What a message takes that waits, beside its bytes.
const BESIDE: usize = 128;
/// What may wait on one stream that is not read.
const WAITING: usize = 1024 * 1024;
/// What all share, while none has to go first.
const SHARED: usize = 16 * 1024 * 1024;
/// How long a reservation waits for room, and how long its holder may stand still while others
/// wait.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// All the room that there is.
pub(crate) struct MemoryQuota {
    held: AtomicUsize,
    /// What the one who goes first may bring it to.
    most: usize,
    first: Arc<Semaphore>,
    freed: Notify,
}

/// A part of the room. Dropped, it is free again.
pub(crate) struct Reservation {
    quota: Arc<MemoryQuota>,
    bytes: usize,
    first: Option<OwnedSemaphorePermit>,
}

/// There was no room in time.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Crowded;

impl MemoryQuota {
    /// Enough for messages of this length.
    pub(crate) fn new(longest: usize) -> Arc<Self> {
        Arc::new(Self {
            held: AtomicUsize::new(0),
            most: longest.saturating_add(SHARED),
            first: Arc::new(Semaphore::new(1)),
            freed: Notify::new(),
        })
    }

    /// Whether a reservation may have to wait.
    pub(crate) fn is_crowded(&self) -> bool {
        self.held.load(Ordering::Relaxed) > SHARED / 2
    }

    /// Nothing yet; see [`Reservation::grow`].
    pub(crate) fn reservation(self: &Arc<Self>) -> Reservation {
        Reservation { quota: Arc::clone(self), bytes: 0, first: None }
    }

    /// Bytes that count for as long as anybody holds them, whether or not there is room.
    pub(crate) fn hold(self: &Arc<Self>, bytes: Vec<u8>) -> Bytes {
        if bytes.len() < SHORT { Bytes::from(bytes) } else { self.counted(bytes) }
    }

    /// The same for what may be left out: nothing, if there is no room, or if so much waits on
    /// the same stream that it seems not to be read. What is short has its place on a stream that
    /// is read, whatever others leave unread.
    pub(crate) fn hold_if_free(self: &Arc<Self>, bytes: &[u8], waiting: usize) -> Option<Bytes> {
        let short = waiting + bytes.len() < SHORT;
        let unread = waiting > 0 && waiting + bytes.len() > WAITING;
        (short || !unread && !self.is_crowded()).then(|| self.counted(bytes.to_vec()))
    }

    fn counted(self: &Arc<Self>, bytes: Vec<u8>) -> Bytes {
        let mut reservation = self.reservation();
        reservation.bytes = bytes.len() + BESIDE;
        self.held.fetch_add(reservation.bytes, Ordering::Relaxed);
        Bytes::from_owner(Held { bytes, _share: reservation })
    }

    fn take(&self, bytes: usize, most: usize) -> bool {
        let add = |held: usize| held.checked_add(bytes).filter(|sum| *sum <= most);
        self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }
}

impl Reservation {
    /// Makes it this large, if it is smaller. Waits for it if it must.
    pub(crate) async fn grow(&mut self, bytes: usize) -> Result<(), Crowded> {
        let more = bytes.saturating_sub(self.bytes);
        if more == 0 || self.try_grow(more) {
            return Ok(());
        }
        tokio::time::timeout(PATIENCE, self.wait_for(more)).await.map_err(|_| Crowded)
    }

    async fn wait_for(&mut self, more: usize) {
        let quota = Arc::clone(&self.quota);
        loop {
            let mut freed = std::pin::pin!(quota.freed.notified());
            // What is freed from here on is noticed.
            freed.as_mut().enable();
            if self.try_grow(more) {
                return;
            }
            freed.await;
        }
    }

    fn try_grow(&mut self, more: usize) -> bool {
        let quota = &self.quota;
        if self.first.is_none() && !quota.take(more, SHARED) {
            self.first = Arc::clone(&quota.first).try_acquire_owned().ok();
            if self.first.is_none() {
                return false;
            }
        } else if self.first.is_none() {
            self.bytes += more;
            return true;
        }
        let taken = quota.take(more, quota.most);
        self.bytes += if taken { more } else { 0 };
        taken
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.first = None;
        self.quota.held.fetch_sub(self.bytes, Ordering::Relaxed);
        self.quota.freed.notify_waiters();
    }
}

/// Bytes with their share.
struct Held {
    bytes: Vec<u8>,
    _share: Reservation,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1024 * 1024;

    #[tokio::test(start_paused = true)]
    async fn one_at_a_time_goes_beyond_what_all_share() {
        let quota = MemoryQuota::new(32 * MIB);
        let (mut a, mut b, mut c) = (quota.reservation(), quota.reservation(), quota.reservation());
        assert_eq!(a.grow(10 * MIB).await, Ok(()));
        assert_eq!(b.grow(10 * MIB).await, Ok(()), "the first who needs more gets it");
        assert_eq!(c.grow(MIB).await, Err(Crowded), "the next one times out");
        assert_eq!(b.grow(32 * MIB).await, Ok(()));
        assert_eq!(a.grow(11 * MIB).await, Err(Crowded));
        drop(b);
        assert_eq!(c.grow(6 * MIB).await, Ok(()));
        drop((a, c));
        assert_eq!(quota.held.load(Ordering::Relaxed), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_is_told_when_something_is_free() {
        let quota = MemoryQuota::new(MIB);
        let held = quota.hold(vec![0; 17 * MIB]);
        assert!(quota.is_crowded());
        assert!(quota.hold_if_free(b"notice", 0).is_some(), "what is short has its place");
        assert_eq!(quota.hold_if_free(b"notice", SHORT), None, "unless it is not read");
        assert_eq!(quota.hold_if_free(&vec![b' '; SHORT], 0), None);
        let mut reservation = quota.reservation();
        let waits = tokio::spawn(async move { reservation.grow(2 * MIB).await });
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(!waits.is_finished());
        let part = held.slice(..10);
        drop(held);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(!waits.is_finished(), "a part holds the whole");
        drop(part);
        assert_eq!(waits.await.unwrap(), Ok(()));
    }
}
