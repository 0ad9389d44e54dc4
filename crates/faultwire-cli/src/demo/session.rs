//! A plain client: it sends a call and takes what comes.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::edge;
use crate::problem::Problem;

/// A server, and the pipes to it.
pub struct Session {
    process: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    calls: u64,
}

/// What came back.
pub enum Heard {
    Reply(Value),
    NoJson(String),
    Nothing,
    Closed,
}

impl Session {
    /// Starts a server and says hello.
    pub fn start(command: &[&str]) -> Result<Self, Problem> {
        let failed = |e: std::io::Error| {
            Problem::bad(command[0], format!("cannot be started: {e}"), "free some processes")
        };
        let mut start = Command::new(command[0]);
        start.args(&command[1..]).stdin(Stdio::piped()).stdout(Stdio::piped());
        // What the user has set for servers of their own is not for these.
        for name in edge::own_variables() {
            start.env_remove(name);
        }
        let mut process = start.stderr(Stdio::piped()).spawn().map_err(failed)?;
        let (stdin, stdout) = (process.stdin.take(), process.stdout.take());
        let stderr = process.stderr.take();
        let complaints = std::thread::spawn(move || {
            let mut said = Vec::new();
            // All is read, so that nobody is held up, and only the beginning is kept.
            if let Some(mut stderr) = stderr {
                let _ = stderr.by_ref().take(4096).read_to_end(&mut said);
                let _ = std::io::copy(&mut stderr, &mut std::io::sink());
            }
            String::from_utf8_lossy(&said).into_owned()
        });
        let (heard, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.into_iter().flat_map(|out| BufReader::new(out).split(b'\n')) {
                let Ok(line) = line else { break };
                if heard.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                    break;
                }
            }
        });
        let mut session = Self { process, stdin, lines, calls: 0 };
        let hello = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "faultwire-demo", "version": env!("CARGO_PKG_VERSION") },
        });
        session.send(
            &json!({ "jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": hello }),
        );
        if session.lines.recv_timeout(Duration::from_secs(10)).is_err() {
            drop(session);
            let said = complaints.join().unwrap_or_default();
            let said = said.lines().next().unwrap_or("it says nothing").to_owned();
            return Err(Problem::bad(&command.join(" "), said, "mend this first"));
        }
        session.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        // The list is known before anything is timed, as with any client.
        session.send(&json!({ "jsonrpc": "2.0", "id": "tools", "method": "tools/list" }));
        let _ = session.lines.recv_timeout(Duration::from_secs(10));
        Ok(session)
    }

    /// Calls a tool, and waits for whatever comes first.
    pub fn call(&mut self, tool: &str, arguments: &str, patience: Duration) -> (Heard, Duration) {
        self.calls += 1;
        let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
        let params = json!({ "name": tool, "arguments": arguments });
        let since = edge::instant();
        self.send(&json!({
            "jsonrpc": "2.0", "id": self.calls, "method": "tools/call", "params": params,
        }));
        let heard = match self.lines.recv_timeout(patience) {
            Ok(line) => match serde_json::from_str(&line) {
                Ok(reply) => Heard::Reply(reply),
                Err(_) => Heard::NoJson(line),
            },
            Err(RecvTimeoutError::Timeout) => Heard::Nothing,
            Err(RecvTimeoutError::Disconnected) => Heard::Closed,
        };
        (heard, since.elapsed())
    }

    fn send(&mut self, message: &Value) {
        if let Some(stdin) = &mut self.stdin {
            // A server that is gone is noticed by its silence.
            let _ = stdin.write_all(format!("{message}\n").as_bytes()).and_then(|()| stdin.flush());
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.stdin = None;
        for _ in 0..100 {
            if !matches!(self.process.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
