//! The real program, killed and failed at every turn: nothing that it acknowledged is lost.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use faultwire::audit::{Alarm, Disk, Expect, Log, Options, each_line, verify};
use serde_json::Value;

use crate::support::{CONTRACT, Dir, command};

/// Small segments and many checkpoints, so that everything happens in a short run.
const SETTINGS: [&str; 4] = ["--segment-bytes", "3000", "--checkpoint-every", "5"];

const FAULT: &[u8] = b"{\"code\":\"runtime.timeout\",\"tool\":\"search\"}\n";

/// How many a run under strace records.
const RECORDS: usize = 14;

type Acknowledged = BTreeMap<u64, String>;

/// What a line of the program's output acknowledges.
fn acknowledged(line: &str) -> Option<(u64, String)> {
    let answer: Value = serde_json::from_str(line).ok()?;
    Some((answer["seq"].as_u64()?, answer["incident"].as_str()?.to_owned()))
}

/// The log opens, is whole, and has every record that was acknowledged.
fn holds(dir: &Path, acknowledged: &Acknowledged, what: &str) {
    let options = Options { alarm: Arc::new(|_: &Alarm| {}), ..Options::default() };
    let log = Log::open(dir, options).unwrap_or_else(|e| panic!("{what}: {e}"));
    log.close().unwrap_or_else(|e| panic!("{what}: {e}"));
    let verified = verify(&Disk::new(dir), &Expect::default(), &mut |_| {});
    let verified = verified.unwrap_or_else(|e| panic!("{what}: {e}"));
    let mut there = Acknowledged::new();
    let each = each_line(&Disk::new(dir), |line| {
        let record: Value = serde_json::from_slice(line).unwrap();
        if let Some(incident) = record.pointer("/fault/incident").and_then(Value::as_str) {
            there.insert(record["seq"].as_u64().unwrap(), incident.to_owned());
        }
        Ok::<(), ()>(())
    });
    each.unwrap().unwrap();
    assert_eq!(verified.sealed, verified.records, "{what}");
    for (seq, incident) in acknowledged {
        assert_eq!(there.get(seq), Some(incident), "{what}: record {seq} is lost");
    }
}

fn append(dir: &Path) -> Command {
    let mut command = command(&["audit", "append", dir.to_str().unwrap()]);
    command.args(SETTINGS);
    command
}

fn started(mut command: Command) -> Child {
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    piped.spawn().unwrap()
}

/// Feeds faults until nobody takes them any more.
fn feed(mut stdin: ChildStdin, count: usize) {
    for _ in 0..count {
        if stdin.write_all(FAULT).is_err() {
            return;
        }
    }
}

fn kill_at_random(times: u64) {
    let mut dir = Dir::new();
    let mut acked = Acknowledged::new();
    let mut records = 0;
    for run in 0..times {
        if run % 25 == 0 {
            dir = Dir::new();
            acked.clear();
        }
        let mut child = started(append(dir.path()));
        let stdin = child.stdin.take().unwrap();
        let feeder = thread::spawn(move || feed(stdin, 100_000));
        let (sender, receiver) = mpsc::channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let reader = thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        // Some are killed while they open the log, some in the midst of it.
        if run % 4 > 0 {
            let _ = receiver
                .recv_timeout(Duration::from_secs(20))
                .map(|line| acked.extend(acknowledged(&line)));
        }
        thread::sleep(Duration::from_micros(run * 7919 % 12_000));
        child.kill().unwrap();
        child.wait().unwrap();
        reader.join().unwrap();
        feeder.join().unwrap();
        let before = acked.len();
        acked.extend(receiver.try_iter().filter_map(|line| acknowledged(&line)));
        records += acked.len() - before;
        holds(dir.path(), &acked, &format!("run {run}"));
    }
    assert!(records as u64 > times * 5, "only {records} records were acknowledged");
}

#[test]
fn k10_killed_200_times_nothing_acknowledged_is_lost() {
    kill_at_random(200);
}

#[test]
#[ignore = "takes minutes; scripts/soak-audit runs it"]
fn soak_killed_2000_times_nothing_acknowledged_is_lost() {
    kill_at_random(2000);
}

/// The program under strace, which lets system calls on the log's files go wrong.
fn strace(dir: &Path, options: &[&str], trace: &Path) -> Command {
    // strace counts the calls of each thread by itself, so all of them are made by one.
    let mut program = append(dir);
    program.args(["--in-flight", "1"]);
    let mut command = Command::new("strace");
    command.env("FAULTWIRE_CONTRACT", CONTRACT);
    command.args(["-f", "-y", "-s", "100000", "-o"]).arg(trace);
    for name in ["audit-log.jsonl", "audit-log.000001.jsonl", "audit-log.000002.jsonl"] {
        command.arg("-P").arg(dir.join(name));
    }
    for name in ["checkpoints", "key", "key.new", "pub", "pub.new"] {
        command.arg("-P").arg(dir.join(format!("audit-log.{name}")));
    }
    command.arg("-P").arg(dir).args(options);
    command.arg(program.get_program()).args(program.get_args());
    command
}

const MISSING: &str = "this test needs strace: apt-get install strace (scripts/test does it)";

/// Runs to its end with a few faults, each sent when the one before is answered. Gives back what
/// was acknowledged and what was complained.
fn run(mut command: Command) -> (Acknowledged, String) {
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().expect(MISSING);
    let mut stdin = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut acked = Acknowledged::new();
    for _ in 0..RECORDS {
        let sent = stdin.write_all(FAULT);
        let Some(Ok(answer)) = sent.ok().and_then(|()| answers.next()) else { break };
        acked.extend(acknowledged(&answer));
    }
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    (acked, String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn k10_every_system_call_may_fail_and_nothing_acknowledged_is_lost() {
    let trace_dir = Dir::new();
    let trace = trace_dir.path().join("trace");
    let mut injected = BTreeMap::new();
    for call in ["write", "fdatasync", "fsync", "rename", "openat", "ftruncate"] {
        for what in ["error=EIO", "error=ENOSPC", "signal=KILL"] {
            for at in 1.. {
                let dir = Dir::new();
                let trace_of = format!("trace={call}");
                let inject = format!("inject={call}:{what}:when={at}");
                let (acked, said) =
                    run(strace(dir.path(), &["-e", &trace_of, "-e", &inject], &trace));
                let traced = fs::read_to_string(&trace).unwrap();
                let hit = traced.contains("INJECTED") || traced.contains("+++ killed by SIGKILL");
                if !hit {
                    assert_eq!(acked.len(), RECORDS, "{inject}: {said}");
                    break;
                }
                *injected.entry(call).or_insert(0) += 1;
                assert!(!said.contains("panicked"), "{inject}: {said}");
                let loud = said.contains("AUDIT LOG FAILED") || said.contains("error: ");
                let silent = what == "signal=KILL" || call == "ftruncate";
                assert!(
                    loud || silent || acked.len() == RECORDS,
                    "{inject}: nothing was said: {said}"
                );
                holds(dir.path(), &acked, &inject);
            }
        }
    }
    for (call, least) in
        [("write", 50), ("fdatasync", 50), ("fsync", 20), ("rename", 9), ("openat", 30)]
    {
        assert!(injected[call] >= least, "{injected:?}");
    }
}

/// The order of system calls: no answer leaves before the sync of its record has returned.
#[test]
fn k10_no_answer_leaves_before_its_record_is_synced() {
    let dir = Dir::new();
    let trace = dir.path().join("trace");
    let log = dir.path().join("log");
    let mut command = Command::new("strace");
    command.env("FAULTWIRE_CONTRACT", CONTRACT);
    command.args(["-f", "-y", "-s", "1000000", "-e", "trace=write,fdatasync", "-o"]).arg(&trace);
    let program = append(&log);
    command.arg(program.get_program()).args(program.get_args());
    let (acked, said) = run(command);
    assert_eq!(acked.len(), RECORDS, "{said}");

    let (mut written, mut durable, mut answered) = (0, 0, 0);
    for line in fs::read_to_string(&trace).unwrap().lines() {
        let records = line.matches("\\\"type\\\":\\\"fault\\\"").count();
        if line.contains("audit-log.jsonl>, \"") {
            written += records;
        } else if line.contains("fdatasync") && line.ends_with("= 0") {
            durable = written;
        } else if line.contains("write(1<") {
            answered += line.matches("{\\\"seq\\\":").count();
            assert!(answered <= durable, "{answered} answers, {durable} records on disk: {line}");
        }
    }
    assert_eq!((written, durable, answered), (RECORDS, RECORDS, RECORDS));
}
