//! All open calls, and the ids that were answered lately.

use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::time::Instant;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::backlog::Part;
use crate::call::{Call, OpenCall, Stage};
use crate::wire;

/// How many answered ids are remembered, to tell a second answer from one to nothing.
const REMEMBERED: usize = 1024;

/// Open calls by id. The id is kept once, in the request itself.
pub(crate) struct Calls {
    open: HashTable<OpenCall>,
    hasher: DefaultHashBuilder,
    /// How many calls there ever were.
    opened: u64,
    /// How many bytes the requests have.
    bytes: Part,
    /// How many ids are written in an unusual way.
    odd: usize,
    answered: VecDeque<u64>,
    /// Calls that failed before their answer came, and why.
    given_up: VecDeque<(u64, &'static str)>,
    /// Those of them whose answer came after all.
    late: VecDeque<u64>,
}

/// Why no open call has that id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unmatched {
    /// It was answered before.
    Duplicate,
    /// It was given up before: why.
    Late(&'static str),
    /// No request had that id.
    Unknown,
}

impl Calls {
    /// None yet. What their requests take is counted there.
    pub(crate) fn new(bytes: Part) -> Self {
        Self {
            open: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            opened: 0,
            bytes,
            odd: 0,
            answered: VecDeque::new(),
            given_up: VecDeque::new(),
            late: VecDeque::new(),
        }
    }

    /// Whether so many bytes more find no room.
    pub(crate) fn is_crowded_for(&self, bytes: usize) -> bool {
        bytes > self.bytes.free()
    }

    /// Gives back what the table takes while no call is open: most sessions are idle most of the
    /// time.
    pub(crate) fn shrink(&mut self) {
        if self.open.is_empty() {
            self.open = HashTable::new();
        }
    }

    /// Opens a call. The caller has made sure that the id is free.
    pub(crate) fn insert(&mut self, mut call: OpenCall) {
        if call.order == 0 {
            self.opened += 1;
            call.order = self.opened;
        }
        self.bytes.set(self.bytes.bytes() + call.line().len());
        self.odd += usize::from(wire::is_odd(call.id()));
        let Self { open, hasher, .. } = self;
        open.insert_unique(hasher.hash_one(call.id()), call, |call| hasher.hash_one(call.id()));
    }

    pub(crate) fn contains(&self, id: &str) -> bool {
        self.open.find(self.hasher.hash_one(id), |call| call.id() == id).is_some()
            // Hardly anybody writes ids in another way than all others do.
            || ((wire::is_odd(id) || self.odd > 0) && self.spelt_otherwise(id).is_some())
    }

    /// How many calls there ever were.
    pub(crate) fn opened(&self) -> u64 {
        self.opened
    }

    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.bytes()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Call> {
        self.open.find(self.hasher.hash_one(id), |call| call.id() == id).map(|call| &**call)
    }

    pub(crate) fn get_mut(&mut self, id: &str) -> Option<&mut Call> {
        let found = self.open.find_mut(self.hasher.hash_one(id), |call| call.id() == id);
        found.map(|call| &mut **call)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Call> {
        self.open.iter().map(|call| &**call)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Call> {
        self.open.iter_mut().map(|call| &mut **call)
    }

    /// Takes out the call that a reply answers. Only what was sent can be answered.
    pub(crate) fn answered(&mut self, id: &str) -> Option<OpenCall> {
        let sent = |call: &Call| matches!(call.stage, Stage::Sent { .. });
        self.take_if(id, sent).or_else(|| {
            let other = self.spelt_otherwise(id)?;
            self.take_if(&other, sent)
        })
    }

    /// The id of an open call that is the same text or number, in another spelling.
    fn spelt_otherwise(&self, id: &str) -> Option<String> {
        self.iter().map(Call::id).find(|other| wire::same(other, id)).map(str::to_owned)
    }

    fn take_if(&mut self, id: &str, fits: impl FnOnce(&Call) -> bool) -> Option<OpenCall> {
        let hash = self.hasher.hash_one(id);
        let entry = self.open.find_entry(hash, |call| call.id() == id).ok()?;
        if !fits(entry.get()) {
            return None;
        }
        let (call, _) = entry.remove();
        self.bytes.set(self.bytes.bytes() - call.line().len());
        self.odd -= usize::from(wire::is_odd(call.id()));
        remember(&mut self.answered, hash);
        Some(call)
    }

    /// Takes out a call whose answer is not waited for any more, and why.
    pub(crate) fn give_up(&mut self, id: &str, why: &'static str) -> Option<OpenCall> {
        let exact = self.open.find(self.hasher.hash_one(id), |call| call.id() == id).is_some();
        let other = if exact { None } else { self.spelt_otherwise(id) };
        let id = other.as_deref().unwrap_or(id);
        let hash = self.hasher.hash_one(id);
        let (call, _) = self.open.find_entry(hash, |call| call.id() == id).ok()?.remove();
        self.bytes.set(self.bytes.bytes() - call.line().len());
        self.odd -= usize::from(wire::is_odd(call.id()));
        remember(&mut self.given_up, (hash, why));
        Some(call)
    }

    /// Takes out every call that fits, the oldest first.
    pub(crate) fn take_all(&mut self, mut fits: impl FnMut(&Call) -> bool) -> Vec<OpenCall> {
        let mut taken: Vec<OpenCall> = self.open.extract_if(|call| fits(call)).collect();
        let less: usize = taken.iter().map(|call| call.line().len()).sum();
        self.bytes.set(self.bytes.bytes() - less);
        self.odd -= taken.iter().filter(|call| wire::is_odd(call.id())).count();
        taken.sort_by_key(|call| call.order);
        taken
    }

    /// Why there is no such call. What was told is forgotten, so that each late answer is told
    /// once.
    pub(crate) fn unmatched(&mut self, id: &str) -> Unmatched {
        let hash = self.hasher.hash_one(id);
        if let Some(at) = self.given_up.iter().position(|(known, _)| *known == hash) {
            let (_, why) = self.given_up.remove(at).unwrap_or_default();
            remember(&mut self.late, hash);
            return Unmatched::Late(why);
        }
        let known = self.answered.contains(&hash) || self.late.contains(&hash);
        if known { Unmatched::Duplicate } else { Unmatched::Unknown }
    }

    /// The call that must be meant by a reply that names none: the one of the same number in
    /// another form, or the only one that there is.
    pub(crate) fn meant(&mut self, id: Option<&str>) -> Option<OpenCall> {
        let sent = |call: &&Call| matches!(call.stage, Stage::Sent { .. });
        let alike = id.and_then(wire::number).and_then(|number| {
            let same = |call: &&Call| wire::number(call.id()) == Some(number);
            self.iter().filter(sent).find(same)
        });
        let mut all = self.iter().filter(sent);
        let only = all.next().filter(|_| all.next().is_none());
        let id = alike.or(only)?.id().to_owned();
        drop(all);
        self.take_if(&id, |_| true)
    }

    /// When the next deadline or retry is due. Nothing is sent again while no server is up.
    pub(crate) fn next_due(&self, up: bool) -> Option<Instant> {
        let due = |call: &Call| match call.stage {
            Stage::Again(at) if up => Some(at),
            _ => call.deadline,
        };
        self.iter().filter_map(due).min()
    }
}

/// Forgets the oldest for it, if there are too many.
fn remember<T>(known: &mut VecDeque<T>, new: T) {
    if known.len() == REMEMBERED {
        known.pop_front();
    }
    known.push_back(new);
}
