//! Who may do what: every guard answers with the contract's code on both surfaces.

use serde_json::{Value, json};

use crate::serve::gateway::Gateway;
use crate::serve::http::{Answer, Request};
use crate::support::Dir;
use crate::wrap::client::FAULTWIRE;

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

struct Guarded {
    dir: Dir,
    gateway: Gateway,
}

/// A gateway with these settings in front of the demo server.
fn guarded(settings: &str) -> Guarded {
    guarded_before(settings, &[FAULTWIRE, "demo-server"])
}

/// The same in front of another server.
fn guarded_before(settings: &str, server: &[&str]) -> Guarded {
    let dir = Dir::new();
    let config = dir.join("faultwire.toml");
    for client in ["ann", "bob"] {
        std::fs::write(dir.path().join(client), format!("{client}-token\n")).unwrap();
    }
    let settings = settings.replace("DIR", &dir.path().display().to_string());
    std::fs::write(&config, settings).unwrap();
    let gateway = Gateway::before(&["--config", &config], server);
    Guarded { dir, gateway }
}

impl Guarded {
    fn request(&self, token: &str, tool: &str, arguments: &Value) -> Request {
        let params = json!({ "name": tool, "arguments": arguments });
        let request = self.gateway.modern(&json!(1), "tools/call", &params);
        if token.is_empty() {
            request
        } else {
            request.header("authorization", &format!("Bearer {token}"))
        }
    }

    fn call(&self, token: &str, tool: &str, arguments: &Value) -> Value {
        self.request(token, tool, arguments).send().reply()
    }

    /// The same call as a client of HTTP.
    fn problem(&self, token: &str, tool: &str, arguments: &Value) -> Answer {
        let params = json!({ "name": tool, "arguments": arguments, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {} } });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let mut request = self
            .gateway
            .request("POST", "/mcp")
            .header("accept", "application/problem+json")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", tool)
            .header("traceparent", TRACE);
        if !token.is_empty() {
            request = request.header("authorization", &format!("Bearer {token}"));
        }
        request.body(body.to_string()).send()
    }
}

fn envelope(reply: &Value) -> &Value {
    &reply["result"]["structuredContent"]["error"]
}

/// A tool, its arguments, a token, and the versions that head and body name.
type Row<'a> = (&'a str, Value, &'a str, [&'a str; 2], Matrix);
/// Code, status, category, and whether to try again.
type Matrix = (&'static str, u16, &'static str, bool);

#[test]
fn o4_o5_o9_the_rows_of_the_matrix_on_both_surfaces() {
    let guarded = guarded(
        r#"
contract = "owlclaw"
timeout = "300ms"
[tool.add]
rate = "1/h"
[[client]]
name = "ann"
token_file = "DIR/ann"
tools = ["ec*", "add", "hang", "crash", "leak", "rpc_error", "missing_*"]
[[client]]
name = "bob"
token_file = "DIR/bob"
budget = "0/d"
"#,
    );
    let add = json!({ "a": 1, "b": 2 });
    assert_eq!(guarded.call("ann-token", "add", &add)["result"]["content"][0]["text"], "3");
    // What is provoked, by which client, and what the matrix says of it.
    let (ann, bob) = ("ann-token", "bob-token");
    let (now, old) = ("2026-07-28", "1900-01-01");
    let text = json!({ "text": "x" });
    #[rustfmt::skip]
    let rows: [Row<'_>; 9] = [
        ("echo", text.clone(), ann, [old, old], ("protocol.unsupported_version", 426, "compatibility", false)),
        ("echo", text.clone(), ann, [now, old], ("protocol.version_conflict", 400, "validation", false)),
        ("add", add, ann, [now, now], ("governance.rate_limited", 429, "governance", true)),
        ("echo", text.clone(), bob, [now, now], ("governance.budget_exceeded", 403, "governance", false)),
        ("echo", text, "nobody", [now, now], ("auth.unauthorized", 401, "auth", false)),
        ("big", json!({ "kib": 1 }), ann, [now, now], ("auth.forbidden", 403, "auth", false)),
        ("hang", json!({}), ann, [now, now], ("runtime.timeout", 504, "runtime", true)),
        ("missing_file", json!({}), ann, [now, now], ("internal.unexpected", 500, "internal", false)),
        // Last: the server is started again then.
        ("crash", json!({}), ann, [now, now], ("dependency.unavailable", 503, "dependency", true)),
    ];
    for (tool, arguments, token, [head, body], (code, status, category, retryable)) in rows {
        let params = json!({ "name": tool, "arguments": arguments, "_meta": {
            "io.modelcontextprotocol/protocolVersion": body,
            "io.modelcontextprotocol/clientCapabilities": {},
            "traceparent": TRACE } });
        let message =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let request = |accept: &str| {
            let request = guarded
                .gateway
                .request("POST", "/mcp")
                .header("accept", accept)
                .header("authorization", &format!("Bearer {token}"))
                .header("mcp-protocol-version", head)
                .header("mcp-method", "tools/call")
                .header("mcp-name", tool);
            // A client of MCP tells its trace in the message, one of HTTP in the head, too.
            let request = match accept {
                "application/problem+json" => request.header("traceparent", TRACE),
                _ => request,
            };
            request.body(message.to_string()).send()
        };
        let reply = request("application/json, text/event-stream").reply();
        let told = match &reply["error"] {
            Value::Null => envelope(&reply),
            error => &error["data"]["error"],
        };
        assert_eq!(reply["id"], 1, "{code}: {reply}");
        assert_eq!(told["code"], code, "{reply}");
        assert_eq!(told["category"], category, "{code}");
        assert_eq!(told["retryable"], retryable, "{code}");
        let problem = request("application/problem+json");
        assert_eq!(problem.status, status, "{code}: {problem:?}");
        assert_eq!(problem.header("content-type"), Some("application/problem+json"), "{code}");
        let body = problem.json();
        assert_eq!(body["status"], status, "{code}");
        for field in ["code", "category", "retryable", "incident_id"] {
            assert_eq!(body[field], told[field], "{code}: {field}");
        }
        // The incident is found by the trace, and the trace by the incident.
        assert!(body["incident_id"].as_str().unwrap().contains("4bf92f3577b34da6"), "{body}");
        let after = body["retry_after"].as_u64();
        assert_eq!(problem.header("retry-after").and_then(|s| s.parse().ok()), after, "{code}");
    }
    // The true wait: one call an hour, and one was made just now.
    let wait =
        guarded.problem("ann-token", "add", &json!({ "a": 1, "b": 2 })).json()["retry_after"]
            .as_u64();
    assert!((3500..=3600).contains(&wait.unwrap()), "{wait:?}");
    for token in ["", "wrong", "ann-token-", "ann"] {
        let problem = guarded.problem(token, "echo", &json!({ "text": "x" }));
        assert_eq!(problem.status, 401, "{token:?}");
        assert_eq!(problem.header("www-authenticate"), Some("Bearer"));
        assert_eq!(problem.json()["code"], "auth.unauthorized");
    }
    let log = format!("{:?}", guarded.gateway.records());
    assert!(!log.contains("ann-token") && !log.contains("bob-token"), "a token is in the log");
    assert!(log.contains("\"ann\""), "who called is in the log");
}

#[test]
fn what_a_client_may_not_call_it_does_not_hear_of() {
    let guarded = guarded(
        "contract = \"owlclaw\"\n\
         [[client]]\nname = \"ann\"\ntoken_file = \"DIR/ann\"\ntools = [\"ec*\", \"add\", \"bigg\"]\n\
         [[client]]\nname = \"bob\"\ntoken_file = \"DIR/bob\"\n",
    );
    // The same words whether there is such a tool or not.
    let words = |tool: &str| {
        let problem = guarded.problem("ann-token", tool, &json!({})).json();
        let told = guarded.call("ann-token", tool, &json!({}));
        let mut told = envelope(&told).clone();
        told.as_object_mut().unwrap().remove("incident_id");
        (problem, told)
    };
    assert_eq!(words("big"), words("absent"));
    // Nor does the list tell, which is whole for those who may call everything.
    let listed = |token: &str| {
        let request = guarded.gateway.modern(&json!(1), "tools/list", &json!({}));
        let request = request.header("authorization", &format!("Bearer {token}"));
        let tools = request.send().reply()["result"]["tools"].as_array().unwrap().clone();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let (some, all) = (listed("ann-token"), listed("bob-token"));
    assert!(some.contains(&"echo".to_owned()) && !some.contains(&"big".to_owned()), "{some:?}");
    assert!(all.contains(&"big".to_owned()) && all.len() > some.len(), "{all:?}");
    // Nobody is led to what is kept from them.
    for (token, suggestion) in
        [("bob-token", json!("Did you mean \"big\"?")), ("ann-token", Value::Null)]
    {
        guarded.call(token, "bigg", &json!({}));
        let record = guarded.gateway.records().pop().unwrap();
        assert_eq!(record["fault"]["suggestion"], suggestion, "{record}");
    }
}

#[test]
fn a_tool_list_that_cannot_be_read_is_kept_from_who_may_not_know_all_of_it() {
    // Two lists, a list that is none, none at all, one in another case: a client may take each in
    // its own way.
    let code = r#"
import sys, json
pages = ['{"tools": [], "tools": [{"name": "big"}]}', '{"tools": {"big": {}}}', '{"more": "big"}', '"big"', '{"tools": [], "Tools": [{"name": "big"}]}']
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    if m["method"] == "tools/list": r = pages[int(m["params"].get("cursor", 3))]
    else: r = '{"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}'
    print('{"jsonrpc": "2.0", "id": %s, "result": %s}' % (json.dumps(m["id"]), r), flush=True)
"#;
    let guarded = guarded_before(
        "[[client]]\nname = \"ann\"\ntoken_file = \"DIR/ann\"\ntools = [\"ec*\"]\n\
         [[client]]\nname = \"bob\"\ntoken_file = \"DIR/bob\"\n",
        &["python3", "-c", code],
    );
    for token in ["ann-token", "bob-token"] {
        for page in ["0", "1", "2", "3", "4"] {
            // A list that two parsers read differently reaches no client (X1).
            let is_kept = token == "ann-token" || page == "0" || page == "4";
            let params = json!({ "cursor": page });
            let request = guarded.gateway.modern(&json!(1), "tools/list", &params);
            let request = request.header("authorization", &format!("Bearer {token}"));
            let reply = request.send().reply();
            assert_eq!(reply.to_string().contains("big"), !is_kept, "{token} {page}: {reply}");
            assert_eq!(reply["error"].is_object(), is_kept, "{token} {page}: {reply}");
        }
    }
    let records = guarded.gateway.records();
    let conditions: Vec<_> = records.iter().map(|record| &record["fault"]["condition"]).collect();
    let malformed = conditions.iter().filter(|condition| **condition == "upstream_protocol");
    assert_eq!(malformed.count(), 7, "{records:?}");
}

#[test]
fn a_session_is_its_clients_alone() {
    let guarded = guarded(
        "[[client]]\nname = \"ann\"\ntoken_file = \"DIR/ann\"\nrole = \"reviewer\"\n\
         [[client]]\nname = \"bob\"\ntoken_file = \"DIR/bob\"\n",
    );
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
    let post = |token: &str, session: Option<&str>, message: &Value| {
        let mut request = guarded
            .gateway
            .request("POST", "/mcp")
            .header("content-type", "application/json")
            .header("authorization", &format!("Bearer {token}"));
        if let Some(session) = session {
            request = request.header("mcp-session-id", session);
        }
        request.body(message.to_string()).send()
    };
    let begun = post("ann-token", None, &hello);
    let session = begun.header("mcp-session-id").unwrap().to_owned();
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
                       "params": { "name": "missing_file", "arguments": {} } });
    assert_eq!(post("bob-token", Some(&session), &call).status, 404);
    assert_eq!(post("wrong", Some(&session), &call).status, 401);
    assert_eq!(post("ann-token", Some(&session), &call).status, 200);
    let records = guarded.gateway.records();
    let record = records.iter().rfind(|r| r["fault"]["tool"] == "missing_file").unwrap();
    assert_eq!(record["fault"]["session"]["client"], "ann");
    assert_eq!(record["fault"]["session"]["role"], "reviewer");
}

#[test]
fn budgets_survive_a_restart() {
    let dir = Dir::new();
    let config = dir.join("faultwire.toml");
    let log = dir.join("log");
    let settings = "contract = \"owlclaw\"\n[[client]]\nname = \"all\"\nbudget = \"3/d\"\n";
    std::fs::write(&config, settings).unwrap();
    let mut spent = 0;
    // Not even one that is killed at once gives anything back.
    for (round, ending) in ["KILL", "TERM", "TERM"].into_iter().enumerate() {
        let args = ["--config", &config, "--", FAULTWIRE, "demo-server"];
        let mut gateway = Gateway::start_with_log(&log, &args);
        for _ in 0..2 {
            let params = json!({ "name": "echo", "arguments": { "text": "x" } });
            let reply = gateway.modern(&json!(1), "tools/call", &params).send().reply();
            if reply["result"]["isError"] == true {
                assert_eq!(envelope(&reply)["code"], "governance.budget_exceeded");
            } else {
                spent += 1;
            }
        }
        assert_eq!(spent, (2 + round).min(3), "round {round}");
        gateway.signal(ending);
        let ended = gateway.process.wait().unwrap();
        assert!(ended.success() || ending == "KILL", "{ended}");
    }
}

#[test]
fn a_server_that_fails_again_and_again_is_left_alone() {
    let guarded = guarded("contract = \"owlclaw\"\n[breaker]\nfailures = 3\nwait = \"1s\"\n");
    for _ in 0..3 {
        let reply = guarded.call("", "malformed", &json!({}));
        assert_eq!(envelope(&reply)["code"], "dependency.unavailable");
    }
    let reply = guarded.call("", "echo", &json!({ "text": "x" }));
    let told = envelope(&reply);
    assert_eq!(told["code"], "dependency.unavailable", "{reply}");
    assert!(told["message"].as_str().unwrap().contains("calls are paused"), "{reply}");
    assert_eq!(told["retry_after"], 1, "{reply}");
    // A failure of the tool itself would not have done that.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let reply = guarded.call("", "echo", &json!({ "text": "x" }));
    assert_eq!(reply["result"]["content"][0]["text"], "x", "{reply}");
    for _ in 0..10 {
        guarded.call("", "missing_file", &json!({}));
    }
    let reply = guarded.call("", "echo", &json!({ "text": "y" }));
    assert_eq!(reply["result"]["content"][0]["text"], "y", "{reply}");
    drop(guarded.dir);
}

/// All calls that were open when a server crashed have failed, of one cause.
#[test]
fn one_crash_is_one_failure_however_many_calls_were_open() {
    let guarded = guarded("contract = \"owlclaw\"\n[breaker]\nfailures = 3\nwait = \"60s\"\n");
    std::thread::scope(|scope| {
        let open: Vec<_> =
            (0..4).map(|_| scope.spawn(|| guarded.call("", "hang", &json!({})))).collect();
        std::thread::sleep(std::time::Duration::from_millis(500));
        guarded.call("", "crash", &json!({}));
        for reply in open.into_iter().map(|open| open.join().unwrap()) {
            assert_eq!(envelope(&reply)["code"], "dependency.unavailable", "{reply}");
        }
    });
    let reply = guarded.call("", "echo", &json!({ "text": "x" }));
    assert_eq!(reply["result"]["content"][0]["text"], "x", "{reply}");
}

#[test]
fn whatever_becomes_of_the_one_who_finds_out_others_are_not_shut_out() {
    let guarded = guarded(
        "contract = \"owlclaw\"\n[breaker]\nfailures = 2\nwait = \"300ms\"\n\
         [limits]\nin_flight = 1\n",
    );
    let left_alone = || {
        for _ in 0..2 {
            guarded.call("", "malformed", &json!({}));
        }
        let reply = guarded.call("", "echo", &json!({ "text": "x" }));
        assert!(reply.to_string().contains("calls are paused"), "{reply}");
        std::thread::sleep(std::time::Duration::from_millis(350));
    };
    let is_well = |after: &str| {
        let reply = guarded.call("", "echo", &json!({ "text": "x" }));
        assert_eq!(reply["result"]["content"][0]["text"], "x", "{after}: {reply}");
    };
    for (tool, arguments) in
        [("nosuch", json!({})), ("rate_limited", json!({})), ("echo", json!({ "txt": 1 }))]
    {
        left_alone();
        assert_eq!(guarded.call("", tool, &arguments)["result"]["isError"], true);
        is_well(tool);
    }
    left_alone();
    let hang = guarded.request("", "hang", &json!({}));
    hang.leave_after(std::time::Duration::from_millis(200));
    std::thread::sleep(std::time::Duration::from_millis(300));
    is_well("a client that left");
}

#[test]
fn bodies_and_heads_have_limits() {
    let guarded =
        guarded("contract = \"owlclaw\"\n[serve]\nbody_bytes = 1000\nheader_bytes = 8192\n");
    let gateway = &guarded.gateway;
    let long = gateway.request("POST", "/mcp").body(vec![b'x'; 2000]).send();
    assert_eq!(
        (long.status, long.json()["title"].as_str().unwrap()),
        (400, "The body has more than 1000 bytes")
    );
    // One that says nothing of its length.
    let chunked = gateway
        .request("POST", "/mcp")
        .header("transfer-encoding", "chunked")
        .header("content-length-not", "1");
    let mut body = String::new();
    for _ in 0..20 {
        body.push_str(&format!("64\r\n{}\r\n", "x".repeat(100)));
    }
    body.push_str("0\r\n\r\n");
    let answer = chunked.without_length().body(body).send();
    assert_eq!(answer.status, 400, "{answer:?}");
    let head = |length: usize| {
        gateway.request("GET", "/healthz").header("x-long", &"x".repeat(length)).send()
    };
    assert_eq!(head(7_000).status, 200);
    let refused = head(8_200);
    assert_eq!(refused.status, 431);
    assert!(refused.body.contains("protocol.version_conflict"), "{refused:?}");
    // One that is much too long is not even read; it is known of all the same.
    assert_eq!((head(20_000).status, head(100_000).status), (431, 431));
    let known = |record: &Value| record["name"] == "head_too_long";
    let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while !gateway.records().iter().any(known) {
        assert!(std::time::Instant::now() < until, "it is not recorded");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn k12_sessions_are_begun_and_lock() {
    let code = r#"
import sys, json
tools = ["begin_session", "end_session", "read_file", "write_file", "break_rules", "peek"]
def answer(name, arguments):
    if name == "break_rules": return {"isError": True, "content": [{"type": "text", "text": json.dumps({"error_code": "POLICY_VIOLATION", "human_message": "no"})}]}
    return {"content": [{"type": "text", "text": name}]}
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    if m["method"] == "initialize": r = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    elif m["method"] == "tools/list": r = {"tools": [{"name": t, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": t == "peek"}} for t in tools]}
    else: r = answer(m["params"]["name"], m["params"].get("arguments"))
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
"#;
    // Whether arguments are checked has nothing to do with it.
    for arguments in ["enforce", "off"] {
        let args = ["--contract", "kaiza", "--arguments", arguments];
        k12(&Gateway::before(&args, &["python3", "-c", code]));
    }
}

fn k12(gateway: &Gateway) {
    let sessions = [gateway.begin(), gateway.begin()];
    let mut id = 0;
    let mut call = |session: &str, tool: &str, arguments: &Value| {
        id += 1;
        let reply = gateway.call(session, id, tool, arguments);
        if reply["result"]["isError"] != true {
            return "fine".to_owned();
        }
        reply["result"]["structuredContent"]["error_code"].as_str().unwrap().to_owned()
    };
    let none = json!({});
    let report = json!({ "path": "docs/reports/failure.md" });
    let escape = json!({ "path": "docs/reports/../x" });
    let first = &sessions[0];
    assert_eq!(call(first, "read_file", &none), "SESSION_NOT_INITIALIZED");
    assert_eq!(call(first, "begin_session", &none), "fine");
    assert_eq!(call(first, "write_file", &none), "fine");
    assert_eq!(call(first, "break_rules", &none), "POLICY_VIOLATION");
    assert_eq!(call(first, "write_file", &none), "SESSION_LOCKED");
    assert_eq!(call(first, "write_file", &escape), "SESSION_LOCKED");
    assert_eq!(call(first, "write_file", &report), "fine");
    assert_eq!(call(first, "read_file", &none), "fine");
    assert_eq!(call(first, "peek", &none), "fine");
    // Another session has a lock of its own.
    assert_eq!(call(&sessions[1], "begin_session", &none), "fine");
    assert_eq!(call(&sessions[1], "write_file", &none), "fine");
    assert_eq!(call(first, "begin_session", &none), "fine");
    assert_eq!(call(first, "write_file", &none), "fine");
    assert_eq!(call(first, "end_session", &none), "fine");
    assert_eq!(call(first, "write_file", &none), "SESSION_NOT_INITIALIZED");
}

#[test]
fn a7_no_retry_reaches_a_server_that_is_left_alone() {
    let dir = Dir::new();
    let seen = dir.join("seen");
    let code = format!(
        r#"
import sys, json, os
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    if m["method"] == "initialize": r = {{"protocolVersion": "2025-11-25", "capabilities": {{"tools": {{}}}}, "serverInfo": {{"name": "s", "version": "1"}}}}
    elif m["method"] == "tools/list": r = {{"tools": [{{"name": "t", "inputSchema": {{"type": "object"}}, "annotations": {{"readOnlyHint": True}}}}]}}
    elif m["method"] == "tools/call":
        open({seen:?}, "a").write("x")
        os._exit(1)
    else: r = {{}}
    print(json.dumps({{"jsonrpc": "2.0", "id": m["id"], "result": r}}), flush=True)
"#
    );
    let settings =
        "retry = 6\n[breaker]\nfailures = 2\nwait = \"20s\"\n[restart]\nbase = \"10ms\"\n";
    let guarded = guarded_before(settings, &["python3", "-c", &code]);
    let reply = guarded.call("", "t", &json!({}));
    assert_eq!(reply["result"]["isError"], true, "{reply}");
    assert_eq!(std::fs::read_to_string(&seen).unwrap(), "xx");
}

#[test]
fn a_pattern_knows_no_directories() {
    let code = r#"
import sys, json
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    if m["method"] == "initialize": r = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    elif m["method"] == "tools/list": r = {"tools": [{"name": "fs/read", "inputSchema": {"type": "object"}}]}
    else: r = {"content": [{"type": "text", "text": "read"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
"#;
    let client = |name: &str, tools: &str| {
        format!("[[client]]\nname = {name:?}\ntoken_file = \"DIR/{name}\"\ntools = [{tools:?}]\n")
    };
    let settings = client("ann", "*") + &client("bob", "fs/w*");
    let guarded = guarded_before(&settings, &["python3", "-c", code]);
    let failed =
        |token: &str| guarded.call(token, "fs/read", &json!({}))["result"]["isError"].clone();
    assert_eq!((failed("ann-token"), failed("bob-token")), (Value::Null, json!(true)));
}

/// Whoever is known is named in the record, and the trace goes on, however early a request is
/// refused.
#[test]
fn o7_o9_early_refusals_tell_of_client_and_trace() {
    let guarded = guarded(
        "contract = \"owlclaw\"\n[serve]\nsessions = 1\nbody_bytes = 2000\n\
         [[client]]\nname = \"ann\"\ntoken_file = \"DIR/ann\"\n",
    );
    let post = |token: &str, session: &str, surface: &str, method: &str, more: &str| {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "more": more,
            "clientInfo": { "name": "t", "version": "1" }, "_meta": { "traceparent": TRACE } } });
        let mut request = guarded.gateway.request("POST", "/mcp").header("accept", surface);
        request = request.header("authorization", &format!("Bearer {token}"));
        if !session.is_empty() {
            request = request.header("mcp-session-id", session);
        }
        request.body(message.to_string()).send()
    };
    let (mcp, http) = ("application/json", "application/problem+json");
    assert_eq!(post("ann-token", "", mcp, "initialize", "").status, 200);
    let long = "x".repeat(3000);
    let rows = [
        ("too many sessions", "ann-token", "", "initialize", "", true),
        ("no such session", "ann-token", "gone", "tools/list", "", true),
        // The first and the second of a stranger are recorded, and others summed up (X4).
        ("a stranger", "wrong", "", "tools/list", "", true),
        ("too long", "ann-token", "", "tools/list", &*long, false),
    ];
    for (what, token, session, method, more, is_traced) in rows {
        for surface in [mcp, http] {
            let answer = post(token, session, surface, method, more);
            assert!(answer.status >= 400, "{what}: {answer:?}");
            let record = guarded.gateway.records().pop().unwrap();
            let incident = record["fault"]["incident"].as_str().unwrap();
            assert_eq!(incident.contains(&TRACE[3..35]), is_traced, "{what}, {surface}: {record}");
            let client = if token == "wrong" { Value::Null } else { json!("ann") };
            assert_eq!(record["call"]["client"], client, "{what}, {surface}: {record}");
        }
    }
}
