//! The bundled server: a real MCP server over stdio, for the legacy and the modern era, with tools
//! that work and tools that fail in many ways. It writes raw JSON-RPC, because no SDK would let it
//! misbehave like this.

mod tools;
mod tricks;

use std::io::{self, BufRead, Write};
use std::process::ExitCode;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use tools::Act;

const MODERN: &str = "2026-07-28";
const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// Serves until stdin ends.
pub fn serve() -> ExitCode {
    let desk = Arc::new(Desk::default());
    for line in io::stdin().lock().split(b'\n') {
        let Ok(line) = line else { break };
        match serde_json::from_slice(&line) {
            Ok(Value::Array(messages)) => {
                let replies: Vec<Value> = messages.iter().filter_map(Desk::plain).collect();
                desk.say(&Value::from(replies));
            }
            Ok(message) => match desk.take(message) {
                Next::GoOn => {}
                Next::Exit(code) => return ExitCode::from(code),
                Next::Deaf => loop {
                    std::thread::park();
                },
            },
            Err(_) => {}
        }
    }
    ExitCode::SUCCESS
}

/// What to do after a message.
pub(crate) enum Next {
    GoOn,
    Exit(u8),
    /// Stop reading for ever.
    Deaf,
}

/// Writes messages to the client, and keeps the client's answers.
#[derive(Default)]
pub(crate) struct Desk {
    out: Mutex<()>,
    answers: Mutex<Vec<Value>>,
    answered: Condvar,
}

impl Desk {
    fn take(self: &Arc<Self>, message: Value) -> Next {
        if message.get("method").is_none() {
            self.answers.lock().unwrap_or_else(PoisonError::into_inner).push(message);
            self.answered.notify_all();
            return Next::GoOn;
        }
        let Some(id) = message.get("id").cloned() else { return Next::GoOn };
        if message["method"] != "tools/call" {
            self.say(&Self::plain(&message).unwrap_or_default());
            return Next::GoOn;
        }
        let params = message["params"].clone();
        let name = params["name"].as_str().unwrap_or_default();
        let Some(tool) = tools::find(name) else {
            self.say(&error(&id, -32602, &format!("Unknown tool: {name}")));
            return Next::GoOn;
        };
        let call =
            Call { id, arguments: params["arguments"].clone(), meta: params["_meta"].clone() };
        match tool.act {
            Act::Answer(answer) => {
                self.say(&call.answered(answer(&call.arguments)));
                Next::GoOn
            }
            Act::Refuse(refuse) => {
                self.say(&json!({ "jsonrpc": "2.0", "id": call.id, "error": refuse() }));
                Next::GoOn
            }
            Act::Trick(trick) => trick(self, &call),
        }
    }

    /// The reply to everything but a tool call.
    fn plain(message: &Value) -> Option<Value> {
        let id = message.get("id")?;
        let asked = &message["params"]["protocolVersion"];
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": LEGACY.iter().find(|v| **v == *asked).unwrap_or(&LEGACY[0]),
                "capabilities": { "tools": { "listChanged": true } },
                "serverInfo": info(),
            }),
            "server/discover" => json!({
                "supportedVersions": [MODERN],
                "capabilities": { "tools": {} },
                "serverInfo": info(),
                "ttlMs": 0,
                "cacheScope": "private",
            }),
            "ping" => json!({}),
            "tools/list" => json!({ "tools": tools::list(), "ttlMs": 0, "cacheScope": "private" }),
            "tools/call" => {
                let name = message["params"]["name"].as_str().unwrap_or_default();
                match tools::find(name).map(|tool| tool.act) {
                    Some(Act::Answer(answer)) => answer(&message["params"]["arguments"]),
                    _ => return Some(error(id, -32602, "Not in a batch")),
                }
            }
            method => return Some(error(id, -32601, &format!("Method not found: {method}"))),
        };
        Some(reply(id, result, &message["params"]["_meta"]))
    }

    /// Writes one message.
    pub(crate) fn say(&self, message: &Value) {
        self.write(format!("{message}\n").as_bytes());
    }

    /// Writes bytes. If the client is gone, there is no place to report it.
    pub(crate) fn write(&self, bytes: &[u8]) {
        let _whole = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let mut out = io::stdout().lock();
        let _ = out.write_all(bytes).and_then(|()| out.flush());
    }

    /// Waits for the client's answer to a request of this server.
    pub(crate) fn answer_to(&self, id: &str) -> Value {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(at) = answers.iter().position(|answer| answer["id"] == *id) {
                return answers.swap_remove(at);
            }
            let waited = self.answered.wait_timeout(answers, Duration::from_mins(10));
            answers = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// A tool call.
#[derive(Clone)]
pub(crate) struct Call {
    pub id: Value,
    pub arguments: Value,
    pub meta: Value,
}

impl Call {
    /// The reply with this result.
    fn answered(&self, result: Value) -> Value {
        reply(&self.id, result, &self.meta)
    }
}

/// A reply. Results of the modern era say that they are complete.
fn reply(id: &Value, mut result: Value, meta: &Value) -> Value {
    if meta.get("io.modelcontextprotocol/protocolVersion").is_some() {
        result["resultType"] = "complete".into();
    }
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

fn info() -> Value {
    json!({ "name": "faultwire-demo", "version": env!("CARGO_PKG_VERSION") })
}

fn error(id: &Value, code: i64, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}
