//! A plain client: it sends a call and returns the first answer.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::edge;
use crate::problem::Problem;

/// A server, and the pipes to it.
pub struct DemoSession {
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

impl DemoSession {
    /// Starts a server and initializes the session.
    pub fn start(command: &[&str]) -> Result<Self, Problem> {
        let failed = |e: std::io::Error| {
            Problem::bad(command[0], format!("cannot start: {e}"), "close some processes")
        };
        let mut start = Command::new(command[0]);
        start.args(&command[1..]).stdin(Stdio::piped()).stdout(Stdio::piped());
        // The user's settings for other servers do not apply to these.
        for name in edge::own_variables() {
            start.env_remove(name);
        }
        let mut process = start.stderr(Stdio::piped()).spawn().map_err(failed)?;
        let (stdin, stdout) = (process.stdin.take(), process.stdout.take());
        let stderr = process.stderr.take();
        let complaints = std::thread::spawn(move || {
            let mut said = Vec::new();
            // Everything is read, so that the server does not block, but only the beginning is kept.
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
            let said = said.lines().next().unwrap_or("no answer").to_owned();
            let what = format!("the server did not start: {said}");
            return Err(Problem::bad(&command.join(" "), what, "fix this first"));
        }
        session.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        // Clients fetch the list first, so its time does not count for a call.
        session.send(&json!({ "jsonrpc": "2.0", "id": "tools", "method": "tools/list" }));
        let _ = session.lines.recv_timeout(Duration::from_secs(10));
        Ok(session)
    }

    /// Calls a tool and waits for the first message.
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
            // If the server is gone, no answer will follow.
            let _ = stdin.write_all(format!("{message}\n").as_bytes()).and_then(|()| stdin.flush());
        }
    }
}

impl Drop for DemoSession {
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
