//! Nothing that was acknowledged is lost, whatever fails and whenever the power does.

use std::sync::Arc;

use faultwire::audit::{Expect, Log, Options, verify};

use crate::sim::{Kind, Sim, Trouble};
use crate::support::{entry, incidents, quiet, records};

fn small() -> Options {
    Options { segment_bytes: 2500, checkpoint_every: 4, ..quiet() }
}

/// A run that does everything: begins a log, appends alone and together, rotates, signs, closes,
/// opens again. Gives back what was acknowledged.
fn script(sim: &Sim) -> Vec<(u64, String)> {
    let mut acknowledged = Vec::new();
    for round in 0..2 {
        let Ok(log) = Log::open_on(Arc::new(sim.clone()), small()) else { continue };
        let mut acked = |incident: String, seq: Option<u64>| {
            acknowledged.push((seq.expect("it fails closed"), incident));
        };
        for i in 0..4 {
            let incident = format!("inc_{round}_alone_{i}");
            if let Ok(receipt) = log.append(entry(&incident)) {
                acked(incident, receipt.seq);
            }
        }
        let names: Vec<String> = (0..5).map(|i| format!("inc_{round}_together_{i}")).collect();
        let tickets: Vec<_> = names.iter().map(|n| log.submit(entry(n))).collect();
        for (incident, ticket) in names.into_iter().zip(tickets) {
            if let Ok(receipt) = ticket.wait() {
                acked(incident, receipt.seq);
            }
        }
        let _ = log.close();
    }
    acknowledged
}

/// Runs the script on a disk in trouble, and after that on what a power loss leaves of it.
fn two_troubles(seed: u64) {
    let kinds = [Kind::Eio, Kind::Enospc, Kind::KillBefore, Kind::KillAfter];
    let pick = |n: u64| {
        kinds[usize::try_from(seed.rotate_right(7 * u32::try_from(n).unwrap()) % 4).unwrap()]
    };
    let first = Sim::new(Some(Trouble { at: 1 + seed % 71, kind: pick(1) }));
    let mut acknowledged = script(&first);
    let left =
        if seed.is_multiple_of(3) { first.restarted() } else { first.after_power_loss(seed | 2) };
    left.trouble(Trouble { at: 1 + seed.rotate_left(11) % 67, kind: pick(2) });
    acknowledged.extend(script(&left));
    let what = format!("seed {seed}: {:?}, then {:?}", first.log(), left.log());
    holds(&left.after_power_loss(seed.wrapping_mul(31) | 2), &acknowledged, &what);
    holds(&left.after_power_loss(0), &acknowledged, &what);
}

fn spread(n: u64) -> u64 {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8
}

#[test]
fn k10_one_trouble_after_another_loses_nothing() {
    (1..=150).map(spread).for_each(two_troubles);
}

/// A writer is killed just before a sync, and what it wrote is only in memory. The next one finds
/// it there, and its first steps fail: after a failed sync the system does not try again. The one
/// after that must not build on what never reached the disk.
#[test]
fn k10_what_a_killed_writer_left_in_memory_is_not_built_on() {
    let calm = Sim::new(None);
    script(&calm);
    let log = calm.log();
    let syncs = (1..).zip(&log).filter(|(_, op)| op.starts_with("sync "));
    let mut tried = 0;
    for at in syncs.map(|(at, _)| at).collect::<Vec<u64>>() {
        for (next, kind) in (1..=9).flat_map(|n| [(n, Kind::Eio), (n, Kind::KillBefore)]) {
            let killed = Sim::new(Some(Trouble { at, kind: Kind::KillBefore }));
            let mut acknowledged = script(&killed);
            let left = killed.restarted();
            left.trouble(Trouble { at: next, kind });
            acknowledged.extend(script(&left));
            let what = format!("{:?}, then {kind:?} {:?}", killed.log(), left.log());
            for seed in [0, 2] {
                holds(&left.after_power_loss(seed), &acknowledged, &what);
            }
            tried += 1;
        }
    }
    assert!(tried > 150, "{tried}");
}

#[test]
#[ignore = "takes minutes; scripts/soak-audit runs it"]
fn soak_one_trouble_after_another_loses_nothing() {
    (151..=6000).map(spread).for_each(two_troubles);
}

/// The log opens, holds, takes another record, and has all that was acknowledged.
fn holds(sim: &Sim, acknowledged: &[(u64, String)], what: &str) {
    let log = Log::open_on(Arc::new(sim.clone()), small());
    let log = log.unwrap_or_else(|e| panic!("{what}: {e}"));
    log.append(entry("inc_afterwards")).unwrap_or_else(|e| panic!("{what}: {e}"));
    log.close().unwrap_or_else(|e| panic!("{what}: {e}"));
    let verified = verify(sim, &Expect::default(), &mut |_| {});
    let verified = verified.unwrap_or_else(|e| panic!("{what}: {e}"));
    let there = records(sim);
    assert_eq!((verified.records, verified.sealed), (there.len() as u64, there.len() as u64));
    let there = incidents(&there);
    for acked in acknowledged {
        assert!(there.contains(acked), "{what}: {acked:?} is lost; there are {there:?}");
    }
    assert!(there.iter().any(|(_, incident)| incident == "inc_afterwards"));
}

#[test]
fn k10_nothing_acknowledged_is_lost_whatever_fails() {
    let calm = Sim::new(None);
    let all = script(&calm);
    assert_eq!(all.len(), 18);
    holds(&calm, &all, "calm");
    // As many threads run as they like, so a run may have a few operations more or less.
    let operations = calm.operations() + 8;
    assert!(operations > 60, "{:?}", calm.log());
    let mut provoked = 0;
    for at in 1..=operations {
        for kind in [Kind::Eio, Kind::Enospc, Kind::KillBefore, Kind::KillAfter] {
            let sim = Sim::new(Some(Trouble { at, kind }));
            let acknowledged = script(&sim);
            provoked += u64::from(sim.operations() >= at);
            for seed in [0, 1, 2, 0x1234_5678 + at] {
                let what = format!("{kind:?} at {at} of {:?}, seed {seed}", sim.log());
                holds(&sim.after_power_loss(seed), &acknowledged, &what);
            }
            if matches!(kind, Kind::Eio | Kind::Enospc) {
                let what = format!("{kind:?} at {at} of {:?}, restarted", sim.log());
                let restarted = sim.restarted();
                holds(&restarted, &acknowledged, &what);
                holds(&restarted.after_power_loss(0), &acknowledged, &format!("{what}, then off"));
            }
        }
    }
    assert!(provoked > 4 * 45, "{provoked}");
}
