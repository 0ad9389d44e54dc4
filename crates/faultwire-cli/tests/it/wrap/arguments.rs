//! Arguments against the tool's own schema.

use serde_json::{Value, json};

use crate::support::Dir;
use crate::wrap::client::{Client, envelope};

#[test]
fn w4_every_issue_with_its_path() {
    let mut client = Client::demo(&["--contract", "workrail"]);
    let reply = client.call("steps", &json!({ "count": "one", "mss": 2 }));
    let envelope = envelope(&reply);
    assert_eq!(envelope["code"], "VALIDATION_ERROR");
    assert_eq!(envelope["retry"], json!({ "kind": "not_retryable" }));
    let issues = envelope["details"]["validationIssues"].as_array().unwrap();
    let issue = |path: &str| {
        let of = |i: &&Value| i["path"] == path;
        issues.iter().find(of).unwrap_or_else(|| panic!("{path}: {envelope}"))["message"].clone()
    };
    assert_eq!(issue("ms"), "Required");
    assert_eq!(issue("mss"), "Unknown property; did you mean \"ms\"?");
    assert!(issue("count").as_str().unwrap().contains("integer"), "{envelope}");
    // Nothing of what was sent stands in the envelope.
    assert!(!envelope.to_string().contains("one"), "{envelope}");
    let record = client.record_of(&reply["id"]);
    assert_eq!(record["fault"]["origin"], "client");
    assert_eq!(record["fault"]["outcome"], "not_sent");
}

#[test]
fn kaiza_tells_missing_from_wrong() {
    let mut client = Client::demo(&["--contract", "kaiza"]);
    let contract = faultwire_contract::builtin("kaiza").unwrap();
    let aspects = [
        (json!({}), faultwire_contract::Aspect::Missing),
        (json!({ "text": 5 }), faultwire_contract::Aspect::Type),
    ];
    for (arguments, aspect) in aspects {
        let reply = client.call("echo", &arguments);
        let expected =
            contract.code_for(faultwire_contract::Condition::InvalidArguments, Some(aspect));
        assert_eq!(envelope(&reply)["error_code"], *expected.id, "{arguments}");
    }
}

#[test]
fn an_issue_says_what_would_do() {
    let schema = json!({
        "type": "object",
        "properties": {
            "entityType": { "type": "string" },
            "since": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
            "level": { "enum": ["low", "middle", "high", "all", 5, null] },
            "token": { "type": "string" },
        },
        "required": ["entityType", "token"],
    });
    let tools = json!([{ "name": "get_secret", "inputSchema": schema }]);
    let server = server_with(&tools);
    let server: Vec<&str> = server.iter().map(String::as_str).collect();
    let mut client = Client::wrap(&["--contract", "workrail"], &server);
    let arguments = json!({ "entity_type": "x", "since": 5, "level": "meddle" });
    let told = envelope(&client.call("get_secret", &arguments));
    let issues = told["details"]["validationIssues"].as_array().unwrap();
    let said: Vec<&str> = issues.iter().filter_map(|i| i["message"].as_str()).collect();
    for message in [
        "Required",
        r#"Required; "entity_type" was given, did you mean "entityType"?"#,
        "The value is not of type string or null",
        r#"The value is not one of "low", "middle", "high", "all", 5, null; did you mean "middle"?"#,
    ] {
        assert!(said.contains(&message), "{message}: {told}");
    }
    // The names of tools and properties are no secrets.
    let arguments = json!({ "entityType": "x" });
    let told = envelope(&client.call("get_secret", &arguments));
    assert_eq!(told["message"], "Invalid arguments for tool get_secret, namely token (Required)");
}

#[test]
fn off_and_warn_let_them_pass() {
    for setting in ["off", "warn"] {
        let mut client = Client::demo(&["--arguments", setting]);
        let reply = client.call("echo", &json!({ "text": "hi", "more": 1 }));
        assert_eq!(reply["result"]["content"][0]["text"], "hi", "{setting}");
    }
}

/// A server with these tools that answers every call.
fn server_with(tools: &Value) -> Vec<String> {
    let code = format!(
        r#"
import sys, json
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    r = {{"tools": json.loads({:?})}} if m["method"] == "tools/list" else {{"content": [{{"type": "text", "text": "ran"}}]}}
    print(json.dumps({{"jsonrpc": "2.0", "id": m["id"], "result": r}}), flush=True)
"#,
        tools.to_string()
    );
    vec!["python3".to_owned(), "-c".to_owned(), code]
}

fn check(schema: &Value, arguments: &Value, issue: Option<(&str, &str)>) {
    let tools = json!([{ "name": "t", "inputSchema": schema }]);
    let server = server_with(&tools);
    let server: Vec<&str> = server.iter().map(String::as_str).collect();
    let mut client = Client::wrap(&["--contract", "workrail"], &server);
    let reply = client.call("t", arguments);
    match issue {
        None => assert_eq!(reply["result"]["content"][0]["text"], "ran", "{schema} {arguments}"),
        Some((path, words)) => {
            let issues = envelope(&reply)["details"]["validationIssues"].clone();
            assert_eq!(issues[0]["path"], path, "{issues}");
            assert!(issues[0]["message"].as_str().unwrap().contains(words), "{issues}");
        }
    }
}

#[test]
fn schemas_of_any_draft_and_none() {
    let object = |rest: Value| {
        let mut schema = json!({ "type": "object" });
        schema.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        schema
    };
    let enumeration = object(json!({ "properties": { "sort": { "enum": ["name", "size"] } } }));
    check(&enumeration, &json!({ "sort": "nane" }), Some(("sort", "did you mean \"name\"?")));
    check(&enumeration, &json!({ "sort": "size" }), None);
    let draft4 = object(json!({
        "$schema": "http://json-schema.org/draft-04/schema#",
        "properties": { "n": { "type": "integer", "minimum": 1, "exclusiveMinimum": true } },
    }));
    check(&draft4, &json!({ "n": 1 }), Some(("n", "")));
    check(&draft4, &json!({ "n": 2 }), None);
    let nested = object(json!({
        "$defs": { "edit": { "type": "object", "required": ["old"], "additionalProperties": false,
                             "properties": { "old": { "type": "string" } } } },
        "properties": { "edits": { "type": "array", "items": { "$ref": "#/$defs/edit" } } },
    }));
    check(
        &nested,
        &json!({ "edits": [{ "old": "a" }, { "odl": "b" }] }),
        Some(("edits.1.odl", "did you mean \"old\"?")),
    );
    // What does not compile is a warning, and everything passes.
    check(&json!({ "type": 5 }), &json!({ "x": 1 }), None);
    check(&json!({ "$ref": "https://example.invalid/far" }), &json!({ "x": 1 }), None);
    check(&json!(true), &json!({ "x": 1 }), None);
}

#[test]
fn a_changed_list_is_asked_for_again() {
    let dir = Dir::new();
    let code = format!(
        r#"
import sys, json, os
lists = 0
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    if m["method"] == "tools/list":
        lists += 1
        kind = "string" if lists == 1 else "integer"
        r = {{"tools": [{{"name": "t", "inputSchema": {{"type": "object", "properties": {{"x": {{"type": kind}}}}}}}}]}}
    else:
        r = {{"content": [{{"type": "text", "text": "ran"}}]}}
    open({:?}, "w").write(str(lists))
    print(json.dumps({{"jsonrpc": "2.0", "id": m["id"], "result": r}}), flush=True)
    if m["method"] == "tools/call" and lists == 1:
        print(json.dumps({{"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}}), flush=True)
"#,
        dir.join("lists")
    );
    let mut client = Client::wrap(&[], &["python3", "-c", &code]);
    assert!(client.call("t", &json!({ "x": "s" }))["result"]["isError"].is_null());
    let told = client.line(std::time::Duration::from_secs(5)).unwrap();
    assert!(told.contains("list_changed"), "{told}");
    assert_eq!(client.call("t", &json!({ "x": "s" }))["result"]["isError"], true);
    assert!(client.call("t", &json!({ "x": 4 }))["result"]["isError"].is_null());
    // Once a list, not once a call.
    assert_eq!(std::fs::read_to_string(dir.path().join("lists")).unwrap(), "2");
}

#[test]
fn w4_what_only_the_server_refuses_has_issues_too() {
    let code = r#"
import sys, json
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    if m["method"] == "initialize": r = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    elif m["method"] == "tools/list": r = {"tools": [{"name": "even", "inputSchema": {"type": "object"}}]}
    else: r = {"isError": True, "content": [{"type": "text", "text": "Invalid arguments: field `number` is odd"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
"#;
    let mut client = Client::wrap(&["--contract", "workrail"], &["python3", "-c", code]);
    client.handshake();
    let reply = client.call("even", &json!({ "number": 7 }));
    let envelope = envelope(&reply);
    assert_eq!(envelope["code"], "VALIDATION_ERROR", "{reply}");
    let issues = envelope["details"]["validationIssues"].as_array().unwrap();
    assert_eq!(issues[0]["path"], "number", "{reply}");
    assert!(issues[0]["message"].as_str().unwrap().contains("is odd"), "{reply}");
}
