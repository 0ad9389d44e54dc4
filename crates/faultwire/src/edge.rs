//! The edge: clock, randomness and environment, as far as a failure needs them. The log has its
//! own clock, which a test can replace.

use std::backtrace::Backtrace;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use faultwire_contract::{Contract, Stamp};

/// What a fault is stamped with.
pub(crate) fn stamp(contract: &Contract) -> Stamp {
    Stamp { show_stack: shows_stack(contract), ..moment() }
}

/// The time, and a random number.
#[expect(clippy::disallowed_methods, reason = "this is the place that reads the clock")]
pub(crate) fn moment() -> Stamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now_ms = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
    let random = getrandom::u64().unwrap_or_default();
    Stamp { now_ms, random, show_stack: false }
}

/// A moment to measure from.
#[cfg(any(feature = "rmcp", feature = "axum"))]
#[expect(clippy::disallowed_methods, reason = "this is the place that reads the clock")]
pub(crate) fn now() -> std::time::Instant {
    std::time::Instant::now()
}

/// The home directory of this process.
#[expect(clippy::disallowed_methods, reason = "this is the place that reads the environment")]
pub(crate) fn home() -> Option<&'static str> {
    static HOME: OnceLock<Option<String>> = OnceLock::new();
    let read = || std::env::var("HOME").ok().filter(|home| home.starts_with('/'));
    HOME.get_or_init(read).as_deref()
}

/// Where we are, if the contract shows it (K2).
pub(crate) fn stack(contract: &Contract) -> Option<String> {
    shows_stack(contract).then(|| Backtrace::force_capture().to_string())
}

/// Whether tests write manifests instead of comparing them.
#[cfg(feature = "rmcp")]
#[expect(clippy::disallowed_methods, reason = "this is the place that reads the environment")]
pub(crate) fn updates_manifests() -> bool {
    std::env::var_os("FAULTWIRE_UPDATE").is_some_and(|set| set == "1")
}

/// Whether the contract's switch for stacks is on.
#[expect(clippy::disallowed_methods, reason = "this is the place that reads the environment")]
pub(crate) fn shows_stack(contract: &Contract) -> bool {
    contract.shows_stack(|name| std::env::var(name).ok())
}
