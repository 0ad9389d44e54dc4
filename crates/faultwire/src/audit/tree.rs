//! The Merkle tree over all lines (RFC 6962), of which only the right edge is kept.

use crate::audit::hash::Hash;

/// The roots of the perfect subtrees that the leaves so far make, the largest first. They are
/// sufficient to add leaves and to compute the root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frontier {
    size: u64,
    peaks: Vec<Hash>,
}

impl Frontier {
    /// Takes up a tree of `size` leaves; `None` when these cannot be its peaks, or when there could
    /// be no further leaf.
    #[must_use]
    pub fn resume(size: u64, peaks: Vec<Hash>) -> Option<Self> {
        let fits = size < u64::MAX && peaks.len() == size.count_ones() as usize;
        fits.then_some(Self { size, peaks })
    }

    /// Adds a leaf.
    pub fn push(&mut self, leaf: Hash) {
        let mut node = leaf;
        for _ in 0..self.size.trailing_ones() {
            let Some(left) = self.peaks.pop() else { break };
            node = Hash::pair(&left, &node);
        }
        self.peaks.push(node);
        self.size += 1;
    }

    /// How many leaves there are.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The roots of the perfect subtrees, the largest first.
    #[must_use]
    pub fn peaks(&self) -> &[Hash] {
        &self.peaks
    }

    /// The root of the tree.
    #[must_use]
    pub fn root(&self) -> Hash {
        let mut from_the_right = self.peaks.iter().rev();
        let Some(last) = from_the_right.next() else { return Hash::of(b"") };
        from_the_right.fold(*last, |right, left| Hash::pair(left, &right))
    }
}
