//! How much is let in, and what those hear who come too many.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use crate::serve::gateway::{Gateway, modern};
use crate::serve::http::Request;
use crate::support::{Dir, command};
use crate::wrap::client::FAULTWIRE;

/// A gateway with these settings in front of the demo server.
fn limited(settings: &str) -> (Gateway, Dir) {
    let dir = Dir::new();
    let config = dir.join("faultwire.toml");
    std::fs::write(&config, format!("contract = \"owlclaw\"\n{settings}")).unwrap();
    (Gateway::before(&["--config", &config], &[FAULTWIRE, "demo-server"]), dir)
}

fn call(gateway: &Gateway, tool: &str, arguments: &Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments });
    gateway.modern(&json!(1), "tools/call", &params).send().reply()
}

fn told(reply: &Value) -> &Value {
    &reply["result"]["structuredContent"]["error"]
}

#[test]
fn calls_that_are_open_at_once_are_bounded_on_both_surfaces() {
    let (gateway, _dir) = limited("[limits]\nin_flight = 1\n");
    call(&gateway, "echo", &json!({ "text": "the tools are known now" }));
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| call(&gateway, "slow", &json!({ "ms": 1500 })));
        std::thread::sleep(Duration::from_millis(500));
        let echo = json!({ "text": "x" });
        let refused = call(&gateway, "echo", &echo);
        assert_eq!(told(&refused)["code"], "governance.rate_limited", "{refused}");
        let params = json!({ "name": "echo", "arguments": echo });
        let request = gateway.request("POST", "/mcp").header("accept", "application/problem+json");
        let problem = modern(request, &json!(1), "tools/call", &params).send();
        assert_eq!((problem.status, &problem.json()["code"]), (429, &told(&refused)["code"]));
        assert_ne!(slow.join().unwrap()["result"]["isError"], true);
    });
    assert_eq!(call(&gateway, "echo", &json!({ "text": "x" }))["result"]["isError"], Value::Null);
}

#[test]
fn o4_the_wait_of_a_clients_rate_is_the_true_one() {
    let (gateway, _dir) = limited("[[client]]\nname = \"all\"\nrate = \"20/m\"\n");
    let echo = || call(&gateway, "echo", &json!({ "text": "x" }));
    for n in 0..20 {
        assert_eq!(told(&echo()), &Value::Null, "{n}");
    }
    let first = told(&echo())["retry_after"].as_u64().unwrap();
    assert!((2..=3).contains(&first), "one comes free every three seconds: {first}");
    std::thread::sleep(Duration::from_millis(1200));
    let second = told(&echo())["retry_after"].as_u64().unwrap();
    assert!(second < first, "it is the rest of the wait: {second}");
    std::thread::sleep(Duration::from_secs(second));
    assert_eq!(told(&echo()), &Value::Null, "the wait was enough");
}

#[test]
fn there_are_only_so_many_sessions() {
    let (gateway, _dir) = limited("[serve]\nsessions = 2\n");
    let sessions = [gateway.begin(), gateway.begin()];
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "tester", "version": "1" } } });
    let refused = gateway.post(None, &hello);
    assert_eq!(refused.status, 503, "{refused:?}");
    assert_eq!(refused.json()["error"]["data"]["error"]["code"], "governance.rate_limited");
    // One that ends makes room.
    let end = gateway.request("DELETE", "/mcp").header("mcp-session-id", &sessions[0]).send();
    assert_eq!(end.status, 204);
    let until = std::time::Instant::now() + Duration::from_secs(10);
    while gateway.post(None, &hello).status != 200 {
        assert!(std::time::Instant::now() < until, "there is no room again");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// What a gateway with these settings prints, after it was asked with this token.
fn printed(settings: &str, token: &str) -> (u16, String) {
    let dir = Dir::new();
    let (config, log) = (dir.join("faultwire.toml"), dir.join("log"));
    std::fs::write(&config, settings).unwrap();
    let errors = std::fs::File::create(dir.path().join("stderr")).unwrap();
    let args = ["serve", "--port", "0", "--audit", &log, "--log", "debug", "--config", &config];
    let mut process = command(&args)
        .env("GATEWAY_TOKEN", token)
        .stdout(Stdio::piped())
        .stderr(errors)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut printed = String::new();
    let address = lines.by_ref().find_map(|line| {
        printed.push_str(&line);
        line.split_once("http://")?.1.split('/').next().map(str::to_owned)
    });
    let address = address.expect("it serves");
    let ask = |token: &str| {
        let params = json!({ "name": "missing_file", "arguments": { "path": token } });
        let request =
            modern(Request::new(&address, "POST", "/mcp"), &json!(1), "tools/call", &params);
        request.header("authorization", &format!("Bearer {token}")).send().status
    };
    ask("a-wrong-token");
    let status = ask(token);
    process.kill().unwrap();
    process.wait().unwrap();
    printed.extend(lines);
    printed.push_str(&std::fs::read_to_string(dir.path().join("stderr")).unwrap());
    (status, printed)
}

#[test]
fn a_token_from_the_environment_lets_in_and_is_never_printed() {
    let token = "kept-to-myself-7c1f";
    let settings = "[[client]]\nname = \"ci\"\ntoken_env = \"GATEWAY_TOKEN\"\n";
    let (status, printed) = printed(settings, token);
    assert_eq!(status, 200, "{printed}");
    for secret in [token, "a-wrong-token"] {
        assert!(!printed.contains(secret), "{printed}");
    }
}
