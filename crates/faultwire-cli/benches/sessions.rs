//! What an idle session of `serve` costs: memory and threads of the gateway's process at 1,000,
//! 5,000 and 20,000 sessions to a server behind a URL, with 8,000 of them listening on a stream,
//! and with 2,000 sessions that have a process each. The load comes from another process.
//!
//! `cargo bench -p faultwire-cli --bench sessions [-- MOST_SESSIONS MOST_CHILDREN]`
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, reason = "a benchmark")]
#![allow(clippy::cast_precision_loss, reason = "a benchmark")]

mod parts;

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use parts::{child, http_child};

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments.get(at).and_then(|text| text.parse::<usize>().ok());
    match arguments.first().map(String::as_str) {
        Some("child") => child(),
        Some("http-child") => http_child(),
        _ => measure(number(0).unwrap_or(20_000), number(1).unwrap_or(2_000)),
    }
}

/// A process that says where it listens.
struct Listening {
    process: Child,
    address: String,
}

impl Listening {
    fn start(command: &mut Command) -> io::Result<Self> {
        let mut process = command.stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line)?;
        let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next());
        Ok(Self { process, address: address.unwrap_or_default().trim().to_owned() })
    }

    /// A line of the process's status: kilobytes, or a number.
    fn status(&self, name: &str) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim_matches([':', ' ', '\t']).split(' ').next().unwrap().parse().unwrap()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.process.id().to_string()).status();
        let _ = self.process.wait();
    }
}

/// Sends a request, and gives back the socket and the value of a header of its answer.
fn ask(address: &str, head: &str, body: &str) -> io::Result<(TcpStream, Option<String>)> {
    let mut socket = TcpStream::connect(address)?;
    let length = body.len();
    write!(
        socket,
        "{head}host: {address}\r\naccept: application/json, text/event-stream\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )?;
    let mut lines = BufReader::new(socket.try_clone()?).lines();
    let status = lines.next().transpose()?.unwrap_or_default();
    assert!(status.contains(" 20"), "{head}{body}: {status}");
    let mut session = None;
    for line in lines.map_while(Result::ok).take_while(|line| !line.is_empty()) {
        if let Some(id) = line.strip_prefix("mcp-session-id: ") {
            session = Some(id.to_owned());
        }
    }
    Ok((socket, session))
}

/// Begins a session; its id.
fn begin(address: &str) -> io::Result<String> {
    const HELLO: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"b","version":"1"}}}"#;
    const DONE: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let head = "POST /mcp HTTP/1.1\r\nconnection: close\r\n";
    let id = ask(address, head, HELLO)?.1.ok_or(io::ErrorKind::NotFound)?;
    ask(address, &format!("{head}mcp-session-id: {id}\r\n"), DONE)?;
    Ok(id)
}

/// Opens the stream of a session.
fn listen(address: &str, id: &str) -> io::Result<TcpStream> {
    let head = format!("GET /mcp HTTP/1.1\r\nmcp-session-id: {id}\r\n");
    Ok(ask(address, &head, "")?.0)
}

struct Growth<'a> {
    gateway: &'a Listening,
    kib: f64,
    threads: f64,
}

impl<'a> Growth<'a> {
    fn of(gateway: &'a Listening) -> Self {
        thread::sleep(Duration::from_secs(2));
        Self { gateway, kib: gateway.status("VmRSS"), threads: gateway.status("Threads") }
    }

    fn print(&self, what: &str, sessions: usize) {
        thread::sleep(Duration::from_secs(3));
        let (kib, threads) = (self.gateway.status("VmRSS"), self.gateway.status("Threads"));
        println!(
            "{sessions:>7} {what:<34} {:>8.1} MiB  {:>6.1} KiB a session  {:>+5} threads",
            kib / 1024.0,
            (kib - self.kib) / sessions as f64,
            threads - self.threads,
        );
    }
}

fn gateway(behind: &[&str]) -> io::Result<Listening> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("bench-sessions");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    let config = folder.join("faultwire.toml");
    fs::write(&config, "[serve]\nsessions = 30000\nspare = 0\nconnections = 16000\n")?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_faultwire"));
    command.arg("serve").args(["--port", "0", "--log", "error"]);
    command.arg("--config").arg(&config).arg("--audit").arg(folder.join("audit"));
    Listening::start(command.args(behind))
}

fn measure(most: usize, children: usize) -> io::Result<()> {
    let own = std::env::current_exe()?;
    let own = own.to_string_lossy();
    let server = Listening::start(Command::new(&*own).arg("http-child"))?;
    let url = format!("http://{}/mcp", server.address);
    {
        let gateway = gateway(&["--upstream", &url])?;
        begin(&gateway.address)?;
        let growth = Growth::of(&gateway);
        let mut ids = Vec::new();
        for step in [1_000, 5_000, 20_000].into_iter().filter(|step| *step <= most) {
            while ids.len() < step {
                ids.push(begin(&gateway.address)?);
            }
            growth.print("sessions, a URL behind them", ids.len());
        }
        let listeners = ids.len().min(8_000);
        let before = Growth::of(&gateway);
        let streams: Vec<_> =
            ids.iter().take(listeners).map(|id| listen(&gateway.address, id)).collect();
        before.print("of them with an open stream, beyond that", streams.len());
        for stream in streams {
            stream?.set_nonblocking(true)?;
        }
    }
    let gateway = gateway(&["--", &own, "child"])?;
    begin(&gateway.address)?;
    let growth = Growth::of(&gateway);
    let mut running = 0;
    for step in [children / 4, children] {
        while running < step {
            begin(&gateway.address)?;
            running += 1;
        }
        growth.print("sessions, a process behind each", running);
    }
    Ok(())
}
