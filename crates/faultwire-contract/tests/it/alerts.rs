//! O7 against a model that keeps everything.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use faultwire_contract::{Alerts, Contract, DEFAULT_CAPACITY, builtin};
use proptest::prelude::*;

const WARNING: &str = "runtime.timeout";
const OTHER: &str = "governance.rate_limited";
const CRITICAL: &str = "auth.forbidden";

fn owlclaw() -> Arc<Contract> {
    builtin("owlclaw").unwrap()
}

/// The counts of the pages that the events raise, by their place.
fn pages(events: &[(u64, &str, &str)]) -> Vec<(usize, usize)> {
    let contract = owlclaw();
    let mut alerts = Alerts::new(&contract, DEFAULT_CAPACITY);
    let mut found = Vec::new();
    for (i, (ms, client, code)) in events.iter().enumerate() {
        if let Some(page) = alerts.observe(Duration::from_millis(*ms), client, code, None).unwrap()
        {
            found.push((i, page.count));
        }
    }
    found
}

fn at(ms: &[u64]) -> Vec<(u64, &'static str, &'static str)> {
    ms.iter().map(|t| (*t, "a", WARNING)).collect()
}

#[test]
fn o7_critical_pages_on_every_event() {
    assert_eq!(
        pages(&[(0, "a", CRITICAL), (0, "a", CRITICAL), (9, "b", CRITICAL)]),
        [(0, 1), (1, 1), (2, 1)]
    );
}

#[test]
fn o7_the_sixth_warning_pages_once() {
    assert_eq!(pages(&at(&[0, 1, 2, 3, 4])), []);
    assert_eq!(pages(&at(&[0, 1, 2, 3, 4, 5, 6, 7, 8])), [(5, 6)]);
}

#[test]
fn o7_the_window_is_open_at_its_far_edge() {
    // The first is exactly 300 s old when the sixth comes: outside of (t - 300 s, t].
    assert_eq!(pages(&at(&[0, 1, 2, 3, 4, 300_000])), []);
    assert_eq!(pages(&at(&[0, 1, 2, 3, 4, 299_999])), [(5, 6)]);
}

#[test]
fn o7_it_pages_again_after_the_window_has_fallen_to_five() {
    // At 300,000 the window has lost one of six and holds five: armed again, and the new one is
    // the sixth.
    assert_eq!(pages(&at(&[0, 1, 2, 3, 4, 5, 300_000])), [(5, 6), (6, 6)]);
    // One more in between, and the window never fell to five.
    assert_eq!(pages(&at(&[0, 1, 2, 3, 4, 5, 6, 300_000])), [(5, 6)]);
}

#[test]
fn o7_clients_and_codes_are_counted_apart() {
    let mut events = Vec::new();
    for i in 0..5 {
        events.extend([(i, "a", WARNING), (i, "b", WARNING), (i, "a", OTHER)]);
    }
    assert_eq!(pages(&events), []);
    events.push((6, "a", OTHER));
    assert_eq!(pages(&events), [(15, 6)]);
}

#[test]
fn an_unknown_code_is_told_apart() {
    let contract = owlclaw();
    assert!(Alerts::new(&contract, 10).observe(Duration::ZERO, "a", "nope", None).is_none());
}

#[test]
fn a_million_clients_take_bounded_memory() {
    let contract = owlclaw();
    let mut alerts = Alerts::new(&contract, 5_000);
    let mut paged = Vec::new();
    for i in 0..1_000_000u64 {
        let client = format!("client-{i}-{}", "x".repeat((i % 400) as usize));
        alerts.observe(Duration::from_millis(i / 100), &client, WARNING, None).unwrap();
        assert!(alerts.remembered() <= 10_001);
        // One that keeps failing is seen in the flood.
        if i % 2_000 == 0
            && i < 20_000
            && alerts
                .observe(Duration::from_millis(i / 100), "hot", WARNING, None)
                .unwrap()
                .is_some()
        {
            paged.push(i / 2_000);
        }
    }
    assert_eq!(paged, [5]);
    assert!(alerts.forgotten() > 900_000, "and it says that it forgot");
}

#[test]
fn clients_that_went_quiet_are_forgotten_without_loss() {
    let contract = owlclaw();
    let mut alerts = Alerts::new(&contract, 1_000_000);
    for window in 0..20u64 {
        for client in 0..100 {
            alerts
                .observe(
                    Duration::from_secs(window * 301),
                    &format!("{window}-{client}"),
                    WARNING,
                    None,
                )
                .unwrap();
        }
        assert!(alerts.remembered() <= 200);
    }
    assert_eq!(alerts.forgotten(), 0);
}

/// Keeps every event and counts anew each time.
#[derive(Default)]
struct Model {
    events: HashMap<(u8, bool), Vec<u64>>,
    armed: HashMap<(u8, bool), bool>,
}

impl Model {
    fn observe(&mut self, t: u64, key: (u8, bool)) -> Option<usize> {
        let events = self.events.entry(key).or_default();
        let inside = |events: &[u64]| events.iter().filter(|e| t - **e < 300_000).count();
        let armed = self.armed.entry(key).or_insert(true);
        if inside(events) <= 5 {
            *armed = true;
        }
        events.push(t);
        let count = inside(events);
        let pages = count > 5 && *armed;
        if pages {
            *armed = false;
        }
        pages.then_some(count)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn o7_equals_the_naive_model(
        // Steps that add up to a window again and again: the edges are where it goes wrong.
        steps in prop::collection::vec((
            prop::sample::select(&[0u64, 0, 1, 49_999, 50_000, 50_001, 60_000, 100_000, 299_999, 300_000][..]),
            0u8..2,
            prop::bool::weighted(0.2),
        ), 1..200)
    ) {
        let contract = owlclaw();
        let mut alerts = Alerts::new(&contract, DEFAULT_CAPACITY);
        let mut model = Model::default();
        let mut t = 0;
        for (step, client, other) in steps {
            t += step;
            let code = if other { OTHER } else { WARNING };
            let page = alerts.observe(Duration::from_millis(t), &client.to_string(), code, None).unwrap();
            prop_assert_eq!(page.map(|p| p.count), model.observe(t, (client, other)));
        }
    }
}
