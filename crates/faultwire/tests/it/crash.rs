//! Nothing that was acknowledged is lost, whatever fails and whenever the power does. A seed is a
//! full reproduction: `FAULTWIRE_SIM_SEED=<seed>` runs that one alone.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::sync::Arc;

use faultwire::audit::{Expect, Log, Options, Ticket, verify};

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
        let tickets = submitted(sim, &log, &names);
        for (incident, ticket) in names.into_iter().zip(tickets) {
            if let Ok(receipt) = ticket.wait() {
                acked(incident, receipt.seq);
            }
        }
        let _ = log.close();
    }
    acknowledged
}

/// Hands entries to the log's own thread: one, and the others while it writes that one. So each
/// run has the same batches, however busy the machine is.
fn submitted(sim: &Sim, log: &Log, names: &[String]) -> Vec<Ticket> {
    sim.hold();
    let first = log.submit(entry(&names[0]));
    if log.failure().is_none() {
        sim.wait_for_held();
    }
    let others = names[1..].iter().map(|name| log.submit(entry(name)));
    let tickets = [first].into_iter().chain(others).collect();
    sim.release();
    tickets
}

/// What goes wrong in one run after another on the same disk.
struct Course {
    disk: Sim,
    acknowledged: Vec<(u64, String)>,
    /// The operations of each run.
    log: Vec<Vec<String>>,
}

/// Runs the script on a disk in trouble, and again on what is left of it, so many times.
fn course(seed: u64, troubles: u32) -> Course {
    let kinds = [Kind::Eio, Kind::Enospc, Kind::KillBefore, Kind::KillAfter];
    let mut course = Course { disk: Sim::new(None), acknowledged: Vec::new(), log: Vec::new() };
    for n in 0..troubles {
        let mine = spread(seed.rotate_left(13 * n) ^ u64::from(n));
        let kind = kinds[usize::try_from(mine % 4).unwrap()];
        // Opening a log that was in trouble takes the most care, so every other one is there.
        let opening = n > 0 && mine & (1 << 21) != 0;
        let at = 1 + (mine >> 3) % if opening { 16 } else { 68 };
        course.disk.trouble(Trouble { at, kind });
        // Without this one every failed sync drops everything.
        if mine & (1 << 20) != 0 {
            course.disk.failed_syncs_keep((mine >> 5) | 2);
        }
        course.acknowledged.extend(script(&course.disk));
        course.log.push(course.disk.log());
        let last = n + 1 == troubles;
        if !last && (mine >> 24).is_multiple_of(3) {
            course.disk = course.disk.restarted();
        } else if !last {
            course.disk = course.disk.after_power_loss(mine | 2);
        }
    }
    course
}

/// After the troubles of this seed the log holds, whatever a loss of power then keeps.
fn survives(seed: u64, troubles: u32) {
    let course = course(seed, troubles);
    let what = format!("FAULTWIRE_SIM_SEED={seed}, {troubles} troubles: {:?}", course.log);
    for kept in [0, seed.wrapping_mul(31) | 2] {
        let what = format!("{what}, power loss {kept}");
        holds(&course.disk.after_power_loss(kept), &course.acknowledged, &what);
    }
    let what = format!("{what}, restarted");
    holds(&course.disk.restarted(), &course.acknowledged, &what);
}

fn spread(n: u64) -> u64 {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8
}

/// The seed to reproduce, if one is named.
#[expect(clippy::disallowed_methods, reason = "a test's only way to be told which seed to run")]
fn named_seed() -> Option<u64> {
    let named = std::env::var("FAULTWIRE_SIM_SEED").ok()?;
    Some(named.parse().expect("FAULTWIRE_SIM_SEED is a whole number"))
}

/// So many seeds of a random sample, or the one that is named.
fn sample(count: u64) -> Vec<u64> {
    if let Some(seed) = named_seed() {
        return vec![seed];
    }
    let base = RandomState::new().build_hasher().finish();
    let _ = writeln!(io::stderr(), "the sample begins with FAULTWIRE_SIM_SEED={}", spread(base));
    (0..count).map(|n| spread(base.wrapping_add(n))).collect()
}

#[test]
fn k10_two_troubles_lose_nothing() {
    for seed in sample(600) {
        survives(seed, 2);
    }
}

#[test]
fn k10_three_troubles_lose_nothing() {
    for seed in sample(200) {
        survives(seed, 3);
    }
}

/// Names of files that hold bytes of a random key or log id end in a hash of them.
fn without_hashes(log: &[Vec<String>]) -> Vec<String> {
    let cut = |operation: &String| match operation.find("torn-") {
        Some(at) => operation[..at].to_owned(),
        None => operation.clone(),
    };
    log.iter().flatten().map(cut).collect()
}

#[test]
fn k10_a_seed_is_a_full_reproduction() {
    for seed in (1..=40).map(spread) {
        let (once, again) = (course(seed, 3), course(seed, 3));
        assert_eq!(without_hashes(&once.log), without_hashes(&again.log), "seed {seed}");
        assert_eq!(once.acknowledged, again.acknowledged, "seed {seed}");
    }
}

/// A cut is only in memory until a sync has returned. A writer that is killed leaves torn bytes;
/// the next one cuts them off and its sync fails, so the system shows a file that ends well, and
/// the disk has one that does not. Whoever opens it then sees nothing to repair.
#[test]
fn k10_a_cut_that_never_reached_the_disk_is_made_again() {
    let calm = Sim::new(None);
    script(&calm);
    let writes = (1..).zip(calm.log()).filter(|(_, op)| op.starts_with("write audit-log"));
    let mut tried = 0;
    for at in writes.map(|(at, _)| at).step_by(2).collect::<Vec<u64>>() {
        for next in 1..=12 {
            let killed = Sim::new(Some(Trouble { at, kind: Kind::KillAfter }));
            let mut acknowledged = script(&killed);
            // Some of the sectors of the last write are there.
            let left = killed.after_power_loss(0x5bd1_e995 + at);
            left.trouble(Trouble { at: next, kind: Kind::Eio });
            acknowledged.extend(script(&left));
            let what = format!("{:?}, then Eio {:?}", killed.log(), left.log());
            for seed in [0, 2] {
                holds(&left.after_power_loss(seed), &acknowledged, &what);
            }
            tried += 1;
        }
    }
    assert!(tried > 100, "{tried}");
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
    for seed in sample(6000) {
        survives(seed, 2);
        survives(seed, 3);
    }
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
    let operations = calm.operations();
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
