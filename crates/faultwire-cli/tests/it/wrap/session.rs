//! What contracts show of session and call, and retries of the gateway's own.

use faultwire_contract::{Profile, Surface, builtin};
use serde_json::{Value, json};

use crate::support::Dir;
use crate::wrap::client::{Client, envelope, ticks_at_rest};

fn with_config(text: &str, args: &[&str]) -> (Client, Dir) {
    let dir = Dir::new();
    let file = dir.join("faultwire.toml");
    std::fs::write(&file, text).unwrap();
    let all: Vec<&str> = ["--config", &file].into_iter().chain(args.iter().copied()).collect();
    (Client::demo(&all), dir)
}

#[test]
fn k9_all_eleven_fields_with_what_is_known_of_the_session() {
    let config =
        "contract = \"kaiza\"\n[session]\nrole = \"WINDSURF\"\nworkspace_root = \"/srv/work\"\n";
    let (mut client, _dir) = with_config(config, &[]);
    let params = json!({
        "name": "missing_file",
        "arguments": {},
        "_meta": { "dev.faultwire/phase": "PHASE_2", "dev.faultwire/plan_hash": "abc123" },
    });
    let reply = client.ask("tools/call", &params);
    let envelope = envelope(&reply);
    let keys: Vec<&String> = envelope.as_object().unwrap().keys().collect();
    assert_eq!(keys.len(), 11, "{envelope}");
    assert_eq!(envelope["role"], "WINDSURF");
    assert_eq!(envelope["workspace_root"], "/srv/work");
    assert_eq!(envelope["phase_id"], "PHASE_2");
    assert_eq!(envelope["plan_hash"], "abc123");
    assert_eq!(envelope["tool_name"], "missing_file");
    let session = envelope["session_id"].as_str().unwrap().to_owned();
    assert_eq!(session.len(), 36);
    // The same session in the next failure, and in the log.
    let again = client.call("missing_file", &json!({}));
    assert_eq!(super::client::envelope(&again)["session_id"], *session);
    assert_eq!(super::client::envelope(&again)["phase_id"], Value::Null);
    let record = client.record_of(&reply["id"]);
    assert_eq!(record["fault"]["session"]["id"], *session);
    assert_eq!(record["call"]["client"], "tests/1.2");
}

#[test]
fn t5_the_workflow_profile_has_its_modes_on_every_path() {
    let config = "contract = \"tuitbot\"\nprofile = \"workflow\"\n[meta]\nmode = \"supervised\"\napproval_mode = true\ntool_version = \"2.1\"\n";
    let (mut client, _dir) = with_config(config, &["--timeout", "400ms"]);
    let contract = builtin("tuitbot").unwrap();
    let profile = contract.profile("workflow").unwrap();
    for (tool, arguments) in [
        ("missing_file", json!({})),
        ("hang", json!({})),
        ("crash", json!({})),
        ("echo", json!({})),
        ("malformed", json!({})),
    ] {
        let reply = client.call(tool, &arguments);
        let envelope = envelope(&reply);
        contract.read(Surface::Mcp, profile, envelope.to_string().as_bytes()).expect(tool);
        let meta = &envelope["meta"];
        assert_eq!(meta["mode"], "supervised", "{tool}: {envelope}");
        assert_eq!((&meta["approval_mode"], &meta["tool_version"]), (&json!(true), &json!("2.1")));
        assert!(meta["elapsed_ms"].is_u64());
        if tool == "hang" {
            assert!(meta["elapsed_ms"].as_u64().unwrap() >= 400, "{meta}");
        }
    }
    let (mut api, _dir) = with_config("contract = \"tuitbot\"\n[meta]\nmode = \"x\"\n", &[]);
    let reply = envelope(&api.call("missing_file", &json!({})));
    assert!(reply["meta"].get("mode").is_none(), "{reply}");
    contract.read(Surface::Mcp, Profile::default(), reply.to_string().as_bytes()).unwrap();
}

#[test]
fn o9_the_incident_leads_to_the_trace() {
    let mut client = Client::demo(&[]);
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let meta = json!({ "traceparent": format!("00-{trace}-00f067aa0ba902b7-01") });
    let params = json!({ "name": "missing_file", "arguments": {}, "_meta": meta });
    let reply = client.ask("tools/call", &params);
    let incident = envelope(&reply)["error"]["incident_id"].as_str().unwrap().to_owned();
    assert!(incident.starts_with("inc_") && incident.ends_with(trace), "{incident}");
}

#[test]
fn k1_what_comes_before_a_session_belongs_to_none() {
    let code = r#"
import sys, json
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    if m["method"] == "tools/list":
        r = {"tools": [{"name": n, "inputSchema": {"type": "object"}} for n in ("begin_session", "t")]}
    else:
        bad = m["params"]["name"] == "t"
        r = {"isError": bad, "content": [{"type": "text", "text": "boom" if bad else "ok"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
"#;
    let dir = Dir::new();
    let file = dir.join("faultwire.toml");
    std::fs::write(&file, "contract = \"kaiza\"\n[session]\nworkspace_root = \"/w\"\n").unwrap();
    let mut client = Client::wrap(&["--config", &file], &["python3", "-c", code]);
    let before = envelope(&client.call("t", &json!({})));
    assert_eq!(before["error_code"], "SESSION_NOT_INITIALIZED");
    assert!(before["session_id"].is_null() && before["workspace_root"].is_null(), "{before}");
    client.call("begin_session", &json!({}));
    let during = envelope(&client.call("t", &json!({})));
    let id = during["session_id"].as_str().unwrap_or_else(|| panic!("{during}"));
    let parts: Vec<usize> = id.split('-').map(str::len).collect();
    assert_eq!(parts, [8, 4, 4, 4, 12], "a UUID: {id}");
    assert!(during["workspace_root"].is_string(), "{during}");
}

#[test]
fn t5_a_server_that_leaves_its_modes_out_gets_those_of_the_settings() {
    let code = r#"
import sys, json
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    if m["method"] == "tools/list":
        r = {"tools": []}
    else:
        e = {"success": False, "error": {"code": "db_error", "message": "m", "retryable": True}, "meta": {"tool_version": "9", "elapsed_ms": 1}}
        r = {"isError": True, "content": [{"type": "text", "text": json.dumps(e, separators=(",", ":"))}]}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
"#;
    let dir = Dir::new();
    let file = dir.join("faultwire.toml");
    let config = "contract = \"tuitbot\"\nprofile = \"workflow\"\n[meta]\nmode = \"composer\"\napproval_mode = true\n";
    std::fs::write(&file, config).unwrap();
    let mut client = Client::wrap(&["--config", &file], &["python3", "-c", code]);
    let told = envelope(&client.call("t", &json!({})));
    let meta = &told["meta"];
    assert_eq!(
        (&meta["mode"], &meta["approval_mode"]),
        (&json!("composer"), &json!(true)),
        "{told}"
    );
}

#[test]
fn a7_nothing_is_sent_again_by_itself() {
    let mut client = Client::demo(&[]);
    let reply = client.call("flaky", &json!({}));
    assert_eq!(reply["result"]["isError"], true);
    assert!(client.record_of(&reply["id"])["call"]["attempt"].is_null());
}

/// The tries that the log has of a request.
fn tries(client: &Client, id: &Value) -> Vec<u64> {
    let of = |r: &Value| r["call"]["request"] == *id;
    let records = client.records().into_iter().filter(of);
    records.filter_map(|r| r["call"]["attempt"].as_u64()).collect()
}

#[test]
fn a7_a_read_only_tool_is_sent_again_if_told_so() {
    let mut client = Client::demo(&["--retry", "3", "--timeout", "30s"]);
    // It fails twice, and its annotations say that it only reads.
    let id = client.post_call("flaky", &json!({}));
    let reply = client.reply(&id);
    assert_eq!(reply["result"]["content"][0]["text"], "done", "{reply}");
    assert_eq!(tries(&client, &id), [1, 2]);
    // A tool that says nothing of itself may have run: it is not sent again.
    let id = client.post_call("rpc_error", &json!({}));
    assert_eq!(client.reply(&id)["result"]["isError"], true);
    assert_eq!(tries(&client, &id), Vec::<u64>::new());
    // A code that is never retried is not sent again, whatever the tool.
    let id = client.post_call("echo", &json!({}));
    assert_eq!(client.reply(&id)["result"]["isError"], true);
    assert_eq!(tries(&client, &id), Vec::<u64>::new());
}

#[test]
fn a7_words_are_no_proof_that_a_tool_has_not_run() {
    // Each sounds like a call that was never made, under a code that may be retried.
    let said = [
        ("tuitbot", "Database error: SQLITE_CONSTRAINT: missing required field after 2 rows"),
        ("tuitbot", "x_api_error: it was posted; media attach failed: invalid parameter"),
        ("context-resolve", "wrote 3 of 5 documents; I/O error: invalid argument"),
        ("kaiza", "ENOSPC: no space left, write half done, invalid argument"),
        ("owlclaw", r#"{"code":"dependency.unavailable","message":"method not supported"}"#),
    ];
    let code = r#"
import sys, json
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    if m["method"] == "tools/list":
        r = {"tools": [{"name": n, "inputSchema": {"type": "object"}} for n in ("t", "begin_session")]}
    elif m["params"]["name"] == "begin_session":
        r = {"content": []}
    else:
        r = {"isError": True, "content": [{"type": "text", "text": m["params"]["arguments"]["say"]}]}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
"#;
    for (contract, text) in said {
        let args = ["--retry", "3", "--contract", contract];
        let mut client = Client::wrap(&args, &["python3", "-c", code]);
        client.call("begin_session", &json!({}));
        let id = client.post_call("t", &json!({ "say": text }));
        assert_eq!(client.reply(&id)["result"]["isError"], true);
        assert_eq!(tries(&client, &id), Vec::<u64>::new(), "{contract}: {text}");
        assert_ne!(client.record_of(&id)["fault"]["outcome"], "not_sent", "{text}");
    }
}

#[test]
fn a7_never_beyond_the_deadline_nor_the_budget() {
    // The server names a delay of 2 s, and the call has one.
    let dir = Dir::new();
    let code = r#"
import sys, json
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    if m["method"] == "tools/list":
        r = {"result": {"tools": [{"name": "t", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}]}}
    else:
        wait = m["params"]["arguments"]["wait"]
        r = {"error": {"code": -32000, "message": "Too many requests, retry after %s s" % wait}}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], **r}), flush=True)
"#;
    let file = dir.join("faultwire.toml");
    std::fs::write(&file, "retry_budget = 2\n").unwrap();
    let args = ["--retry", "9", "--timeout", "1500ms", "--config", &file];
    let mut client = Client::wrap(&args, &["python3", "-c", code]);
    let id = client.post_call("t", &json!({ "wait": 2 }));
    assert_eq!(client.reply(&id)["result"]["isError"], true);
    assert_eq!(tries(&client, &id), Vec::<u64>::new());
    let id = client.post_call("t", &json!({ "wait": "0.05" }));
    assert_eq!(client.reply(&id)["result"]["isError"], true);
    assert!(tries(&client, &id).len() <= 3, "{:?}", tries(&client, &id));
    assert!(tries(&client, &id).len() >= 2, "{:?}", tries(&client, &id));
}

#[test]
fn k10_a_failure_that_cannot_be_recorded_says_so() {
    let mut client = Client::demo(&["--contract", "kaiza"]);
    assert_eq!(envelope(&client.call("leak", &json!({})))["tool_name"], "leak");
    std::fs::remove_dir_all(client.audit.path().join("log")).unwrap();
    for _ in 0..3 {
        let reply = envelope(&client.call("leak", &json!({})));
        assert_eq!(reply["error_code"], "AUDIT_LOG_FAILED", "{reply}");
        assert_eq!(reply.as_object().unwrap().len(), 11);
        assert!(!reply.to_string().contains("OperationalError"), "{reply}");
    }
    // What succeeds needs no record.
    let echo = client.call("echo", &json!({ "text": "x" }));
    assert_eq!(echo["result"]["content"][0]["text"], "x");
    assert_eq!(client.end().code, Some(1));
}

#[test]
fn between_calls_it_rests() {
    let mut client = Client::demo(&[]);
    for _ in 0..50 {
        client.call("echo", &json!({ "text": "x" }));
    }
    // Whoever stays awake for good takes a hundred.
    let ticks = ticks_at_rest(client.process.id());
    assert!(ticks <= 10, "{ticks}");
}
