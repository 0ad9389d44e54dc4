//! What `serve` costs, in one run against the same server over HTTP without it: in front of a
//! process, and in front of that server itself. Figures are medians over rounds in which all take
//! turns.
//!
//! `cargo bench -p faultwire-cli --bench serve [-- ROUNDS]`
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, reason = "a benchmark")]
#![allow(clippy::disallowed_methods, clippy::cast_precision_loss, reason = "it measures time")]

mod parts;

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hyper::Request;
use hyper::client::conn::http1::{self as client, SendRequest};
use hyper_util::rt::TokioIo;
use parts::{child, http_child, median, read, runtime};
use tokio::net;

const CELL: Duration = Duration::from_millis(700);
const CONNECTIONS: usize = 64;
const HALF_OPEN: usize = 1000;

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("child") => child(),
        Some("http-child") => http_child(),
        rounds => {
            let rounds = rounds.and_then(|r| r.parse().ok()).unwrap_or(5);
            runtime()?.block_on(measure(rounds))
        }
    }
}

/// A process that listens.
struct Listening {
    process: Child,
    address: String,
}

impl Listening {
    fn start(command: &[String]) -> io::Result<Self> {
        let mut process =
            Command::new(&command[0]).args(&command[1..]).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line)?;
        let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next());
        Ok(Self { process, address: address.unwrap_or_default().trim().to_owned() })
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.process.id().to_string()).status();
        let _ = self.process.wait();
    }
}

/// A connection that is used again and again.
struct Connection {
    sender: SendRequest<String>,
    address: String,
    session: String,
}

impl Connection {
    async fn open(address: &str, session: &str) -> io::Result<Self> {
        let socket = net::TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        let (sender, connection) =
            client::handshake(TokioIo::new(socket)).await.map_err(io::Error::other)?;
        tokio::spawn(connection);
        Ok(Self { sender, address: address.to_owned(), session: session.to_owned() })
    }

    async fn ask(&mut self, body: String) -> io::Result<()> {
        let request = Request::post("/mcp")
            .header("host", &self.address)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-session-id", &self.session)
            .body(body)
            .map_err(io::Error::other)?;
        let response = self.sender.send_request(request).await.map_err(io::Error::other)?;
        let answer = read(response.into_body()).await?;
        assert!(answer.contains("\"result\""), "{answer}");
        Ok(())
    }
}

fn call(id: u64, tool: &str) -> String {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"{tool}\",\"arguments\":{{\"n\":7}}}}}}"
    )
}

/// Begins a session; its id.
fn begin(address: &str) -> io::Result<String> {
    let mut socket = TcpStream::connect(address)?;
    let body = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#;
    write!(
        socket,
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let lines = BufReader::new(socket).lines().map_while(Result::ok);
    let of = |line: String| line.strip_prefix("mcp-session-id: ").map(str::to_owned);
    lines.take_while(|line| !line.is_empty()).find_map(of).ok_or(io::ErrorKind::NotFound.into())
}

/// The latencies with one call in flight, in microseconds, from the shortest on.
async fn latencies(connection: &mut Connection, ids: &AtomicU64) -> io::Result<Vec<f64>> {
    let (mut times, until) = (Vec::new(), Instant::now() + CELL);
    while Instant::now() < until {
        let body = call(ids.fetch_add(1, Ordering::Relaxed), "ok");
        let since = Instant::now();
        connection.ask(body).await?;
        times.push(since.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}

/// Connections whose clients have begun something, and do not go on.
fn half_open(address: &str) -> io::Result<Vec<TcpStream>> {
    let begun = [
        "",
        "POST /mcp HT",
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{",
    ];
    let open = |n: usize| {
        let mut socket = TcpStream::connect(address)?;
        socket.write_all(begun[n % begun.len()].as_bytes())?;
        Ok(socket)
    };
    (0..HALF_OPEN).map(open).collect()
}

/// Calls a second over as many connections as calls are in flight.
async fn throughput(connections: &mut Vec<Connection>, tool: &'static str) -> io::Result<f64> {
    let since = Instant::now();
    let busy = connections.drain(..).enumerate().map(|(at, mut connection)| {
        tokio::spawn(async move {
            let mut done = 0;
            while since.elapsed() < CELL {
                connection.ask(call(1_000_000 * (at as u64 + 1) + done, tool)).await?;
                done += 1;
            }
            io::Result::Ok((connection, done))
        })
    });
    let mut all = 0;
    for task in busy.collect::<Vec<_>>() {
        let (connection, done) = task.await??;
        connections.push(connection);
        all += done;
    }
    Ok(all as f64 / since.elapsed().as_secs_f64())
}

/// All rounds of one peer.
#[derive(Default)]
struct Cells {
    p50: Vec<f64>,
    p99: Vec<f64>,
    /// With connections that are half open.
    p99_crowded: Vec<f64>,
    ok: Vec<f64>,
    fail: Vec<f64>,
}

async fn measure(rounds: usize) -> io::Result<()> {
    let own = std::env::current_exe()?.display().to_string();
    let audit = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("bench-serve");
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let place = audit.display().to_string();
    let serve = words(&[
        env!("CARGO_BIN_EXE_faultwire"),
        "serve",
        "--port",
        "0",
        "--log",
        "off",
        "--audit",
        &place,
    ]);
    let names = ["direct", "serve, in front of a process", "serve, in front of a URL"];
    let mut all: Vec<Cells> = names.iter().map(|_| Cells::default()).collect();
    for round in 0..rounds {
        eprintln!("round {} of {rounds}", round + 1);
        let direct = Listening::start(&words(&[&own, "http-child"]))?;
        let url = format!("http://{}/mcp", direct.address);
        let before = [words(&["--", &own, "child"]), words(&["--upstream", &url])];
        for (at, cells) in all.iter_mut().enumerate() {
            let _ = fs::remove_dir_all(&audit);
            let behind = at.checked_sub(1).map(|at| [serve.clone(), before[at].clone()].concat());
            let gateway = behind.map(|command| Listening::start(&command)).transpose()?;
            let address = gateway.as_ref().map_or(&direct.address, |gateway| &gateway.address);
            let session = begin(address)?;
            let mut connections = Vec::new();
            for _ in 0..CONNECTIONS {
                connections.push(Connection::open(address, &session).await?);
            }
            let ids = AtomicU64::new(1);
            let alone = latencies(&mut connections[0], &ids).await?;
            cells.p50.push(alone[alone.len() / 2]);
            if gateway.is_some() {
                let half_open = half_open(address)?;
                let crowded = latencies(&mut connections[0], &ids).await?;
                let p99 = |times: &[f64]| times[times.len() * 99 / 100];
                cells.p99.push(p99(&alone));
                cells.p99_crowded.push(p99(&crowded));
                drop(half_open);
            }
            cells.ok.push(throughput(&mut connections, "ok").await?);
            cells.fail.push(throughput(&mut connections, "fail").await?);
        }
    }
    let _ = fs::remove_dir_all(&audit);
    let of = |values: &[f64]| median(&mut values.to_vec());
    let (p50, ok, fail) = (of(&all[0].p50), of(&all[0].ok), of(&all[0].fail));
    println!(
        "| | p50 at 1 in flight | × direct | calls/s at 64 | × direct | failures/s at 64, durable | × direct |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (name, cells) in names.iter().zip(&mut all) {
        let (own_p50, own_ok, own_fail) =
            (median(&mut cells.p50), median(&mut cells.ok), median(&mut cells.fail));
        println!(
            "| {name} | {own_p50:.1} µs | {:.2} | {own_ok:.0} | {:.2} | {own_fail:.0} | {:.3} |",
            own_p50 / p50,
            own_ok / ok,
            own_fail / fail,
        );
    }
    println!();
    for (name, cells) in names.iter().zip(&mut all).skip(1) {
        let (alone, crowded) = (median(&mut cells.p99), median(&mut cells.p99_crowded));
        println!(
            "{name}: p99 {alone:.0} µs, with {HALF_OPEN} half-open connections {crowded:.0} µs, × {:.2}",
            crowded / alone
        );
    }
    Ok(())
}
