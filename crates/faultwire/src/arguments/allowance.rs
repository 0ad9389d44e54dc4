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
    /// Takes so many bytes until the share is dropped. None if they are not there.
    pub(super) fn take(&self, bytes: usize) -> Option<Share> {
        let less = |left: usize| left.checked_sub(bytes);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).ok()?;
        Some(Share { from: self.clone(), bytes })
    }
}

/// What one schema takes of it.
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
