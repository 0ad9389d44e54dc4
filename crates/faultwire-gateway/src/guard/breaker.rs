//! A circuit breaker: when a server fails again and again, it is left alone for a while, and then
//! tried with one call.

use std::sync::atomic::{AtomicBool, Ordering};

use std::time::{Duration, Instant};

use faultwire_contract::Condition;
use parking_lot::{Mutex, MutexGuard};

/// When a server is left alone.
#[derive(Clone, Copy, Debug)]
pub struct BreakerSettings {
    /// After so many failures of its own in a row; 0 is never.
    pub failures: u32,
    /// For so long; twice as long each time that it fails again.
    pub wait: Duration,
    /// The longest wait.
    pub cap: Duration,
}

impl Default for BreakerSettings {
    fn default() -> Self {
        Self { failures: 5, wait: Duration::from_secs(5), cap: Duration::from_mins(2) }
    }
}

/// For one upstream, shared by its sessions.
pub(crate) struct Breaker {
    settings: BreakerSettings,
    /// Whether there is anything to look at: the usual case costs nothing.
    troubled: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    in_a_row: u32,
    /// How often in a row it was left alone.
    times: u32,
    until: Option<Instant>,
    /// A call is on its way to find out.
    probing: Option<Instant>,
}

impl Breaker {
    pub(crate) fn new(settings: BreakerSettings) -> Self {
        Self { settings, troubled: AtomicBool::new(false), state: Mutex::default() }
    }

    /// Whether a call may go; if not, how long to wait.
    pub(crate) fn admit(&self, now: Instant) -> Result<(), Duration> {
        if !self.troubled.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut state = self.state();
        let Some(until) = state.until else { return Ok(()) };
        if now < until {
            return Err(until - now);
        }
        // A probe that was never heard of again does not stand in the way for ever.
        let probed = state.probing.filter(|since| now < *since + self.settings.cap);
        if probed.is_some() {
            return Err(self.settings.wait);
        }
        state.probing = Some(now);
        Ok(())
    }

    /// Whether the server is left alone right now.
    pub(crate) fn is_open(&self, now: Instant) -> bool {
        self.troubled.load(Ordering::Relaxed) && self.state().until.is_some_and(|until| now < until)
    }

    /// The server answered as servers do, be it with a failure of the tool.
    pub(crate) fn worked(&self) {
        if self.troubled.swap(false, Ordering::Relaxed) {
            *self.state() = State::default();
        }
    }

    /// A call ended without an answer of the server. If it was to find out, another one does.
    pub(crate) fn let_go(&self) {
        if self.troubled.load(Ordering::Relaxed) {
            self.state().probing = None;
        }
    }

    /// Whether a failure is the server's own.
    pub(crate) fn counts(condition: Option<Condition>) -> bool {
        matches!(
            condition,
            Some(
                Condition::UpstreamUnreachable
                    | Condition::UpstreamCrashed
                    | Condition::StartFailed
                    | Condition::UpstreamProtocol
                    | Condition::Timeout
            )
        )
    }

    /// A call failed, and that is the server's own fault. Whether it is left alone now.
    pub(crate) fn failed(&self, now: Instant) -> bool {
        if self.settings.failures == 0 {
            return false;
        }
        let mut state = self.state();
        self.troubled.store(true, Ordering::Relaxed);
        state.in_a_row = state.in_a_row.saturating_add(1);
        let again = state.probing.take().is_some();
        let open = state.until.is_some_and(|until| now < until);
        if open || !(again || state.in_a_row >= self.settings.failures) {
            return false;
        }
        let factor = 1u32.checked_shl(state.times).unwrap_or(u32::MAX);
        let wait = self.settings.wait.saturating_mul(factor).min(self.settings.cap);
        state.times = state.times.saturating_add(1);
        state.until = Some(now + wait);
        true
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edge;

    #[test]
    fn it_opens_probes_and_closes() {
        let settings = BreakerSettings {
            failures: 3,
            wait: Duration::from_secs(10),
            cap: Duration::from_secs(30),
        };
        let breaker = Breaker::new(settings);
        let start = edge::now();
        let at = |s: u64| start + Duration::from_secs(s);
        assert!(Breaker::counts(Some(Condition::UpstreamCrashed)));
        assert!(!breaker.failed(at(0)) && !breaker.failed(at(0)));
        // What the tool says of itself is no trouble with the server.
        assert!(!Breaker::counts(Some(Condition::ToolError)));
        assert_eq!(breaker.admit(at(0)), Ok(()));
        assert!(breaker.failed(at(0)));
        assert_eq!(breaker.admit(at(4)), Err(Duration::from_secs(6)));
        // One call finds out; the others wait for it.
        assert_eq!(breaker.admit(at(10)), Ok(()));
        assert_eq!(breaker.admit(at(10)), Err(Duration::from_secs(10)));
        assert!(breaker.failed(at(11)));
        assert_eq!(breaker.admit(at(12)), Err(Duration::from_secs(19)));
        assert_eq!(breaker.admit(at(31)), Ok(()));
        assert!(breaker.failed(at(31)));
        assert_eq!(breaker.admit(at(32)), Err(Duration::from_secs(29)), "no longer than the cap");
        assert_eq!(breaker.admit(at(61)), Ok(()));
        // One that its client takes back makes room for the next.
        breaker.let_go();
        assert_eq!(breaker.admit(at(61)), Ok(()));
        assert!(breaker.admit(at(61)).is_err());
        breaker.worked();
        assert_eq!(breaker.admit(at(61)), Ok(()));
        assert!(!breaker.failed(at(62)));
    }

    #[test]
    fn a_success_in_between_starts_anew() {
        let breaker = Breaker::new(BreakerSettings { failures: 2, ..BreakerSettings::default() });
        let now = edge::now();
        for _ in 0..10 {
            assert!(!breaker.failed(now));
            breaker.worked();
        }
    }
}
