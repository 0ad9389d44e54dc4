//! The edge: clock and randomness. Nothing else in this crate touches them.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use faultwire_contract::Stamp;

/// A moment to measure from.
#[expect(clippy::disallowed_methods, reason = "this is the place that reads the clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// What a fault is stamped with.
#[expect(clippy::disallowed_methods, reason = "this is the place that reads the clock")]
pub(crate) fn stamp(show_stack: bool) -> Stamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now_ms = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
    Stamp { now_ms, random: random(), show_stack }
}

/// A uniform random number. A machine without randomness gets no jitter, which does no harm.
pub(crate) fn random() -> u64 {
    getrandom::u64().unwrap_or_default()
}
