//! What `serve` costs, in one run against the same server over HTTP without it: in front of a
//! process, and in front of that server itself. Each figure is measured right after that of the
//! bare server, because the machine's speed varies. The output has the medians of all rounds, and
//! of the ratios within them.
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
const WARM: Duration = Duration::from_millis(200);
const CONNECTIONS: usize = 64;
const HALF_OPEN: usize = 1000;

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("child") => child(),
        Some("http-child") => http_child(),
        rounds => {
            let rounds = rounds.and_then(|r| r.parse().ok()).unwrap_or(15);
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

/// A connection that is reused.
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
async fn latencies(
    connection: &mut Connection,
    ids: &AtomicU64,
    cell: Duration,
) -> io::Result<Vec<f64>> {
    let (mut times, until) = (Vec::new(), Instant::now() + cell);
    while Instant::now() < until {
        let body = call(ids.fetch_add(1, Ordering::Relaxed), "ok");
        let since = Instant::now();
        connection.ask(body).await?;
        times.push(since.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}

/// Connections whose clients began a request and do not continue.
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
async fn throughput(
    connections: &mut Vec<Connection>,
    tool: &'static str,
    cell: Duration,
) -> io::Result<f64> {
    let since = Instant::now();
    let busy = connections.drain(..).enumerate().map(|(at, mut connection)| {
        tokio::spawn(async move {
            let mut done = 0;
            while since.elapsed() < cell {
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

/// Connections to one address, in one session.
struct Peer {
    connections: Vec<Connection>,
    ids: AtomicU64,
}

impl Peer {
    async fn meet(address: &str) -> io::Result<Self> {
        let session = begin(address)?;
        let mut connections = Vec::new();
        for _ in 0..CONNECTIONS {
            connections.push(Connection::open(address, &session).await?);
        }
        Ok(Self { connections, ids: AtomicU64::new(1) })
    }

    /// Latencies, once it is warm.
    async fn latencies(&mut self) -> io::Result<Vec<f64>> {
        latencies(&mut self.connections[0], &self.ids, WARM).await?;
        latencies(&mut self.connections[0], &self.ids, CELL).await
    }

    /// Calls a second, once it is warm.
    async fn throughput(&mut self, tool: &'static str) -> io::Result<f64> {
        throughput(&mut self.connections, tool, WARM).await?;
        throughput(&mut self.connections, tool, CELL).await
    }
}

/// Figures of all rounds, each with the one that it is compared with.
#[derive(Default)]
struct Pairs(Vec<(f64, f64)>);

impl Pairs {
    fn before(&self) -> f64 {
        median(&mut self.0.iter().map(|(before, _)| *before).collect::<Vec<_>>())
    }

    fn after(&self) -> f64 {
        median(&mut self.0.iter().map(|(_, after)| *after).collect::<Vec<_>>())
    }

    fn ratio(&self) -> f64 {
        median(&mut self.0.iter().map(|(before, after)| after / before).collect::<Vec<_>>())
    }
}

/// All rounds of one gateway, each figure after that of the bare server.
#[derive(Default)]
struct Cells {
    p50: Pairs,
    ok: Pairs,
    fail: Pairs,
    /// Of the gateway, without and with connections that are half open.
    p99: Pairs,
}

impl Cells {
    async fn round(&mut self, direct: &str, gateway: &str) -> io::Result<()> {
        let (mut bare, mut ours) = (Peer::meet(direct).await?, Peer::meet(gateway).await?);
        let at = |times: &[f64], percent: usize| times[times.len() * percent / 100];
        let (without, with) = (bare.latencies().await?, ours.latencies().await?);
        self.p50.0.push((at(&without, 50), at(&with, 50)));
        let half_open = half_open(gateway)?;
        let crowded = ours.latencies().await?;
        self.p99.0.push((at(&with, 99), at(&crowded, 99)));
        drop(half_open);
        self.ok.0.push((bare.throughput("ok").await?, ours.throughput("ok").await?));
        self.fail.0.push((bare.throughput("fail").await?, ours.throughput("fail").await?));
        Ok(())
    }
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
    let names = ["serve, in front of a process", "serve, in front of a URL"];
    let mut all = names.map(|_| Cells::default());
    for round in 0..rounds {
        eprintln!("round {} of {rounds}", round + 1);
        let direct = Listening::start(&words(&[&own, "http-child"]))?;
        let url = format!("http://{}/mcp", direct.address);
        let before = [words(&["--", &own, "child"]), words(&["--upstream", &url])];
        for (cells, before) in all.iter_mut().zip(before) {
            let _ = fs::remove_dir_all(&audit);
            let gateway = Listening::start(&[serve.clone(), before].concat())?;
            cells.round(&direct.address, &gateway.address).await?;
        }
    }
    let _ = fs::remove_dir_all(&audit);
    println!(
        "| | p50 at 1 in flight | × direct | calls/s at 64 | × direct | failures/s at 64, durable | × direct |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (name, Cells { p50, ok, fail, .. }) in names.iter().zip(&all) {
        println!(
            "| direct | {:.1} µs | 1.00 | {:.0} | 1.00 | {:.0} | 1.000 |",
            p50.before(),
            ok.before(),
            fail.before(),
        );
        println!(
            "| {name} | {:.1} µs | {:.2} | {:.0} | {:.2} | {:.0} | {:.3} |",
            p50.after(),
            p50.ratio(),
            ok.after(),
            ok.ratio(),
            fail.after(),
            fail.ratio(),
        );
    }
    println!();
    for (name, Cells { p99, .. }) in names.iter().zip(&all) {
        println!(
            "{name}: p99 {:.0} µs, with {HALF_OPEN} half-open connections {:.0} µs, × {:.2}",
            p99.before(),
            p99.after(),
            p99.ratio(),
        );
    }
    Ok(())
}
