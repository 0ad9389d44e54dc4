//! What passes has the bytes that it had.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::Dir;
use crate::wrap::client::{Client, FAULTWIRE};
use crate::wrap::parts::servers;

const LEGACY: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"sampling":{},"elicitation":{},"roots":{}},"clientInfo":{"name":"bytes","version":"1"}}"#;
const MODERN: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"bytes","version":"1"}}"#;

/// Asks both, and compares every line that comes back until the reply.
struct Pair {
    direct: Client,
    through: Client,
    next: u64,
}

impl Pair {
    fn new(server: &[&str]) -> Self {
        Self { direct: Client::direct(server), through: Client::wrap(&[], server), next: 0 }
    }

    fn ask(&mut self, method: &str, params: &str) -> String {
        let id = self.next;
        self.next += 1;
        // Odd blanks; what is in the message is looked at by servers, too.
        let request =
            format!(r#"{{ "jsonrpc":"2.0","id":{id} ,"method":"{method}","params":{params}  }}"#);
        let mut heard = [String::new(), String::new()];
        for (client, heard) in [&mut self.direct, &mut self.through].into_iter().zip(&mut heard) {
            client.send(&request);
            loop {
                let line = client.line(Duration::from_secs(20)).expect("a line");
                let message: Value = serde_json::from_str(&line).unwrap();
                let is_reply = message.get("method").is_none() && message["id"] == id;
                // When servers tell of changes is up to them.
                if is_reply || line.contains("notifications/progress") {
                    heard.push_str(&line);
                    heard.push('\n');
                }
                if is_reply {
                    break;
                }
            }
        }
        let [direct, through] = heard;
        assert_eq!(through, direct, "{method} {params}");
        direct
    }

    fn notify(&mut self, line: &str) {
        self.direct.send(line);
        self.through.send(line);
    }
}

#[test]
fn a8_legacy_servers_byte_for_byte() {
    let dir = Dir::new();
    for server in servers(&dir) {
        let mut pair = Pair::new(&server.command());
        pair.ask("initialize", LEGACY);
        pair.notify(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        pair.ask("ping", "{}");
        pair.ask("tools/list", "{}");
        for (tool, arguments) in &server.works {
            let params = json!({ "name": tool, "arguments": arguments }).to_string();
            pair.ask("tools/call", &params);
        }
        if server.name == "everything" {
            pair.ask("resources/templates/list", "{}");
            pair.ask("prompts/list", "{}");
            pair.ask("prompts/get", r#"{"name":"simple-prompt"}"#);
            let long = r#"{"name":"trigger-long-running-operation","arguments":{"duration":0.3,"steps":3},"_meta":{"progressToken":"p"}}"#;
            let heard = pair.ask("tools/call", long);
            assert_eq!(heard.lines().count(), 4, "{heard}");
        }
    }
}

#[test]
fn a8_modern_servers_byte_for_byte() {
    let dir = Dir::new();
    let demo = [FAULTWIRE.to_owned(), "demo-server".to_owned()].to_vec();
    let real = servers(&dir).into_iter().filter(|server| server.modern);
    let real = real.map(|server| (server.command.clone(), server.works));
    let echo = vec![("echo", json!({ "text": "hi" }))];
    for (command, works) in real.chain([(demo, echo)]) {
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        let mut pair = Pair::new(&command);
        let discovered = pair.ask("server/discover", &format!("{{{MODERN}}}"));
        assert!(discovered.contains("2026-07-28"), "{command:?}: {discovered}");
        pair.ask("tools/list", &format!("{{{MODERN}}}"));
        for (tool, arguments) in &works {
            let params = format!(r#"{{"name":"{tool}","arguments":{arguments},{MODERN}}}"#);
            let heard = pair.ask("tools/call", &params);
            assert!(heard.contains("\"resultType\""), "{heard}");
        }
        // A failure says, too, that it is whole.
        let params = format!(r#"{{"name":"nosuch","arguments":{{}},{MODERN}}}"#);
        let failure = pair.through.ask("tools/call", &serde_json::from_str(&params).unwrap());
        assert_eq!(failure["result"]["resultType"], "complete", "{failure}");
        assert_eq!(failure["result"]["isError"], true);
    }
}

/// A server that says these lines for each call, and then the reply.
fn saying(lines: &[&str]) -> Vec<String> {
    let code = format!(
        r#"
import sys, json
for line in sys.stdin:
    m = json.loads(line)
    if m.get("method") != "tools/call":
        if "id" in m and "method" in m:
            print(json.dumps({{"jsonrpc": "2.0", "id": m["id"], "result": {{"tools": []}}}}), flush=True)
        elif "id" in m:
            print(json.dumps({{"jsonrpc": "2.0", "method": "notifications/heard", "params": line}}), flush=True)
        continue
    for said in {}:
        print(said, flush=True)
    print('{{"jsonrpc":"2.0","id":%s,"result":{{"content":[ ],"x-more":1.50E+3}}}}' % json.dumps(m["id"]), flush=True)
"#,
        json!(lines)
    );
    vec!["python3".to_owned(), "-c".to_owned(), code]
}

#[test]
fn a8_whatever_a_server_says_passes() {
    let lines = [
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"failed"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/x-unknown" , "params":{"deep":[[[[1.0]]]]},"extra":null}"#,
        r#"{"jsonrpc":"2.0","id":"q1","method":"sampling/createMessage","params":{"messages":[],"maxTokens":5}}"#,
        r#"{"jsonrpc":"2.0","id":7.5,"method":"elicitation/create","params":{"message":"\ud83e\udd89"}}"#,
        r#"{"jsonrpc":"2.0","id":8,"method":"x/unknown"}"#,
    ];
    let server = saying(&lines);
    let server: Vec<&str> = server.iter().map(String::as_str).collect();
    let mut client = Client::wrap(&[], &server);
    let id = client.post_call("t", &json!({}));
    for line in lines {
        assert_eq!(client.line(Duration::from_secs(10)).as_deref(), Some(line));
    }
    let reply = client.reply_line(&id);
    assert_eq!(
        reply,
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[ ],"x-more":1.50E+3}}}}"#)
    );
    // Answers of the client pass, too; an answer that nobody asked for does not.
    let answer = r#"{"jsonrpc":"2.0",  "id":"q1","result":{"role":"assistant"}}"#;
    client.send(r#"{"jsonrpc":"2.0","id":"nobody","result":{}}"#);
    client.send(answer);
    let heard: Value =
        serde_json::from_str(&client.line(Duration::from_secs(10)).unwrap()).unwrap();
    assert_eq!(heard["params"], format!("{answer}\n"));
    client.until("it is recorded", |c| c.events().contains(&"stray_answer".to_owned()));
}

#[test]
fn protocol_flows_are_not_taken_for_failures() {
    let modern = json!({ "name": "t", "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "c", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    } });
    let legacy = json!({ "name": "t" });
    let url = json!({ "elicitations": [{ "mode": "url", "url": "https://example.com/?t=1" }] });
    let capabilities = json!({ "requiredCapabilities": { "sampling": {} } });
    let secret = json!({ "at": "postgres://a:hunter2@h/d" });
    let cases = [
        (&legacy, -32042, url, Flow::Passes),
        // Nothing is asked for.
        (&legacy, -32042, secret.clone(), Flow::Fails),
        (&modern, -32022, json!({ "supported": ["2026-07-28"], "requested": "1" }), Flow::IsTold),
        (&modern, -32021, capabilities.clone(), Flow::IsTold),
        // A number that means nothing to this client's era.
        (&legacy, -32021, capabilities, Flow::Fails),
        (&modern, -32021, secret, Flow::IsTold),
    ];
    for (params, code, data, flow) in cases {
        let error = json!({ "code": code, "message": "m", "data": data });
        let script = format!(
            r#"
import sys, json
for line in sys.stdin:
    m = json.loads(line)
    r = {{"result": {{"tools": []}}}} if m["method"] == "tools/list" else {{"error": json.loads({:?})}}
    print(json.dumps({{"jsonrpc": "2.0", "id": m["id"], **r}}), flush=True)
"#,
            error.to_string()
        );
        let mut client = Client::wrap(&[], &["python3", "-c", &script]);
        let reply = client.ask("tools/call", params);
        let recorded = client.records().into_iter().find(|r| r["type"] == "fault");
        assert!(flow == Flow::Passes || !reply.to_string().contains("hunter2"), "{reply}");
        match flow {
            Flow::Passes => {
                assert_eq!(reply["error"], error);
                assert!(recorded.is_none(), "{recorded:?}");
            }
            Flow::IsTold => {
                assert_eq!(reply["error"]["code"], code, "{reply}");
                assert_eq!(
                    reply["error"]["data"]["requiredCapabilities"],
                    error["data"]["requiredCapabilities"]
                );
                assert_eq!(reply["error"]["data"]["supported"], error["data"]["supported"]);
                assert!(recorded.unwrap()["call"]["envelope"].is_null(), "there was none");
            }
            Flow::Fails => {
                assert_eq!(reply["result"]["isError"], true, "{reply}");
                assert!(recorded.unwrap()["call"]["envelope"].is_string());
            }
        }
    }
}

/// What becomes of an error that is a step of the protocol.
#[derive(PartialEq)]
enum Flow {
    /// It is no failure, and passes.
    Passes,
    /// It is one, and keeps its form.
    IsTold,
    /// It is one as any other.
    Fails,
}

#[test]
fn bad_lines_of_the_client_are_answered_and_lose_nothing() {
    let mut client = Client::demo(&[]);
    let cases: [(&[u8], i64); 7] = [
        (b"{\n", -32700),
        (b"hello\n", -32700),
        (b"{\"a\":\xff}\n", -32700),
        (b"17\n", -32600),
        (b"[]\n", -32600),
        (b"{}\n", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}\n", -32600),
    ];
    for (bytes, number) in cases {
        client.write(bytes);
        let line = client.line(Duration::from_secs(10)).unwrap();
        let reply: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(reply["error"]["code"], number, "{bytes:?}: {line}");
        assert!(reply.get("id").is_none(), "{line}");
        assert_eq!(reply["error"]["data"]["error"]["category"], "validation", "{line}");
    }
    // Blank lines mean nothing.
    client.write(b"\n  \r\n");
    // An id that is still open is refused, and the open call is not touched.
    let slow = json!({ "name": "slow", "arguments": { "ms": 300 } });
    let twice = json!({ "jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": slow });
    client.send(&twice.to_string());
    client.send(&twice.to_string());
    assert_eq!(client.reply(&json!(77))["result"]["isError"], true);
    assert_eq!(client.reply(&json!(77))["result"]["content"][0]["text"], "done");
    // No tool's name.
    let reply = client.ask("tools/call", &json!({ "arguments": {} }));
    assert_eq!(reply["result"]["isError"], true);
    let reply = client.ask("tools/call", &json!(["echo"]));
    assert_eq!(reply["result"]["isError"], true);
}

#[test]
fn batches_pass_as_batches() {
    let mut client = Client::demo(&[]);
    client.call("echo", &json!({ "text": "the list is known now" }));
    let call = |id: u64, arguments: Value| {
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
                "params": { "name": "echo", "arguments": arguments } })
    };
    let ping = json!({ "jsonrpc": "2.0", "id": 102, "method": "ping" });
    let batch = json!([call(100, json!({ "text": "a" })), call(101, json!({})), ping]);
    client.send(&batch.to_string());
    assert_eq!(client.reply(&json!(101))["result"]["isError"], true);
    let line = client.line(Duration::from_secs(10)).unwrap();
    let replies: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(replies.as_array().unwrap().len(), 2, "{line}");
    assert_eq!((&replies[0]["id"], &replies[1]["id"]), (&json!(100), &json!(102)), "{line}");
}

#[test]
fn a_server_that_speaks_the_contract_keeps_its_envelope_and_nothing_beside_it() {
    let envelope =
        |message: &str| json!({ "error": { "code": "io_error", "message": message } }).to_string();
    let text = |text: &str| json!({ "type": "text", "text": text });
    let (ours, secret) = (envelope("I/O error occurred"), "password=hunter2");
    let said = [
        json!({ "isError": true, "content": [text(&ours)] }),
        // The words of this contract are fixed: other ones are not its envelope.
        json!({ "isError": true, "content": [text(&envelope("disk /dev/sda1 is broken"))] }),
        json!({ "isError": true, "content": [text(&ours), text(secret)] }),
        json!({ "isError": true, "content": [text(secret), text(&ours)] }),
        json!({ "isError": true, "content": [text(&ours)], "x-own": secret }),
        json!({ "isError": true, "content": [text(&ours)], "_meta": { "x": secret } }),
        json!({ "isError": true, "content": [text(&ours)], "structuredContent": { "x": secret } }),
        json!({ "isError": false, "content": [text(&ours)] }),
        json!({ "content": [text(&ours)] }),
    ];
    for said in said {
        let script = format!(
            r#"
import sys, json
for line in sys.stdin:
    m = json.loads(line)
    r = {{"tools": []}} if m["method"] == "tools/list" else json.loads({:?})
    print(json.dumps({{"jsonrpc": "2.0", "id": m["id"], "result": r}}), flush=True)
"#,
            said.to_string()
        );
        let server = ["python3", "-c", &script];
        let mut client = Client::wrap(&["--contract", "context-resolve"], &server);
        let reply = client.call("t", &json!({}));
        let result = &reply["result"];
        assert_eq!((&result["isError"], &result["content"]), (&json!(true), &json!([text(&ours)])));
        assert!(!reply.to_string().contains("hunter2"), "{said}: {reply}");
        assert_eq!(client.record_of(&reply["id"])["fault"]["code"], "io_error");
    }
}
