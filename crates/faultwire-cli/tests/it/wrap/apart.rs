//! Whom an answer is for, whom it is not for, and how long it is waited for.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::wrap::client::{Client, envelope};

/// A server in Python. `call(m)` has the first word on a tool call; what it leaves is answered.
fn wrapped(args: &[&str], call: &str) -> Client {
    wrapped_with(args, call, &[])
}

fn wrapped_with(args: &[&str], call: &str, told: &[&str]) -> Client {
    let code = format!(
        r#"
import sys, json, os, time, threading
def say(m): print(json.dumps(m), flush=True)
def result(id, text="ran"): say({{"jsonrpc": "2.0", "id": id, "result": {{"content": [{{"type": "text", "text": text}}]}}}})
def other(m): result(m["id"])
{call}
greeted = 0
for line in sys.stdin:
    m = json.loads(line)
    method = m.get("method")
    if method == "tools/list":
        if "dies_of_list" in globals(): os._exit(4)
        if "keeps_list" in globals(): continue
        if "on_list" in globals(): on_list(m)
        names = ["t", "slow"]
        say({{"jsonrpc": "2.0", "id": m["id"], "result": {{"tools": [{{"name": n, "inputSchema": {{"type": "object"}}}} for n in names]}}}})
    elif method == "initialize":
        greeted += 1
        if greeted > 1:
            say({{"jsonrpc": "2.0", "id": m["id"], "error": {{"code": -32600, "message": "twice"}}}})
        else:
            say({{"jsonrpc": "2.0", "id": m["id"], "result": {{"protocolVersion": "2025-11-25", "capabilities": {{}}, "serverInfo": {{"name": "s", "version": "1"}}}}}})
    elif method == "tools/call":
        on_call(m)
    elif method and method.startswith("notifications/"):
        if "on_notification" in globals(): on_notification(m)
    elif "on_answer" in globals():
        on_answer(m)
"#
    );
    Client::wrap(args, &[&["python3", "-c", &code], told].concat())
}

fn text(reply: &Value) -> &str {
    reply["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{reply}"))
}

fn call(id: u64, name: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": name } })
        .to_string()
}

#[test]
fn a5_ids_that_are_one_double_are_two_ids() {
    let both = "
open_calls = []
def on_call(m):
    open_calls.append(m['id'])
    if len(open_calls) == 2:
        result(open_calls[1], 'second'); result(open_calls[1], 'again'); time.sleep(0.3)
        result(open_calls[0], 'first')
";
    let mut client = wrapped(&[], both);
    client.ask("tools/list", &json!({}));
    let ids = [9_007_199_254_740_992_u64, 9_007_199_254_740_993];
    client.send(&call(ids[0], "t"));
    client.send(&call(ids[1], "t"));
    assert_eq!(text(&client.reply(&json!(ids[1]))), "second");
    let taken_back = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
                             "params": { "requestId": ids[1] } });
    client.send(&taken_back.to_string());
    assert_eq!(text(&client.reply(&json!(ids[0]))), "first");
    assert!(client.end().replies.values().all(|times| *times == 1));
}

#[test]
fn a5_a_request_under_an_id_that_the_server_asks_under_is_answered() {
    let asks = "
waiting = []
def on_call(m):
    waiting.append(m['id']); say({'jsonrpc': '2.0', 'id': 5, 'method': 'roots/list'})
def on_answer(m):
    result(waiting.pop(), 'roots' if 'result' in m else 'odd')
";
    let mut client = wrapped(&[], asks);
    client.ask("tools/list", &json!({}));
    client.send(&call(1, "t"));
    let asked: Value =
        serde_json::from_str(&client.line(Duration::from_secs(10)).unwrap()).unwrap();
    assert_eq!((&asked["id"], &asked["method"]), (&json!(5), &json!("roots/list")));
    client.send(r#"{"jsonrpc":"2.0","id":5,"method":7}"#);
    assert_eq!(client.reply(&json!(5))["error"]["code"], -32600);
    client.send(r#"{"jsonrpc":"2.0","id":5,"result":{"roots":[]}}"#);
    assert_eq!(text(&client.reply(&json!(1))), "roots", "the question was still open");
}

#[test]
fn a5_what_a_server_prints_of_requests_answers_none() {
    let prints = "
def on_call(m):
    print('DEBUG got ' + json.dumps(m), flush=True)
    print(json.dumps({'level': 'debug', 'raw': {'jsonrpc': '2.0', 'id': m['id']}}), flush=True)
    result(m['id'])
";
    let mut client = wrapped(&[], prints);
    client.ask("tools/list", &json!({}));
    assert_eq!(text(&client.call("t", &json!({}))), "ran");
}

#[test]
fn a5_what_answers_a_notification_or_comes_late_twice_is_nobodys_answer() {
    let odd = "
def on_notification(m):
    say({'jsonrpc': '2.0', 'id': None, 'error': {'code': -32601, 'message': 'unknown'}})
late = []
def on_call(m):
    if m['params']['name'] == 'slow':
        late.append(m['id']); return
    if late:
        result(late[0]); result(late.pop())
    time.sleep(0.2)
    result(m['id'])
";
    let mut client = wrapped(&["--tool-timeout", "slow=500ms"], odd);
    client.handshake();
    assert_eq!(text(&client.call("t", &json!({}))), "ran");
    assert_eq!(envelope(&client.call("slow", &json!({})))["error"]["code"], "runtime.timeout");
    assert_eq!(text(&client.call("t", &json!({}))), "ran");
    let events = client.events();
    for event in ["unmatched_reply", "late_reply", "duplicate_reply"] {
        assert!(events.contains(&event.to_owned()), "{event}: {events:?}");
    }
}

#[test]
fn a_call_has_all_its_time_after_a_user_has_answered() {
    let asks = "
waiting = []
def on_call(m):
    waiting.append(m['id'])
    say({'jsonrpc': '2.0', 'id': 'q', 'method': 'elicitation/create', 'params': {'message': '?'}})
def on_answer(m):
    time.sleep(0.6); result(waiting.pop())
";
    let mut client = wrapped(&["--timeout", "1s"], asks);
    client.ask("tools/list", &json!({}));
    client.send(&call(1, "t"));
    assert!(client.line(Duration::from_secs(10)).unwrap().contains("elicitation/create"));
    // Shortly before the time would be over.
    std::thread::sleep(Duration::from_millis(800));
    client.send(r#"{"jsonrpc":"2.0","id":"q","result":{"action":"accept"}}"#);
    assert_eq!(text(&client.reply(&json!(1))), "ran");
}

#[test]
fn a_tools_own_deadline_leaves_time_after_the_list() {
    let code = "
keeps_list = True
def on_call(m): result(m['id'])
";
    let mut client = wrapped(&["--timeout", "60s", "--tool-timeout", "t=2s"], code);
    // One with more time has asked for the list already.
    let slow = client.post_call("slow", &json!({}));
    assert_eq!(text(&client.call("t", &json!({}))), "ran");
    assert_eq!(text(&client.reply(&slow)), "ran");
}

#[test]
fn a_server_that_dies_of_the_list_is_not_asked_for_it_for_ever() {
    let code = "
dies_of_list = True
def on_call(m): result(m['id'])
";
    let mut client = wrapped(&["--timeout", "20s"], code);
    let reply = client.call("t", &json!({}));
    assert_eq!(text(&reply), "ran", "{:?}", client.events());
}

#[test]
fn a_modern_server_may_crash_as_often_as_it_is_called() {
    let crashes = "
def on_call(m):
    if m['params']['name'] == 't': os._exit(1)
    result(m['id'])
";
    let mut client = wrapped(&[], crashes);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "c", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    for _ in 0..9 {
        let reply = client.ask("tools/call", &json!({ "name": "t", "_meta": meta }));
        let told = envelope(&reply)["error"]["message"].to_string();
        assert!(told.contains("exited with status 1 with the call open"), "{told}");
    }
    let reply = client.ask("tools/call", &json!({ "name": "slow", "_meta": meta }));
    assert_eq!(text(&reply), "ran");
}

#[test]
fn a_handshake_that_is_refused_takes_the_agreed_ones_place_not() {
    let code = "
def on_call(m):
    if m['params']['name'] == 'slow': os._exit(1)
    result(m['id'], 'greeted' if greeted else 'not greeted')
";
    let mut client = wrapped(&[], code);
    client.handshake();
    let again = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
                        "clientInfo": { "name": "c", "version": "1" } });
    assert!(client.ask("initialize", &again)["error"].is_object());
    assert_eq!(client.call("slow", &json!({}))["result"]["isError"], true);
    assert_eq!(text(&client.call("t", &json!({}))), "greeted");
}

#[test]
fn who_confirms_the_handshake_at_once_is_understood_after_a_crash() {
    let code = "
confirmed = False
def on_notification(m):
    global confirmed
    confirmed = True
def on_call(m):
    if m['params']['name'] == 'slow': os._exit(1)
    result(m['id'], 'confirmed' if confirmed else 'not confirmed')
";
    let mut client = wrapped(&[], code);
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
                         "clientInfo": { "name": "c", "version": "1" } });
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
    let thanks = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    client.write(format!("{hello}\n{thanks}\n").as_bytes());
    assert!(client.reply(&json!(0))["result"].is_object());
    assert_eq!(client.call("slow", &json!({}))["result"]["isError"], true);
    assert_eq!(text(&client.call("t", &json!({}))), "confirmed");
}

#[test]
fn a_child_that_goes_on_printing_does_not_hide_a_crash() {
    let code = "
import subprocess
def on_call(m):
    yes = subprocess.Popen(['yes', 'a log line'], start_new_session=True)
    open(sys.argv[1], 'w').write(str(yes.pid)); time.sleep(0.1); os._exit(1)
";
    let dir = crate::support::Dir::new();
    let pid = dir.join("pid");
    let mut client = wrapped_with(&["--timeout", "20s"], code, &[&pid]);
    client.ask("tools/list", &json!({}));
    let since = Instant::now();
    let reply = client.call("t", &json!({}));
    let pid = std::fs::read_to_string(pid).unwrap();
    let _ = Command::new("kill").args(["-KILL", &pid]).status();
    let told = envelope(&reply)["error"]["message"].to_string();
    assert!(told.contains("exited with status 1"), "{told}");
    assert!(since.elapsed() < Duration::from_secs(10), "{:?}", since.elapsed());
}

#[test]
fn a_list_that_comes_late_counts_from_then_on() {
    let code = "
def on_list(m): time.sleep(1.25)
def on_call(m): result(m['id'])
";
    // A busy machine needs some time of its own between the list and the deadline.
    let mut client = wrapped(&["--tool-timeout", "t=2s"], code);
    assert_eq!(text(&client.call("t", &json!({}))), "ran", "without the list");
    let refused =
        |client: &mut Client| client.call("slow", &json!([]))["result"]["isError"] == true;
    let since = Instant::now();
    while !refused(&mut client) {
        assert!(since.elapsed() < Duration::from_secs(10), "the list is not learnt");
    }
}

#[test]
fn one_signal_after_the_end_of_input_kills_nothing() {
    let code = "
def on_call(m): time.sleep(1.5); result(m['id'])
";
    let mut client = wrapped(&[], code);
    client.ask("tools/list", &json!({}));
    let id = client.post_call("t", &json!({}));
    client.close_input();
    std::thread::sleep(Duration::from_millis(300));
    let pid = client.process.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let since = Instant::now();
    assert_eq!(text(&client.reply(&id)), "ran", "after {:?}", since.elapsed());
}
