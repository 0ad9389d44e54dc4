//! Hostile schemas of one server: the gateway's pages and its other servers answer meanwhile (X7).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::serve::gateway::{Gateway, modern};
use crate::support::Dir;
use crate::wrap::client::{FAULTWIRE, status_of};

/// What takes longer was stopped by something.
const SOON: Duration = Duration::from_secs(1);
/// In KiB; a gateway at rest takes a few tens of MiB in a build for tests.
const MOST_MEMORY: u64 = 300 * 1024;

/// A server whose every tool has another hostile schema, for its arguments or, when it is told so,
/// for its results, and which gives back its arguments.
const HOSTILE: &str = r##"
import sys, json
text = lambda *patterns: {"type": "object", "properties": {"text": {"allOf": [{"pattern": p} for p in patterns]}}}
node = {"$ref": "#"}
schemas = [
    text("^(?=(a+)+$)b"), text("(?<=(a|aa)+)b$"), text("^(a+)\\1+$b"), text("^(a+)+$"),
    text(*["[\\w\\p{L}]{%d}" % (160 + i) for i in range(60)]),
    text(*["[ab]*a[ab]{%d}c" % (10 + i % 50) for i in range(500)]),
    text("((a{100}){100}){100}"), text("\\s" * 2000),
    {"type": "object", "patternProperties": {"^(?=(a+)+$)b": {}, "(.*a){30}": {}}},
    {"type": "object", "properties": {"p%d" % i: {"$ref": "#", "anyOf": [node, node]} for i in range(1500)}},
    {"type": "object", "properties": {"text": {"allOf": [{"minLength": 1}] * 3000}}},
    {"type": "object", "properties": {"all": {"items": {"enum": list(range(9000))}}}},
]
outputs = len(sys.argv) > 1
plain = {"type": "object"}
tools = [{"name": "t%d" % i, "inputSchema": plain, "outputSchema": s} if outputs else {"name": "t%d" % i, "inputSchema": s} for i, s in enumerate(schemas * 3)]
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    r = {"content": [{"type": "text", "text": "ran"}]}
    if outputs: r["structuredContent"] = m.get("params", {}).get("arguments")
    if m["method"] == "initialize": r = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    if m["method"] == "tools/list": r = {"tools": tools}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
"##;

fn call_at(gateway: &Gateway, path: &str, tool: &str, arguments: &Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments });
    let request =
        gateway.request("POST", path).header("accept", "application/json, text/event-stream");
    modern(request, &json!(1), "tools/call", &params).send().reply()
}

#[test]
fn x7_hostile_schemas_stop_no_other_server() {
    check(&[]);
}

#[test]
fn x7_hostile_output_schemas_stop_no_other_server() {
    check(&["outputs"]);
}

fn check(more: &[&str]) {
    let server = [&["python3", "-c", HOSTILE], more].concat();
    let dir = Dir::new();
    let config = dir.join("faultwire.toml");
    let settings = format!(
        "[[mount]]\nname = \"good\"\ncommand = [{FAULTWIRE:?}, \"demo-server\"]\n\
         [[mount]]\nname = \"bad\"\ncommand = {}\n",
        json!(server)
    );
    std::fs::write(&config, settings).unwrap();
    let gateway = Gateway::start(&["--contract", "owlclaw", "--config", &config]);
    call_at(&gateway, "/mcp/good", "echo", &json!({ "text": "hi" }));
    let over = Arc::new(AtomicBool::new(false));
    let (mut slowest, mut answered) = (Duration::ZERO, 0);
    std::thread::scope(|scope| {
        for client in 0..4 {
            let (gateway, over) = (&gateway, Arc::clone(&over));
            scope.spawn(move || {
                let long = "ab".repeat(15_500);
                for tool in (0..36).map(|i| (i + 9 * client) % 36) {
                    let arguments =
                        json!({ "text": long, "all": vec![json!("x"); 1000], "p1": {} });
                    call_at(gateway, "/mcp/bad", &format!("t{tool}"), &arguments);
                }
                over.store(true, Ordering::Relaxed);
            });
        }
        while !over.load(Ordering::Relaxed) {
            let begin = Instant::now();
            assert_eq!(gateway.request("GET", "/healthz").send().status, 200);
            let reply = call_at(&gateway, "/mcp/good", "echo", &json!({ "text": "hi" }));
            assert_eq!(reply["result"]["content"][0]["text"], "hi");
            slowest = slowest.max(begin.elapsed());
            answered += 1;
        }
    });
    let memory = status_of(gateway.process.id(), "VmHWM");
    assert!(slowest < 2 * SOON, "a page and a call took {slowest:?}, one of {answered}");
    assert!(memory < MOST_MEMORY, "{memory} KiB");
}
