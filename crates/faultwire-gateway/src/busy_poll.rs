//! Staying awake for a moment. To wake a thread on an idle core costs more than all that is done
//! for a call, so a thread that expects something at once polls for a moment before it sleeps.
//!
//! It has to pay: each time without success makes the next times rarer, down to one in 64, so that
//! servers that take their time cost next to nothing. And it is for quiet hours: with more calls
//! open than a few, something is always awake.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::thread::available_parallelism;
use std::time::Duration;

use tokio::sync::Notify;

use crate::edge;

/// How long is looked. A quick server answers in less, and two wakes cost about as much.
pub(crate) const MOMENT: Duration = Duration::from_micros(100);
/// With more calls open, no thread polls.
pub(crate) const FEW: usize = 4;
/// After so many times without success it does not become rarer.
const MOST_VAIN: u32 = 6;

/// Whether there is one core only, which has better to do.
pub(crate) fn is_alone() -> bool {
    available_parallelism().is_ok_and(|cores| cores.get() == 1)
}

/// Whether it pays to stay awake.
#[derive(Default)]
pub(crate) struct SpinPolicy {
    vain: AtomicU32,
    /// Occasions to let pass.
    passing: AtomicU32,
}

impl SpinPolicy {
    /// Whether to stay awake on this occasion.
    pub(crate) fn takes(&self) -> bool {
        let passing = self.passing.load(Ordering::Relaxed);
        self.passing.store(passing.saturating_sub(1), Ordering::Relaxed);
        passing == 0
    }

    /// Something came while one was awake, or nothing did.
    pub(crate) fn learn(&self, paid: bool) {
        let vain = if paid { 0 } else { (self.vain.load(Ordering::Relaxed) + 1).min(MOST_VAIN) };
        self.vain.store(vain, Ordering::Relaxed);
        self.passing.store((1 << vain) - 1, Ordering::Relaxed);
    }
}

/// Keeps a thread of the runtime awake after a call came in or was answered.
#[derive(Default)]
pub(crate) struct BusyPoll {
    spin: SpinPolicy,
    /// How often something happened.
    stirs: AtomicU64,
    open: AtomicUsize,
    /// It need not be woken while it is.
    is_awake: AtomicBool,
    bed: Notify,
}

/// A call that is open.
pub(crate) struct Open<'a>(&'a BusyPoll);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
        self.0.stir();
    }
}

impl BusyPoll {
    /// A call came in.
    pub(crate) fn open(&self) -> Open<'_> {
        self.open.fetch_add(1, Ordering::Relaxed);
        self.stir();
        Open(self)
    }

    fn stir(&self) {
        self.stirs.fetch_add(1, Ordering::Relaxed);
        if !self.is_awake.load(Ordering::Relaxed) && self.is_quiet() && self.spin.takes() {
            self.bed.notify_one();
        }
    }

    fn is_quiet(&self) -> bool {
        self.open.load(Ordering::Relaxed) <= FEW
    }

    /// Polls whenever it pays, for as long as this future is polled.
    pub(crate) async fn run(&self) {
        if is_alone() {
            return;
        }
        loop {
            self.bed.notified().await;
            self.is_awake.store(true, Ordering::Relaxed);
            let paid = self.busy_poll().await;
            self.is_awake.store(false, Ordering::Relaxed);
            self.spin.learn(paid);
        }
    }

    /// Until nothing happens for a moment. Whether anything did.
    async fn busy_poll(&self) -> bool {
        let (mut seen, mut paid) = (self.stirs.load(Ordering::Relaxed), false);
        let mut until = edge::now() + MOMENT;
        while self.is_quiet() {
            // The runtime looks at its sockets each time, without going to sleep. Where it has
            // several threads, another one may have gone to sleep on them and is woken as ever;
            // that is rare, since they sleep on them only when no thread polls.
            tokio::task::yield_now().await;
            let stirs = self.stirs.load(Ordering::Relaxed);
            let now = edge::now();
            if stirs != seen {
                (seen, until, paid) = (stirs, now + MOMENT, true);
            } else if now >= until {
                break;
            }
        }
        paid
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_vain_becomes_rare_and_what_pays_does_not() {
        let spin = SpinPolicy::default();
        let passed = || (0..1000).take_while(|_| !spin.takes()).count();
        for expected in [0, 1, 3, 7, 15, 31, 63, 63] {
            assert_eq!(passed(), expected);
            spin.learn(false);
        }
        spin.learn(true);
        assert_eq!(passed(), 0);
        spin.learn(true);
        assert_eq!(passed(), 0);
    }

    /// What `tasks` do beside a polling thread.
    async fn beside(busy_poll: &BusyPoll, tasks: impl Future<Output = ()>) {
        tokio::select! {
            biased;
            () = busy_poll.run() => assert!(is_alone()),
            () = tasks => {}
        }
    }

    async fn until(is_so: impl Fn() -> bool) {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    }

    fn is_awake(busy_poll: &BusyPoll) -> bool {
        busy_poll.is_awake.load(Ordering::Relaxed)
    }

    #[tokio::test]
    async fn it_stays_awake_for_as_long_as_something_happens() {
        let busy_poll = BusyPoll::default();
        beside(&busy_poll, async {
            let open = busy_poll.open();
            until(|| is_awake(&busy_poll)).await;
            // Longer than a moment, with something happening all the time.
            let began = edge::now();
            until(|| {
                drop(busy_poll.open());
                edge::now() > began + 3 * MOMENT
            })
            .await;
            assert!(is_awake(&busy_poll));
            until(|| !is_awake(&busy_poll)).await;
            assert_eq!(busy_poll.spin.passing.load(Ordering::Relaxed), 0, "it was worth it");
            drop(open);
            until(|| is_awake(&busy_poll)).await;
            until(|| !is_awake(&busy_poll)).await;
            assert_eq!(busy_poll.spin.passing.load(Ordering::Relaxed), 1, "it was not");
        })
        .await;
    }

    #[tokio::test]
    async fn with_many_calls_open_it_goes_to_sleep() {
        let busy_poll = BusyPoll::default();
        beside(&busy_poll, async {
            let first = busy_poll.open();
            until(|| is_awake(&busy_poll)).await;
            let calls: Vec<_> = (0..FEW).map(|_| busy_poll.open()).collect();
            until(|| !is_awake(&busy_poll)).await;
            busy_poll.spin.learn(true);
            drop(busy_poll.open());
            tokio::task::yield_now().await;
            assert!(!is_awake(&busy_poll));
            drop((first, calls));
            until(|| is_awake(&busy_poll)).await;
        })
        .await;
    }
}
