//! Appends a second, against a bare group commit of the same bytes, in one run; and how long it
//! takes to check and to search a million records.
//!
//! `cargo bench -p faultwire` runs it. `AUDIT_BENCH_DIR` names the disk to measure.
#![allow(clippy::print_stdout, reason = "a benchmark prints what it measured")]
#![allow(clippy::cast_precision_loss, reason = "sizes in MB")]

use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use faultwire::audit::{
    Call, Disk, Entry, Expect, Filter, Index, IndexError, Log, Options, verify,
};
use faultwire::contract::{Condition, Fault, Report, Stamp, builtin};
use serde_json::json;

const WRITERS: [usize; 4] = [1, 8, 64, 256];
const ROUNDS: usize = 5;
const TIME: Duration = Duration::from_millis(1500);

fn main() {
    let dir = scratch();
    let fault = fault();
    let line = a_line(&dir, &fault);
    println!("{} bytes a record, {ROUNDS} rounds of {TIME:?}, medians\n", line.len());
    println!("| writers | bare, appends/s | ours, appends/s | ours / bare |");
    println!("|---|---|---|---|");
    for writers in WRITERS {
        let (mut bare, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            bare.push(measure_bare(&dir, &line, writers));
            ours.push(measure_ours(&dir, &fault, writers));
        }
        let (bare, ours) = (median(bare), median(ours));
        println!("| {writers} | {bare:.0} | {ours:.0} | {:.2} |", ours / bare);
    }
    println!("\nmaking one record: {:.2} µs", making(&fault));
    println!("memory: {} MiB resident at its peak", peak_mib());
    reading(&dir.join("large"), &fault);
    std::fs::remove_dir_all(dir).expect("the scratch directory goes");
}

const RECORDS: usize = 1_000_000;

/// Checking and searching a large log.
fn reading(dir: &Path, fault: &Fault) {
    let log = Log::open(dir, Options::default()).expect("a log");
    let mut tickets = std::collections::VecDeque::new();
    for i in 0..RECORDS {
        let call = Call { client: Some(format!("client {}", i % 101)), ..call() };
        tickets.push_back(log.submit(Entry::fault(fault, &call)));
        if tickets.len() > 4096 {
            for ticket in tickets.drain(..2048) {
                ticket.wait().expect("a record");
            }
        }
    }
    for ticket in tickets {
        ticket.wait().expect("a record");
    }
    log.close().expect("closed");
    let bytes: u64 = segments(dir).map(|path| path.metadata().expect("a file").len()).sum();
    let mb = |seconds: f64| bytes as f64 / 1e6 / seconds;
    println!("\n{RECORDS} records, {} MB, from the page cache\n", bytes / 1_000_000);
    println!("| | time | MB/s |\n|---|---|---|");
    let hashed = median((0..ROUNDS).map(|_| seconds(|| hash_alone(dir))).collect());
    println!("| hashing the bytes alone | {hashed:.2} s | {:.0} |", mb(hashed));
    let check = || {
        let verified = verify(&Disk::new(dir), &Expect::default(), &mut |_| {});
        verified.expect("it holds");
    };
    let verified = median((0..ROUNDS).map(|_| seconds(check)).collect());
    println!("| verify | {verified:.2} s | {:.0} |", mb(verified));
    let built = seconds(|| drop(Index::open(dir, &mut |_| {}).expect("an index")));
    println!("| build the index | {built:.2} s | {:.0} |", mb(built));
    let questions = [
        (
            "one client, the newest 50",
            Filter { client: Some("client 7".to_owned()), ..Filter::default() },
        ),
        ("a pattern that fits all", Filter { client: Some("cl*".to_owned()), ..Filter::default() }),
        (
            "a pattern that fits none",
            Filter { incident: Some("inc_x*".to_owned()), ..Filter::default() },
        ),
        (
            "the last hour, one origin",
            Filter { since_ms: Some(0), origin: Some("client".to_owned()), ..Filter::default() },
        ),
    ];
    for (name, filter) in questions {
        let ask = || {
            let index = Index::open(dir, &mut |_| {}).expect("an index");
            let found = index.find::<IndexError>(&filter, Some(50), |line| {
                black_box(line);
                Ok(())
            });
            found.expect("an answer");
            black_box(index.count(&filter, 100_000).expect("an answer"));
        };
        let asked = median((0..ROUNDS).map(|_| seconds(ask)).collect());
        println!("| query: {name} | {asked:.3} s | |");
    }
}

fn segments(dir: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(dir).expect("the log").map(|e| e.expect("an entry").path());
    entries.filter(|path| path.extension().is_some_and(|e| e == "jsonl"))
}

fn hash_alone(dir: &Path) {
    use sha2::Digest;
    let mut buffer = vec![0; 256 * 1024];
    for path in segments(dir) {
        let mut file = File::open(path).expect("a segment");
        let mut hash = sha2::Sha256::new();
        loop {
            match file.read(&mut buffer).expect("it can be read") {
                0 => break,
                n => hash.update(&buffer[..n]),
            }
        }
        black_box(hash.finalize());
    }
}

#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn seconds(work: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    work();
    begun.elapsed().as_secs_f64()
}

/// Microseconds from a fault to the record's bytes.
#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn making(fault: &Fault) -> f64 {
    const TIMES: u32 = 100_000;
    let begun = Instant::now();
    for _ in 0..TIMES {
        black_box(Entry::fault(black_box(fault), &call()));
    }
    begun.elapsed().as_secs_f64() * 1e6 / f64::from(TIMES)
}

#[expect(clippy::disallowed_methods, reason = "a benchmark is told where to write")]
fn scratch() -> PathBuf {
    let base =
        std::env::var_os("AUDIT_BENCH_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    let dir = base.join(format!("audit-bench-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a directory to write to");
    dir
}

fn fault() -> Fault {
    let contract = builtin("owlclaw").expect("it is built in");
    let report = Report {
        condition: Some(Condition::Timeout),
        message: Some("The tool did not answer within 60 s".to_owned()),
        tool: Some("search_documents".to_owned()),
        method: Some("tools/call".to_owned()),
        details: Some(json!({ "deadline_ms": 60_000, "progress": 3 })),
        ..Report::new("runtime.timeout")
    };
    let stamp = Stamp { now_ms: 1_768_836_730_123, random: 7, show_stack: false };
    Fault::new(&contract, report, &stamp).expect("a fault")
}

fn call() -> Call {
    Call {
        request: Some(json!(17)),
        client: Some("desktop".to_owned()),
        elapsed_ms: Some(60_004),
        ..Call::default()
    }
}

/// One line of a log, as it is on disk.
fn a_line(dir: &Path, fault: &Fault) -> Vec<u8> {
    let dir = dir.join("one");
    let log = Log::open(&dir, Options::default()).expect("a log");
    log.append(Entry::fault(fault, &call())).expect("a record");
    log.close().expect("closed");
    let text = std::fs::read(dir.join("audit-log.jsonl")).expect("the log");
    let second = text.split_inclusive(|b| *b == b'\n').nth(1);
    second.expect("a second line").to_vec()
}

fn measure_ours(dir: &Path, fault: &Fault, writers: usize) -> f64 {
    let dir = dir.join("ours");
    let _ = std::fs::remove_dir_all(&dir);
    let log = Log::open(&dir, Options::default()).expect("a log");
    let rate = rate(writers, || {
        log.append(Entry::fault(black_box(fault), &call())).expect("a record");
    });
    log.close().expect("closed");
    rate
}

fn measure_bare(dir: &Path, line: &[u8], writers: usize) -> f64 {
    let path = dir.join("bare");
    let _ = std::fs::remove_file(&path);
    let file = OpenOptions::new().create(true).append(true).open(&path).expect("a file");
    let bare = Bare { file, state: Mutex::default(), work: Condvar::new() };
    thread::scope(|scope| {
        scope.spawn(|| bare.serve());
        let rate = rate(writers, || bare.append(black_box(line)));
        bare.state.lock().expect("no panic").over = true;
        bare.work.notify_all();
        rate
    })
}

/// Only group commit, in the same two ways as the log: a single caller writes itself, a thread
/// writes what arrives meanwhile, and each batch wakes only its own callers.
struct Bare {
    file: File,
    state: Mutex<BareState>,
    work: Condvar,
}

#[derive(Default)]
struct BareState {
    gathered: Vec<u8>,
    batch: Arc<BareBatch>,
    busy: bool,
    handed_over: bool,
    over: bool,
}

#[derive(Default)]
struct BareBatch {
    durable: Mutex<bool>,
    done: Condvar,
}

impl Bare {
    fn append(&self, line: &[u8]) {
        let mut state = self.state.lock().expect("no panic");
        state.gathered.extend_from_slice(line);
        let batch = Arc::clone(&state.batch);
        if state.busy {
            drop(state);
        } else {
            state.busy = true;
            let taken = state.take();
            drop(state);
            self.write(&taken);
            let mut state = self.state.lock().expect("no panic");
            state.handed_over = !state.gathered.is_empty();
            state.busy = state.handed_over;
            if state.handed_over {
                self.work.notify_one();
            }
        }
        let mut durable = batch.durable.lock().expect("no panic");
        while !*durable {
            durable = batch.done.wait(durable).expect("no panic");
        }
    }

    fn serve(&self) {
        let mut state = self.state.lock().expect("no panic");
        loop {
            if state.over {
                return;
            }
            if !state.handed_over {
                state = self.work.wait(state).expect("no panic");
            } else if state.gathered.is_empty() {
                state.handed_over = false;
                state.busy = false;
            } else {
                let taken = state.take();
                drop(state);
                self.write(&taken);
                state = self.state.lock().expect("no panic");
            }
        }
    }

    fn write(&self, (bytes, batch): &(Vec<u8>, Arc<BareBatch>)) {
        (&self.file).write_all(bytes).expect("written");
        self.file.sync_data().expect("synced");
        *batch.durable.lock().expect("no panic") = true;
        batch.done.notify_all();
    }
}

impl BareState {
    fn take(&mut self) -> (Vec<u8>, Arc<BareBatch>) {
        (std::mem::take(&mut self.gathered), std::mem::take(&mut self.batch))
    }
}

/// How often per second all threads together finish the work.
#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn rate(writers: usize, work: impl Fn() + Sync) -> f64 {
    let start = Arc::new(std::sync::Barrier::new(writers + 1));
    thread::scope(|scope| {
        let threads: Vec<_> = (0..writers)
            .map(|_| {
                let start = Arc::clone(&start);
                let work = &work;
                scope.spawn(move || {
                    start.wait();
                    let begun = Instant::now();
                    let mut done = 0_u32;
                    while begun.elapsed() < TIME {
                        work();
                        done += 1;
                    }
                    done
                })
            })
            .collect();
        start.wait();
        let begun = Instant::now();
        let done: u32 = threads.into_iter().map(|t| t.join().expect("no panic")).sum();
        f64::from(done) / begun.elapsed().as_secs_f64()
    })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) / 1024
}
