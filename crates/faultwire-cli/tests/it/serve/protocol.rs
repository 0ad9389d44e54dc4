//! What the protocol wants around a message: sessions, streams, versions, batches.

use std::time::Duration;

use serde_json::json;

use crate::serve::gateway::Gateway;

/// Servers that are downloaded first take longer than an answer is held back for.
#[test]
fn a_server_that_takes_its_time_to_start_gets_its_session() {
    let code = r#"
import sys, json, time
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    if m["method"] == "initialize":
        time.sleep(6)
        r = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    elif m["method"] == "tools/list": r = {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}
    else: r = {"content": [{"type": "text", "text": "here"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
"#;
    let gateway = Gateway::before(&[], &["python3", "-c", code]);
    let session = gateway.begin();
    let reply = gateway.call(&session, 1, "t", &json!({}));
    assert_eq!(reply["result"]["content"][0]["text"], "here", "{reply}");
}

#[test]
fn a_session_begins_is_used_and_ends() {
    let gateway = Gateway::demo(&[]);
    let session = gateway.begin();
    let reply = gateway.call(&session, 1, "echo", &json!({ "text": "hi" }));
    assert_eq!(reply["id"], 1);
    assert_eq!(reply["result"]["content"][0]["text"], "hi");
    let end = gateway.request("DELETE", "/mcp").header("mcp-session-id", &session).send();
    assert_eq!(end.status, 204);
    // Clients begin a new session when they hear this.
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    let answer = gateway.post(Some(&session), &call);
    assert_eq!(answer.status, 404);
    assert_eq!(answer.json()["error"]["data"]["error"]["category"], "dependency", "{answer:?}");
    let end = gateway.request("DELETE", "/mcp").header("mcp-session-id", &session).send();
    assert_eq!(end.status, 404);
}

#[test]
fn every_session_has_a_server_of_its_own() {
    let gateway = Gateway::demo(&[]);
    let sessions = [gateway.begin(), gateway.begin()];
    assert_ne!(sessions[0], sessions[1]);
    // The same id in both at once.
    let slow = |session: String| {
        let address = &gateway;
        move || address.call(&session, 7, "slow", &json!({ "ms": 300, "text": session }))
    };
    std::thread::scope(|scope| {
        let both: Vec<_> = sessions.clone().map(|s| scope.spawn(slow(s))).into_iter().collect();
        for call in both {
            assert_eq!(call.join().unwrap()["id"], 7);
        }
    });
}

#[test]
fn k13_what_is_no_message_is_refused_and_recorded() {
    let gateway = Gateway::demo(&["--contract", "owlclaw"]);
    let session = gateway.begin();
    let rows: [(&str, u16, i64); 7] = [
        ("", 400, -32600),
        (" \r\n ", 400, -32600),
        ("{", 400, -32700),
        ("nonsense", 400, -32700),
        ("[]", 400, -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}", 400, -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":1}", 400, -32600),
    ];
    for (body, status, number) in rows {
        let request = gateway
            .request("POST", "/mcp")
            .header("content-type", "application/json")
            .header("mcp-session-id", &session);
        let answer = request.body(body).send();
        assert_eq!(answer.status, status, "{body:?}: {answer:?}");
        assert_eq!(answer.json()["error"]["code"], number, "{body:?}: {answer:?}");
        assert!(answer.json()["error"]["data"]["error"]["incident_id"].is_string(), "{answer:?}");
    }
    let faults = gateway.records().iter().filter(|r| r["fault"].is_object()).count();
    assert_eq!(faults, rows.len());
}

#[test]
fn pretty_printed_requests_are_understood() {
    let gateway = Gateway::demo(&[]);
    let session = gateway.begin();
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
                       "params": { "name": "echo", "arguments": { "text": "a\nb" } } });
    let request = gateway
        .request("POST", "/mcp")
        .header("content-type", "application/json")
        .header("mcp-session-id", &session);
    let answer = request.body(format!("{call:#}\r\n")).send();
    assert_eq!(answer.json()["result"]["content"][0]["text"], "a\nb");
}

#[test]
fn progress_comes_on_the_stream_of_its_call() {
    let gateway = Gateway::demo(&[]);
    let session = gateway.begin();
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "steps", "arguments": { "count": 3, "ms": 20 }, "_meta": { "progressToken": "p" } } });
    let answer = gateway.post(Some(&session), &call);
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    let messages = answer.messages();
    let told: Vec<_> =
        messages.iter().filter_map(|m| m["params"]["progressToken"].as_str()).collect();
    assert!(told.len() >= 3 && told.iter().all(|token| *token == "p"), "{messages:?}");
    assert_eq!(messages.last().unwrap()["id"], 1);

    // Of the modern era, with a token that others may use as well.
    let params = json!({ "name": "steps", "arguments": { "count": 2, "ms": 20 },
                         "_meta": { "progressToken": 1 } });
    let messages = gateway.modern(&json!("x"), "tools/call", &params).send().messages();
    assert_eq!(messages[0]["params"]["progressToken"], 1, "{messages:?}");
    assert_eq!(messages.last().unwrap()["id"], "x");
}

#[test]
fn messages_without_a_call_wait_for_the_clients_own_stream() {
    let code = r#"
import sys, json
say = lambda **m: print(json.dumps({"jsonrpc": "2.0", **m}), flush=True)
for line in sys.stdin:
    m = json.loads(line)
    if m.get("method") == "notifications/initialized": say(method="notifications/tools/list_changed")
    elif "id" in m: say(id=m["id"], result={"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}})
"#;
    let gateway = Gateway::before(&[], &["python3", "-c", code]);
    let session = gateway.begin();
    let request = gateway.request("GET", "/mcp").header("accept", "text/event-stream");
    let mut stream = request.header("mcp-session-id", &session).open();
    assert_eq!(stream.header("content-type"), Some("text/event-stream"));
    let told = stream.event().unwrap();
    assert_eq!(told["method"], "notifications/tools/list_changed");
    // A second stream takes the place of the first, which ends.
    let request = gateway.request("GET", "/mcp").header("accept", "text/event-stream");
    let mut second = request.header("mcp-session-id", &session).open();
    assert!(stream.event().is_none());
    assert!(second.is_silent(Duration::from_millis(100)));
    gateway.request("DELETE", "/mcp").header("mcp-session-id", &session).send();
    assert!(second.event().is_none());
}

/// What, the message, its headers, and the status and number of the answer.
type VersionRow = (&'static str, serde_json::Value, Vec<(&'static str, &'static str)>, u16, i64);

#[test]
fn versions_must_be_known_and_the_same_everywhere() {
    let gateway = Gateway::demo(&["--contract", "owlclaw"]);
    let modern = || gateway.modern(&json!(1), "tools/list", &json!({}));
    assert_eq!(modern().send().status, 200);
    let body = |version: &str| {
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "echo",
            "arguments": { "text": "x" }, "_meta": { "io.modelcontextprotocol/protocolVersion": version,
                       "io.modelcontextprotocol/clientCapabilities": {} } } })
    };
    let legacy = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let call = body("2026-07-28");
    let unable = call.to_string().replace("clientCapabilities", "other").parse().unwrap();
    let right: &[(&'static str, &'static str)] = &[
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "echo"),
    ];
    let rows: Vec<VersionRow> = vec![
        ("right", call.clone(), right.to_vec(), 200, 0),
        (
            "wrapped name",
            call.clone(),
            vec![right[0], right[1], ("mcp-name", "=?base64?ZWNobw==?=")],
            200,
            0,
        ),
        (
            "a name twice",
            call.clone(),
            vec![right[0], right[1], right[2], ("mcp-name", "other")],
            400,
            -32020,
        ),
        ("no name", call.clone(), right[..2].to_vec(), 400, -32020),
        ("other name", call.clone(), vec![right[0], right[1], ("mcp-name", "other")], 400, -32020),
        ("no method", call.clone(), vec![right[0], right[2]], 400, -32020),
        (
            "other method",
            call.clone(),
            vec![right[0], ("mcp-method", "tools/list"), right[2]],
            400,
            -32020,
        ),
        ("no version header", call.clone(), right[1..].to_vec(), 400, -32020),
        (
            "legacy header",
            call.clone(),
            vec![("mcp-protocol-version", "2025-11-25"), right[1], right[2]],
            400,
            -32020,
        ),
        ("unknown header", call, vec![("mcp-protocol-version", "1900-01-01")], 400, -32020),
        ("unknown body", body("2099-01-01"), right.to_vec(), 400, -32020),
        (
            "unknown everywhere",
            body("1900-01-01"),
            vec![("mcp-protocol-version", "1900-01-01"), right[1], right[2]],
            400,
            -32022,
        ),
        ("unknown body, no header", body("1900-01-01"), right[1..].to_vec(), 400, -32022),
        (
            "unknown header, no body",
            legacy.clone(),
            vec![("mcp-protocol-version", "1900-01-01")],
            400,
            -32022,
        ),
        ("no capabilities", unable, right.to_vec(), 400, -32602),
        ("no meta", legacy.clone(), vec![right[0], ("mcp-method", "tools/list")], 400, -32602),
        ("no session", legacy, vec![], 400, -32600),
    ];
    for (what, message, headers, status, number) in rows {
        let mut request =
            gateway.request("POST", "/mcp").header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let answer = request.clone().body(message.to_string()).send();
        assert_eq!(answer.status, status, "{what}: {answer:?}");
        if number == 0 {
            continue;
        }
        let error = answer.json()["error"].clone();
        assert_eq!(error["code"], number, "{what}: {answer:?}");
        // The same failure as problem details.
        let request = request.header("accept", "application/problem+json");
        let problem = request.body(message.to_string()).send();
        assert_eq!(problem.header("content-type"), Some("application/problem+json"), "{what}");
        let data = &error["data"]["error"];
        for field in ["code", "category", "retryable"] {
            assert_eq!(problem.json()[field], data[field], "{what}: {field}");
        }
        assert_eq!(problem.json()["status"], problem.status, "{what}");
        if number == -32022 {
            assert_eq!(data["details"]["supported_versions"][0], "2026-07-28", "{what}");
            assert_eq!(error["data"]["supported"], json!(["2026-07-28"]), "{what}");
            assert_eq!(error["data"]["requested"], "1900-01-01", "{what}");
            let upgrade = what != "unknown body, no header";
            assert_eq!(problem.status, if upgrade { 426 } else { 400 }, "{what}");
        }
    }
}

#[test]
fn o3_host_and_origin_are_checked_on_every_path() {
    let gateway = Gateway::demo(&["--contract", "owlclaw"]);
    for path in ["/", "/mcp", "/healthz", "/metrics", "/nosuch"] {
        for (name, value) in [
            ("host", "evil.example"),
            ("host", "localhost.evil"),
            ("origin", "null"),
            ("origin", "http://evil.example"),
        ] {
            let answer = gateway.request("GET", path).header(name, value).send();
            assert_eq!(answer.status, 403, "{path} with {name} {value}");
            assert_eq!(answer.json()["code"], "auth.forbidden");
        }
    }
    // Whatever the contract's own status for it is.
    for contract in ["kaiza", "tuitbot", "workrail", "context-resolve"] {
        let gateway = Gateway::demo(&["--contract", contract]);
        for (name, value) in [("host", "evil.example"), ("origin", "null")] {
            let answer = gateway.request("GET", "/mcp").header(name, value).send();
            assert_eq!(answer.status, 403, "{contract}: {answer:?}");
        }
    }
    let port = gateway.address.rsplit(':').next().unwrap().to_owned();
    for (name, value) in [
        ("host", format!("localhost:{port}")),
        ("host", "[::1]".to_owned()),
        ("origin", "http://localhost:6274".to_owned()),
    ] {
        assert_eq!(gateway.request("GET", "/healthz").header(name, &value).send().status, 200);
    }
}

#[test]
fn a_client_cannot_touch_the_calls_of_others() {
    let gateway = Gateway::demo(&[]);
    let slow = json!({ "name": "slow", "arguments": { "ms": 600 } });
    std::thread::scope(|scope| {
        let call = scope.spawn(|| gateway.modern(&json!(1), "tools/call", &slow).send().reply());
        std::thread::sleep(Duration::from_millis(200));
        let post = |body: String| {
            let request = gateway
                .request("POST", "/mcp")
                .header("mcp-protocol-version", "2026-07-28")
                .header("mcp-method", "notifications/cancelled");
            request.body(body).send()
        };
        for id in 0..20 {
            let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
                                 "params": { "requestId": id } });
            assert_eq!(post(cancel.to_string()).status, 202);
            let reply = json!({ "jsonrpc": "2.0", "id": id, "result": {} });
            assert_ne!(post(reply.to_string()).status, 200);
            let batch = json!([{ "jsonrpc": "2.0", "id": id, "method": "tools/list" }]);
            assert_eq!(post(batch.to_string()).status, 400);
        }
        let reply = call.join().unwrap();
        assert_eq!(reply["id"], 1);
        assert!(reply["result"]["isError"].is_null(), "{reply}");
    });
}

#[test]
fn a5_a_client_that_leaves_takes_its_call_back() {
    let gateway = Gateway::demo(&[]);
    gateway.modern(&json!(0), "tools/list", &json!({})).send();
    let hang = json!({ "name": "hang", "arguments": {} });
    let request = gateway.modern(&json!("gone"), "tools/call", &hang);
    request.leave_after(Duration::from_millis(200));
    let until = std::time::Instant::now() + Duration::from_secs(5);
    let cancelled = || {
        let records = gateway.records();
        records
            .iter()
            .any(|r| r["fault"]["condition"] == "cancelled" && r["call"]["request"] == "gone")
    };
    while !cancelled() {
        assert!(std::time::Instant::now() < until, "{:?}", gateway.records());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn what_nobody_checked_reaches_no_server() {
    let dir = crate::support::Dir::new();
    let seen = dir.join("seen");
    let code = format!(
        r#"
import sys, json
for line in sys.stdin:
    open({seen:?}, "a").write(line)
    m = json.loads(line)
    if "id" in m: print(json.dumps({{"jsonrpc": "2.0", "id": m["id"], "result": {{"protocolVersion": "2025-11-25", "capabilities": {{}}, "serverInfo": {{"name": "s", "version": "1"}}, "tools": []}}}}), flush=True)
"#
    );
    let gateway = Gateway::before(&[], &["python3", "-c", &code]);
    let session = gateway.begin();
    let call =
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"secret","arguments":{}}}"#;
    let twice = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"secret"},"params":{"name":"echo"}}"#;
    let batch = format!("[{call}]");
    for body in [call, twice, &batch] {
        let request = gateway.request("POST", "/mcp").header("mcp-session-id", &session);
        let answer = request.body(body).send();
        assert_eq!(answer.status, 400, "{body}: {answer:?}");
    }
    let odd = gateway.modern(&json!(null), "tools/call", &json!({ "name": "secret" }));
    assert_eq!(odd.send().status, 400);
    assert!(!std::fs::read_to_string(&seen).unwrap().contains("secret"));
    // Whatever is refused is refused in the contract's words, and recorded.
    for (method, path, status) in [
        ("PUT", "/mcp", 405),
        ("GET", "/mcp", 405),
        ("GET", "/mcp/nosuch", 404),
        ("POST", "/x", 404),
    ] {
        let answer = gateway.request(method, path).send();
        assert_eq!(answer.status, status, "{method} {path}");
        assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{answer:?}");
        assert!(answer.json()["incident_id"].is_string(), "{answer:?}");
    }
    for method in ["GET", "DELETE"] {
        let answer = gateway.request(method, "/mcp").header("mcp-session-id", "nosuch").send();
        assert_eq!(answer.status, 404, "{method}");
        assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{answer:?}");
    }
    let faults = gateway.records().iter().filter(|r| r["fault"].is_object()).count();
    assert_eq!(faults, 10);
}

#[test]
fn a_session_whose_client_left_at_once_ends() {
    let gateway = Gateway::demo(&[]);
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
    let code = "import time\ntime.sleep(5)\n";
    let slow = Gateway::before(&[], &["python3", "-c", code]);
    for gateway in [&gateway, &slow] {
        let request = gateway.request("POST", "/mcp").body(hello.to_string());
        request.leave_after(Duration::ZERO);
        let until = std::time::Instant::now() + Duration::from_secs(10);
        std::thread::sleep(Duration::from_millis(300));
        let open =
            || gateway.request("GET", "/api/status").send().json()["mounts"][0]["servers"].clone();
        while open() != json!(0) {
            assert!(std::time::Instant::now() < until, "a server stays behind");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Who never heard of a question cannot think about it: the clock of the call goes on.
#[test]
fn a_question_that_no_client_has_heard_stops_no_clock() {
    let code = r#"
import sys, json
for line in sys.stdin:
    m = json.loads(line)
    if m.get("id") == "q": out = {"jsonrpc": "2.0", "id": asked, "result": {"content": [{"type": "text", "text": "thanks"}]}}
    elif "id" not in m: continue
    elif m["method"] == "tools/call":
        asked, out = m["id"], {"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}}
    else: out = {"jsonrpc": "2.0", "id": m["id"], "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}, "tools": [{"name": "t", "inputSchema": {"type": "object"}}]}}
    print(json.dumps(out), flush=True)
"#;
    let gateway = Gateway::before(&["--timeout", "3s"], &["python3", "-c", code]);
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "t", "arguments": {} } });
    let alone = |session: &str| {
        let request = gateway.request("POST", "/mcp").header("content-type", "application/json");
        let request = request.header("accept", "application/json");
        request.header("mcp-session-id", session).body(call.to_string())
    };
    let reply = alone(&gateway.begin()).send().reply();
    assert_eq!(reply["result"]["isError"], true, "{reply}");
    assert_eq!(gateway.records().pop().unwrap()["fault"]["condition"], "timeout");
    // Who has come for it may take longer than the call.
    let session = gateway.begin();
    let mut stream = gateway
        .request("GET", "/mcp")
        .header("accept", "text/event-stream")
        .header("mcp-session-id", &session)
        .open();
    std::thread::scope(|scope| {
        let reply = scope.spawn(|| alone(&session).send().reply());
        assert_eq!(stream.event().unwrap()["method"], "elicitation/create");
        std::thread::sleep(Duration::from_secs(5));
        let said = json!({ "jsonrpc": "2.0", "id": "q", "result": { "action": "decline" } });
        assert_eq!(gateway.post(Some(&session), &said).status, 202);
        assert_eq!(reply.join().unwrap()["result"]["content"][0]["text"], "thanks");
    });
}

#[test]
fn o2_versions_of_a_session_are_its_own_and_one_everywhere() {
    let gateway = Gateway::demo(&["--contract", "owlclaw"]);
    let hello = |version: &str| {
        json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } })
    };
    let code = |answer: &crate::serve::http::Answer| {
        let error = &answer.json()["error"]["data"]["error"]["code"];
        error.as_str().map(str::to_owned)
    };
    let begin = |head: &str, body: &str| {
        let request = gateway.request("POST", "/mcp").header("mcp-protocol-version", head);
        request.body(hello(body).to_string()).send()
    };
    assert_eq!(begin("2025-11-25", "2025-11-25").status, 200);
    // What is proposed is still to be agreed on.
    assert_eq!(begin("2025-12-31", "2025-12-31").status, 200);
    let (unsupported, conflict) = ("protocol.unsupported_version", "protocol.version_conflict");
    assert_eq!(code(&begin("1999-01-01", "2025-11-25")).as_deref(), Some(unsupported));
    assert_eq!(code(&begin("2024-11-05", "2025-11-25")).as_deref(), Some(conflict));
    let session = gateway.begin();
    let of_session = |method: &str, versions: &[&str]| {
        let mut request = gateway.request(method, "/mcp").header("mcp-session-id", &session);
        for version in versions {
            request = request.header("mcp-protocol-version", version);
        }
        request
    };
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let modern = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping", "params": { "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28" } } });
    let rows = [
        (vec![], &ping, None),
        (vec!["2025-11-25"], &ping, None),
        (vec!["2025-11-25", "2025-11-25"], &ping, None),
        (vec!["2025-11-25", "2025-06-18"], &ping, Some(conflict)),
        (vec!["2025-11-25"], &modern, Some(conflict)),
        (vec!["2026-07-28"], &ping, Some(unsupported)),
        (vec!["1999-01-01"], &ping, Some(unsupported)),
    ];
    for (versions, message, expected) in rows {
        let answer = of_session("POST", &versions).body(message.to_string()).send();
        assert_eq!(code(&answer).as_deref(), expected, "{versions:?}: {answer:?}");
        if expected == Some(unsupported) {
            let supported = answer.json()["error"]["data"]["supported"].clone();
            assert_eq!(supported[0], "2025-11-25", "what it could speak in a session");
        }
    }
    for method in ["GET", "DELETE"] {
        let answer = of_session(method, &["1999-01-01"]).send();
        assert_eq!(answer.json()["code"], unsupported, "{method}: {answer:?}");
    }
    assert_eq!(of_session("DELETE", &["2025-11-25"]).send().status, 204);
}

#[test]
fn what_a_client_takes_may_be_written_in_many_ways() {
    let gateway = Gateway::demo(&["--contract", "owlclaw"]);
    for (accept, media) in [
        (&["Application/Problem+JSON"][..], "application/problem+json"),
        (&["application/json", "application/problem+json"], "application/problem+json"),
        (&["application/problem+json;q=0"], "application/json"),
        (&["application/problem+json, text/event-stream"], "application/json"),
        (&["application/problem+json, Text/Event-Stream;q=0.5"], "application/json"),
        (&["application/problem+json, text/event-stream;q=0.0"], "application/problem+json"),
    ] {
        let mut request = gateway.request("POST", "/mcp").header("mcp-session-id", "gone");
        for line in accept {
            request = request.header("accept", line);
        }
        let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
        let answer = request.body(ping.to_string()).send();
        assert_eq!(answer.header("content-type"), Some(media), "{accept:?}");
    }
}

#[test]
fn a_session_that_is_listened_to_is_in_use() {
    let dir = crate::support::Dir::new();
    let config = dir.join("faultwire.toml");
    std::fs::write(&config, "[serve]\nidle = \"2s\"\n").unwrap();
    let gateway = Gateway::demo(&["--config", &config]);
    let listening = gateway.begin();
    let request = gateway.request("GET", "/mcp").header("mcp-session-id", &listening);
    let mut stream = request.header("accept", "text/event-stream").open();
    let left = gateway.begin();
    assert!(stream.is_silent(Duration::from_secs(6)), "it goes on");
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    assert_eq!(gateway.post(Some(&listening), &ping).status, 200);
    assert_eq!(gateway.post(Some(&left), &ping).status, 404);
}

#[test]
fn what_a_server_says_before_its_reply_comes_with_the_answer() {
    // The reply has a return between its members, which is a blank in JSON and ends a line elsewhere.
    let code = r#"
import sys, json
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    if m["method"] == "tools/call":
        out = "".join(json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": [m["id"], n]}}) + "\n" for n in range(3))
        out += '{"jsonrpc": "2.0",\r"id": %d, "result": {"content": [{"type": "text", "text": "said"}]}}\n' % m["id"]
    else: out = json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}, "tools": [{"name": "t", "inputSchema": {"type": "object"}}]}}) + "\n"
    sys.stdout.write(out)
    sys.stdout.flush()
"#;
    let gateway = Gateway::before(&[], &["python3", "-c", code]);
    let session = gateway.begin();
    for id in 1..20 {
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "t", "arguments": {} } });
        let answer = gateway.post(Some(&session), &call);
        let messages = answer.messages();
        assert!(!answer.body.contains('\r'), "{answer:?}");
        let said: Vec<_> = messages.iter().map(|message| &message["params"]["data"]).collect();
        assert_eq!(said[..3], [&json!([id, 0]), &json!([id, 1]), &json!([id, 2])], "{messages:?}");
        assert_eq!(messages[3]["result"]["content"][0]["text"], "said", "{messages:?}");
    }
}

#[test]
fn a_request_that_says_something_twice_reaches_no_server() {
    let gateway = Gateway::demo(&[]);
    let params =
        json!({ "name": "echo", "arguments": { "text": "x" }, "_meta": { "progressToken": 1 } });
    let request = gateway.modern(&json!(1), "tools/call", &params);
    assert_eq!(request.send().status, 200);
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"progressToken":"mine","progressToken":2}}}"#;
    let answer = request.body(body).send();
    assert_eq!(
        (answer.status, &answer.json()["error"]["code"]),
        (400, &json!(-32602)),
        "{answer:?}"
    );
}

#[test]
fn a_question_goes_to_the_stream_that_is_read() {
    let code = r#"
import sys, json, time
say = lambda m: print(json.dumps({"jsonrpc": "2.0", **m}), flush=True)
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    if m["method"] == "tools/call":
        say({"method": "notifications/progress", "params": {"progressToken": m["params"]["_meta"]["progressToken"], "progress": 1}})
        time.sleep(2)
        say({"id": "q", "method": "elicitation/create", "params": {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}})
    else: say({"id": m["id"], "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}, "tools": [{"name": "t", "inputSchema": {"type": "object"}}]}})
"#;
    let gateway = Gateway::before(&[], &["python3", "-c", code]);
    let session = gateway.begin();
    let get = gateway.request("GET", "/mcp").header("mcp-session-id", &session);
    let mut own = get.header("accept", "text/event-stream").open();
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "t", "arguments": {}, "_meta": { "progressToken": "p" } } });
    let post = gateway.request("POST", "/mcp").header("mcp-session-id", &session);
    let post = post.header("accept", "application/json, text/event-stream");
    let mut answer = post.body(call.to_string()).open();
    assert_eq!(answer.event().unwrap()["method"], "notifications/progress");
    drop(answer);
    assert_eq!(own.event().unwrap()["method"], "elicitation/create");
}

#[test]
fn nobody_waits_for_who_only_listens() {
    let code = r#"
import sys, json
for line in sys.stdin:
    m = json.loads(line)
    if m.get("method") == "server/discover": print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}}}), flush=True)
"#;
    let gateway = Gateway::before(&["--contract", "owlclaw"], &["python3", "-c", code]);
    let listen = gateway.modern(&json!(1), "subscriptions/listen", &json!({ "notifications": {} }));
    let mut stream = std::thread::spawn(move || listen.open()).join().unwrap();
    let before = std::time::Instant::now();
    gateway.signal("TERM");
    let told = stream.event().unwrap();
    assert!(told["error"]["message"].as_str().unwrap().contains("listen again"), "{told}");
    assert!(before.elapsed() < Duration::from_secs(8), "{:?}", before.elapsed());
    let records = gateway.records();
    let fault = &records.iter().find(|record| record["fault"].is_object()).unwrap()["fault"];
    assert_ne!(fault["origin"], "upstream", "{fault}");
}
