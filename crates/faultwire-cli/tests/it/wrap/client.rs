//! A client of the tests: a process on the other side of two pipes, and everything it said.

use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Dir, command};

/// Nothing in a test takes longer.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub const FAULTWIRE: &str = env!("CARGO_BIN_EXE_faultwire");

pub struct Client {
    pub process: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    waiting: VecDeque<String>,
    /// How many replies each id has had.
    pub replies: HashMap<String, u32>,
    pub audit: Dir,
    next_id: u64,
}

/// What came of a whole session.
pub struct Ended {
    pub replies: HashMap<String, u32>,
    pub records: Vec<Value>,
    pub code: Option<i32>,
}

impl Client {
    /// The demo server behind `wrap`, and the handshake done.
    pub fn demo(args: &[&str]) -> Self {
        let mut client = Self::wrap(args, &[FAULTWIRE, "demo-server"]);
        client.handshake();
        client
    }

    /// A server behind `wrap`.
    pub fn wrap(args: &[&str], server: &[&str]) -> Self {
        let audit = Dir::new();
        let log = audit.join("log");
        let mut all = vec!["wrap", "--audit", &log, "--log", "off"];
        all.extend(args);
        all.push("--");
        all.extend(server);
        Self::start(command(&all), audit)
    }

    /// A server by itself.
    pub fn direct(server: &[&str]) -> Self {
        let mut command = Command::new(server[0]);
        command.args(&server[1..]);
        Self::start(command, Dir::new())
    }

    pub fn start(mut command: Command, audit: Dir) -> Self {
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let stdin = process.stdin.take();
        let stdout = process.stdout.take().unwrap();
        let (heard, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).split(b'\n') {
                let Ok(line) = line else { break };
                let line = String::from_utf8(line).expect("what a client hears is UTF-8");
                if heard.send(line).is_err() {
                    break;
                }
            }
        });
        Self {
            process,
            stdin,
            lines,
            waiting: VecDeque::new(),
            replies: HashMap::new(),
            audit,
            next_id: 1,
        }
    }

    pub fn send(&mut self, line: &str) {
        self.write(format!("{line}\n").as_bytes());
    }

    pub fn write(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin.write_all(bytes).and_then(|()| stdin.flush()).expect("somebody reads");
    }

    /// The next line, as it came.
    pub fn line(&mut self, patience: Duration) -> Option<String> {
        if let Some(line) = self.waiting.pop_front() {
            return Some(line);
        }
        self.hear(patience)
    }

    fn hear(&mut self, patience: Duration) -> Option<String> {
        let line = match self.lines.recv_timeout(patience) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
        };
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"));
        let messages = message.as_array().cloned().unwrap_or_else(|| vec![message]);
        for message in messages.iter().filter(|m| m.get("method").is_none()) {
            let id = message.get("id").map_or("none".to_owned(), Value::to_string);
            *self.replies.entry(id).or_default() += 1;
        }
        Some(line)
    }

    /// The reply to a request, as it came. What else comes stays for later.
    pub fn reply_line(&mut self, id: &Value) -> String {
        let until = Instant::now() + PATIENCE;
        let is_it = |line: &str| {
            let message: Value = serde_json::from_str(line).unwrap();
            message.get("method").is_none() && message.get("id") == Some(id)
        };
        if let Some(at) = self.waiting.iter().position(|line| is_it(line)) {
            return self.waiting.remove(at).unwrap();
        }
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let line = self.hear(left).unwrap_or_else(|| panic!("no reply to {id}"));
            if is_it(&line) {
                return line;
            }
            self.waiting.push_back(line);
        }
    }

    pub fn reply(&mut self, id: &Value) -> Value {
        serde_json::from_str(&self.reply_line(id)).unwrap()
    }

    pub fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.post(method, params);
        self.reply(&id)
    }

    /// Sends a request; its id.
    pub fn post(&mut self, method: &str, params: &Value) -> Value {
        let id = json!(self.next_id);
        self.next_id += 1;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send(&request.to_string());
        id
    }

    pub fn post_call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.post("tools/call", &json!({ "name": tool, "arguments": arguments }))
    }

    pub fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let id = self.post_call(tool, arguments);
        self.reply(&id)
    }

    pub fn handshake(&mut self) -> Value {
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "elicitation": {}, "roots": {}, "sampling": {} },
            "clientInfo": { "name": "tests", "version": "1.2" },
        });
        let reply = self.ask("initialize", &params);
        self.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        reply
    }

    /// The failure that the log tells of, for a request.
    pub fn record_of(&self, id: &Value) -> Value {
        let of = |r: &Value| r["type"] == "fault" && r["call"]["request"] == *id;
        self.records().into_iter().find(of).unwrap_or_else(|| panic!("no record of {id}"))
    }

    /// Everything in the log.
    pub fn records(&self) -> Vec<Value> {
        records(&self.audit)
    }

    /// The names of the events in the log.
    pub fn events(&self) -> Vec<String> {
        let named = |r: Value| Some(r.get("name")?.as_str()?.to_owned());
        self.records().into_iter().filter_map(named).collect()
    }

    /// Waits until something is so.
    pub fn until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !is_so(self) {
            assert!(Instant::now() < until, "never: {what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn close_input(&mut self) {
        self.stdin = None;
    }

    /// Closes stdin, and hears everything until the other side has ended.
    pub fn end(mut self) -> Ended {
        self.close_input();
        while self.hear(PATIENCE).is_some() {}
        let code = self.process.wait().unwrap().code();
        Ended { replies: std::mem::take(&mut self.replies), records: records(&self.audit), code }
    }

    /// A number of `/proc/PID/status`.
    pub fn status(&self, name: &str) -> u64 {
        status_of(self.process.id(), name)
    }
}

impl Drop for Client {
    /// The other side ends what it started, if it is let.
    fn drop(&mut self) {
        self.stdin = None;
        let pid = self.process.id().to_string();
        for _ in 0..300 {
            if !matches!(self.process.try_wait(), Ok(None)) {
                return;
            }
            let _ = Command::new("kill").args(["-TERM", &pid]).status();
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// How much time of a core a process takes while nothing happens, in hundredths of a second.
pub fn ticks_at_rest(pid: u32) -> u64 {
    let ticks = || -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let fields = stat.rsplit(") ").next().unwrap().split(' ');
        fields.skip(11).take(2).map(|field| field.parse::<u64>().unwrap()).sum()
    };
    std::thread::sleep(Duration::from_millis(300));
    let before = ticks();
    std::thread::sleep(Duration::from_secs(1));
    ticks() - before
}

pub fn status_of(pid: u32, name: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or_default()
}

fn records(audit: &Dir) -> Vec<Value> {
    let text = std::fs::read_to_string(audit.path().join("log/audit-log.jsonl"));
    let whole = |line: &str| serde_json::from_str(line).ok();
    text.unwrap_or_default().lines().filter_map(whole).collect()
}

/// The envelope in a tool result that is a failure.
pub fn envelope(reply: &Value) -> Value {
    assert_eq!(reply["result"]["isError"], true, "{reply}");
    let text = reply["result"]["content"][0]["text"].as_str().expect("a text");
    serde_json::from_str(text).expect("the text is the envelope")
}
