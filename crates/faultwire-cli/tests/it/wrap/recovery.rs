//! What happens when the server ends, and when the session does.

use std::collections::HashSet;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::Dir;
use crate::wrap::client::{Client, FAULTWIRE, envelope};

/// Servers in Python that write down what they hear, run after run.
fn scripted(dir: &Dir, on_call: &str) -> Vec<String> {
    let code = format!(
        r#"
import sys, json, os
heard = open({:?}, "ab", buffering=0)
runs = {:?}
run = len(open(runs).read()) + 1 if os.path.exists(runs) else 1
open(runs, "a").write("x")
heard.write(b"run\n")
def say(m): print(json.dumps(m), flush=True)
for line in sys.stdin.buffer:
    heard.write(line)
    m = json.loads(line)
    if "id" not in m: continue
    if m["method"] == "tools/list":
        tools = [{{"name": "tool%d" % (run if run > 2 else 1), "inputSchema": {{"type": "object"}}}}]
        say({{"jsonrpc": "2.0", "id": m["id"], "result": {{"tools": tools}}}})
    elif m["method"] == "tools/call":
{on_call}
    elif "file:///never" in line.decode() or run > 1 and "file:///once" in line.decode():
        say({{"jsonrpc": "2.0", "id": m["id"], "error": {{"code": -32002, "message": "no such resource"}}}})
    else:
        say({{"jsonrpc": "2.0", "id": m["id"], "result": {{"protocolVersion": "2025-11-25", "capabilities": {{}}, "serverInfo": {{"name": "s", "version": "1"}}}}}})
"#,
        dir.join("heard"),
        dir.join("runs"),
    );
    vec!["python3".to_owned(), "-c".to_owned(), code]
}

#[test]
fn the_handshake_is_said_again_with_the_clients_own_bytes() {
    let dir = Dir::new();
    let server = scripted(&dir, "        os._exit(3)");
    let server: Vec<&str> = server.iter().map(String::as_str).collect();
    let mut client = Client::wrap(&[], &server);
    // Odd blanks and members: the very bytes must come back.
    let opening = r#"{ "jsonrpc":"2.0",  "id":"first", "method":"initialize", "params":{"protocolVersion":"2025-11-25","capabilities":{"x-odd":[1 ,2]},"clientInfo":{"name":"odd","version":"0"}} }"#;
    let closing = r#"{"jsonrpc":"2.0","method":"notifications/initialized", "x":1}"#;
    client.send(opening);
    client.reply(&json!("first"));
    client.send(closing);
    assert!(client.ask("tools/list", &json!({}))["result"]["tools"].is_array());

    // Same tools: nobody is told. Then others.
    client.call("tool1", &json!({}));
    let heard = || std::fs::read_to_string(dir.path().join("heard")).unwrap();
    client.until("the second run is asked", |_| {
        heard().split("run\n").nth(2).is_some_and(|run| run.contains("tools/list"))
    });
    let second = heard().split("run\n").nth(2).unwrap().to_owned();
    assert!(second.starts_with(&format!("{}\n{closing}\n", opening.trim())), "{second}");
    assert!(client.line(Duration::from_millis(300)).is_none(), "nothing has changed");

    client.call("tool1", &json!({}));
    let told: Value = serde_json::from_str(&client.line(Duration::from_secs(10)).unwrap()).unwrap();
    assert_eq!(told["method"], "notifications/tools/list_changed");
    let ended = client.end();
    assert_eq!(ended.replies["\"first\""], 1, "the answer to the replay is ours alone");
}

#[test]
fn what_a_client_has_ordered_is_ordered_again() {
    let dir = Dir::new();
    let server = scripted(&dir, "        os._exit(3)");
    let server: Vec<&str> = server.iter().map(String::as_str).collect();
    let mut client = Client::wrap(&[], &server);
    client.handshake();
    for level in ["debug", "warning"] {
        client.ask("logging/setLevel", &json!({ "level": level }));
    }
    for uri in ["file:///kept", "file:///left", "file:///once", "file:///never"] {
        client.ask("resources/subscribe", &json!({ "uri": uri, "_meta": { "n": 1 } }));
    }
    client.ask("resources/unsubscribe", &json!({ "uri": "file:///left" }));
    let answered = client.call("tool1", &json!({}));
    assert_eq!(answered["result"]["isError"], true, "{answered}");

    client.until("the second run is told", |client| {
        client.events().contains(&"order_lost".to_owned())
    });
    let heard = std::fs::read_to_string(dir.path().join("heard")).unwrap();
    let second = heard.split("run\n").nth(2).unwrap();
    let said: Vec<Value> = second.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let asked = said.iter().filter(|m| m["method"].as_str().unwrap().contains("tools/list"));
    assert_eq!(asked.count(), 1, "{second}");
    let orders: Vec<_> = said[3..].iter().map(|m| (&m["method"], &m["params"])).collect();
    let watch = |uri| json!({ "uri": uri });
    assert_eq!(
        orders,
        [
            (&json!("logging/setLevel"), &json!({ "level": "warning" })),
            (&json!("resources/subscribe"), &watch("file:///kept")),
            (&json!("resources/subscribe"), &watch("file:///once")),
        ],
        "{second}"
    );
    assert!(!second.contains("never") && !second.contains("left"), "{second}");
    let records = client.records();
    let refused = records.iter().find(|record| record["name"] == "order_lost").unwrap();
    assert_eq!(refused["facts"]["uri"], "file:///once", "{refused}");
    // Nobody hears of what we asked for.
    assert!(client.line(Duration::from_millis(300)).is_none());
}

#[test]
fn a_server_that_cannot_start_is_given_up_with_a_clear_fault() {
    let config = Dir::new();
    let file = config.join("faultwire.toml");
    std::fs::write(&file, "contract = \"owlclaw\"\n[restart]\nlimit = 2\nbase = \"20ms\"\n")
        .unwrap();
    let mut client = Client::wrap(&["--config", &file], &["sh", "-c", "exit 7"]);
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {} });
    let reply = client.ask("initialize", &params);
    let message = reply["error"]["message"].as_str().unwrap();
    assert!(message.contains("status 7"), "{reply}");
    assert_eq!(reply["error"]["data"]["error"]["code"], "dependency.unavailable", "{reply}");
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        let reply = client.ask("initialize", &params);
        let message = reply["error"]["message"].as_str().unwrap().to_owned();
        if message.contains("not started again") {
            break;
        }
        assert!(Instant::now() < until, "{message}");
        std::thread::sleep(Duration::from_millis(20));
    }
    let runs = client.events().iter().filter(|name| *name == "server_started").count();
    assert_eq!(runs, 2);
}

#[test]
fn while_it_is_down_calls_are_told_when_to_come_again() {
    let dir = Dir::new();
    let file = dir.join("faultwire.toml");
    std::fs::write(&file, "contract = \"owlclaw\"\n[restart]\nbase = \"3s\"\n").unwrap();
    let mut client = Client::wrap(&["--config", &file], &["sh", "-c", "exit 7"]);
    client.until("it has ended", |c| c.events().contains(&"server_ended".to_owned()));
    let reply = client.call("anything", &json!({}));
    let envelope = envelope(&reply);
    assert_eq!(envelope["error"]["retryable"], true);
    let after = envelope["error"]["retry_after"].as_u64().unwrap();
    assert!((1..=4).contains(&after), "{envelope}");
    let record = client.record_of(&json!(1));
    assert_eq!(record["fault"]["condition"], "start_failed");
    assert_eq!(record["fault"]["outcome"], "not_sent");
}

#[test]
fn u6_a_server_that_does_not_start_says_why_and_what_to_check() {
    let said = [
        ("npm error code E404\nnpm error 404 Not Found - GET nosuch-server", "E404", "package"),
        (
            "error: No solution found: nosuch was not found in the package registry",
            "nosuch",
            "package",
        ),
        ("password=hunter2 is wrong for /srv/db", "/srv/db", "installed and started"),
    ];
    for (stderr, kept, check) in said {
        let script = "printf '%s\\n' \"$0\" >&2; exit 7";
        let mut client = Client::wrap(&["--contract", "standard"], &["sh", "-c", script, stderr]);
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {} });
        let reply = client.ask("initialize", &params);
        let told = &reply["error"]["data"]["error"];
        assert_eq!(told["code"], "start_failed", "{reply}");
        assert_eq!(told["retryable"], false, "{reply}");
        let message = told["message"].as_str().unwrap();
        assert!(message.contains("status 7") && message.contains(kept), "{reply}");
        assert!(told["next"].as_str().unwrap().contains(check), "{reply}");
        let record = client.record_of(&reply["id"]);
        assert!(record.to_string().contains(kept), "{record}");
        assert!(!(reply.to_string() + &record.to_string()).contains("hunter2"), "{reply} {record}");
    }
}

/// Processes below this one.
fn descendants(of: u32) -> Vec<u32> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let parent = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1));
        if parent.and_then(|p| p.parse().ok()) == Some(of) {
            all.push(pid);
            all.extend(descendants(pid));
        }
    }
    all
}

fn open_files(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

#[test]
fn a_thousand_crashes_leave_nothing_behind() {
    let mut client = Client::demo(&[]);
    let settle = |client: &mut Client| {
        client
            .until("there is one server, and it is up", |c| descendants(c.process.id()).len() == 1);
        let echo = client.call("echo", &json!({ "text": "there" }));
        assert_eq!(echo["result"]["content"][0]["text"], "there", "{echo}");
    };
    for _ in 0..20 {
        client.call("crash", &json!({}));
    }
    settle(&mut client);
    let (files, threads) = (open_files(client.process.id()), client.status("Threads"));
    let before = client.status("VmRSS");
    for _ in 0..1000 {
        let reply = client.call("crash", &json!({}));
        assert_eq!(envelope(&reply)["error"]["code"], "dependency.unavailable");
    }
    settle(&mut client);
    assert_eq!(open_files(client.process.id()), files);
    assert_eq!(client.status("Threads"), threads);
    let after = client.status("VmRSS");
    assert!(after < before + 8 * 1024, "{before} KiB, then {after}");
    let ended = client.end();
    assert!(ended.replies.values().all(|times| *times == 1));
    let crashes = ended.records.iter().filter(|r| r["type"] == "fault").count();
    assert_eq!(crashes, 1020);
}

#[test]
fn what_a_server_started_ends_with_it() {
    // Whatever the server starts inherits the mark, and is found by it.
    let mark = format!("STARTED_BY={}", std::process::id());
    let mut client = Client::wrap(&[], &["env", &mark, FAULTWIRE, "demo-server"]);
    client.handshake();
    client.call("orphan", &json!({}));
    let started = || {
        let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        let marked = processes.filter(|process| {
            let environment = std::fs::read(process.path().join("environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())
        });
        let name = |process: std::fs::DirEntry| {
            std::fs::read_to_string(process.path().join("comm")).unwrap_or_default()
        };
        marked.map(name).collect::<Vec<_>>()
    };
    client.until("only the new server is there", |_| started() == ["faultwire\n"]);
    client.end();
    assert!(started().is_empty(), "{:?}", started());
}

#[test]
fn the_end_of_input_lets_open_calls_finish() {
    let mut client = Client::demo(&[]);
    let id = client.post_call("slow", &json!({ "ms": 700 }));
    let pid = client.process.id();
    client.until("there is a server", |_| !descendants(pid).is_empty());
    let servers = descendants(pid);
    let ended = client.end();
    assert_eq!((ended.replies[&id.to_string()], ended.code), (1, Some(0)));
    for server in servers {
        assert!(!std::path::Path::new(&format!("/proc/{server}")).exists(), "{server} is left");
    }
    // The log was closed in order: its last line is sealed.
    assert!(ended.records.len() == 1, "only the segment's own line");
}

#[test]
fn piped_requests_are_all_answered() {
    let dir = Dir::new();
    let requests: String = (0..200)
        .map(|id| {
            let params = json!({ "name": "add", "arguments": { "a": id, "b": 1 } });
            let call =
                json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
            format!("{call}\n")
        })
        .collect();
    let log = dir.join("log");
    let run = crate::support::faultwire(
        &["wrap", "--audit", &log, "--", FAULTWIRE, "demo-server"],
        requests,
    );
    let replies: HashSet<u64> = run
        .fine()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].as_u64().unwrap())
        .collect();
    assert_eq!(replies.len(), 200);
}

fn signal(client: &Client, name: &str) {
    let pid = client.process.id().to_string();
    assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
}

#[test]
fn sigterm_drains_what_is_open_and_takes_nothing_new() {
    let mut client = Client::demo(&[]);
    // The tool list is known from here on, so that the calls below are really sent.
    client.call("echo", &json!({ "text": "x" }));
    let slow: Vec<Value> =
        (0..20).map(|_| client.post_call("slow", &json!({ "ms": 900 }))).collect();
    client.call("echo", &json!({ "text": "x" }));
    signal(&client, "-TERM");
    std::thread::sleep(Duration::from_millis(150));
    let refused = client.call("echo", &json!({ "text": "x" }));
    assert!(refused["result"]["isError"] == true, "{refused}");
    for id in &slow {
        assert_eq!(client.reply(id)["result"]["content"][0]["text"], "done");
    }
    let until = Instant::now() + Duration::from_secs(10);
    while client.process.try_wait().unwrap().is_none() {
        assert!(Instant::now() < until, "it does not end");
        std::thread::sleep(Duration::from_millis(10));
    }
    let record = client.record_of(&refused["id"]);
    assert_eq!(record["fault"]["condition"], "not_ready");
}

#[test]
fn a_second_sigterm_waits_for_nobody() {
    let mut client = Client::demo(&[]);
    client.call("echo", &json!({ "text": "x" }));
    let id = client.post_call("hang", &json!({}));
    client.call("echo", &json!({ "text": "x" }));
    signal(&client, "-TERM");
    std::thread::sleep(Duration::from_millis(100));
    signal(&client, "-TERM");
    let reply = client.reply(&id);
    assert_eq!(envelope(&reply)["error"]["code"], "runtime.timeout");
    let until = Instant::now() + Duration::from_secs(10);
    while client.process.try_wait().unwrap().is_none() {
        assert!(Instant::now() < until, "it does not end");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_banner_before_the_first_message_reaches_no_client() {
    let code = r#"
import sys, json
print("Welcome to my server v1.0", flush=True)
print("{\"level\":\"info\",\"msg\":\"listening\"}", flush=True)
for line in sys.stdin:
    m = json.loads(line)
    if "id" in m: print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}}), flush=True)
"#;
    let mut client = Client::wrap(&[], &["python3", "-c", code]);
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {} });
    let reply = client.ask("initialize", &params);
    assert_eq!(reply["result"]["serverInfo"]["name"], "s", "{reply}");
    client.until("it is recorded", |c| c.events().contains(&"stray_output".to_owned()));
    assert!(client.end().replies.values().all(|times| *times == 1));
}
