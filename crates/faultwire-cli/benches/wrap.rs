//! What `wrap` costs, in one run against the bare server, which answers in microseconds, against a
//! relay that only copies bytes, and against one that writes failures to disk before it passes them
//! on. Server and client parse every message as JSON. Figures are medians over rounds, in which all
//! run in turns.
//!
//! `cargo bench -p faultwire-cli --bench wrap [-- ROUNDS]`
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, reason = "a benchmark")]
#![allow(clippy::disallowed_methods, clippy::cast_precision_loss, reason = "it measures time")]

mod parts;

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use parts::{child, median};
use serde::Deserialize;

const CELL: Duration = Duration::from_millis(700);

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("child") => child(),
        Some("relay") => relay(&arguments[1..], None),
        Some("record") => relay(&arguments[2..], Some(File::create(&arguments[1])?)),
        rounds => measure(rounds.and_then(|r| r.parse().ok()).unwrap_or(7)),
    }
}

/// Copies bytes in both directions: the minimal cost of a relay. With a file, failures are written
/// to disk before they are passed on, and those that arrive together share a sync: the minimal cost
/// of recording.
fn relay(command: &[String], mut failures: Option<File>) -> io::Result<()> {
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let (mut to, mut from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    std::thread::spawn(move || {
        let (mut stdin, mut buffer) = (io::stdin().lock(), vec![0; 256 * 1024]);
        while let Ok(n @ 1..) = stdin.read(&mut buffer) {
            if to.write_all(&buffer[..n]).is_err() {
                break;
            }
        }
    });
    let mut buffer = vec![0; 256 * 1024];
    while let Ok(n @ 1..) = from.read(&mut buffer) {
        if let Some(file) = &mut failures
            && memchr::memmem::find(&buffer[..n], b"\"isError\":true").is_some()
        {
            file.write_all(&buffer[..n])?;
            file.sync_data()?;
        }
        io::stdout().write_all(&buffer[..n])?;
        io::stdout().flush()?;
    }
    child.wait().map(drop)
}

struct Peer {
    process: Child,
    stdin: ChildStdin,
    stdout: ChildStdout,
    sent: u64,
    started: Duration,
    /// The bytes that were read.
    heard: Vec<u8>,
    /// The calls that wait.
    open: HashSet<u64>,
}

/// What every client reads of a reply.
#[derive(Deserialize)]
struct Reply {
    id: u64,
    result: CallResult,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallResult {
    #[serde(default)]
    is_error: bool,
}

impl Peer {
    fn start(command: &[String]) -> io::Result<Self> {
        let since = Instant::now();
        let mut process = Command::new(&command[0])
            .args(&command[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (stdin, stdout) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let (heard, open) = (Vec::with_capacity(256 * 1024), HashSet::new());
        let started = Duration::ZERO;
        let mut peer = Self { process, stdin, stdout, sent: 0, started, heard, open };
        let hello = r#"{"protocolVersion":"2025-11-25","capabilities":{}}"#;
        peer.ask(0, "initialize", hello)?;
        peer.started = since.elapsed();
        peer.ask(1, "tools/list", "{}")?;
        Ok(peer)
    }

    fn ask(&mut self, id: u64, method: &str, params: &str) -> io::Result<()> {
        let line = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}\n"
        );
        self.open.insert(id);
        self.stdin.write_all(line.as_bytes())?;
        while self.hear(false)? == 0 {}
        Ok(())
    }

    fn send(&mut self, tool: &str, count: usize) -> io::Result<()> {
        let mut lines = Vec::with_capacity(count * 96);
        for _ in 0..count {
            self.sent += 1;
            let (id, params) = (self.sent + 10, r#""arguments":{"n":7}"#);
            self.open.insert(id);
            writeln!(
                lines,
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"{tool}\",{params}}}}}"
            )?;
        }
        self.stdin.write_all(&lines)
    }

    /// Reads once; how many calls were answered.
    fn hear(&mut self, fails: bool) -> io::Result<usize> {
        let from = self.heard.len();
        self.heard.resize(from + 64 * 1024, 0);
        let n = self.stdout.read(&mut self.heard[from..])?;
        assert!(n > 0, "the peer went away");
        self.heard.truncate(from + n);
        let Some(end) = memchr::memrchr(b'\n', &self.heard) else { return Ok(0) };
        let mut answered = 0;
        for line in self.heard[..end].split(|b| *b == b'\n') {
            let reply: Reply = serde_json::from_slice(line)?;
            assert!(self.open.remove(&reply.id), "nobody asked");
            assert_eq!(reply.result.is_error, fails);
            answered += 1;
        }
        self.heard.drain(..=end);
        Ok(answered)
    }

    /// Median latency with one call in flight, in microseconds.
    fn latency(&mut self, tool: &str) -> io::Result<f64> {
        let (mut times, until) = (Vec::new(), Instant::now() + CELL);
        while Instant::now() < until {
            let since = Instant::now();
            self.send(tool, 1)?;
            while self.hear(tool == "fail")? == 0 {}
            times.push(since.elapsed().as_secs_f64() * 1e6);
        }
        Ok(median(&mut times))
    }

    /// Calls a second with 64 in flight, and CPU microseconds of the peer a call.
    fn throughput(&mut self, tool: &str) -> io::Result<(f64, f64)> {
        let (since, cpu) = (Instant::now(), self.cpu());
        self.send(tool, 64)?;
        let (mut open, mut done) = (64, 0usize);
        while open > 0 {
            let heard = self.hear(tool == "fail")?;
            done += heard;
            open -= heard;
            if since.elapsed() < CELL {
                self.send(tool, heard)?;
                open += heard;
            }
        }
        let calls = done as f64;
        Ok((calls / since.elapsed().as_secs_f64(), (self.cpu() - cpu) * 1e6 / calls))
    }

    /// CPU seconds of the process itself, without its child.
    fn cpu(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.process.id()));
        let stat = stat.unwrap_or_default();
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
        let ticks = |i: usize| fields.get(i).and_then(|f| f.parse::<f64>().ok());
        (ticks(11).unwrap_or_default() + ticks(12).unwrap_or_default()) / 100.0
    }

    fn peak_mib(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id()));
        let status = status.unwrap_or_default();
        let line = status.lines().find(|l| l.starts_with("VmHWM")).unwrap_or_default();
        line.split_whitespace().nth(1).and_then(|k| k.parse::<f64>().ok()).unwrap_or_default()
            / 1024.0
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// All rounds of one peer.
#[derive(Default)]
struct Cells {
    start_ms: Vec<f64>,
    p50: Vec<f64>,
    ok: Vec<f64>,
    ok_cpu: Vec<f64>,
    fail: Vec<f64>,
    fail_cpu: Vec<f64>,
    peak: Vec<f64>,
}

fn measure(rounds: usize) -> io::Result<()> {
    let own = std::env::current_exe()?.display().to_string();
    let faultwire = env!("CARGO_BIN_EXE_faultwire").to_owned();
    let audit = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("bench-wrap");
    let direct = vec![own.clone(), "child".to_owned()];
    let relayed = [vec![own.clone(), "relay".to_owned()], direct.clone()].concat();
    let kept = audit.with_extension("relay");
    let record = vec![own, "record".to_owned(), kept.display().to_string()];
    let recorded = [record, direct.clone()].concat();
    let wrap = ["wrap", "--log", "off", "--audit"].map(str::to_owned).to_vec();
    let place = vec![audit.display().to_string(), "--".to_owned()];
    let sleepy = audit.with_extension("toml");
    fs::write(&sleepy, "busy_poll = false\n")?;
    let config = vec!["--config".to_owned(), sleepy.display().to_string()];
    let base = [vec![faultwire], wrap].concat();
    let wrapped = [base.clone(), place.clone(), direct.clone()].concat();
    let place = [vec![place[0].clone()], config, vec![place[1].clone()]].concat();
    let sleeping = [base, place, direct.clone()].concat();
    let peers = [
        ("direct", direct),
        ("copying relay", relayed),
        ("recording relay", recorded),
        ("faultwire wrap", wrapped),
        ("faultwire wrap, busy_poll = false", sleeping),
    ];
    let mut all: Vec<Cells> = peers.iter().map(|_| Cells::default()).collect();
    for round in 0..rounds {
        eprintln!("round {} of {rounds}", round + 1);
        for ((_, command), cells) in peers.iter().zip(&mut all) {
            let _ = fs::remove_dir_all(&audit);
            let _ = fs::remove_file(&kept);
            let mut peer = Peer::start(command)?;
            cells.start_ms.push(peer.started.as_secs_f64() * 1e3);
            cells.p50.push(peer.latency("ok")?);
            let (ok, cpu) = peer.throughput("ok")?;
            cells.ok.push(ok);
            cells.ok_cpu.push(cpu);
            let (fail, cpu) = peer.throughput("fail")?;
            cells.fail.push(fail);
            cells.fail_cpu.push(cpu);
            cells.peak.push(peer.peak_mib());
        }
    }
    let _ = fs::remove_dir_all(&audit);
    let _ = fs::remove_file(&kept);
    report(&peers.map(|(name, _)| name), &mut all);
    Ok(())
}

fn report(names: &[&str], all: &mut [Cells]) {
    let direct = &mut all[0];
    let (p50, ok, fail) =
        (median(&mut direct.p50), median(&mut direct.ok), median(&mut direct.fail));
    println!(
        "| | p50 at 1 in flight | × direct | calls/s at 64 | × direct | CPU a call | failures/s at 64, durable | × direct | CPU a failure | start | peak RSS |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for (name, cells) in names.iter().zip(all) {
        let (own_p50, own_ok, own_fail) =
            (median(&mut cells.p50), median(&mut cells.ok), median(&mut cells.fail));
        println!(
            "| {name} | {own_p50:.1} µs | {:.2} | {own_ok:.0} | {:.2} | {:.1} µs | {own_fail:.0} | {:.3} | {:.1} µs | {:.1} ms | {:.1} MiB |",
            own_p50 / p50,
            own_ok / ok,
            median(&mut cells.ok_cpu),
            own_fail / fail,
            median(&mut cells.fail_cpu),
            median(&mut cells.start_ms),
            median(&mut cells.peak),
        );
    }
}
