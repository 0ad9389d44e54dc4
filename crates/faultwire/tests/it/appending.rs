//! Appending: together, in the background, with too much at once, and when the log fails.

use std::collections::BTreeMap;
use std::fs;
use std::pin::pin;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use faultwire::audit::{Alarm, Call, Log, Options, Storage};
use faultwire::contract::{Profile, Surface, builtin};

use crate::sim::{Kind, Sim, Trouble};
use crate::support::{Dir, entry, fault, incidents, quiet, records};

#[test]
fn a6_64_threads_append_without_a_gap() {
    let dir = Dir::new();
    let log = Log::open(dir.path(), Options { segment_bytes: 200_000, ..quiet() }).unwrap();
    let acknowledged = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for t in 0..64 {
            let (log, acknowledged) = (&log, &acknowledged);
            scope.spawn(move || {
                let mut last = 0;
                for i in 0..25 {
                    let incident = format!("inc_{t}_{i}");
                    let seq = log.append(entry(&incident)).unwrap().seq.unwrap();
                    assert!(seq > last, "{seq} after {last}");
                    last = seq;
                    acknowledged.lock().unwrap().insert(seq, incident);
                }
            });
        }
    });
    // Before anything is closed, all of it is in the files.
    let there = dir.records();
    let seqs: Vec<u64> = there.iter().map(|r| r["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (0..there.len() as u64).collect::<Vec<_>>());
    let there: BTreeMap<u64, String> = incidents(&there).into_iter().collect();
    assert_eq!(there, *acknowledged.lock().unwrap());
    assert_eq!(there.len(), 64 * 25);
    log.close().unwrap();
    let verified = dir.verify().unwrap();
    assert!(verified.segments > 3 && verified.sealed == verified.records, "{verified:?}");
}

#[test]
fn a6_bundles_keep_their_order_and_lose_nothing() {
    let dir = Dir::new();
    // So little room that most of a bundle has to wait for its turn.
    let log = Log::open(dir.path(), Options { queue_bytes: 4096, ..quiet() }).unwrap();
    thread::scope(|scope| {
        for t in 0..8 {
            let log = &log;
            scope.spawn(move || {
                for i in 0..5 {
                    let bundle = (0..20).map(|k| entry(&format!("inc_{t}_{i}_{k}"))).collect();
                    let seqs: Vec<u64> = log
                        .append_all(bundle)
                        .into_iter()
                        .map(|receipt| receipt.unwrap().seq.unwrap())
                        .collect();
                    assert!(seqs.is_sorted_by(|a, b| a < b), "{seqs:?}");
                }
            });
        }
    });
    assert_eq!(incidents(&dir.records()).len(), 8 * 5 * 20);
    log.close().unwrap();
    dir.verify().unwrap();
    let after = log.append_all(vec![entry("inc_late"), entry("inc_later")]);
    assert!(after.iter().all(Result::is_err) && after.len() == 2);
}

/// Counts how often it is woken.
#[derive(Default)]
struct Woken(AtomicUsize, Mutex<Option<thread::Thread>>);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
        if let Some(thread) = &*self.1.lock().unwrap() {
            thread.unpark();
        }
    }
}

/// The smallest runtime there is.
fn block_on<F: Future>(future: F) -> F::Output {
    let woken = Arc::new(Woken(AtomicUsize::new(0), Mutex::new(Some(thread::current()))));
    let waker = Waker::from(Arc::clone(&woken));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        while woken.0.swap(0, Ordering::SeqCst) == 0 {
            thread::park_timeout(Duration::from_secs(20));
        }
    }
}

#[test]
fn a_future_for_those_who_have_a_runtime() {
    let dir = Dir::new();
    let log = Log::open(dir.path(), quiet()).unwrap();
    let tickets: Vec<_> = (0..50).map(|i| log.submit(entry(&format!("inc_{i}")))).collect();
    for (i, ticket) in tickets.into_iter().enumerate() {
        assert_eq!(block_on(ticket).unwrap().seq, Some(i as u64 + 1));
    }
    let answer = block_on(log.answer_async(
        fault("inc_async"),
        &Call::default(),
        Surface::Mcp,
        Profile::default(),
    ));
    assert_eq!(answer.receipt.unwrap().seq, Some(51));
    log.close().unwrap();
    assert_eq!(incidents(&dir.records()).len(), 51);
}

#[test]
fn too_much_at_once_waits_instead_of_growing() {
    let dir = Dir::new();
    let log = Log::open(dir.path(), Options { queue_bytes: 1500, ..quiet() }).unwrap();
    // Far more than fits the queue: tickets wait outside, and enter when they are polled.
    let tickets: Vec<_> = (0..40).map(|i| log.submit(entry(&format!("inc_{i}")))).collect();
    thread::scope(|scope| {
        for t in 0..8 {
            let log = &log;
            scope.spawn(move || log.append(entry(&format!("inc_thread_{t}"))).unwrap());
        }
        for (i, ticket) in tickets.into_iter().enumerate() {
            if i % 2 == 0 {
                block_on(ticket).unwrap();
            } else {
                ticket.wait().unwrap();
            }
        }
    });
    log.close().unwrap();
    assert_eq!(incidents(&dir.records()).len(), 48);
    dir.verify().unwrap();
}

/// While a sync takes long, only so much gathers: the next batches are small, too.
#[test]
fn what_gathers_is_bounded() {
    let sim = failing(Kind::Slow);
    let log =
        Log::open_on(Arc::new(sim.clone()), Options { queue_bytes: 1500, ..quiet() }).unwrap();
    let tickets: Vec<_> = (0..40).map(|i| log.submit(entry(&format!("inc_{i}")))).collect();
    for ticket in tickets {
        assert!(ticket.wait().is_ok());
    }
    log.close().unwrap();
    let mut batches: BTreeMap<u64, usize> = BTreeMap::new();
    for record in records(&sim) {
        *batches.entry(record["synced"].as_u64().unwrap()).or_default() += record.to_string().len();
    }
    assert!(batches.len() > 8 && batches.values().all(|bytes| *bytes < 4000), "{batches:?}");
}

#[test]
fn a_closed_log_takes_nothing_and_says_so() {
    let dir = Dir::new();
    let log = Log::open(dir.path(), quiet()).unwrap();
    let other = log.clone();
    log.append(entry("inc_1")).unwrap();
    log.close().unwrap();
    log.close().unwrap();
    assert_eq!(other.append(entry("inc_2")).unwrap_err().to_string(), "the log is closed");
    assert!(other.submit(entry("inc_3")).wait().is_err());
    assert!(block_on(other.submit(entry("inc_4"))).is_err());
    assert_eq!(incidents(&dir.records()).len(), 1);
}

#[test]
fn the_last_clone_closes_and_seals() {
    let dir = Dir::new();
    let log = Log::open(dir.path(), quiet()).unwrap();
    let ticket = log.submit(entry("inc_1"));
    drop((log.clone(), log, ticket));
    let verified = dir.verify().unwrap();
    assert_eq!((verified.records, verified.sealed), (2, 2));
}

fn alarms() -> (Options, Arc<Mutex<Vec<Alarm>>>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let ear = Arc::clone(&heard);
    let alarm = Arc::new(move |alarm: &Alarm| ear.lock().unwrap().push(alarm.clone()));
    (Options { alarm, ..quiet() }, heard)
}

/// The write that fails is the first one after the log was begun.
fn failing(kind: Kind) -> Sim {
    let calm = Sim::new(None);
    drop(Log::open_on(Arc::new(calm.clone()), quiet()).unwrap());
    let begun = calm.log().iter().position(|op| op == "write audit-log.checkpoints").unwrap();
    Sim::new(Some(Trouble { at: begun as u64 + 1, kind }))
}

#[test]
fn k10_a_failed_log_answers_with_the_contracts_code_ever_after() {
    for (name, code) in [("kaiza", "AUDIT_LOG_FAILED"), ("owlclaw", "internal.unexpected")] {
        let (options, heard) = alarms();
        let log = Log::open_on(Arc::new(failing(Kind::Enospc)), options).unwrap();
        let contract = builtin(name).unwrap();
        let given = faultwire::contract::Report {
            incident: Some("inc_x".to_owned()),
            tool: Some("write_file".to_owned()),
            message: Some("what really happened".to_owned()),
            ..faultwire::contract::Report::new(&contract.codes()[0].id)
        };
        let stamp = faultwire::contract::Stamp::default();
        for _ in 0..3 {
            let fault = faultwire::contract::Fault::new(&contract, given.clone(), &stamp).unwrap();
            let answer = log.answer(fault, &Call::default(), Surface::Mcp, Profile::default());
            assert_eq!((answer.fault.code().id.as_str(), answer.receipt), (code, None));
            let envelope = String::from_utf8(answer.envelope).unwrap();
            assert!(envelope.contains(code), "{envelope}");
            assert!(!envelope.contains("what really happened"), "{envelope}");
            assert_eq!(answer.fault.public().incident.as_deref(), Some("inc_x"));
            assert_eq!(answer.fault.public().tool.as_deref(), Some("write_file"));
        }
        let heard = heard.lock().unwrap();
        assert_eq!(heard.len(), 1, "once, and loudly: {heard:?}");
        let said = heard[0].to_string();
        assert!(said.contains("AUDIT LOG FAILED") && said.contains("No space left"), "{said}");
        assert!(log.failure().unwrap().to_string().contains("/sim/audit-log.jsonl"));
        assert!(log.close().is_err());
    }
}

static NOW: AtomicI64 = AtomicI64::new(1_768_836_730_123);

#[test]
fn fail_open_goes_on_and_writes_down_what_it_missed() {
    let (options, heard) = alarms();
    let options = Options { fail_open: true, clock: || NOW.load(Ordering::SeqCst), ..options };
    let sim = failing(Kind::Eio);
    let log = Log::open_on(Arc::new(sim.clone()), options).unwrap();
    assert_eq!(log.append(entry("inc_lost")).unwrap().seq, None);
    assert_eq!(log.append(entry("inc_lost_too")).unwrap().seq, None);
    let answer = log.answer(fault("inc_sent"), &Call::default(), Surface::Mcp, Profile::default());
    assert_eq!(answer.fault.code().id, "runtime.timeout", "it is answered as it is");
    // The disk works again; after a second the log tries.
    NOW.fetch_add(1000, Ordering::SeqCst);
    assert!(log.append(entry("inc_kept")).unwrap().seq.is_some());
    log.close().unwrap();
    let there = records(&sim);
    let gap = there.iter().find(|r| r["type"] == "gap").expect("a gap record");
    assert_eq!(gap["gap"]["missed"], 3);
    assert!(gap["gap"]["why"].as_str().unwrap().contains("Input/output error"), "{gap}");
    assert_eq!(gap["gap"]["since"], "2026-01-19T15:32:10.123Z");
    assert_eq!(incidents(&there).len(), 1);
    let heard = heard.lock().unwrap();
    assert!(matches!(
        heard[..],
        [Alarm::Failed { fail_open: true, .. }, Alarm::Recovered { missed: 3 }]
    ));
}

#[test]
fn a_directory_that_vanishes_is_a_failure() {
    let dir = Dir::new();
    let log = Log::open(dir.path(), quiet()).unwrap();
    log.append(entry("inc_1")).unwrap();
    fs::remove_dir_all(dir.path()).unwrap();
    let said = log.append(entry("inc_2")).unwrap_err().to_string();
    assert!(said.contains("audit-log.jsonl: the file was removed"), "{said}");
    assert!(log.append(entry("inc_3")).is_err(), "and it stays one");
}

#[test]
fn a_file_that_is_replaced_is_a_failure() {
    let dir = Dir::new();
    let log = Log::open(dir.path(), quiet()).unwrap();
    log.append(entry("inc_1")).unwrap();
    fs::rename(dir.path().join("audit-log.jsonl"), dir.path().join("old")).unwrap();
    dir.write("audit-log.jsonl", b"");
    assert!(log.append(entry("inc_2")).unwrap_err().to_string().contains("removed or replaced"));
}

#[test]
fn a_writer_that_panics_leaves_nobody_waiting() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    fn clock() -> i64 {
        assert!(CALLS.fetch_add(1, Ordering::SeqCst) != 6, "the clock breaks");
        1_768_836_730_123
    }
    let sim = Sim::new(None);
    let log = Log::open_on(Arc::new(sim.clone()), Options { clock, ..quiet() }).unwrap();
    let outcomes: Vec<_> = (0..9).map(|i| log.append(entry(&format!("inc_{i}"))).is_ok()).collect();
    assert!(outcomes.contains(&true) && !outcomes[8], "{outcomes:?}");
    assert!(!sim.names().unwrap().is_empty());
}

#[test]
fn segments_are_closed_by_age() {
    static DAY: AtomicI64 = AtomicI64::new(0);
    let dir = Dir::new();
    let clock = || 1_768_836_730_123 + DAY.load(Ordering::SeqCst) * 86_400_000;
    let log = Log::open(dir.path(), Options { clock, ..quiet() }).unwrap();
    log.append(entry("inc_1")).unwrap();
    DAY.store(1, Ordering::SeqCst);
    log.append(entry("inc_2")).unwrap();
    log.append(entry("inc_3")).unwrap();
    log.close().unwrap();
    assert_eq!(dir.verify().unwrap().segments, 2);
    assert!(String::from_utf8(dir.file("audit-log.000001.jsonl")).unwrap().contains("inc_1"));
}

#[test]
fn what_waits_when_the_log_fails_has_failed_too() {
    let sim = failing(Kind::SlowEio);
    let log = Log::open_on(Arc::new(sim.clone()), quiet()).unwrap();
    let first = log.submit(entry("inc_1"));
    thread::sleep(Duration::from_millis(20));
    let others: Vec<_> = (2..9).map(|i| log.submit(entry(&format!("inc_{i}")))).collect();
    assert!(first.wait().is_err());
    assert!(others.into_iter().all(|ticket| ticket.wait().is_err()));
    assert!(log.append(entry("inc_9")).is_err() && log.failure().is_some());
    assert!(log.close().is_err() && log.close().is_err(), "it stays a failure");
    assert!(records(&sim).iter().all(|r| r["type"] == "segment"), "nothing, and no gap");
}

#[test]
fn an_alarm_that_panics_leaves_nobody_waiting() {
    let alarm = Arc::new(|_: &Alarm| panic!("the alarm breaks"));
    let log = Log::open_on(Arc::new(failing(Kind::Eio)), Options { alarm, ..quiet() }).unwrap();
    assert!(log.submit(entry("inc_1")).wait().is_err());
    assert!(log.append(entry("inc_2")).is_err());
    assert!(log.close().is_err());
}

/// Drops what it holds when it is woken.
struct Holder(Mutex<Option<Log>>);

impl Wake for Holder {
    fn wake(self: Arc<Self>) {
        drop(self.0.lock().unwrap().take());
    }
}

#[test]
fn a_task_that_drops_the_log_when_it_is_woken_closes_it() {
    let dir = Dir::new();
    let log = Log::open(dir.path(), quiet()).unwrap();
    let mut ticket = Box::pin(log.submit(entry("inc_1")));
    let waker = Waker::from(Arc::new(Holder(Mutex::new(Some(log)))));
    let mut pending = true;
    for _ in 0..500 {
        pending &= ticket.as_mut().poll(&mut Context::from_waker(&waker)).is_pending();
        if !pending {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    drop((ticket, waker));
    // The lock is let go once the log is signed.
    let again = (0..100).find_map(|_| Log::open(dir.path(), quiet()).ok());
    again.expect("the log was closed").close().unwrap();
    let verified = dir.verify().unwrap();
    assert_eq!((verified.records, verified.sealed), (2, 2));
}

#[test]
fn fail_open_does_not_take_up_another_log() {
    static NOW: AtomicI64 = AtomicI64::new(1_768_836_730_123);
    let (options, heard) = alarms();
    let options = Options { fail_open: true, clock: || NOW.load(Ordering::SeqCst), ..options };
    let dir = Dir::new();
    let log = Log::open(dir.path(), options).unwrap();
    log.append(entry("inc_1")).unwrap();
    fs::remove_file(dir.path().join("audit-log.jsonl")).unwrap();
    assert_eq!(log.append(entry("inc_2")).unwrap().seq, None);
    NOW.fetch_add(5000, Ordering::SeqCst);
    assert_eq!(log.append(entry("inc_3")).unwrap().seq, None, "a new log would be a lie");
    log.close().unwrap();
    let heard = heard.lock().unwrap();
    assert!(matches!(heard.last(), Some(Alarm::Lost { missed: 2, .. })), "{heard:?}");
}
