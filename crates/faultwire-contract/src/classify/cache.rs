//! What was decided lately. Servers repeat themselves, and what they said is looked up by its
//! hash, so that no text is kept.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};
use std::sync::{Mutex, PoisonError};

use foldhash::{fast, quality};

/// How many decisions are kept, and the same number of older ones.
const MOST: usize = 1024;

/// Decisions by the hash of what they were about, with a key of its own in each process.
pub(super) struct Cache<V>(Mutex<Decided<V>>);

struct Decided<V> {
    hasher: quality::RandomState,
    young: Decisions<V>,
    old: Decisions<V>,
}

type Decisions<V> = HashMap<u64, V, fast::RandomState>;

impl<V: Copy> Cache<V> {
    pub fn new() -> Self {
        Self(Mutex::new(Decided {
            hasher: quality::RandomState::default(),
            young: Decisions::default(),
            old: Decisions::default(),
        }))
    }

    /// What was decided about this before, or is now.
    pub fn decided<T: Hash>(&self, subject: T, decide: impl FnOnce() -> V) -> V {
        let mut decided = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = decided.hasher.hash_one(subject);
        if let Some(known) = decided.young.get(&key).or_else(|| decided.old.get(&key)) {
            return *known;
        }
        let found = decide();
        if decided.young.len() >= MOST {
            decided.old = std::mem::take(&mut decided.young);
        }
        decided.young.insert(key, found);
        found
    }
}
