//! No byte reaches a server that was not read as one well-formed message, and what was judged is
//! what the server reads (X1).

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::serve::recorder::{LIMITED, Recorder};

/// Waits until the server has asked its questions.
fn asked(recorder: &Recorder, session: &str) {
    let ping = br#"{"jsonrpc":"2.0","id":"ping","method":"ping"}"#;
    let until = Instant::now() + Duration::from_secs(20);
    recorder.post(Some(session), ping);
    while !recorder.heard().contains("\"ping\"") {
        assert!(Instant::now() < until, "the server hears nothing");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn x1_a_malformed_answer_never_reaches_the_server() {
    let recorder = Recorder::new("");
    let session = recorder.begin(LIMITED);
    asked(&recorder, &session);
    let evil = r#""params":{"name":"delete_all","arguments":{}}"#;
    let lines = [
        format!(r#"{{"id":0,"m\u0065thod":"tools/call",{evil},"params":{{}}}}"#),
        format!(r#"{{"id":1,"m\u0065thod":"tools/call",{evil},"x":NaN}}"#),
        format!(r#"{{"id":2,"m\u0065thod":"tools/call",{evil},}}"#),
        format!(r#"{{"id":3,/**/"m\u0065thod":"tools/call",{evil}}}"#),
        format!(r#"{{"id":4,"result":{{}},"Method":"tools/call",{evil}}}"#),
        format!(r#"{{"id":5,"result":{{}},"result":{{}},'method':"tools/call",{evil}}}"#),
        format!("{{\"id\":6,\"result\":{{}}}}\n{{\"id\":7,\"method\":\"tools/call\",{evil}}}"),
        format!(r#"{{"id":8,"result":{{"roots":[]}},"error":{{}},"PARAMS":1,{evil}}}"#),
        format!(r#"{{"id":9,"result":{{"a":1}},"m\u0065thod":"tools/call",{evil}}}"#),
        format!("\u{feff}{{\"id\":10,\"method\":\"tools/call\",{evil}}}"),
        format!("\u{c}{{\"id\":11,\"method\":\"tools/call\",{evil}}}"),
        format!(r#"{{"id":12,"result":{{}}}}{{"id":13,"method":"tools/call",{evil}}}"#),
    ];
    for line in &lines {
        let answer = recorder.post(Some(&session), line.as_bytes());
        let is_refused = answer.status != 200 || answer.body.contains("The request is refused");
        assert!(is_refused, "{line}: {answer:?}");
    }
    asked(&recorder, &session);
    let heard = recorder.heard();
    assert!(!heard.contains("delete_all"), "{heard}");
    assert!(!heard.to_lowercase().contains("\"method\":\"tools/call\""), "{heard}");
    // The question whose answer was broken got one all the same.
    assert!(heard.contains(r#""id":4,"error":{"code":-32600"#), "{heard}");
}

#[test]
fn x1_a_request_that_two_parsers_read_differently_is_refused() {
    let recorder = Recorder::new("");
    let session = recorder.begin(LIMITED);
    let variants = [
        r#""params":{"name":"read_a","Name":"delete_all"}"#,
        r#""params":{"name":"read_a","NAME":"delete_all"}"#,
        r#""params":{"name":"delete_all","name":"read_a"}"#,
        r#""params":{"name":"read_a","n\u0061me":"delete_all"}"#,
        r#""params":{"name":"read_a"},"paramſ":{"name":"delete_all"}"#,
        r#""params":{"name":"read_a"},"Params":{"name":"delete_all"}"#,
        r#""params":{"name":"read_a"},"Method":"tools/call","ID":77"#,
        r#""params":{"name":"read_a","argument\u017f":{"x":1}}"#,
        r#""params":{"name":"read_a","ｎame":"delete_all"}"#,
        r#""params":{"name":"read_a","name\u0000":"delete_all"}"#,
        r#""params":{"name":"read_a","arguments":{"a":1,"a":2}}"#,
        r#""params":{"name":"read_a","arguments":{"a":[{"b":{"c":1,"c":2}}]}}"#,
        r#""params":{"name":"read_a","_meta":{"progressToken":1,"ProgressToken":2}}"#,
        r#""params":{"name":"read_a"},"result":{}"#,
        r#""params":["read_a"]"#,
        r#""params":{"name":"read_a\u0000delete_all"}"#,
    ];
    for (number, variant) in variants.iter().enumerate() {
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":{},"method":"tools/call",{variant}}}"#,
            1000 + number
        );
        let answer = recorder.post(Some(&session), line.as_bytes());
        let text = answer.body.clone();
        assert!(text.contains("\"error\"") || text.contains("\"code\""), "{variant}: {text}");
    }
    for method in ["Tools/Call", "tools/call ", "tool\u{17f}/call", "TOOLS/CALL"] {
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":2000,"method":"{method}","params":{{"name":"delete_all"}}}}"#
        );
        recorder.post(Some(&session), line.as_bytes());
        let line =
            format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"name":"delete_all"}}}}"#);
        recorder.post(Some(&session), line.as_bytes());
    }
    let heard = recorder.heard();
    assert!(!heard.contains("delete_all"), "{heard}");
    assert!(!heard.contains("read_a"), "{heard}");
    // An ordinary call still gets through.
    let fine = br#"{"jsonrpc":"2.0","id":3000,"method":"tools/call","params":{"name":"read_a","arguments":{"Name":"x"}}}"#;
    let reply = recorder.post(Some(&session), fine).reply();
    assert_eq!(reply["result"]["content"][0]["text"], "done", "{reply}");
    let records = recorder.gateway.records();
    let failed = records.iter().filter(|r| r["fault"]["outcome"] == "maybe_executed").count();
    assert_eq!(failed, 0, "nothing of them was sent: {records:?}");
}

#[test]
fn x1_a_carriage_return_makes_no_second_message() {
    // A server that reads in text mode, as the official Python library does, ends a line at it.
    let server = r#"
import sys, json
for line in sys.stdin:
    try: m = json.loads(line)
    except ValueError: continue
    if "id" not in m: continue
    if m.get("method") == "tools/list": r = {"tools": []}
    elif m.get("method") == "initialize": r = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
    else: r = {"heard": m["method"], "content": []}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
"#;
    let mut client =
        crate::wrap::client::Client::wrap(&["-c", "owlclaw"], &["python3", "-c", server]);
    client.handshake();
    let inner = r#"{"jsonrpc":"2.0","id":99,"method":"evil"}"#;
    client.send(&format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"own/thing\",\"params\":{{\"x\":\r{inner}\r}}}}"
    ));
    let reply: Value = client.reply(&5.into());
    assert_eq!(reply["result"]["heard"], "own/thing", "{reply}");
    assert_eq!(client.end().replies.get("99"), None);
}

#[test]
fn x1_replies_with_doubled_or_folded_members_fail_the_call() {
    let server = r#"
import sys, json
bad = ['{"content":[],"isError":true,"isError":false}', '{"content":[],"IsError":true}',
       '{"content":[{"type":"text","text":"a","Text":"b"}]}', '{"content":[],"\u0069ſError":true}',
       '{"content":[],"Content":[]}', '{"content":[{"type":"text","text":"a","text":"b"}]}']
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    if m["method"] == "tools/list": r = json.dumps({"tools": [{"name": str(n), "inputSchema": {"type": "object"}} for n in range(len(bad))]})
    elif m["method"] == "initialize": r = '{"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}'
    else: r = bad[int(m["params"]["name"])]
    sys.stdout.buffer.write(('{"jsonrpc":"2.0","id":%s,"result":%s}\n' % (json.dumps(m["id"]), r)).encode()); sys.stdout.flush()
"#;
    let mut client =
        crate::wrap::client::Client::wrap(&["-c", "owlclaw"], &["python3", "-c", server]);
    client.handshake();
    for tool in 0..6 {
        let reply = client.call(&tool.to_string(), &serde_json::json!({}));
        assert_eq!(reply["result"]["isError"], true, "{tool}: {reply}");
    }
    let records = client.end().records;
    let conditions: Vec<_> =
        records.iter().filter_map(|r| r["fault"]["condition"].as_str()).collect();
    assert_eq!(conditions, ["upstream_protocol"; 6], "{records:?}");
}
