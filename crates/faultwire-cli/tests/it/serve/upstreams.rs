//! Servers behind a URL that do everything wrong: the table in the docs, driven row by row.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::serve::gateway::Gateway;
use crate::serve::http::read_request;
use crate::support::Dir;

/// A server on a real socket. Every tool misbehaves as its name says.
fn start() -> String {
    start_counting().0
}

/// Whether a client has heard the first event of a stream.
static HEARD: AtomicBool = AtomicBool::new(false);

#[test]
fn events_are_passed_on_as_they_come() {
    let gateway = Gateway::before_url(&[], &format!("http://{}/mcp", start()));
    let params = json!({ "name": "sse_waits", "arguments": {} });
    let mut stream = gateway.modern(&json!(1), "tools/call", &params).open();
    assert_eq!(stream.event().unwrap()["method"], "notifications/x");
    HEARD.store(true, Ordering::Relaxed);
    assert_eq!(stream.event().unwrap()["result"]["content"][0]["text"], "fine");
}

/// The same, and how many connections there were.
fn start_counting() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let own = address.clone();
    let connections = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&connections);
    std::thread::spawn(move || {
        for socket in listener.incoming().map_while(Result::ok) {
            count.fetch_add(1, Ordering::Relaxed);
            let own = own.clone();
            std::thread::spawn(move || while one(&socket, &own) {});
        }
    });
    (address, connections)
}

/// One request and its answer. Whether the connection goes on.
#[expect(clippy::too_many_lines, reason = "a table")]
fn one(socket: &TcpStream, own: &str) -> bool {
    let Some((head, body)) = read_request(&mut BufReader::new(socket)) else { return false };
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let id = &message["id"];
    let reply = |result: Value| json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string();
    let say = |text: &str| socket.try_clone().unwrap().write_all(text.as_bytes()).is_ok();
    let whole = |status: &str, headers: &str, body: &str| {
        format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n{body}", body.len())
    };
    let json = "content-type: application/json\r\n";
    let fine =
        reply(json!({ "resultType": "complete", "content": [{ "type": "text", "text": "fine" }] }));
    match message["method"].as_str() {
        Some("server/discover") => {
            let found = json!({ "resultType": "complete", "supportedVersions": ["2026-07-28"],
                                "capabilities": { "tools": {} } });
            return say(&whole("200 OK", json, &reply(found)));
        }
        Some("tools/list") => {
            return say(&whole(
                "200 OK",
                json,
                &reply(json!({ "resultType": "complete", "tools": [] })),
            ));
        }
        Some("tools/call") => {}
        _ => return say(&whole("202 Accepted", "", "")),
    }
    let events = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let note = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n";
    match message["params"]["name"].as_str().unwrap_or_default() {
        "fine" => say(&whole("200 OK", json, &fine)),
        "sse_reply" => {
            say(&format!("{events}: hello\n\n{note}event: message\ndata: {fine}\n\n"));
            false
        }
        "sse_kept" => {
            let event = format!("event: message\ndata: {fine}\n\n");
            let chunked = "content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
            let length = event.len();
            say(&format!("HTTP/1.1 200 OK\r\n{chunked}{length:x}\r\n{event}\r\n0\r\n\r\n"))
        }
        "fine_and_gone" => {
            say(&whole("200 OK", json, &fine));
            false
        }
        "redirected_once" if head.starts_with("POST /moved") => say(&whole("200 OK", json, &fine)),
        "redirected_once" => say(&whole("307 Temporary Redirect", "location: /moved\r\n", "")),
        "redirect_loop" => say(&whole("307 Temporary Redirect", "location: /mcp\r\n", "")),
        "redirect_away" => {
            let port = own.rsplit(':').next().unwrap();
            let away = format!("location: http://localhost:{port}/mcp\r\n");
            say(&whole("308 Permanent Redirect", &away, ""))
        }
        "redirect_to_get" => say(&whole("302 Found", "location: /moved\r\n", "")),
        "never" => {
            std::thread::sleep(Duration::from_secs(4));
            false
        }
        "hangs_up" => false,
        "no_http" => {
            say("SSH-2.0-OpenSSH_9.2\r\n");
            false
        }
        "status_401" => say(&whole("401 Unauthorized", "", "no")),
        "status_403" => say(&whole("403 Forbidden", "", "no")),
        "status_404" => {
            say(&whole("404 Not Found", "content-type: text/html\r\n", "<html>where?</html>"))
        }
        "status_429" => say(&whole("429 Too Many Requests", "retry-after: 7\r\n", "")),
        "status_429_reply" => {
            let error = json!({ "code": -32000, "message": "Too many requests" });
            let failed = json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string();
            say(&whole("429 Too Many Requests", &format!("{json}retry-after: 8\r\n"), &failed))
        }
        "status_503_date" => {
            let date = "retry-after: Wed, 31 Dec 2098 23:59:59 GMT\r\n";
            say(&whole("503 Service Unavailable", date, ""))
        }
        "status_400_json" => {
            say(&whole("400 Bad Request", json, r#"{"error":"no such field","token":"hunter2"}"#))
        }
        "status_500_json" => say(&whole(
            "500 Internal Server Error",
            json,
            r#"{"message":"it broke","password":"hunter2"}"#,
        )),
        "sse_waits" => {
            // The first event must have been heard before the reply is sent.
            say(&format!("{events}{note}"));
            let until = Instant::now() + Duration::from_secs(10);
            while !HEARD.load(Ordering::Relaxed) && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(5));
            }
            say(&format!("data: {fine}\n\n"));
            false
        }
        "status_500_html" => {
            let page = "<html><body>password=hunter2 at /srv/app/main.py</body></html>";
            say(&whole("500 Internal Server Error", "content-type: text/html\r\n", page))
        }
        "status_500_text" => say(&whole(
            "500 Internal Server Error",
            "",
            "connect failed: postgres://u:hunter2@db/x",
        )),
        "status_500_empty" => say(&whole("500 Internal Server Error", "", "")),
        "status_500_reply" => {
            let failed = reply(json!({ "resultType": "complete", "isError": true,
                "content": [{ "type": "text", "text": "it did not work out" }] }));
            say(&whole("500 Internal Server Error", json, &failed))
        }
        "status_502" => say(&whole("502 Bad Gateway", "", "")),
        "status_503" => say(&whole("503 Service Unavailable", "retry-after: 9\r\n", "")),
        "status_504" => say(&whole("504 Gateway Timeout", "", "")),
        "other_type" => say(&whole("200 OK", "content-type: text/html\r\n", "<p>hi</p>")),
        "empty" => say(&whole("200 OK", json, "")),
        "accepted" => say(&whole("202 Accepted", "", "")),
        "no_json" => say(&whole("200 OK", json, "{\"jsonrpc\":\"2.0\",\"id\":")),
        "other_id" => {
            let other = json!({ "jsonrpc": "2.0", "id": 123_456, "result": {} }).to_string();
            say(&whole("200 OK", json, &other))
        }
        "compressed" => {
            let headers = format!("{json}content-encoding: gzip\r\n");
            say(&whole("200 OK", &headers, "\u{1f}\u{8}..."))
        }
        "too_long" => {
            let long =
                reply(json!({ "content": [{ "type": "text", "text": "x".repeat(200_000) }] }));
            say(&whole("200 OK", json, &long))
        }
        "sse_too_long" => {
            say(&format!("{events}data: {}", "x".repeat(200_000)));
            false
        }
        "length_too_long" => {
            say(&format!("HTTP/1.1 200 OK\r\n{json}content-length: 100000\r\n\r\n{fine}"));
            false
        }
        "length_too_short" => {
            say(&format!("HTTP/1.1 200 OK\r\n{json}content-length: 30\r\n\r\n{fine}"));
            false
        }
        "sse_cut" => {
            say(&format!("{events}{note}data: {}", &fine[..20]));
            false
        }
        "sse_without_reply" => {
            say(&format!("{events}{note}"));
            false
        }
        other => panic!("the table has a row {other:?} that the server does not know"),
    }
}

struct Row {
    name: String,
    failure: Option<(String, String)>,
}

fn rows() -> Vec<Row> {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/fault-matrix.md"));
    let text = text.unwrap();
    let part = text.split("## Servers behind a URL").nth(1).expect("the part is there");
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(" | ").collect();
        let name = cells[0].strip_prefix("| `")?.strip_suffix('`')?;
        let bare = |cell: &str| cell.trim_matches([' ', '|', '`']).to_owned();
        let failure = (!bare(cells[3]).is_empty()).then(|| (bare(cells[3]), bare(cells[4])));
        Some(Row { name: name.to_owned(), failure })
    };
    part.lines().filter_map(row).collect()
}

#[test]
fn a5_a6_every_row_of_the_matrix() {
    let address = start();
    let dir = Dir::new();
    let config = dir.join("faultwire.toml");
    std::fs::write(&config, "contract = \"owlclaw\"\ntimeout = \"2s\"\n[limits]\nline_bytes = 65536\n[breaker]\nfailures = 0\n").unwrap();
    let gateway = Gateway::before_url(&["--config", &config], &format!("http://{address}/mcp"));
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let unreachable = [
        ("refused", format!("http://{gone}/mcp")),
        ("no_such_host", "http://no-such-host.invalid/mcp".to_owned()),
        ("no_tls", format!("https://{address}/mcp")),
    ];
    let rows = rows();
    assert!(rows.len() >= 30, "only {} rows", rows.len());
    std::thread::scope(|scope| {
        for row in &rows {
            let (gateway, config) = (&gateway, &config);
            let elsewhere = unreachable.iter().find(|(name, _)| *name == row.name);
            scope.spawn(move || match elsewhere {
                Some((_, url)) => {
                    check(row, &Gateway::before_url(&["--config", config], url));
                }
                None => check(row, gateway),
            });
        }
    });
}

#[test]
fn connections_are_used_again_and_one_that_the_server_closed_is_nobodys_failure() {
    let (address, connections) = start_counting();
    let gateway = Gateway::before_url(&[], &format!("http://{address}/mcp"));
    let call = |number: usize, tool: &str| {
        let params = json!({ "name": tool, "arguments": {} });
        let reply = gateway.modern(&json!(number), "tools/call", &params).send().reply();
        assert_eq!(reply["result"]["content"][0]["text"], "fine", "{tool}: {reply}");
    };
    call(0, "fine");
    let before = connections.load(Ordering::Relaxed);
    for number in 1..20 {
        call(number, if number % 2 == 0 { "fine" } else { "sse_kept" });
    }
    assert_eq!(connections.load(Ordering::Relaxed), before, "one after the other, on one");
    for number in 20..30 {
        call(number, "fine_and_gone");
        // The server has hung up by now; whoever comes next does not notice.
        std::thread::sleep(Duration::from_millis(50));
    }
    let after = connections.load(Ordering::Relaxed);
    assert!((before + 9..=before + 10).contains(&after), "{before} {after}");
}

fn check(row: &Row, gateway: &Gateway) {
    let place = &row.name;
    let params = json!({ "name": row.name, "arguments": {} });
    let id = json!(format!("id of {place}"));
    let reply = gateway.modern(&id, "tools/call", &params).send().reply();
    assert_eq!(reply["id"], id, "{place}");
    let Some((condition, outcome)) = &row.failure else {
        assert_eq!(reply["result"]["content"][0]["text"], "fine", "{place}: {reply}");
        return;
    };
    assert_eq!(reply["result"]["isError"], true, "{place}: {reply}");
    assert!(!reply.to_string().contains("hunter2"), "{place}: {reply}");
    let records = gateway.records();
    let record = records.iter().find(|r| r["call"]["request"] == id).expect(place);
    let fault = &record["fault"];
    assert_eq!(fault["condition"], **condition, "{place}: {record}");
    assert_eq!(fault["outcome"], **outcome, "{place}: {record}");
    let after = reply["result"]["structuredContent"]["error"]["retry_after"].as_u64();
    match &**place {
        "status_429" => assert_eq!(after, Some(7), "{reply}"),
        "status_429_reply" => assert_eq!(after, Some(8), "{reply}"),
        "status_503" => assert_eq!(after, Some(9), "{reply}"),
        "status_503_date" => assert_eq!(after, Some(86_400), "at most a day: {reply}"),
        _ => {}
    }
}

#[test]
fn a_session_that_the_server_lost_is_begun_again() {
    // As the protocol has it, and as servers made with the official library say it.
    let says = [
        "self.answer(404)",
        r#"self.answer(400, b'{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}', content_type="application/json")"#,
    ];
    says.into_iter().for_each(begun_again);
}

fn begun_again(says: &str) {
    let code = &r#"
seen = {"sessions": 0, "calls": 0}
class Server(Plain):
    def take(self, m, say):
        if m["method"] == "initialize":
            seen["sessions"] += 1
            return say({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}, mcp_session_id=f"s{seen['sessions']}")
        if "id" not in m: return self.answer(202)
        if m["method"] == "tools/list": return say({"tools": [{"name": "t", "inputSchema": {"type": "object"}}]})
        seen["calls"] += 1
        # Every session is forgotten after its first call.
        if self.headers["mcp-session-id"] != f"s{seen['sessions']}" or seen["calls"] % 2 == 0:
            return LOST
        say({"content": [{"type": "text", "text": self.headers["mcp-session-id"] + " " + self.headers["mcp-protocol-version"]}]})
"#
    .replace("LOST", says);
    let server = running(code);
    let gateway = Gateway::before_url(&[], &server.url);
    let session = gateway.begin();
    for (id, expected) in [(1, "s1"), (2, "s2"), (3, "s3")] {
        let reply = gateway.call(&session, id, "t", &json!({}));
        let text = reply["result"]["content"][0]["text"].as_str();
        assert_eq!(text, Some(&*format!("{expected} 2025-11-25")), "{reply}");
    }
    let lost = gateway.records().iter().filter(|r| r["name"] == "session_lost").count();
    assert_eq!(lost, 2);

    // Clients of the modern era share a session that is the gateway's own.
    let server = running(code);
    let gateway = Gateway::before_url(&[], &server.url);
    for id in 1..=3 {
        let params = json!({ "name": "t", "arguments": {} });
        let reply = gateway.modern(&json!(id), "tools/call", &params).send().reply();
        let text = reply["result"]["content"][0]["text"].as_str().unwrap_or_default();
        assert!(text.ends_with(" 2025-11-25"), "{id}: {reply}");
    }
    assert!(gateway.records().iter().any(|record| record["name"] == "session_lost"));
}

/// The server wants each request to stand for itself, and says so inside and outside.
#[test]
fn a_legacy_client_uses_a_modern_server_behind_a_url() {
    let code = r#"
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Server(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *a): pass
    def answer(self, status, **message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self): self.send_error(405)
    def do_POST(self):
        m = json.loads(self.rfile.read(int(self.headers["content-length"])))
        params, heard = m.get("params", {}), lambda name: self.headers.get("mcp-" + name)
        version = params.get("_meta", {}).get("io.modelcontextprotocol/protocolVersion")
        told = [heard("protocol-version"), heard("method"), heard("name"), heard("session-id")]
        if version != "2026-07-28" or told != [version, m["method"], params.get("name"), None]:
            return self.answer(400, id=m.get("id"), error={"code": -32022, "message": "old", "data": {"supported": ["2026-07-28"]}})
        result = {"resultType": "complete"}
        if m["method"] == "server/discover": result |= {"supportedVersions": [version], "capabilities": {"tools": {}}}
        elif m["method"] == "tools/list": result |= {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}
        else: result |= {"content": [{"type": "text", "text": str(params["arguments"])}]}
        self.answer(200, id=m["id"], result=result)
"#;
    let server = running(code);
    let gateway = Gateway::before_url(&[], &server.url);
    // Numbers longer than ours and ids that the server spells in another way come through.
    for id in ["1", "18446744073709551616", "\"\u{e9}\""] {
        let session = gateway.begin();
        let call = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\n\"params\":{{\"name\":\"t\",\
             \"arguments\":{{\"n\":123456789012345678901234567890}}}}}}"
        );
        let request = gateway
            .request("POST", "/mcp")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-session-id", &session);
        let answer = request.body(call).send();
        let text = answer.reply()["result"]["content"][0]["text"].clone();
        assert_eq!(text, "{'n': 123456789012345678901234567890}", "{answer:?}");
    }
}

#[test]
fn a_server_that_knows_no_session_is_not_asked_for_ever() {
    let code = r#"
class Server(Plain):
    def take(self, m, say):
        if m["method"] != "initialize": return self.answer(404)
        say({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}, mcp_session_id="s")
"#;
    let server = running(code);
    let gateway = Gateway::before_url(&["--arguments", "off", "--timeout", "5s"], &server.url);
    let session = gateway.begin();
    let reply = gateway.call(&session, 1, "t", &json!({}));
    assert_eq!(reply["result"]["isError"], true, "{reply}");
    std::thread::sleep(Duration::from_millis(300));
    let lost = gateway.records().iter().filter(|r| r["name"] == "session_lost").count();
    assert!((1..=4).contains(&lost), "{lost}");
}

/// A server that has sessions, and nothing to tell by itself. What it answers says who derives it.
const PLAIN: &str = r#"
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Plain(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *a): pass
    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items(): self.send_header(name.replace("_", "-"), value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self): self.answer(405)
    def do_DELETE(self): self.answer(200)
    def do_POST(self):
        m = json.loads(self.rfile.read(int(self.headers["content-length"])))
        say = lambda r, **h: self.answer(200, json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}).encode(), content_type="application/json", **h)
        self.take(m, say)
"#;

/// Says on which port the server listens, and serves.
const SERVE: &str = r#"
server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
print(server.server_port, flush=True)
server.serve_forever()
"#;

/// A server in Python.
pub struct Running {
    process: std::process::Child,
    pub url: String,
}

pub fn running(code: &str) -> Running {
    let mut process = std::process::Command::new("python3")
        .args(["-c", &format!("{PLAIN}{code}{SERVE}")])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut port = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut port).unwrap();
    Running { process, url: format!("http://127.0.0.1:{}/mcp", port.trim()) }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Two calls are on their way when the server forgets the session. The second hears of it only
/// when a new one has begun, and must not take that for lost.
#[test]
fn a_session_is_lost_only_once_for_all_its_calls() {
    let code = r#"
import json, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
sessions = 0
second_is_here, new_one_begins, second_is_told = threading.Event(), threading.Event(), threading.Event()
class Server(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *a): pass
    def head(self, status, length, **headers):
        self.send_response(status)
        for name, value in headers.items(): self.send_header(name.replace("_", "-"), value)
        self.send_header("content-length", str(length))
        self.end_headers()
        self.wfile.flush()
    def do_GET(self): self.head(405, 0)
    def do_DELETE(self): self.head(200, 0)
    def do_POST(self):
        global sessions
        m = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "id" not in m: return self.head(202, 0)
        result, told, session = {}, {}, self.headers["mcp-session-id"]
        if m["method"] == "initialize":
            sessions += 1
            told = {"mcp_session_id": f"s{sessions}"}
            result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
        elif m["method"] == "tools/list":
            result = {"tools": [{"name": n, "inputSchema": {"type": "object"}} for n in ("first", "second")]}
        elif session != "s2":
            if m["params"]["name"] == "first":
                second_is_here.wait(10)
                return self.head(404, 0)
            second_is_here.set()
            new_one_begins.wait(10)
            self.head(404, 0)
            return second_is_told.set()
        else:
            result = {"content": [{"type": "text", "text": session}]}
        body = json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": result}).encode()
        self.head(200, len(body), content_type="application/json", **told)
        if m["method"] == "initialize" and sessions == 2:
            new_one_begins.set()
            second_is_told.wait(10)
            time.sleep(0.3)
        self.wfile.write(body)
"#;
    let server = running(code);
    let gateway = Gateway::before_url(&[], &server.url);
    let session = gateway.begin();
    let call = |(id, tool)| gateway.call(&session, id, tool, &json!({}));
    let replies = std::thread::scope(|scope| {
        let calls = [(1, "first"), (2, "second")].map(|which| scope.spawn(move || call(which)));
        calls.map(|call| call.join().unwrap())
    });
    for reply in replies {
        assert_eq!(reply["result"]["content"][0]["text"], "s2", "{reply}");
    }
}
