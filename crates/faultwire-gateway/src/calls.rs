//! All open calls, and the ids that were answered lately.

use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::time::Instant;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::call::{Call, Stage};
use crate::wire;

/// How many answered ids are remembered, to tell a second answer from one to nothing.
const REMEMBERED: usize = 1024;

/// Open calls by id. The id is kept once, in the request itself.
#[derive(Default)]
pub(crate) struct Calls {
    open: HashTable<Call>,
    hasher: DefaultHashBuilder,
    answered: VecDeque<u64>,
    /// Calls that failed before their answer came, and why.
    given_up: VecDeque<(Box<str>, &'static str)>,
}

/// Why no open call has that id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unmatched {
    /// It was answered before.
    Duplicate,
    /// It was given up before: why.
    Late(&'static str),
    /// Nobody asked.
    Unknown,
}

impl Calls {
    /// Opens a call. The caller has made sure that the id is free.
    pub(crate) fn insert(&mut self, call: Call) {
        let Self { open, hasher, .. } = self;
        open.insert_unique(hasher.hash_one(call.id()), call, |call| hasher.hash_one(call.id()));
    }

    pub(crate) fn contains(&self, id: &str) -> bool {
        self.open.find(self.hasher.hash_one(id), |call| call.id() == id).is_some()
    }

    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(crate) fn get_mut(&mut self, id: &str) -> Option<&mut Call> {
        self.open.find_mut(self.hasher.hash_one(id), |call| call.id() == id)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Call> {
        self.open.iter_mut()
    }

    /// Takes out the call that a reply answers. Only what was sent can be answered.
    pub(crate) fn answered(&mut self, id: &str) -> Option<Call> {
        self.take_if(id, |call| matches!(call.stage, Stage::Sent { .. }))
    }

    fn take_if(&mut self, id: &str, fits: impl FnOnce(&Call) -> bool) -> Option<Call> {
        let hash = self.hasher.hash_one(id);
        let entry = self.open.find_entry(hash, |call| call.id() == id).ok()?;
        if !fits(entry.get()) {
            return None;
        }
        let (call, _) = entry.remove();
        if self.answered.len() == REMEMBERED {
            self.answered.pop_front();
        }
        self.answered.push_back(hash);
        Some(call)
    }

    /// Takes out a call whose answer is not waited for any more, and why.
    pub(crate) fn give_up(&mut self, id: &str, why: &'static str) -> Option<Call> {
        let hash = self.hasher.hash_one(id);
        let (call, _) = self.open.find_entry(hash, |call| call.id() == id).ok()?.remove();
        if self.given_up.len() == REMEMBERED {
            self.given_up.pop_front();
        }
        self.given_up.push_back((call.id().into(), why));
        Some(call)
    }

    /// Takes out every call that fits, the oldest first.
    pub(crate) fn take_all(&mut self, fits: impl Fn(&Call) -> bool) -> Vec<Call> {
        let mut taken: Vec<Call> = self.open.extract_if(|call| fits(call)).collect();
        taken.sort_by_key(|call| call.since);
        taken
    }

    /// Why there is no such call. What was told is forgotten, so that each late answer is told
    /// once.
    pub(crate) fn unmatched(&mut self, id: &str) -> Unmatched {
        if let Some(at) = self.given_up.iter().position(|(known, _)| **known == *id) {
            return self
                .given_up
                .remove(at)
                .map_or(Unmatched::Unknown, |(_, w)| Unmatched::Late(w));
        }
        let hash = self.hasher.hash_one(id);
        if self.answered.contains(&hash) { Unmatched::Duplicate } else { Unmatched::Unknown }
    }

    /// The call that must be meant by a reply that names none: the one of the same number in
    /// another form, or the only one that there is.
    pub(crate) fn meant(&mut self, id: Option<&str>) -> Option<Call> {
        let sent = |call: &&Call| matches!(call.stage, Stage::Sent { .. });
        let alike = id.and_then(wire::number).and_then(|number| {
            let same = |call: &&Call| wire::number(call.id()) == Some(number);
            self.open.iter().filter(sent).find(same)
        });
        let mut all = self.open.iter().filter(sent);
        let only = all.next().filter(|_| all.next().is_none());
        let id = alike.or(only)?.id().to_owned();
        self.take_if(&id, |_| true)
    }

    /// When the next deadline or retry is due.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        let due = |call: &Call| match call.stage {
            Stage::Again(at) => Some(at),
            _ => call.deadline,
        };
        self.open.iter().filter_map(due).min()
    }
}
