//! Batches in sessions: several messages in one body, each answered as if it had come alone.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::serve::eras::{Listening, only_modern};
use crate::serve::gateway::Gateway;
use crate::support::Dir;
use crate::wrap::parts::{parts, servers};

/// What a client gets that takes no streams.
fn listed(gateway: &Gateway, session: &str, batch: &Value) -> (u16, Vec<Value>) {
    let request = gateway
        .request("POST", "/mcp")
        .header("content-type", "application/json")
        .header("accept", "application/json")
        .header("mcp-session-id", session);
    let answer = request.body(batch.to_string()).send();
    (answer.status, answer.json().as_array().expect("a list").clone())
}

fn by_id(replies: &[Value]) -> BTreeMap<String, &Value> {
    replies.iter().map(|reply| (reply["id"].to_string(), reply)).collect()
}

/// Official servers drop batches, so that it takes a gateway to answer them.
#[test]
fn a_real_server_answers_each_message_of_a_batch() {
    let _ = parts();
    let dir = Dir::new();
    let servers = servers(&dir);
    let server = servers.iter().find(|server| server.name == "everything").unwrap();
    let listening = Listening::start(&server.command());
    let args = ["--timeout", "20s"];
    for gateway in
        [Gateway::before(&args, &server.command()), Gateway::before_url(&args, &listening.url)]
    {
        let session = gateway.begin();
        let batch = json!([
            { "jsonrpc": "2.0", "id": 1, "method": "ping" },
            { "jsonrpc": "2.0", "id": "two", "method": "tools/list" },
            { "jsonrpc": "2.0", "method": "notifications/roots/list_changed" },
            { "jsonrpc": "2.0", "id": 3, "method": "tools/call",
              "params": { "name": "echo", "arguments": { "message": "hi" } } },
            { "jsonrpc": "2.0", "id": 4, "method": "tools/call",
              "params": { "name": "nosuch", "arguments": {} } },
            { "jsonrpc": "2.0", "id": 5, "method": "no/such" },
            17,
        ]);
        let streamed = gateway.post(Some(&session), &batch);
        assert_eq!(streamed.header("content-type"), Some("text/event-stream"));
        let (status, list) = listed(&gateway, &session, &batch);
        assert_eq!(status, 200);
        for replies in [streamed.messages(), list] {
            let replies: Vec<_> =
                replies.into_iter().filter(|message| message["method"].is_null()).collect();
            let all = by_id(&replies);
            assert_eq!(replies.len(), 6, "{replies:?}");
            assert_eq!(all["1"]["result"], json!({}));
            assert!(all["\"two\""]["result"]["tools"].is_array());
            assert_eq!(all["3"]["result"]["content"][0]["text"], "Echo: hi");
            assert_eq!(all["4"]["result"]["isError"], true);
            let code = |error: &Value| error["error"]["data"]["error"]["code"].clone();
            assert!(code(all["5"]).is_string(), "{}", all["5"]);
            // What is no message has no id.
            assert_eq!(all["null"]["error"]["code"], -32600);
            assert!(code(all["null"]).is_string() && all["null"].get("id").is_none());
        }
        let faults = gateway.records().iter().filter(|r| r["fault"].is_object()).count();
        assert_eq!(faults, 6);
    }
}

#[test]
fn a_batch_crosses_the_eras_message_by_message() {
    let server = only_modern();
    let words: Vec<&str> = server.iter().map(String::as_str).collect();
    let gateway = Gateway::before(&["--contract", "owlclaw"], &words);
    let session = gateway.begin();
    let batch = json!([
        { "jsonrpc": "2.0", "id": 1, "method": "ping" },
        { "jsonrpc": "2.0", "method": "notifications/initialized" },
        { "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "who", "arguments": {} } },
        { "jsonrpc": "2.0", "id": 3, "method": "resources/subscribe", "params": { "uri": "file:///x" } },
    ]);
    let (_, replies) = listed(&gateway, &session, &batch);
    let all = by_id(&replies);
    assert_eq!(replies.len(), 3, "{replies:?}");
    assert_eq!(all["1"]["result"], json!({}));
    assert!(all["2"].to_string().contains("2026-07-28"), "{}", all["2"]);
    let refused = &all["3"]["error"]["data"]["error"];
    assert_eq!(refused["code"], "protocol.unsupported_version", "{}", all["3"]);
}

#[test]
fn a_batch_that_is_none_is_refused_once() {
    let gateway = Gateway::demo(&[]);
    let session = gateway.begin();
    let notice = json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" });
    assert_eq!(gateway.post(Some(&session), &json!([notice, notice])).status, 202);
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let (status, one) = listed(&gateway, &session, &json!([ping]));
    assert_eq!((status, &one[0]["id"]), (200, &json!(1)));
    for (times, bad) in [json!([]), json!([[ping]]), json!(vec![17; 2000])].iter().enumerate() {
        let answer = gateway.post(Some(&session), bad);
        assert_eq!(answer.status, 400, "{answer:?}");
        assert!(answer.body.contains("\"code\":-32600"), "{answer:?}");
        let faults = gateway.records().iter().filter(|r| r["fault"].is_object()).count();
        assert_eq!(faults, times + 1);
    }
}
