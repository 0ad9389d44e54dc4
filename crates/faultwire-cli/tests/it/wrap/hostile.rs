//! Servers and clients that mean harm, or have bad luck.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Dir, command};
use crate::wrap::client::{Client, FAULTWIRE, envelope};

/// A server in Python: `say(m)` sends, `m` is what came, `n` counts the calls.
fn server(on_list: &str, on_call: &str) -> Vec<String> {
    let code = format!(
        r#"
import sys, json, os, time, threading
n = 0
def say(m): print(json.dumps(m, ensure_ascii=True), flush=True)
def result(m, text="ran"): say({{"jsonrpc": "2.0", "id": m["id"], "result": {{"content": [{{"type": "text", "text": text}}]}}}})
def tools(m, schema={{"type": "object"}}, **more): say({{"jsonrpc": "2.0", "id": m["id"], "result": {{"tools": [{{"name": "t", "inputSchema": schema}}], **more}}}})
def later(seconds, do, *args): threading.Timer(seconds, do, args).start()
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m or "method" not in m: continue
    if m["method"] == "tools/list":
        {on_list}
    elif m["method"] == "tools/call":
        n += 1
        {on_call}
    else:
        say({{"jsonrpc": "2.0", "id": m["id"], "result": {{}}}})
"#
    );
    vec!["python3".to_owned(), "-c".to_owned(), code]
}

fn wrapped(args: &[&str], on_list: &str, on_call: &str) -> Client {
    let server = server(on_list, on_call);
    Client::wrap(args, &server.iter().map(String::as_str).collect::<Vec<_>>())
}

fn text(reply: &Value) -> &str {
    reply["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{reply}"))
}

#[test]
fn a_schema_that_takes_for_ever_is_not_used() {
    let mut defs = serde_json::Map::new();
    for i in 0..40 {
        let next = json!({ "$ref": format!("#/$defs/d{}", i + 1) });
        defs.insert(format!("d{i}"), json!({ "allOf": [next, next] }));
    }
    defs.insert("d40".to_owned(), json!({ "type": "object" }));
    let bomb = json!({ "type": "object", "allOf": [{ "$ref": "#/$defs/d0" }], "$defs": defs });
    let on_list = format!("tools(m, json.loads({:?}))", bomb.to_string());
    let mut client = wrapped(&["--timeout", "5s"], &on_list, "result(m)");
    let since = Instant::now();
    assert_eq!(text(&client.call("t", &json!({ "x": "s" }))), "ran");
    assert!(since.elapsed() < Duration::from_secs(4), "{:?}", since.elapsed());
}

#[test]
fn a_schema_that_grows_with_the_arguments_is_not_used() {
    // Twice the work for each level of the arguments.
    let schema = json!({ "type": "object", "properties": {
        "v": { "type": "string" }, "c": { "anyOf": [{ "$ref": "#" }, { "$ref": "#" }] },
    } });
    let chain: serde_json::Map<String, Value> = (0..1000)
        .map(|i| (format!("d{i}"), json!({ "$ref": format!("#/$defs/d{}", i + 1) })))
        .collect();
    let long = json!({ "$ref": "#/$defs/d0", "$defs": chain });
    let anchored = json!({ "$ref": "#a", "$defs": { "x": { "$anchor": "a", "type": "object" } } });
    let mut deep = json!({ "v": 1 });
    for _ in 0..40 {
        deep = json!({ "c": deep });
    }
    for schema in [schema, long, anchored] {
        let on_list = format!("tools(m, json.loads({:?}))", schema.to_string());
        let mut client = wrapped(&["--timeout", "5s"], &on_list, "result(m)");
        let since = Instant::now();
        assert_eq!(text(&client.call("t", &deep)), "ran");
        assert!(since.elapsed() < Duration::from_secs(4), "{:?}", since.elapsed());
    }
}

#[test]
fn a_list_that_comes_late_is_nobodys_answer() {
    let late = "later(1.2, tools, m)";
    let mut client = wrapped(&["--timeout", "4s"], late, "later(1.0, result, m)");
    let reply = client.call("t", &json!({}));
    assert_eq!(text(&reply), "ran");
    assert!(client.events().iter().all(|name| name != "unmatched_reply"));
}

#[test]
fn lists_without_an_end_are_ended() {
    let on_list = "tools(m, nextCursor='same')";
    let mut client = wrapped(&["--timeout", "20s"], on_list, "result(m)");
    let since = Instant::now();
    assert_eq!(text(&client.call("t", &json!({}))), "ran");
    assert!(since.elapsed() < Duration::from_secs(3), "{:?}", since.elapsed());
}

#[test]
fn arguments_are_checked_after_a_crash_during_the_list_too() {
    let dir = Dir::new();
    let flag = dir.join("died");
    let on_list = format!(
        "(open({flag:?}, 'w'), os._exit(1)) if not os.path.exists({flag:?}) else tools(m, {{'type': 'object', 'required': ['x']}})"
    );
    let mut client = wrapped(&[], &on_list, "result(m)");
    client.handshake();
    let reply = client.call("t", &json!({}));
    assert_eq!(client.record_of(&reply["id"])["fault"]["condition"], "invalid_arguments");
}

#[test]
fn calls_that_waited_for_the_list_keep_their_order() {
    let mut client =
        wrapped(&[], "later(0.2, tools, m)", "result(m, str(m['params']['arguments']['n']))");
    let ids: Vec<Value> = (0..40).map(|n| client.post_call("t", &json!({ "n": n }))).collect();
    let mut heard = Vec::new();
    while heard.len() < ids.len() {
        let line = client.line(Duration::from_secs(10)).unwrap();
        heard.push(serde_json::from_str::<Value>(&line).unwrap()["id"].clone());
    }
    assert_eq!(heard, ids);
}

#[test]
fn an_id_is_the_same_in_another_spelling() {
    // json.dumps writes \u00e9, drops needless escapes, and 1e0 comes back as 1.0.
    let mut client = wrapped(&["--timeout", "5s"], "tools(m)", "result(m)");
    for id in ["\"é\"", "\"\\u0031\"", "\"a\\/b\"", "1e0", "\"🦉\""] {
        client.send(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t","arguments":{{}}}}}}"#
        ));
        let line = client.line(Duration::from_secs(10)).unwrap();
        let reply: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(text(&reply), "ran", "{id}");
    }
    // Two spellings of one id cannot be open at once; and either can be cancelled by the other.
    let mut client = wrapped(&["--timeout", "5s"], "tools(m)", "later(1.0, result, m)");
    client.call("t", &json!({}));
    let call = |id: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t"}}}}"#)
    };
    client.send(&call("\"c2\""));
    client.send(&call("\"\\u0063\\u0032\""));
    assert_eq!(client.reply(&json!("c2"))["result"]["isError"], true);
    client.send(&call("\"\\u0064\""));
    client.send(&call("\"d\""));
    assert_eq!(client.reply(&json!("d"))["result"]["isError"], true);
    client.send(
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"\u0063\u0032"}}"#,
    );
    let reply = client.reply(&json!("c2"));
    assert_eq!(reply["result"]["isError"], true, "{reply}");
    client.until("it is recorded", |c| {
        c.records().iter().any(|r| r["fault"]["condition"] == "cancelled")
    });
}

#[test]
fn a_log_in_json_is_no_answer() {
    let log = r#"print('{"level":"info","id":%s,"msg":"working"}' % json.dumps(m["id"]), flush=True); later(0.3, result, m)"#;
    let mut client = wrapped(&[], "tools(m)", log);
    assert_eq!(text(&client.call("t", &json!({}))), "ran");
    assert!(client.events().contains(&"stray_output".to_owned()));
    let log = r#"print('{"id":%s,"result":"handled","error":null}' % json.dumps(m["id"]), flush=True); later(0.3, result, m)"#;
    let mut client = wrapped(&[], "tools(m)", log);
    assert_eq!(text(&client.call("t", &json!({}))), "ran");
}

#[test]
fn requests_are_answered_although_no_server_will_come() {
    // It ends at once, and the input ends while the next start is waited for.
    let dir = Dir::new();
    let log = dir.join("log");
    for _ in 0..5 {
        let _ = std::fs::remove_dir_all(&log);
        let request = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
        let wrap = ["wrap", "--log", "off", "--audit", &log, "--", "sh", "-c", "exit 3"];
        let out = crate::support::faultwire(&wrap, request).fine();
        let reply: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out:?}"));
        assert_eq!(reply["id"], 1);
        let data = &reply["error"]["data"]["error"];
        assert!(data["code"].is_string(), "{reply}");
    }
}

#[test]
fn what_a_deaf_server_never_got_is_not_given_to_it_later() {
    // It reads nothing for two seconds, and then everything.
    let dir = Dir::new();
    let seen = dir.join("seen");
    let code =
        format!("import sys, time\ntime.sleep(2)\nopen({seen:?}, 'w').write(sys.stdin.read())\n");
    let args = ["--timeout", "700ms", "--arguments", "off"];
    let mut client = Client::wrap(&args, &["python3", "-c", &code]);
    let fill = "x".repeat(200_000);
    let first = client.post_call("first", &json!({ "fill": fill }));
    let second = client.post_call("second", &json!({ "fill": "y" }));
    client.reply(&first);
    client.reply(&second);
    assert_eq!(client.record_of(&first)["fault"]["outcome"], "maybe_executed");
    assert_eq!(client.record_of(&second)["fault"]["outcome"], "not_sent");
    client.close_input();
    client.until("the server has read all", |_| std::path::Path::new(&seen).exists());
    std::thread::sleep(Duration::from_millis(200));
    let read = std::fs::read_to_string(&seen).unwrap();
    assert!(read.contains("\"first\"") && !read.contains("\"second\""), "{}", read.len());
}

#[test]
fn a_client_that_reads_nothing_does_not_keep_it_from_ending() {
    let dir = Dir::new();
    let log = dir.join("log");
    let mut child =
        command(&["wrap", "--log", "off", "--audit", &log, "--", FAULTWIRE, "demo-server"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for id in 0..700 {
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
                           "params": { "name": "leak", "arguments": {} } });
        std::io::Write::write_all(&mut stdin, format!("{call}\n").as_bytes()).unwrap();
    }
    std::thread::sleep(Duration::from_millis(500));
    let pid = child.id().to_string();
    for _ in 0..2 {
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        std::thread::sleep(Duration::from_millis(100));
    }
    let since = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(since.elapsed() < Duration::from_secs(15), "it does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(stdin);
    let mut rest = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut rest).unwrap();
}

#[test]
fn the_outcome_remembers_the_tries_before() {
    // A read-only tool crashes the server at its first try, and is cancelled before the second.
    let on_list = "say({'jsonrpc': '2.0', 'id': m['id'], 'result': {'tools': [{'name': 't', 'inputSchema': {'type': 'object'}, 'annotations': {'readOnlyHint': True}}]}})";
    let mut client =
        wrapped(&["--retry", "3", "-c", "workrail", "--timeout", "3s"], on_list, "os._exit(1)");
    client.handshake();
    let id = client.post_call("t", &json!({}));
    let reply = client.reply(&id);
    assert!(envelope(&reply)["code"].is_string());
    let of = |r: &Value| r["call"]["request"] == id && r["type"] == "fault";
    let last = client.records().into_iter().rfind(of).unwrap();
    assert_eq!(last["fault"]["outcome"], "maybe_executed", "{last}");
}
