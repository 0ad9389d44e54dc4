//! A gateway that runs for a test.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::serve::http::{Answer, Request};
use crate::support::{Dir, command};
use crate::wrap::client::{FAULTWIRE, PATIENCE};

pub struct Gateway {
    pub process: Child,
    pub address: String,
    pub audit: Dir,
}

impl Gateway {
    /// In front of the demo server.
    pub fn demo(args: &[&str]) -> Self {
        Self::before(args, &[FAULTWIRE, "demo-server"])
    }

    /// In front of a server that is started with a command.
    pub fn before(args: &[&str], server: &[&str]) -> Self {
        let mut all = args.to_vec();
        all.push("--");
        all.extend(server);
        Self::start(&all)
    }

    /// In front of a server behind a URL.
    pub fn before_url(args: &[&str], url: &str) -> Self {
        let mut all = args.to_vec();
        all.extend(["--upstream", url]);
        Self::start(&all)
    }

    pub fn start(args: &[&str]) -> Self {
        Self::start_as(args, |_| {})
    }

    /// With something in its environment.
    pub fn start_with_env(args: &[&str], environment: &[(&str, &str)]) -> Self {
        Self::start_as(args, |start| _ = start.envs(environment.iter().copied()))
    }

    /// With another stderr.
    pub fn start_with_stderr(stderr: Stdio, args: &[&str]) -> Self {
        Self::start_as(args, |start| _ = start.stderr(stderr))
    }

    /// With a log that outlives it.
    pub fn start_with_log(log: &str, args: &[&str]) -> Self {
        Self::start_in(log, args, |_| {})
    }

    fn start_as(args: &[&str], set: impl FnOnce(&mut Command)) -> Self {
        let audit = Dir::new();
        let mut gateway = Self::start_in(&audit.join("log"), args, set);
        gateway.audit = audit;
        gateway
    }

    fn start_in(log: &str, args: &[&str], set: impl FnOnce(&mut Command)) -> Self {
        let mut all = vec!["serve", "--port", "0", "--audit", log];
        if !args.contains(&"--log") {
            all.extend(["--log", "off"]);
        }
        all.extend(args);
        let mut start = command(&all);
        set(&mut start);
        Self::spawn(&mut start)
    }

    /// Whatever the command says.
    pub fn spawn(start: &mut Command) -> Self {
        let audit = Dir::new();
        start.stdout(Stdio::piped());
        let mut process = start.spawn().expect("it starts");
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let address = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| Some(line.split_once("http://")?.1.split('/').next()?.to_owned()))
            .expect("it says where it listens");
        std::thread::spawn(move || lines.for_each(drop));
        Self { process, address, audit }
    }

    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    pub fn request(&self, method: &str, path: &str) -> Request {
        Request::new(&self.address, method, path)
    }

    /// A message of a client that takes everything.
    pub fn post(&self, session: Option<&str>, message: &Value) -> Answer {
        let mut request = self
            .request("POST", "/mcp")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        if let Some(session) = session {
            request = request.header("mcp-session-id", session);
        }
        request.body(message.to_string()).send()
    }

    /// Begins a session of the legacy era; its id.
    pub fn begin(&self) -> String {
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "tester", "version": "1" } } });
        let answer = self.post(None, &hello);
        assert_eq!(answer.status, 200, "{answer:?}");
        let session = answer.header("mcp-session-id").expect("it names the session").to_owned();
        let thanks = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(self.post(Some(&session), &thanks).status, 202);
        session
    }

    pub fn call(&self, session: &str, id: u64, tool: &str, arguments: &Value) -> Value {
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
                           "params": { "name": tool, "arguments": arguments } });
        self.post(Some(session), &call).reply()
    }

    /// A request of the modern era.
    pub fn modern(&self, id: &Value, method: &str, params: &Value) -> Request {
        let request = self.request("POST", "/mcp");
        modern(request.header("accept", "application/json, text/event-stream"), id, method, params)
    }

    /// All records so far.
    pub fn records(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.audit.path().join("log/audit-log.jsonl"));
        let text = text.unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Ends it with SIGTERM; the exit code.
    pub fn end(mut self) -> Option<i32> {
        self.signal("TERM");
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if let Some(status) = self.process.try_wait().unwrap() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("it does not end");
    }

    pub fn signal(&self, signal: &str) {
        let pid = self.process.id().to_string();
        let told = Command::new("kill").args(["-s", signal, &pid]).status();
        assert!(told.unwrap().success());
    }
}

/// Makes it a request of the modern era.
pub fn modern(request: Request, id: &Value, method: &str, params: &Value) -> Request {
    let mut params = params.clone();
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    let mut request = request
        .header("content-type", "application/json")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", method);
    if let Some(name) = params["name"].as_str() {
        request = request.header("mcp-name", name);
    }
    request.body(message.to_string())
}

impl Drop for Gateway {
    fn drop(&mut self) {
        if self.process.try_wait().is_ok_and(|ended| ended.is_none()) {
            self.signal("TERM");
            let until = Instant::now() + Duration::from_secs(5);
            while Instant::now() < until {
                if self.process.try_wait().is_ok_and(|ended| ended.is_some()) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }
}
