//! How much memory the compiled schemas of one server may take, all together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// All schemas of a server, compiled, take about this much at most.
const MOST: usize = 16 * 1024 * 1024;

/// What the compiled schemas of one server may still take. Clones share it.
#[derive(Clone, Debug)]
pub struct Allowance(Arc<AtomicUsize>);

impl Default for Allowance {
    fn default() -> Self {
        Self(Arc::new(AtomicUsize::new(MOST)))
    }
}

impl Allowance {
    /// Reserves bytes until the returned value is dropped. None if too few are left.
    pub(super) fn take(&self, bytes: usize) -> Option<Share> {
        let less = |left: usize| left.checked_sub(bytes);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).ok()?;
        Some(Share { from: self.clone(), bytes })
    }
}

/// The share of one schema.
#[derive(Debug)]
pub(super) struct Share {
    from: Allowance,
    bytes: usize,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.from.0.fetch_add(self.bytes, Ordering::Relaxed);
    }
}
