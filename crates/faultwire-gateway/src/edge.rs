//! The edge: clock and randomness. Nothing else in this crate touches them.

use std::io;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use faultwire_contract::Stamp;
use tokio::runtime::{Handle, RuntimeFlavor};

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

/// The time of the calendar, for others to read.
#[expect(clippy::disallowed_methods, reason = "this is the place that reads the clock")]
pub(crate) fn wall_clock() -> SystemTime {
    SystemTime::now()
}

/// Milliseconds of the calendar.
#[expect(clippy::disallowed_methods, reason = "this is the place that reads the clock")]
pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Does something that takes its time, without keeping other tasks from this thread.
pub(crate) fn aside<T>(act: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(act),
        _ => act(),
    }
}

/// A uniform random number for ids and jitter, not for secrets: the system is asked once for a
/// beginning, and SplitMix64 goes on from there.
pub(crate) fn random() -> u64 {
    static STATE: LazyLock<AtomicU64> =
        LazyLock::new(|| AtomicU64::new(getrandom::u64().unwrap_or_default()));
    let mut z = STATE.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// An unguessable name, from the system's random source.
pub(crate) fn secret() -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|e| io::Error::other(e.to_string()))?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}
