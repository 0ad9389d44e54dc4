//! Servers behind a URL: their sessions, their streams, and how both end.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::serve::gateway::Gateway;
use crate::serve::upstreams::running;
use crate::support::Dir;

/// What a server with sessions says to everything but calls.
const USUAL: &str = r#"
import os, time
sessions = set()
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
def text(t): return {"content": [{"type": "text", "text": t}]}
class Usual(Plain):
    def usual(self, m, say):
        if "id" not in m: self.answer(202)
        elif m["method"] == "server/discover": self.error(m, 200, -32601, "no such method")
        elif m["method"] == "initialize":
            sessions.add(f"s{len(sessions)}")
            say(HELLO, mcp_session_id=f"s{len(sessions) - 1}")
        elif self.headers["mcp-session-id"] not in sessions: self.answer(404)
        elif m["method"] == "tools/list": say({"tools": [{"name": "t", "inputSchema": {"type": "object"}}]})
        else: return True
    def error(self, m, status, number, message):
        body = {"jsonrpc": "2.0", "id": m["id"], "error": {"code": number, "message": message}}
        self.answer(status, json.dumps(body).encode(), content_type="application/json")
"#;

fn server(code: &str) -> crate::serve::upstreams::Running {
    running(&format!("{USUAL}{code}"))
}

fn call_modern(gateway: &Gateway) -> Value {
    let params = json!({ "name": "t", "arguments": {} });
    gateway.modern(&json!(1), "tools/call", &params).send().reply()["result"].clone()
}

#[test]
fn a_server_that_was_away_for_a_while_is_greeted_again() {
    let dir = Dir::new();
    let away = dir.join("away");
    let server = server(&format!(
        r#"
class Server(Usual):
    def take(self, m, say):
        if os.path.exists({away:?}): self.answer(404, b"no backend")
        elif self.usual(m, say): say(text("fine"))
"#
    ));
    let gateway = Gateway::before_url(&[], &server.url);
    let session = gateway.begin();
    let fine = |reply: &Value| reply["content"][0]["text"] == "fine";
    let both = |id: u64| {
        let legacy = gateway.call(&session, id, "t", &json!({}))["result"].clone();
        (fine(&legacy), fine(&call_modern(&gateway)))
    };
    assert_eq!(both(1), (true, true));
    std::fs::write(&away, "").unwrap();
    assert_eq!((both(2), both(3)), ((false, false), (false, false)));
    std::fs::remove_file(&away).unwrap();
    assert_eq!(both(4), (true, true));
}

#[test]
fn a_reply_is_one_whatever_its_status_says() {
    let dir = Dir::new();
    let runs = dir.join("runs");
    let server = server(&format!(
        r#"
class Server(Usual):
    def take(self, m, say):
        if not self.usual(m, say): return
        if m["method"] == "no/such": return self.error(m, 404, -32601, "no such method")
        if m["method"] == "there": return self.answer(404, json.dumps({{"jsonrpc": "2.0", "id": m["id"], "result": {{"there": True}}}}).encode(), content_type="application/json")
        open({runs:?}, "a").write("x")
        self.error(m, 400, -32000, "The trading session is closed")
"#
    ));
    let gateway = Gateway::before_url(&[], &server.url);
    let session = gateway.begin();
    let unknown = json!({ "jsonrpc": "2.0", "id": 1, "method": "no/such" });
    let reply = gateway.post(Some(&session), &unknown).json();
    assert_eq!(reply["error"]["code"], -32601, "{reply}");
    let there = json!({ "jsonrpc": "2.0", "id": 3, "method": "there" });
    let reply = gateway.post(Some(&session), &there).json();
    assert_eq!(reply["result"]["there"], true, "{reply}");
    let reply = gateway.call(&session, 2, "t", &json!({}));
    assert!(reply.to_string().contains("trading session"), "{reply}");
    assert_eq!(std::fs::read_to_string(&runs).unwrap(), "x", "it ran once");
    let lost = gateway.records().iter().any(|record| record["name"] == "session_lost");
    assert!(!lost, "no session was lost");
}

/// Some servers keep a stream open when all is said, or end it late.
#[test]
fn a_stream_is_over_with_its_reply() {
    let server = server(
        r#"
class Server(Usual):
    def take(self, m, say):
        if not self.usual(m, say): return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        body = json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": text("fine")})
        self.wfile.write(f"data: {body}\n\n".encode())
        self.wfile.flush()
        time.sleep(0.1 if m["id"] == 7 else 20)
"#,
    );
    let gateway = Gateway::before_url(&["--timeout", "10s"], &server.url);
    let session = gateway.begin();
    let open = || std::fs::read_dir(format!("/proc/{}/fd", gateway.process.id())).unwrap().count();
    let before = open();
    // Whoever uses an id again must not get the end of what was under it before.
    for id in [7, 7, 7, 7].into_iter().chain(100..200) {
        let reply = gateway.call(&session, id, "t", &json!({}));
        assert_eq!(reply["result"]["content"][0]["text"], "fine", "{reply}");
    }
    assert!(open() < before + 60, "{before} descriptors have become {}", open());
    let faults = gateway.records().iter().filter(|record| record["fault"].is_object()).count();
    assert_eq!(faults, 0);
}

/// A notification that is not answered has its time, too.
#[test]
fn what_is_not_answered_is_not_waited_for_for_ever() {
    let server = server(
        r#"
class Server(Usual):
    def take(self, m, say):
        if m.get("method") == "notifications/roots/list_changed": time.sleep(30)
        elif self.usual(m, say): say(text("fine"))
"#,
    );
    let gateway = Gateway::before_url(&["--timeout", "3s"], &server.url);
    let session = gateway.begin();
    let open = || std::fs::read_dir(format!("/proc/{}/fd", gateway.process.id())).unwrap().count();
    let before = open();
    let notice = json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" });
    for _ in 0..30 {
        assert_eq!(gateway.post(Some(&session), &notice).status, 202);
    }
    let until = Instant::now() + Duration::from_secs(20);
    let wait_until = |fits: &dyn Fn(usize) -> bool| {
        while !fits(open()) {
            assert!(Instant::now() < until, "{before} descriptors have become {}", open());
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    wait_until(&|now| now > before + 15);
    wait_until(&|now| now < before + 5);
}

/// Servers refuse what comes before the handshake is over, and every message is a request of its
/// own here.
#[test]
fn nothing_overtakes_the_end_of_the_handshake() {
    let server = server(
        r#"
ready, forgot = set(), []
class Server(Usual):
    def take(self, m, say):
        session = self.headers["mcp-session-id"]
        if m.get("method") == "notifications/initialized":
            time.sleep(0.3)
            ready.add(session)
            self.answer(202)
        elif m.get("method") in ("tools/list", "tools/call") and session not in ready:
            self.error(m, 200, -32602, "Received request before initialization was complete")
        elif m.get("method") == "tools/call" and m["params"]["arguments"].get("forget") and not forgot:
            sessions.clear(); ready.clear(); forgot.append(1)
            self.answer(404)
        elif self.usual(m, say): say(text("fine"))
"#,
    );
    let gateway = Gateway::before_url(&[], &server.url);
    let session = gateway.begin();
    for (id, forget) in [(1, false), (2, true), (3, false)] {
        let arguments = if forget { json!({ "forget": id }) } else { json!({}) };
        let reply = gateway.call(&session, id, "t", &arguments).to_string();
        let early = reply.contains("before initialization");
        assert!(!early && reply.contains("fine"), "{id}: {reply}");
    }
    let reply = call_modern(&gateway);
    assert_eq!(reply["content"][0]["text"], "fine", "{reply}");
}

#[test]
fn a_legacy_client_uses_a_modern_server_however_that_refuses_its_greeting() {
    for refusal in [
        r#"self.answer(400, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32022,"message":"old"}}', content_type="application/json")"#,
        r#"self.answer(405, b"no")"#,
        r"self.answer(404)",
    ] {
        let server = running(&format!(
            r#"
class Server(Plain):
    def take(self, m, say):
        if "id" not in m: self.answer(202)
        elif self.headers["mcp-protocol-version"] != "2026-07-28": {refusal}
        elif m["method"] == "server/discover": say({{"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {{"tools": {{}}}}}})
        elif m["method"] == "tools/list": say({{"resultType": "complete", "tools": [{{"name": "t", "inputSchema": {{"type": "object"}}}}]}})
        else: say({{"resultType": "complete", "content": [{{"type": "text", "text": "fine"}}]}})
"#
        ));
        let gateway = Gateway::before_url(&[], &server.url);
        let session = gateway.begin();
        let reply = gateway.call(&session, 1, "t", &json!({}));
        assert_eq!(reply["result"]["content"][0]["text"], "fine", "{refusal}: {reply}");
        let faults = gateway.records().iter().filter(|record| record["fault"].is_object()).count();
        assert_eq!(faults, 0, "{refusal}");
    }
}
