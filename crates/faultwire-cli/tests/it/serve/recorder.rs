//! A server that writes down every line it gets, byte for byte, and answers whatever has an id.

use std::path::PathBuf;

use crate::serve::gateway::Gateway;
use crate::support::Dir;

/// Asks the client so many questions, under the ids from 0 on.
pub const QUESTIONS: u64 = 300;

const SERVER: &str = r#"
import sys, json
out = open(sys.argv[1], "ab", buffering=0)
def say(m):
    sys.stdout.write(json.dumps(m) + "\n")
    sys.stdout.flush()
schema = {"type": "object", "properties": {"x": {}}}
tool = lambda name: {"name": name, "inputSchema": schema}
for line in sys.stdin.buffer:
    out.write(line)
    try:
        message = json.loads(line)
    except ValueError:
        continue
    for m in message if isinstance(message, list) else [message]:
        if not isinstance(m, dict) or "method" not in m:
            continue
        if m["method"] == "notifications/initialized":
            for n in range(int(sys.argv[2])):
                say({"jsonrpc": "2.0", "id": n, "method": "roots/list"})
        if "id" not in m:
            continue
        result = {"content": [{"type": "text", "text": "done"}]}
        if m["method"] == "initialize":
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                      "serverInfo": {"name": "recorder", "version": "1"}}
        elif m["method"] == "tools/list":
            result = {"tools": [tool("read_a"), tool("read_b"), tool("delete_all")]}
        elif m["method"] == "server/discover":
            say({"jsonrpc": "2.0", "id": m["id"], "error": {"code": -32601, "message": "no"}})
            continue
        say({"jsonrpc": "2.0", "id": m["id"], "result": result})
"#;

/// The token of a client that may call `read_*`.
pub const LIMITED: &str = "ann-token";
/// The token of a client that may call everything.
pub const FREE: &str = "bob-token";

/// A gateway before such a server, with two clients.
pub struct Recorder {
    pub gateway: Gateway,
    dir: Dir,
}

impl Recorder {
    pub fn new(more: &str) -> Self {
        let dir = Dir::new();
        let (config, lines) = (dir.join("faultwire.toml"), dir.join("lines"));
        std::fs::write(dir.path().join("ann"), LIMITED).unwrap();
        std::fs::write(dir.path().join("bob"), FREE).unwrap();
        let (ann, bob) = (dir.join("ann"), dir.join("bob"));
        let settings = format!(
            "contract = \"owlclaw\"\n{more}\n[[client]]\nname = \"ann\"\ntoken_file = {ann:?}\n\
             tools = [\"read_*\"]\n[[client]]\nname = \"bob\"\ntoken_file = {bob:?}\n"
        );
        std::fs::write(&config, settings).unwrap();
        let questions = QUESTIONS.to_string();
        let server = ["python3", "-c", SERVER, lines.as_str(), &questions];
        Self { gateway: Gateway::before(&["--config", &config], &server), dir }
    }

    /// Where the lines are.
    pub fn file(&self) -> PathBuf {
        self.dir.path().join("lines")
    }

    /// Everything that the servers got.
    pub fn heard(&self) -> String {
        let bytes = std::fs::read(self.file()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Begins a session as the client of a token.
    pub fn begin(&self, token: &str) -> String {
        let hello = r#"{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"t","version":"1"}}}"#;
        let answer = self.request(token, None).body(hello).send();
        let session = answer.header("mcp-session-id").expect("it names the session").to_owned();
        let thanks = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let answer = self.request(token, Some(&session)).body(thanks).send();
        assert_eq!(answer.status, 202);
        session
    }

    /// Sends a body as the client that may only read.
    pub fn post(&self, session: Option<&str>, body: &[u8]) -> crate::serve::http::Answer {
        self.request(LIMITED, session).body(body).send()
    }

    pub fn request(&self, token: &str, session: Option<&str>) -> crate::serve::http::Request {
        let request = self
            .gateway
            .request("POST", "/mcp")
            .header("content-type", "application/json")
            .header("accept", "application/json")
            .header("authorization", &format!("Bearer {token}"));
        match session {
            Some(session) => request.header("mcp-session-id", session),
            None => request,
        }
    }
}
