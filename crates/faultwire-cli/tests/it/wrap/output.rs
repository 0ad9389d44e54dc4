//! Successes against the tool's `outputSchema`: passed and recorded, refused, or not looked at.

use std::fs::{self, File};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Dir, command, faultwire};
use crate::wrap::client::{Client, envelope};

/// A server with the tools of a file. A call gives back its argument `raw`, byte for byte.
/// Whether the list is answered at once, after the first call, or only when the call says so.
pub const SERVER: &str = r#"
import sys, json
tools, mode = json.load(open(sys.argv[1])), sys.argv[2]
held = []
def say(id, text): print('{"jsonrpc":"2.0",  "id":%s,"result":%s}' % (json.dumps(id), text), flush=True)
def tell():
    while held: say(held.pop(0), json.dumps({"tools": tools, "ttlMs": 0, "cacheScope": "private"}))
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    if m["method"] == "tools/list":
        held.append(m["id"])
        if mode == "at once": tell()
    elif m["method"] == "tools/call":
        a = m["params"]["arguments"]
        if mode == "before": tell()
        if a.get("changed"): print('{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}', flush=True)
        reply = '{"jsonrpc":"2.0","id":%s,"result":%s}' % (json.dumps(m["id"]), a["raw"])
        if a.get("list"): print("[%s]" % reply, flush=True)
        elif a.get("last"): sys.stdout.write(reply); sys.exit(0)
        else: say(m["id"], a["raw"])
        if mode == "after": tell(); mode = "at once"
    elif m["method"] == "server/discover":
        say(m["id"], json.dumps({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}))
    else:
        say(m["id"], json.dumps({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}))
"#;

/// A file with a tool `t` that has this output schema, and a tool `plain` without.
pub fn tools(dir: &Dir, schema: &Value) -> String {
    let of = json!({ "type": "object" });
    let tools = json!([{ "name": "t", "inputSchema": of, "outputSchema": schema },
                       { "name": "plain", "inputSchema": of }]);
    let file = dir.join("tools.json");
    fs::write(&file, tools.to_string()).unwrap();
    file
}

/// A list of things with an id each.
pub fn things() -> Value {
    json!({
        "type": "object",
        "properties": { "items": { "type": "array", "items": {
            "type": "object",
            "properties": { "id": { "type": "integer" } },
            "required": ["id"],
        } } },
        "required": ["items"],
    })
}

pub const FINE: &str = r#"{"content":[],"structuredContent":{"items":[{"id":1.0e0}, {"id":2}]}}"#;
pub const WRONG: &str =
    r#"{"content":[],"structuredContent":{"items":[{"id":"hunter2"},{"ID":2}]},"isError":false}"#;
pub const MISSING: &str = r#"{"content":[{"type":"text","text":"{\"items\":[]}"}]}"#;

fn client_with(args: &[&str], schema: &Value, list: &str) -> Client {
    let dir = Dir::new();
    let tools = tools(&dir, schema);
    let args = [&["--contract", "standard"], args].concat();
    let mut client = Client::wrap(&args, &["python3", "-c", SERVER, &tools, list]);
    // The server has read the file when it answers.
    client.handshake();
    client
}

fn client(mode: Option<&str>) -> Client {
    let args: Vec<&str> = mode.map(|mode| vec!["--output", mode]).unwrap_or_default();
    client_with(&args, &things(), "at once")
}

/// Has the tool give this; what came of it.
fn gives(client: &mut Client, tool: &str, raw: &str) -> (Value, String) {
    let id = client.post_call(tool, &json!({ "raw": raw }));
    let line = client.reply_line(&id);
    (id, line)
}

/// It passes with its own bytes.
fn passes(client: &mut Client, tool: &str, raw: &str, place: &str) {
    let (id, line) = gives(client, tool, raw);
    let expected = format!(r#"{{"jsonrpc":"2.0",  "id":{id},"result":{raw}}}"#);
    assert!(line == expected, "{place}: {}", &line[..line.len().min(2000)]);
}

/// The facts of all mismatches in the log.
fn mismatches(client: &Client) -> Vec<Value> {
    let of = |r: Value| (r["name"] == "output_mismatch").then(|| r["facts"].clone());
    client.records().into_iter().filter_map(of).collect()
}

#[test]
fn a8_a_mismatch_passes_with_its_own_bytes_and_is_recorded() {
    for mode in [None, Some("warn")] {
        let mut client = client(mode);
        for raw in [FINE, WRONG, MISSING] {
            passes(&mut client, "t", raw, "declared");
            passes(&mut client, "plain", raw, "not declared");
        }
        client.until("two are recorded", |c| mismatches(c).len() == 2);
        let wrong = json!([
            { "path": "items.0.id", "message": "The value is not of type \"integer\"" },
            { "path": "items.1.id", "message": "Required; \"ID\" was given, did you mean \"id\"?" },
        ]);
        let missing = json!([{ "path": "", "message": "structuredContent is missing" }]);
        let expected = [
            json!({ "tool": "t", "issues": wrong, "count": 2 }),
            json!({ "tool": "t", "issues": missing, "count": 1 }),
        ];
        assert_eq!(mismatches(&client), expected);
        assert!(!json!(client.records()).to_string().contains("hunter2"), "no value is recorded");
        assert!(client.records().iter().all(|r| r["type"] != "fault"));
    }
}

#[test]
fn s5_an_enforced_mismatch_is_the_servers_bad_response_with_each_path() {
    let mut client = client(Some("enforce"));
    passes(&mut client, "t", FINE, "it matches");
    passes(&mut client, "plain", WRONG, "not declared");
    for (raw, path, message) in [
        (WRONG, "items.0.id", "The value is not of type \"integer\""),
        (MISSING, "", "structuredContent is missing"),
    ] {
        let (id, line) = gives(&mut client, "t", raw);
        let reply: Value = serde_json::from_str(&line).unwrap();
        let error = envelope(&reply)["error"].clone();
        assert_eq!(error["code"], "bad_response", "{reply}");
        assert_eq!(error["outcome"], "executed", "{reply}");
        let said = error["message"].as_str().unwrap();
        assert!(said.starts_with("The result of t does not match its outputSchema: "), "{said}");
        assert!(said.contains(path) && said.contains(message), "{said}");
        let issue = &error["details"]["validationIssues"][0];
        assert_eq!(*issue, json!({ "path": path, "message": message }));
        assert!(reply["result"].get("structuredContent").is_none(), "{reply}");
        assert!(!line.contains("hunter2"), "{line}");
        let fault = client.record_of(&id)["fault"].clone();
        assert_eq!(fault["condition"], "upstream_protocol");
        assert_eq!(fault["origin"], "upstream");
        assert_eq!(fault["outcome"], "executed");
    }
    assert!(mismatches(&client).is_empty(), "each is recorded once");
}

#[test]
fn off_checks_nothing() {
    let mut client = client(Some("off"));
    for raw in [FINE, WRONG, MISSING] {
        passes(&mut client, "t", raw, "off");
    }
    assert_eq!(client.end().records.iter().filter(|r| r["type"] == "event").count(), 0);
}

#[test]
fn u5_only_what_a_tool_returned_is_compared() {
    let schema = json!({ "type": "object", "properties": { "isError": { "type": "boolean" } },
                         "required": ["isError"] });
    let mut client = client_with(&["--output", "enforce"], &schema, "at once");
    for raw in [
        r#"{"content":[],"structuredContent":{"isError":true},"isError":false}"#,
        r#"{"resultType":"complete","content":[],"structuredContent":{"isError":true}}"#,
        r#"{"resultType":"input_required","inputRequests":{}}"#,
        r#"{"resultType":"task","taskId":"7"}"#,
        r#"{"task":{"taskId":"7","status":"working"}}"#,
    ] {
        passes(&mut client, "t", raw, raw);
    }
    let wrong = r#"{"resultType":"complete","content":[],"structuredContent":{"isError":"no"}}"#;
    let reply: Value = serde_json::from_str(&gives(&mut client, "t", wrong).1).unwrap();
    assert_eq!(envelope(&reply)["error"]["code"], "bad_response");
    // A failure keeps its own code, whatever stands beside it.
    let failed = r#"{"content":[{"type":"text","text":"ENOENT: no such file or directory"}],"isError":true,"structuredContent":{}}"#;
    let reply: Value = serde_json::from_str(&gives(&mut client, "t", failed).1).unwrap();
    assert_eq!(envelope(&reply)["error"]["code"], "not_found", "{reply}");
}

#[test]
fn a_list_that_comes_late_counts_from_then_on() {
    // The list comes while the call is open, which was sent without it.
    let args = ["--output", "enforce", "--timeout", "2s"];
    let mut client = client_with(&args, &things(), "before");
    let reply: Value = serde_json::from_str(&gives(&mut client, "t", WRONG).1).unwrap();
    assert_eq!(envelope(&reply)["error"]["code"], "bad_response", "{reply}");
    // The list comes after the reply.
    let mut client = client_with(&args, &things(), "after");
    passes(&mut client, "t", WRONG, "no list yet");
    let reply: Value = serde_json::from_str(&gives(&mut client, "t", WRONG).1).unwrap();
    assert_eq!(envelope(&reply)["error"]["code"], "bad_response", "{reply}");
}

#[test]
fn u5_between_two_lists_nothing_is_compared() {
    let mut client = client_with(&["--output", "enforce"], &things(), "at once");
    passes(&mut client, "t", FINE, "the list is known");
    let id = client.post_call("t", &json!({ "raw": WRONG, "changed": true }));
    let reply: Value = client.reply(&id);
    assert!(reply["result"]["isError"] == false, "{reply}");
    let reply: Value = serde_json::from_str(&gives(&mut client, "t", WRONG).1).unwrap();
    assert_eq!(envelope(&reply)["error"]["code"], "bad_response", "the new list counts");
}

/// The first call of a tool waits until its schema is compiled, however its reply comes.
#[test]
fn s5_a_reply_of_any_form_is_compared() {
    let lines = WRONG.replace(',', ",\n");
    for arguments in [
        json!({ "raw": lines }),
        json!({ "raw": WRONG, "list": true }),
        json!({ "raw": WRONG, "last": true }),
    ] {
        let mut client = client(Some("enforce"));
        let reply = client.call("t", &arguments);
        assert_eq!(envelope(&reply)["error"]["code"], "bad_response", "{arguments}: {reply}");
        let mut client = self::client(None);
        assert!(client.call("t", &arguments)["result"]["isError"] == false, "{arguments}");
        client.until("it is recorded", |c| mismatches(c).len() == 1);
    }
}

#[test]
fn x7_with_a_schema_that_cannot_be_used_results_pass_and_one_warning_says_so() {
    let node = json!({ "$ref": "#" });
    let wide: serde_json::Map<String, Value> =
        (0..1500).map(|i| (format!("p{i}"), json!({ "anyOf": [node, node] }))).collect();
    let cases = [
        ("broken", json!({ "type": 5 }), "cannot use the tool's outputSchema"),
        ("no object", json!(false), "cannot use the tool's outputSchema"),
        (
            "far",
            json!({ "$ref": "https://example.invalid/x" }),
            "cannot use the tool's outputSchema",
        ),
        ("loop", json!({ "anyOf": [node, { "allOf": [node, node] }] }), ""),
        (
            "long",
            json!({ "description": "x".repeat(300_000) }),
            "cannot use the tool's outputSchema",
        ),
        (
            "many",
            json!({ "enum": (0..20_000).collect::<Vec<_>>() }),
            "cannot use the tool's outputSchema",
        ),
        ("wide", json!({ "type": "object", "properties": wide }), ""),
        ("looks around", json!({ "properties": { "items": { "pattern": "(?=a)b" } } }), "pattern"),
    ];
    for (what, schema, warning) in cases {
        let dir = Dir::new();
        let (log, tools) = (dir.join("log"), tools(&dir, &schema));
        let args = ["wrap", "--contract", "standard", "--output", "enforce", "--audit", &log];
        let server = ["--", "python3", "-c", SERVER, &tools, "at once"];
        let mut command = command(&[&args[..], &server[..]].concat());
        command.stderr(File::create(dir.join("stderr")).unwrap());
        let mut client = Client::start(command, Dir::new());
        client.handshake();
        let begin = Instant::now();
        for _ in 0..3 {
            let raw = r#"{"content":[],"structuredContent":{"items":["b"],"p1":{"p2":{"p3":{}}}}}"#;
            passes(&mut client, "t", raw, what);
        }
        assert!(begin.elapsed() < Duration::from_secs(5), "{what}: {:?}", begin.elapsed());
        client.end();
        let told = fs::read_to_string(dir.join("stderr")).unwrap();
        let warned = told.lines().filter(|line| !warning.is_empty() && line.contains(warning));
        assert_eq!(warned.count(), usize::from(!warning.is_empty()), "{what}: {told}");
    }
}

#[test]
fn x7_a_huge_result_passes_unchecked() {
    let mut client = client(Some("enforce"));
    passes(&mut client, "t", FINE, "small");
    let items = vec![r#"{"id":"x"}"#; 110_000].join(",");
    let raw = format!(r#"{{"content":[],"structuredContent":{{"items":[{items}]}}}}"#);
    let begin = Instant::now();
    passes(&mut client, "t", &raw, "huge");
    assert!(begin.elapsed() < Duration::from_secs(15), "{:?}", begin.elapsed());
    let reply: Value = serde_json::from_str(&gives(&mut client, "t", WRONG).1).unwrap();
    assert_eq!(envelope(&reply)["error"]["code"], "bad_response");
}

#[test]
fn x6_names_in_a_result_are_cut_and_lose_their_secrets() {
    let schema = json!({ "type": "object", "additionalProperties": { "type": "integer" } });
    let mut client = client_with(&["--output", "enforce"], &schema, "at once");
    let token = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let long = "n".repeat(5000);
    let raw = format!(r#"{{"content":[],"structuredContent":{{"{token}":"a","{long}":"b"}}}}"#);
    let (id, line) = gives(&mut client, "t", &raw);
    let record = client.record_of(&id).to_string();
    for told in [&line, &record] {
        assert!(told.contains("redacted") && !told.contains(token), "{told}");
        assert!(!told.contains(&"n".repeat(500)), "{told}");
    }
    let mut client = client_with(&["--output", "warn"], &schema, "at once");
    passes(&mut client, "t", &raw, "warn");
    client.until("it is recorded", |c| mismatches(c).len() == 1);
    let record = mismatches(&client)[0].to_string();
    assert!(record.contains("redacted") && !record.contains(token), "{record}");
    assert!(!record.contains(&"n".repeat(500)), "{record}");
}

#[test]
fn the_setting_is_a_flag_a_variable_and_a_key() {
    let dir = Dir::new();
    let file = dir.join("faultwire.toml");
    fs::write(&file, "contract = \"standard\"\noutput = \"enforce\"\n").unwrap();
    let tools = tools(&dir, &things());
    // The flag takes precedence over the variable, and that over the file.
    for (variable, flag, fails) in [
        (None, None, true),
        (Some("warn"), None, false),
        (Some("warn"), Some("enforce"), true),
        (Some("enforce"), Some("off"), false),
    ] {
        let log = dir.join(&format!("{variable:?}{flag:?}"));
        let mut args = vec!["wrap", "--log", "off", "--config", &file, "--audit", &log];
        args.extend(flag.iter().flat_map(|flag| ["--output", flag]));
        args.extend(["--", "python3", "-c", SERVER, &tools, "at once"]);
        let mut command = command(&args);
        command.envs(variable.map(|variable| ("FAULTWIRE_OUTPUT", variable)));
        let mut client = Client::start(command, Dir::new());
        client.handshake();
        let reply = client.call("t", &json!({ "raw": WRONG }));
        assert_eq!(reply["result"]["isError"], fails, "{variable:?} {flag:?}: {reply}");
    }
}

#[test]
fn a_word_that_is_no_setting_is_told_with_those_that_are() {
    let dir = Dir::new();
    let file = dir.join("faultwire.toml");
    for (key, flag, words) in [
        ("output", "--output", "off, warn, enforce"),
        ("soft_failures", "--soft-failures", "off, record, auto, rewrite"),
    ] {
        fs::write(&file, format!("{key} = \"loud\"\n")).unwrap();
        let told = faultwire(&["wrap", "--config", &file, "--", "true"], "").refused();
        assert!(told.contains("faultwire.toml:1"), "{told}");
        assert!(told.contains(&format!("{key} = \"loud\" is not a valid value")), "{told}");
        assert!(told.contains(&format!("write one of {words}")), "{told}");
        for command in ["wrap", "serve"] {
            let told = faultwire(&[command, flag, "loud", "--", "true"], "").refused();
            assert!(told.contains("[possible values: ") && told.contains(words), "{told}");
        }
    }
}

/// What a failing tool gives beside its text is not lost, whether or not it has a schema.
#[test]
fn u4_other_blocks_of_a_failure_follow_its_envelope() {
    let image = r#"{"type":"image","mimeType":"image/png","data":"iVBORw0KGgo="}"#;
    let note = r#"{"type":"resource","resource":{"uri":"a:b","text":"password=hunter2hunter2"}}"#;
    let text = r#"{"type":"text","text":"The page did not load"}"#;
    let raw = format!(r#"{{"isError":true,"content":[{image},{text},{note}]}}"#);
    let mut client = client(None);
    for tool in ["t", "plain"] {
        let result = client.call(tool, &json!({ "raw": raw }))["result"].take();
        let content = result["content"].as_array().unwrap();
        assert_eq!(content.len(), 3, "{result}");
        assert_eq!(serde_json::from_str::<Value>(image).unwrap(), content[1], "{tool}");
        assert_eq!(content[2]["resource"]["text"], "password=[redacted]", "{tool}");
        let told = content[0]["text"].as_str().unwrap();
        assert!(told.contains("The page did not load"), "{tool}: {told}");
        assert_eq!(result.get("structuredContent").is_none(), tool == "t");
    }
}
