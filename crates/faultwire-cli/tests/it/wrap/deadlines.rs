//! Deadlines, progress, cancelling, and answers that come too late.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::wrap::client::{Client, envelope};

fn code(reply: &Value) -> Value {
    envelope(reply)["error"]["code"].clone()
}

/// How long something took.
fn timed<T>(run: impl FnOnce() -> T) -> (T, Duration) {
    let since = Instant::now();
    (run(), since.elapsed())
}

#[test]
fn a5_each_tool_may_have_its_own_deadline() {
    let mut client = Client::demo(&["--timeout", "10s", "--tool-timeout", "hang=300ms"]);
    let (reply, took) = timed(|| client.call("hang", &json!({})));
    assert_eq!(code(&reply), "runtime.timeout");
    assert!(took >= Duration::from_millis(300) && took < Duration::from_secs(5), "{took:?}");
    let fine = client.call("slow", &json!({ "ms": 600 }));
    assert_eq!(fine["result"]["content"][0]["text"], "done");
}

#[test]
fn a5_progress_starts_the_deadline_anew() {
    let mut client = Client::demo(&["--timeout", "600ms"]);
    let meta = json!({ "progressToken": "tok" });
    let arguments = json!({ "count": 6, "ms": 250 });
    let params = json!({ "name": "steps", "arguments": arguments, "_meta": meta });
    let id = client.post("tools/call", &params);
    let reply = client.reply(&id);
    assert_eq!(reply["result"]["content"][0]["text"], "done", "{reply}");
    // The client has heard all of it.
    let mut heard = 0;
    while let Some(line) = client.line(Duration::from_millis(50)) {
        heard += usize::from(line.contains("notifications/progress"));
    }
    assert_eq!(heard, 6);
    // Without the token it is nobody's progress.
    let reply = client.call("steps", &json!({ "count": 6, "ms": 250 }));
    assert_eq!(code(&reply), "runtime.timeout");
}

#[test]
fn a5_no_progress_stretches_the_hard_maximum() {
    let mut client = Client::demo(&["--timeout", "500ms", "--max-timeout", "1s"]);
    let params = json!({
        "name": "steps", "arguments": { "count": 40, "ms": 200 }, "_meta": { "progressToken": 7 },
    });
    let (reply, took) = timed(|| client.ask("tools/call", &params));
    assert_eq!(code(&reply), "runtime.timeout");
    assert!(took >= Duration::from_millis(990) && took < Duration::from_secs(6), "{took:?}");
}

#[test]
fn a_call_waits_for_the_user_who_is_asked() {
    let mut client = Client::demo(&["--timeout", "500ms"]);
    let id = client.post_call("ask", &json!({}));
    let asked: Value = serde_json::from_str(&client.line(Duration::from_secs(5)).unwrap()).unwrap();
    assert_eq!(asked["method"], "elicitation/create");
    std::thread::sleep(Duration::from_millis(1500));
    let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": "accept" } });
    client.send(&answer.to_string());
    assert_eq!(client.reply(&id)["result"]["content"][0]["text"], "accept");
}

/// A server that writes down what it hears.
fn listening(client_args: &[&str], script: &str) -> (Client, std::path::PathBuf) {
    let dir = crate::support::Dir::new();
    let heard = dir.path().join("heard");
    let code = format!(
        "import sys, json\nheard = open({:?}, 'ab', buffering=0)\nfor line in sys.stdin.buffer:\n    heard.write(line)\n    m = json.loads(line)\n{script}",
        heard.to_str().unwrap()
    );
    std::mem::forget(dir);
    (Client::wrap(client_args, &["python3", "-c", &code]), heard)
}

const REPLY: &str = "    if 'id' in m and m.get('method') != 'tools/call':\n        print(json.dumps({'jsonrpc':'2.0','id':m['id'],'result':{'tools':[]}}), flush=True)\n";

#[test]
fn a_timeout_is_cancelled_upstream() {
    let (mut client, heard) = listening(&["--timeout", "300ms"], REPLY);
    client.handshake();
    let id = client.post_call("anything", &json!({}));
    assert_eq!(code(&client.reply(&id)), "runtime.timeout");
    client.until("the server hears of it", |_| {
        let text = std::fs::read_to_string(&heard).unwrap();
        text.contains("notifications/cancelled") && text.contains(&format!("\"requestId\":{id}"))
    });
}

#[test]
fn a_cancelled_call_is_passed_on_and_settled_once() {
    let (mut client, heard) = listening(&[], REPLY);
    client.handshake();
    let id = client.post_call("anything", &json!({}));
    let cancel = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id },
    });
    client.until("the call is there", |_| {
        std::fs::read_to_string(&heard).unwrap_or_default().contains("anything")
    });
    client.send(&cancel.to_string());
    let reply = client.reply(&id);
    let record = client.record_of(&id);
    assert_eq!(record["fault"]["condition"], "cancelled", "{reply}");
    assert_eq!(record["fault"]["origin"], "client");
    let passed = format!("{cancel}\n");
    client.until("the server hears of it", |_| {
        std::fs::read_to_string(&heard).unwrap().contains(&passed)
    });
    assert_eq!(client.end().replies[&id.to_string()], 1);
}

#[test]
fn a_late_answer_is_dropped_and_recorded() {
    let mut client = Client::demo(&["--timeout", "300ms"]);
    let id = client.post_call("late", &json!({ "ms": 900 }));
    client.reply(&id);
    client.until("it is recorded", |c| c.events().contains(&"late_reply".to_owned()));
    let other = client.post_call("late", &json!({ "ms": 250 }));
    let cancel = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": other },
    });
    client.send(&cancel.to_string());
    client.until("that one, too", |c| {
        c.events().iter().filter(|name| *name == "late_reply").count() == 2
    });
    let ended = client.end();
    assert!(ended.replies.values().all(|times| *times == 1), "{:?}", ended.replies);
}
