//! Clients of one era and servers of the other.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::serve::gateway::Gateway;
use crate::support::Dir;
use crate::wrap::client::PATIENCE;
use crate::wrap::parts::{parts, servers};
use crate::wrap::real::run_plan;

/// A server that speaks the modern version and nothing else.
pub fn only_modern() -> Vec<String> {
    let code = r#"
import sys, json
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    p, meta = m.get("params", {}), m.get("params", {}).get("_meta", {})
    if meta.get("io.modelcontextprotocol/protocolVersion") != "2026-07-28":
        out = {"error": {"code": -32022, "message": "old", "data": {"supported": ["2026-07-28"]}}}
    elif m["method"] == "server/discover":
        out = {"result": {"resultType": "complete", "supportedVersions": ["2026-07-28"],
               "capabilities": {"tools": {"listChanged": True}, "resources": {"subscribe": True}, "tasks": {}}, "instructions": "Ask nicely.",
               "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "new", "version": "9"}}}}
    elif m["method"] == "tools/list":
        out = {"result": {"resultType": "complete", "tools": [{"name": n, "inputSchema": {"type": "object"}} for n in ["who", "more"]]}}
    elif p["name"] == "more":
        out = {"result": {"resultType": "input_required", "requestState": "s", "inputRequests": {}}}
    else:
        out = {"result": {"resultType": "complete", "content": [{"type": "text", "text": json.dumps(meta)}]}}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], **out}), flush=True)
"#;
    vec!["python3".into(), "-c".into(), code.into()]
}

fn words(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

#[test]
fn a_legacy_client_uses_a_modern_server() {
    let server = only_modern();
    let gateway = Gateway::before(&["--contract", "owlclaw"], &words(&server));
    for round in 0..2 {
        let before = faults(&gateway);
        let session = gateway.begin();
        // That the server knows no handshake is no failure of anybody's.
        assert_eq!(faults(&gateway), before);
        let ping = json!({ "jsonrpc": "2.0", "id": 5, "method": "ping" });
        assert_eq!(gateway.post(Some(&session), &ping).json()["result"], json!({}));
        let reply = gateway.call(&session, 1, "who", &json!({}));
        let meta: Value =
            serde_json::from_str(reply["result"]["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "tester", "{round}");
        // Of changes it would hear nothing.
        let watch = json!({ "jsonrpc": "2.0", "id": 6, "method": "resources/subscribe",
                            "params": { "uri": "file:///x" } });
        let refused = gateway.post(Some(&session), &watch).json();
        let data = &refused["error"]["data"]["error"];
        assert_eq!(data["code"], "protocol.unsupported_version", "{refused}");
        assert_eq!(data["details"]["supported_versions"], json!(["2026-07-28"]), "{refused}");
        // What a legacy client cannot answer it is not asked.
        let reply = gateway.call(&session, 2, "more", &json!({}));
        let envelope = &reply["result"]["structuredContent"]["error"];
        assert_eq!(envelope["code"], "protocol.unsupported_version", "{reply}");
        assert_eq!(envelope["details"]["supported_versions"], json!(["2026-07-28"]), "{reply}");
    }
    for client in ["python1.py", "typescript1.mjs"] {
        let got = run_plan(client, json!({ "url": gateway.url(), "calls": [["who", {}]] }));
        assert_eq!(got["tools"].as_array().unwrap().len(), 2, "{client}: {got}");
        assert!(got["results"][0]["content"][0]["text"].is_string(), "{client}: {got}");
    }
}

#[test]
fn a_modern_client_uses_a_legacy_server() {
    let _ = parts();
    let dir = Dir::new();
    let servers = servers(&dir);
    let server = servers.iter().find(|server| server.name == "everything").unwrap();
    across(&Gateway::before(&[], &server.command()));
    let listening = Listening::start(&server.command());
    across(&Gateway::before_url(&[], &listening.url));
}

/// A real server that listens on a port.
pub struct Listening {
    process: Child,
    pub url: String,
}

impl Listening {
    pub fn start(command: &[&str]) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut server = Command::new(command[0]);
        server.args(&command[1..]).arg("streamableHttp").env("PORT", port.to_string());
        let process = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let until = Instant::now() + PATIENCE;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < until, "it does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { process, url: format!("http://127.0.0.1:{port}/mcp") }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Modern clients and what stands behind the gateway.
fn across(gateway: &Gateway) {
    let answer = gateway.modern(&json!("d"), "server/discover", &json!({})).send();
    let found = answer.json();
    assert_eq!(found["id"], "d");
    assert_eq!(found["result"]["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(found["result"]["capabilities"]["tools"], json!({}), "{found}");
    assert!(found["result"]["capabilities"]["tasks"].is_null(), "{found}");
    let listen = gateway.modern(&json!(4), "subscriptions/listen", &json!({})).send().reply();
    let refused = &listen["error"]["data"]["error"];
    assert_eq!(refused["code"], "protocol.unsupported_version", "{listen}");
    let params = json!({ "name": "echo", "arguments": { "message": "across" } });
    let reply = gateway.modern(&json!(3), "tools/call", &params).send().reply();
    assert_eq!(reply["id"], 3);
    assert_eq!(reply["result"]["content"][0]["text"], "Echo: across");
    for client in ["python2.py", "typescript2.mjs"] {
        let calls = json!([["echo", { "message": "across" }]]);
        let got = run_plan(client, json!({ "url": gateway.url(), "calls": calls }));
        assert_eq!(got["era"], "2026-07-28", "{client}");
        assert_eq!(got["results"][0]["content"][0]["text"], "Echo: across", "{client}: {got}");
    }
}

#[test]
fn a_legacy_server_that_modern_clients_share_comes_back_after_a_crash() {
    let code = r#"
import sys, json, os
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    if m["method"] == "initialize":
        out = {"result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}}
    elif m["method"] == "tools/list":
        out = {"result": {"tools": [{"name": n, "inputSchema": {"type": "object"}} for n in ["fine", "crash"]]}}
    elif m["method"] != "tools/call":
        out = {"error": {"code": -32601, "message": "no such method"}}
    elif m["params"]["name"] == "crash": os._exit(3)
    else:
        # It looks first whether somebody is there.
        print('{"jsonrpc": "2.0", "id": "ping", "method": "ping"}', flush=True)
        pong = json.loads(sys.stdin.readline())
        out = {"result": {"content": [{"type": "text", "text": str(os.getpid())}], "isError": pong.get("result") != {}}}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], **out}), flush=True)
"#;
    let gateway = Gateway::before(&["--timeout", "10s"], &["python3", "-c", code]);
    let call = |tool: &str| {
        let params = json!({ "name": tool, "arguments": {} });
        gateway.modern(&json!(1), "tools/call", &params).send().reply()["result"].clone()
    };
    let mut runs = std::collections::BTreeSet::new();
    for _ in 0..3 {
        let fine = call("fine");
        assert_ne!(fine["isError"], true, "{fine}");
        runs.insert(fine["content"][0]["text"].as_str().unwrap().to_owned());
        assert_eq!(call("crash")["isError"], true);
    }
    assert_eq!(runs.len(), 3, "each was another process: {runs:?}");
}

#[test]
fn nothing_is_recorded_of_finding_out_what_a_server_speaks() {
    let dir = Dir::new();
    let servers = servers(&dir);
    let server = servers.iter().find(|server| server.name == "everything").unwrap();
    let gateway = Gateway::before(&[], &server.command());
    assert_eq!(gateway.modern(&json!(1), "server/discover", &json!({})).send().status, 200);
    assert!(faults(&gateway).is_empty());
}

fn faults(gateway: &Gateway) -> Vec<Value> {
    gateway.records().into_iter().filter(|record| record["fault"].is_object()).collect()
}

#[test]
fn a_server_that_turned_out_to_be_modern_and_is_gone_is_a_failure_like_any_other() {
    let dir = Dir::new();
    let (gone, server) = (dir.join("gone"), only_modern());
    let code = format!("import os, sys\nif os.path.exists({gone:?}): sys.exit(1)\n{}", server[2]);
    let args = ["--contract", "owlclaw", "--timeout", "5s"];
    let gateway = Gateway::before(&args, &["python3", "-c", &code]);
    gateway.begin();
    std::fs::write(&gone, "").unwrap();
    let hello = json!({ "jsonrpc": "2.0", "id": 7, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
    // One or two servers may have been started ahead.
    let answers = (0..5).map(|_| gateway.post(None, &hello));
    let answer = answers.into_iter().find(|answer| answer.header("mcp-session-id").is_none());
    let answer = answer.expect("a session that could not begin");
    let reply = answer.json();
    assert_eq!(reply["id"], 7, "{reply}");
    assert_eq!(reply["error"]["data"]["error"]["category"], "dependency", "{reply}");
    assert_eq!(faults(&gateway).len(), 1);
}

/// The modern era keeps numbers to itself that legacy servers use.
#[test]
fn numbers_that_the_modern_era_does_not_have_reach_no_modern_client() {
    let code = r#"
import sys, json
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    if m["method"] == "initialize":
        out = {"result": {"protocolVersion": "2025-11-25", "capabilities": {"resources": {}}, "serverInfo": {"name": "s", "version": "1"}}}
    elif m["method"] == "resources/read":
        out = {"error": {"code": int(m["params"]["uri"]), "message": "no", "data": {}}}
    else:
        out = {"error": {"code": -32601, "message": "no such method"}}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], **out}), flush=True)
"#;
    let gateway = Gateway::before(&[], &["python3", "-c", code]);
    let session = gateway.begin();
    for (number, modern, status) in [
        (-32002, -32602, 400),
        (-32042, -32603, 200),
        (-32050, -32603, 200),
        (-32000, -32000, 200),
        (-32603, -32603, 200),
    ] {
        let params = json!({ "uri": number.to_string() });
        let request = gateway.modern(&json!(1), "resources/read", &params);
        let answer = request.header("mcp-name", &number.to_string()).send();
        assert_eq!(answer.json()["error"]["code"], modern, "{answer:?}");
        assert_eq!(answer.status, status, "{answer:?}");
        assert!(answer.json()["error"]["data"]["error"]["code"].is_string(), "{answer:?}");
        // In the legacy era they mean what they meant.
        let read =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": params });
        let legacy = gateway.post(Some(&session), &read).json();
        assert_eq!(legacy["error"]["code"], number, "{legacy}");
    }
}

/// Some legacy servers say nothing before the handshake, others end.
#[test]
fn a_modern_client_uses_a_legacy_server_that_does_not_take_to_being_asked() {
    for takes_it in ["continue", "sys.exit(1)"] {
        let code = format!(
            r#"
import sys, json
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    if m["method"] == "server/discover": {takes_it}
    elif m["method"] == "initialize": r = {{"protocolVersion": "2025-11-25", "capabilities": {{"tools": {{}}}}, "serverInfo": {{"name": "s", "version": "1"}}}}
    elif m["method"] == "tools/list": r = {{"tools": [{{"name": "t", "inputSchema": {{"type": "object"}}}}]}}
    else: r = {{"content": [{{"type": "text", "text": "fine"}}]}}
    print(json.dumps({{"jsonrpc": "2.0", "id": m["id"], "result": r}}), flush=True)
"#
        );
        // Nobody waits as long as it takes to find that out, but somebody comes later.
        let gateway = Gateway::before(&["--timeout", "4s"], &["python3", "-c", &code]);
        let until = Instant::now() + Duration::from_secs(30);
        let params = json!({ "name": "t", "arguments": {} });
        while gateway.modern(&json!(1), "tools/call", &params).send().reply()["result"]["content"]
            [0]["text"]
            != "fine"
        {
            assert!(Instant::now() < until, "{takes_it}");
        }
    }
}

/// A server of both eras that is slow to start finds both questions when it is there, and is of the
/// legacy era once it was greeted in that way.
#[test]
fn a_server_that_is_slow_to_start_is_not_taken_for_another() {
    let code = r#"
import sys, json, time
time.sleep(11)
legacy = False
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    if m["method"] == "initialize":
        legacy = True
        out = {"result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}}
    elif m["method"] == "server/discover" and not legacy:
        out = {"result": {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}}
    elif m["method"] == "tools/list": out = {"result": {"resultType": "complete", "tools": [{"name": "t", "inputSchema": {"type": "object"}}]}}
    elif m["method"] == "tools/call" and not legacy: out = {"result": {"resultType": "input_required", "requestState": "s", "inputRequests": {}}}
    else: out = {"error": {"code": -32601, "message": "not on this connection"}}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], **out}), flush=True)
"#;
    let gateway = Gateway::before(&["--timeout", "15s"], &["python3", "-c", code]);
    let params = json!({ "name": "t", "arguments": {} });
    let until = Instant::now() + Duration::from_mins(1);
    loop {
        let stream = gateway.modern(&json!(1), "tools/call", &params).open();
        let reply = stream.rest().reply();
        if reply["result"]["resultType"] == "input_required" {
            break;
        }
        // Whoever does not wait for so long is told that it is not ready.
        assert!(Instant::now() < until && reply.to_string().contains("imeout"), "{reply}");
    }
}
