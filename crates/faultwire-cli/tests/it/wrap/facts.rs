//! A tool with an output schema: no failure of it carries `structuredContent`, on any path (S5).

use serde_json::{Value, json};

use crate::support::{BUILTINS, Dir};
use crate::wrap::client::Client;

/// Its tool answers as its argument says.
pub const SERVER: &str = r#"
import sys, json, os
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    how = m.get("params", {}).get("arguments", {}).get("how")
    if m["method"] == "tools/call" and how == "hang": continue
    if m["method"] == "tools/call" and how == "crash": os._exit(1)
    r = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    schema = {"type": "object", "properties": {"how": {"type": "string"}}}
    if m["method"] == "tools/list": r = {"tools": [{"name": "t", "inputSchema": schema, "outputSchema": {"type": "object"}}]}
    if m["method"] == "tools/call": r = {"isError": True, "content": [{"type": "text", "text": "no such file"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
"#;

fn client(contract: &str, settings: &str) -> (Client, Dir) {
    let dir = Dir::new();
    let config = dir.join("faultwire.toml");
    std::fs::write(&config, settings).unwrap();
    let args = ["--contract", contract, "--config", &config, "--timeout", "1s"];
    let mut client = Client::wrap(&args, &["python3", "-c", SERVER]);
    client.handshake();
    client.ask("tools/list", &json!({}));
    (client, dir)
}

pub fn check(path: &str, reply: &Value) {
    let result = &reply["result"];
    assert_eq!(result["isError"], true, "{path}: {reply}");
    assert!(result.get("structuredContent").is_none(), "{path}: {reply}");
    assert!(result["content"][0]["text"].is_string(), "{path}: {reply}");
}

/// Each failure is recorded with the same facts, whichever path it came by.
fn check_record(path: &str, condition: &str, record: &Value) {
    let fault = &record["fault"];
    assert_eq!(fault["tool"], "t", "{path}: {record}");
    assert_eq!(fault["method"], "tools/call", "{path}: {record}");
    assert_eq!(fault["condition"], condition, "{path}: {record}");
    assert!(fault["session"]["id"].is_string(), "{path}: {record}");
    assert!(record["call"]["arguments"].is_string(), "{path}: {record}");
    assert!(record["call"]["elapsed_ms"].is_number(), "{path}: {record}");
    assert!(record["call"]["envelope"].is_string(), "{path}: {record}");
}

#[test]
fn s5_every_path_has_the_same_facts_under_every_contract() {
    for contract in BUILTINS {
        let (mut to, _dir) = client(contract, "[limits]\nin_flight = 1\n");
        let mut seen = Vec::new();
        let mut call = |to: &mut Client, path: &'static str, condition, arguments: Value| {
            let id = to.post_call("t", &arguments);
            check(path, &to.reply(&id));
            seen.push((path, condition, id));
        };
        call(&mut to, "reported", "not_found", json!({ "how": "fail" }));
        call(&mut to, "invalid arguments", "invalid_arguments", json!({ "how": 5 }));
        call(&mut to, "folded arguments", "invalid_arguments", json!({ "HOW": "fail" }));
        let hangs = to.post_call("t", &json!({ "how": "hang" }));
        call(&mut to, "in flight", "rate_limited", json!({ "how": "fail" }));
        check("timeout", &to.reply(&hangs));
        seen.push(("timeout", "timeout", hangs));
        let hangs = to.post_call("t", &json!({ "how": "hang" }));
        let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
                             "params": { "requestId": hangs } });
        to.send(&cancel.to_string());
        check("cancelled", &to.reply(&hangs));
        seen.push(("cancelled", "cancelled", hangs));
        let crashes = to.post_call("t", &json!({ "how": "crash" }));
        check("crash", &to.reply(&crashes));
        seen.push(("crash", "upstream_crashed", crashes));
        let hangs = to.post_call("t", &json!({ "how": "hang" }));
        to.close_input();
        check("session over", &to.reply(&hangs));
        seen.push(("session over", "timeout", hangs));
        for (path, condition, id) in seen {
            check_record(&format!("{contract}: {path}"), condition, &to.record_of(&id));
        }
    }
}

#[test]
fn s5_a_deep_call_gives_no_structured_content() {
    let (mut to, _dir) = client("workrail", "");
    let deep = (0..200).fold(json!("x"), |inner, _| json!([inner]));
    let deep = to.call("t", &json!({ "how": "fail", "x": deep }));
    assert!(deep["result"].get("structuredContent").is_none(), "too deep: {deep}");
}

#[test]
fn s5_a_call_that_is_open_when_the_session_ends_has_none_either() {
    for contract in ["owlclaw", "workrail"] {
        let (mut to, _dir) = client(contract, "");
        let hangs = to.post_call("t", &json!({ "how": "hang" }));
        to.close_input();
        check("session over", &to.reply(&hangs));
    }
}

#[test]
fn x1_a_folded_member_is_refused_in_every_mode_and_before_the_list_is_known() {
    for mode in ["enforce", "warn", "off"] {
        let args = ["--contract", "workrail", "--arguments", mode];
        let mut to = Client::wrap(&args, &["python3", "-c", SERVER]);
        to.handshake();
        for name in ["How", "\u{ff28}ow", "h\u{200b}ow"] {
            let reply = to.call("t", &json!({ name: "hang" }));
            check(mode, &reply);
            assert!(reply.to_string().contains("VALIDATION_ERROR"), "{mode}: {reply}");
        }
    }
}
