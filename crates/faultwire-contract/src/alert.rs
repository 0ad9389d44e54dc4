//! When somebody is woken (O7): a pure engine over events that carry their own time.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::time::Duration;

use crate::contract::Contract;

/// An alert level of a contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// The name that rows use.
    pub name: String,
    /// When it pages.
    pub paging: Paging,
}

/// When an alert level pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paging {
    /// Never: it is only counted.
    Never,
    /// On every single event.
    Every,
    /// When a client has more than this many of one code in the window `(t - within, t]`.
    MoreThan {
        /// How many are still quiet.
        events: usize,
        /// The window's length.
        within: Duration,
    },
}

/// Somebody is to be woken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<'c> {
    /// The level's name.
    pub level: &'c str,
    /// How many events the window holds.
    pub count: usize,
}

/// How many pairs of client and code are remembered unless told otherwise.
pub const DEFAULT_CAPACITY: usize = 65_536;

/// Counts failures by client and code and says when to page.
///
/// Only the last `events + 1` times of a pair are kept: the window holds more than `events`
/// exactly when the oldest of them is still inside it. Pairs live in two generations: a pair
/// that is seen moves to the young one, and the old one is forgotten as a whole, which loses
/// nothing once a full window has passed. A generation holds `capacity` pairs; when more are
/// active within one window the old one is forgotten early and [`Alerts::forgotten`] counts its
/// pairs: memory is bounded however many clients there are.
///
/// Time never runs backwards: an event before the last one counts as if it came with it.
#[derive(Debug)]
pub struct Alerts {
    codes: HashMap<Box<str>, (usize, usize)>,
    levels: Vec<Level>,
    longest: Duration,
    capacity: usize,
    young: HashMap<Key, Track>,
    old: HashMap<Key, Track>,
    turned: Duration,
    now: Duration,
    forgotten: u64,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    code: usize,
    client: Box<str>,
}

#[derive(Debug, Default)]
struct Track {
    times: VecDeque<Duration>,
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
                .filter_map(|(i, c)| Some((c.id.as_str().into(), (i, level_of(&c.alert)?))))
                .collect(),
            levels: contract.levels.clone(),
            longest: contract.levels.iter().map(window).max().unwrap_or_default(),
            capacity: capacity.max(1),
            young: HashMap::new(),
            old: HashMap::new(),
            turned: Duration::ZERO,
            now: Duration::ZERO,
            forgotten: 0,
        }
    }

    /// Takes in one failure at time `t` and says whether it pages. `None` for an unknown code.
    pub fn observe(&mut self, t: Duration, client: &str, code: &str) -> Option<Option<Page<'_>>> {
        let (code, level) = *self.codes.get(code)?;
        self.now = self.now.max(t);
        let count = match self.levels[level].paging {
            Paging::Never => None,
            Paging::Every => Some(1),
            Paging::MoreThan { events, within } => {
                self.turn();
                let now = self.now;
                let key = Key { code, client: short(client) };
                let track = match self.old.remove(&key) {
                    Some(track) => self.young.entry(key).or_insert(track),
                    None => self.young.entry(key).or_default(),
                };
                track.add(now, events, within)
            }
        };
        Some(count.map(|count| Page { level: &self.levels[level].name, count }))
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
        if !aged {
            self.forgotten += self.old.len() as u64;
        }
        self.old = std::mem::take(&mut self.young);
        self.turned = self.now;
    }
}

impl Track {
    /// Adds an event; the count when it pages. Before it, the window has fallen as far as it
    /// will: that is where a page is re-armed.
    fn add(&mut self, now: Duration, events: usize, within: Duration) -> Option<usize> {
        let inside = |t: &Duration| now.saturating_sub(*t) < within;
        while self.times.front().is_some_and(|t| !inside(t)) {
            self.times.pop_front();
        }
        if self.times.len() <= events {
            self.paged = false;
        }
        self.times.push_back(now);
        if self.times.len() > events + 1 {
            self.times.pop_front();
        }
        let pages = self.times.len() > events && !self.paged;
        self.paged |= pages;
        pages.then_some(self.times.len())
    }
}

/// Client names come from outside, so a long one is kept as its beginning and a hash.
fn short(client: &str) -> Box<str> {
    const LONGEST: usize = 128;
    if client.len() <= LONGEST {
        return client.into();
    }
    let end = client.floor_char_boundary(LONGEST - 17);
    let hash = client
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    format!("{}#{hash:016x}", &client[..end]).into()
}
