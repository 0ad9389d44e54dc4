//! Things that a client or server can cause without end, and that must not fill stderr (X4): the
//! first is written, then those whose number is a power of two.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts one kind of thing.
pub(crate) struct Sparse(AtomicU64);

impl Sparse {
    pub(crate) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// One more; writes it with its number if it is time to.
    pub(crate) fn note(&self, write: impl FnOnce(u64)) {
        let count = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        if count.is_power_of_two() {
            write(count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x4_of_400_000_things_19_are_written() {
        let (sparse, mut written) = (Sparse::new(), Vec::new());
        for _ in 0..400_000 {
            sparse.note(|count| written.push(count));
        }
        assert_eq!((written.len(), written[0], written[18]), (19, 1, 262_144));
    }
}
