//! `classify`: one line in, one line out.

use serde_json::{Value, json};

use crate::support::{BUILTINS, command, faultwire, run};

fn answers(contract: &str, input: &[u8]) -> Vec<Value> {
    let out = run(command(&["classify", "-c", contract]), input).fine();
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn each_line_has_its_answer() {
    let input = concat!(
        r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"fine"}]}}"#,
        "\n",
        "debug: stray text\n",
        "\n",
        r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"Method not found"}}"#,
        "\r\n",
        r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"boom password=hunter2"}],"isError":true}}"#,
    );
    let answers = answers("kaiza", input.as_bytes());
    assert_eq!(answers.len(), 6);
    assert_eq!(answers[0], json!({"failure": false}));
    assert_eq!(answers[1]["condition"], "upstream_protocol");
    assert_eq!(answers[2]["condition"], "upstream_protocol");
    assert_eq!(answers[3]["condition"], "unknown_method");
    assert_eq!(answers[4], json!({"failure": false}));
    assert_eq!(answers[5]["message"], "boom password=[redacted]");
    assert!(
        answers[5]["rule"].is_string()
            && answers[5]["origin"] == "upstream"
            && answers[5]["outcome"] == "executed"
    );
}

#[test]
fn an_envelope_is_recognised_in_every_contract() {
    for contract in BUILTINS {
        let shown = faultwire(&["contract", "show", contract, "--json"], "").json();
        let code = &shown["codes"][0]["id"];
        let result = faultwire(
            &["render", "-c", contract, "--surface", "result"],
            json!({"code": code}).to_string(),
        )
        .fine();
        let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}}\n", result.trim_end());
        let answer = &answers(contract, line.as_bytes())[0];
        assert_eq!((&answer["rule"], &answer["code"]), (&json!("envelope"), code));
    }
}

#[test]
fn what_it_writes_can_be_rendered() {
    let line = br#"{"jsonrpc":"2.0","id":9,"error":{"code":-32000,"message":"rate limited","data":{"retryAfterMs":5000}}}"#;
    for contract in BUILTINS {
        let mut answer = answers(contract, line)[0].clone();
        let object = answer.as_object_mut().unwrap();
        object.shift_remove("failure");
        object.shift_remove("rule");
        faultwire(&["render", "-c", contract], answer.to_string()).json();
    }
}

#[test]
fn no_line_is_too_bad() {
    let bad = b"\xff\xfe\n\x00\n{\n[[[[\n";
    assert!(answers("owlclaw", bad).iter().all(|a| a["condition"] == "upstream_protocol"));
    let long =
        [&b"x".repeat(5000)[..], b"\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n"].concat();
    let out = run(command(&["classify", "--max-line", "1000"]), &long).fine();
    let answers: Vec<Value> = out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(
        (answers.len(), &answers[0]["rule"], &answers[1]["failure"]),
        (2, &json!("oversize"), &json!(false))
    );
}

/// The captured replies that ship beside the project, where they are at hand: nothing that was
/// captured as a failure of the server passes for a success.
#[test]
fn captured_replies() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus/wild");
    let Ok(entries) = std::fs::read_dir(folder) else {
        eprintln!("not run: {folder} is not there");
        return;
    };
    for entry in entries {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let cases: Vec<Value> = serde_json::from_str(&text).unwrap();
        for case in &cases {
            let Some(raw) = case["response_raw"].as_str() else {
                continue;
            };
            for (line, answer) in raw.lines().zip(answers("owlclaw", raw.as_bytes())) {
                let message: Value = serde_json::from_str(line).unwrap_or(Value::Null);
                let fails = message.is_null()
                    || message.get("error").is_some()
                    || message["result"]["isError"] == true;
                assert!(!fails || answer["failure"] == true, "{line}");
            }
        }
    }
}

/// Taken apart for the rules, a secret would no longer be recognised.
#[test]
fn x6_the_reasons_show_no_secret() {
    let token = "ghp_Zk4Qx7Lm2Vt9Rw3Yb8Nc1Hd6Js5Pf0GaUe";
    let inner = r#"{\\\"client_secret\\\":\\\"Tulpe80RegenSonne\\\"}"#;
    let text = format!("clone of https://{token}@example.org/a.git failed: {inner}");
    let line = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"isError":true,"content":[{{"type":"text","text":"{text}"}}]}}}}"#
    );
    let call = format!(
        r#"{{"method":"tools/call","params":{{"name":"clone","arguments":{{"token":"{token}"}}}}}}"#
    );
    let out = faultwire(&["classify", "--why", "--call", &call], &line).fine();
    assert!(out.contains("failed"), "{out}");
    for part in [token, "Zk4Qx7Lm2Vt9", "Zk4 Qx7", "Tulpe80RegenSonne", "Tulpe80"] {
        assert!(!out.contains(part), "{part}: {out}");
    }
}

/// U1: a retryable code needs more than a word, and what the call is about is no failure.
#[test]
fn u1_words_of_everyday_life_are_no_reason_to_call_again() {
    for text in [
        "Deadline exceeded: submissions closed on 2026-03-01",
        "Item 503 is unavailable in size M",
        "Too many requests in one batch: 120, the maximum is 100",
        "timeout: invalid time interval '5x'",
        "Bob is busy on Monday",
        "A temporary file could not be removed",
    ] {
        let line = json!({ "jsonrpc": "2.0", "id": 1, "result": {
            "isError": true, "content": [{ "type": "text", "text": text }] } });
        let answer = &answers("standard", line.to_string().as_bytes())[0];
        assert_eq!(answer["retry"], "never", "{answer}");
    }
    for (text, code) in [
        ("toomanyrequests: You have reached your unauthenticated pull rate limit.", "rate_limited"),
        ("The registry server is busy", "unavailable"),
        ("The service is down for maintenance", "unavailable"),
    ] {
        let line = json!({ "jsonrpc": "2.0", "id": 1, "result": {
            "isError": true, "content": [{ "type": "text", "text": text }] } });
        let answer = &answers("standard", line.to_string().as_bytes())[0];
        assert_eq!(
            (&answer["code"], answer["retry"] == "never"),
            (&json!(code), false),
            "{answer}"
        );
    }
    // Who asks what a code means gets it back.
    let meaning = json!({ "code": "ETIMEDOUT", "message": "operation timed out" }).to_string();
    let line = json!({ "jsonrpc": "2.0", "id": 1,
                       "result": { "content": [{ "type": "text", "text": meaning }] } });
    let call = r#"{"method":"tools/call","params":{"name":"describe_error","arguments":{"code":"ETIMEDOUT"}}}"#;
    let answer = faultwire(&["classify", "--call", call], line.to_string()).json();
    assert_eq!(answer["failure"], false, "{answer}");
}
