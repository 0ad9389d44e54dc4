//! Decides when to page (O7): a pure engine over events that carry their own time.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use foldhash::fast::RandomState;

use crate::contract::Contract;
use crate::level::{Level, Paging};
use crate::origin::Origin;

type Map<K, V> = HashMap<K, V, RandomState>;

/// A page to an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<'c> {
    /// The level's name.
    pub level: &'c str,
    /// How many events are in the window.
    pub count: usize,
}

/// The default number of pairs of client and code to remember.
pub const DEFAULT_CAPACITY: usize = 131_072;

/// Counts failures by client and code and says when to page.
///
/// Only the last `events + 1` times of a pair are kept: the window has more than `events` events
/// exactly if the oldest of these is still inside it. Pairs are kept in two generations: a pair
/// with a new event moves to the young generation, and the old generation is dropped as a whole,
/// which loses nothing after a full window. A generation has `capacity` pairs. If more are active
/// within one window, pairs with only one failure are forgotten early, then the others, and
/// [`Alerts::forgotten`] counts them. Memory is therefore bounded for any number of clients.
///
/// Time never runs backwards: an event before the last one gets the last one's time.
#[derive(Debug)]
pub struct Alerts {
    codes: Map<Box<str>, Row>,
    levels: Vec<Level>,
    longest: Duration,
    capacity: usize,
    young: Map<Key, Track>,
    old: Map<Key, Track>,
    turned: Duration,
    now: Duration,
    forgotten: u64,
}

/// A code's place, its level, and those of some origins.
#[derive(Debug)]
struct Row {
    place: usize,
    level: usize,
    levels: Vec<(Origin, usize)>,
}

/// A pair of client and code. Names are untrusted and may have any length, so only their hash is
/// kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    code: u32,
    client: [u64; 2],
}

/// The code of refusals that are counted by their source.
const SOURCES: u32 = u32::MAX;

/// The times of one pair, in microseconds. Most pairs have one, which needs no allocation.
#[derive(Debug)]
struct Track {
    last: u64,
    before: VecDeque<u64>,
    paged: bool,
}

impl Alerts {
    /// An engine for the contract's codes and levels. The last `capacity` pairs are always
    /// remembered, and never more than twice as many.
    #[must_use]
    pub fn new(contract: &Contract, capacity: usize) -> Self {
        let level_of = |name: &str| contract.levels.iter().position(|l| l.name == name);
        let codes = contract.codes().iter().enumerate();
        let window = |level: &Level| match level.paging {
            Paging::MoreThan { within, .. } => within,
            Paging::Every | Paging::Never => Duration::ZERO,
        };
        Self {
            codes: codes
                .filter_map(|(place, code)| {
                    let own = code.alerts.iter();
                    let levels =
                        own.filter_map(|(of, name)| Some((*of, level_of(name)?))).collect();
                    let row = Row { place, level: level_of(&code.alert)?, levels };
                    Some((code.id.as_str().into(), row))
                })
                .collect(),
            levels: contract.levels.clone(),
            longest: contract.levels.iter().map(window).max().unwrap_or_default(),
            capacity: capacity.max(1),
            young: Map::default(),
            old: Map::default(),
            turned: Duration::ZERO,
            now: Duration::ZERO,
            forgotten: 0,
        }
    }

    /// Takes in one failure at time `t` and says whether it pages. `None` for an unknown code.
    pub fn observe(
        &mut self,
        t: Duration,
        client: &str,
        code: &str,
        origin: Option<Origin>,
    ) -> Option<Option<Page<'_>>> {
        let row = self.codes.get(code)?;
        let own = row.levels.iter().find(|(of, _)| Some(*of) == origin);
        let (code, level) = (row.place, own.map_or(row.level, |(_, level)| *level));
        self.now = self.now.max(t);
        let count = match self.levels[level].paging {
            Paging::Never => None,
            Paging::Every => Some(1),
            Paging::MoreThan { events, within } => {
                let code = u32::try_from(code).unwrap_or(u32::MAX);
                self.count(Key { code, client: hash(client) }, events, within)
            }
        };
        Some(count.map(|count| Page { level: &self.levels[level].name, count }))
    }

    /// Counts one refusal of an unknown client at time `t`. It is counted by its source, for any
    /// code, at the first level that pages on a threshold (X4), so that opening a socket is not
    /// enough to cause a page.
    pub fn observe_source(&mut self, t: Duration, source: &str) -> Option<Page<'_>> {
        self.now = self.now.max(t);
        let threshold = |level: &Level| match level.paging {
            Paging::MoreThan { events, within } => Some((events, within)),
            Paging::Never | Paging::Every => None,
        };
        let mut levels = self.levels.iter().enumerate();
        let (level, (events, within)) =
            levels.find_map(|(place, level)| Some((place, threshold(level)?)))?;
        let count = self.count(Key { code: SOURCES, client: hash(source) }, events, within)?;
        Some(Page { level: &self.levels[level].name, count })
    }

    /// Counts one event of a pair; the count when it pages.
    fn count(&mut self, key: Key, events: usize, within: Duration) -> Option<usize> {
        self.turn();
        if let Some(track) = self.old.remove(&key) {
            self.young.insert(key, track);
        }
        let (now, within) = (micros(self.now), micros(within));
        if let Some(track) = self.young.get_mut(&key) {
            track.add(now, events, within)
        } else {
            self.young.insert(key, Track::new(now, events == 0));
            (events == 0).then_some(1)
        }
    }

    /// How many pairs were forgotten while they still counted.
    #[must_use]
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// How many pairs are remembered now.
    #[must_use]
    pub fn remembered(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// Begins a new generation when the young one is a full window old, or full.
    fn turn(&mut self) {
        let aged = self.now.saturating_sub(self.turned) >= self.longest;
        let full = self.young.len() >= self.capacity;
        if !aged && !full {
            return;
        }
        let old = std::mem::replace(&mut self.old, std::mem::take(&mut self.young));
        self.turned = self.now;
        if aged {
            return;
        }
        let room = self.capacity / 2;
        let again = old.into_iter().filter(|(_, track)| {
            self.forgotten += 1;
            !track.before.is_empty()
        });
        self.young = again.take(room).collect();
        self.forgotten -= self.young.len() as u64;
    }
}

impl Track {
    fn new(now: u64, paged: bool) -> Self {
        Self { last: now, before: VecDeque::new(), paged }
    }

    /// Adds an event; the count when it pages. Before it, the window has fallen as far as it
    /// will: that is where a page is re-armed.
    fn add(&mut self, now: u64, events: usize, within: u64) -> Option<usize> {
        let inside = |t: u64| now - t < within;
        self.before.push_back(self.last);
        while self.before.front().is_some_and(|t| !inside(*t)) {
            self.before.pop_front();
        }
        if self.before.len() <= events {
            self.paged = false;
        }
        if self.before.len() > events {
            self.before.pop_front();
        }
        self.last = now;
        let count = self.before.len() + 1;
        let pages = count > events && !self.paged;
        self.paged |= pages;
        pages.then_some(count)
    }
}

fn micros(t: Duration) -> u64 {
    u64::try_from(t.as_micros()).unwrap_or(u64::MAX)
}

fn hash(client: &str) -> [u64; 2] {
    [0u8, 1].map(|salt| {
        let mut hasher = DefaultHasher::new();
        (salt, client).hash(&mut hasher);
        hasher.finish()
    })
}
