//! Refusals of clients that are not known yet (X4). Anybody who can open a socket can cause them,
//! so they are not recorded one by one: the first of a source is, then those whose number is a
//! power of two, and each minute a summary. The others carry the incident id of the last record.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use std::time::{Duration, Instant};

use hashbrown::HashMap;
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};

use crate::guard::peer::Peer;

/// So many sources are told apart; all others are one.
const MOST_SOURCES: usize = 256;
/// How often the refusals of a source are summed up.
const SUMMARY: Duration = Duration::from_mins(1);
/// A source that has been quiet for so long is forgotten.
const FORGET: Duration = Duration::from_mins(10);

/// Where refused requests come from: an address, or the network of one. A neighbour has all the
/// addresses of a /64 for free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Source {
    V4(Ipv4Addr),
    V6([u16; 4]),
    Other,
}

/// A client of which only its address is known.
pub(crate) struct Stranger<'a> {
    pub peer: Peer,
    pub refusals: &'a Refusals,
}

impl From<IpAddr> for Source {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4(address),
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Self::V6([a, b, c, d])
            }
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V4(address) => address.fmt(f),
            Self::V6(network) => {
                let mut segments = [0; 8];
                segments[..4].copy_from_slice(network);
                write!(f, "{}/64", Ipv6Addr::from(segments))
            }
            Self::Other => f.write_str("other"),
        }
    }
}

/// What is known of the refusals of each source.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Mutex<HashMap<Source, Tally>>);

#[derive(Debug)]
struct Tally {
    total: u64,
    /// Of these, since the last summary.
    lately: u64,
    /// Of these, not recorded by themselves.
    unrecorded: u64,
    reasons: BTreeMap<&'static str, u64>,
    incident: Box<str>,
    summarised: Instant,
    last: Instant,
}

/// What becomes of one refusal.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Noted {
    pub source: Source,
    /// Under which id its record is found, or that of the refusals that it belongs to.
    pub incident: String,
    /// The number of refusals so far, if this one is recorded.
    pub recorded: Option<u64>,
}

impl Refusals {
    /// Notes a refusal for this reason. `incident` makes a new id.
    pub(crate) fn note(
        &self,
        peer: IpAddr,
        reason: &'static str,
        now: Instant,
        incident: impl FnOnce() -> String,
    ) -> Noted {
        let mut sources = self.sources();
        let mut source = Source::from(peer);
        if !sources.contains_key(&source) && sources.len() >= MOST_SOURCES {
            source = Source::Other;
        }
        let tally = sources.entry(source).or_insert_with(|| Tally {
            total: 0,
            lately: 0,
            unrecorded: 0,
            reasons: BTreeMap::new(),
            incident: "".into(),
            summarised: now,
            last: now,
        });
        tally.total += 1;
        tally.lately += 1;
        tally.last = now;
        *tally.reasons.entry(reason).or_default() += 1;
        let recorded = tally.total.is_power_of_two().then_some(tally.total);
        match recorded {
            Some(_) => tally.incident = incident().into(),
            None => tally.unrecorded += 1,
        }
        Noted { source, incident: tally.incident.to_string(), recorded }
    }

    /// The summaries that are due, or all of them at the end.
    pub(crate) fn summaries(&self, now: Instant, at_end: bool) -> Vec<Value> {
        let mut due = Vec::new();
        self.sources().retain(|source, tally| {
            let is_due = at_end || now.saturating_duration_since(tally.summarised) >= SUMMARY;
            if is_due && tally.unrecorded > 0 {
                due.push(json!({
                    "source": source.to_string(),
                    "refusals": tally.lately,
                    "total": tally.total,
                    "reasons": tally.reasons,
                    "incident": tally.incident,
                }));
            }
            if is_due {
                (tally.lately, tally.unrecorded, tally.summarised) = (0, 0, now);
                tally.reasons.clear();
            }
            now.saturating_duration_since(tally.last) < FORGET
        });
        due
    }

    fn sources(&self) -> MutexGuard<'_, HashMap<Source, Tally>> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(refusals: &Refusals, peer: &str, now: Instant) -> Noted {
        let mut made = 0;
        refusals.note(peer.parse().unwrap(), "forbidden", now, || {
            made += 1;
            format!("inc_{peer}")
        })
    }

    #[test]
    fn x4_the_first_and_powers_of_two_are_recorded() {
        let (refusals, now) = (Refusals::default(), crate::edge::now());
        let noted: Vec<Noted> = (0..1000).map(|_| note(&refusals, "192.0.2.1", now)).collect();
        let recorded: Vec<u64> = noted.iter().filter_map(|noted| noted.recorded).collect();
        assert_eq!(recorded, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]);
        assert!(noted.iter().all(|noted| noted.incident == "inc_192.0.2.1"));
        assert_eq!(refusals.summaries(now, false), Vec::<Value>::new());
        let later = now + SUMMARY;
        let summaries = refusals.summaries(later, false);
        let expected = json!([{ "source": "192.0.2.1", "refusals": 1000, "total": 1000,
            "reasons": { "forbidden": 1000 }, "incident": "inc_192.0.2.1" }]);
        assert_eq!(Value::from(summaries), expected);
        assert_eq!(refusals.summaries(later + SUMMARY, false), Vec::<Value>::new());
        note(&refusals, "192.0.2.1", later);
        assert_eq!(refusals.summaries(later, true)[0]["refusals"], 1);
    }

    #[test]
    fn x4_sources_are_bounded_and_forgotten() {
        let (refusals, now) = (Refusals::default(), crate::edge::now());
        for number in 0..1000 {
            note(&refusals, &format!("2001:db8:0:{number:x}::{number:x}"), now);
        }
        assert_eq!(refusals.sources().len(), MOST_SOURCES + 1);
        assert_eq!(note(&refusals, "192.0.2.1", now).source, Source::Other);
        assert_eq!(note(&refusals, "192.0.2.1", now).source.to_string(), "other");
        refusals.summaries(now + FORGET, false);
        assert_eq!(refusals.sources().len(), 0);
    }

    #[test]
    fn x4_a_network_of_ipv6_is_one_source() {
        let (refusals, now) = (Refusals::default(), crate::edge::now());
        let one = note(&refusals, "2001:db8:1:2::3", now);
        let other = note(&refusals, "2001:db8:1:2:ffff::4", now);
        assert_eq!((one.source, other.recorded), (other.source, Some(2)));
        assert_eq!(one.source.to_string(), "2001:db8:1:2::/64");
        assert_eq!(note(&refusals, "::ffff:192.0.2.7", now).source.to_string(), "192.0.2.7");
    }
}
