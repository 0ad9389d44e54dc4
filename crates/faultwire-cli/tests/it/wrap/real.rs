//! Real servers behind `wrap`, driven by the official clients: a success is what it is without
//! us, and a failure is an envelope of the contract.

use std::process::{Command, Stdio};

use faultwire_contract::{Surface, builtin};
use serde_json::{Value, json};

use crate::support::{BUILTINS, Dir};
use crate::wrap::client::{Client, FAULTWIRE};
use crate::wrap::parts::{Server, parts, servers};

/// Runs a plan with an official client.
fn run(client: &str, command: &[&str], calls: &[(&str, Value)]) -> Value {
    run_plan(client, json!({ "command": command, "calls": calls }))
}

/// The same with everything that a plan can say.
pub fn run_plan(client: &str, mut plan: Value) -> Value {
    let parts = parts();
    plan["parts"] = json!(parts);
    let script = format!("{}/tests/clients/{client}", env!("CARGO_MANIFEST_DIR"));
    let program = match client.rsplit_once('.') {
        Some((set, "py")) => parts.join(set).join("bin/python"),
        _ => "node".into(),
    };
    let output = Command::new("timeout")
        .arg("90")
        .arg(program)
        .args([script, plan.to_string()])
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{client} with {plan}: {e}\n{told}"))
}

fn wrapped<'a>(server: &'a [&'a str], contract: &'a str, log: &'a str) -> Vec<&'a str> {
    let wrap = [FAULTWIRE, "wrap", "--log", "off", "--contract", contract, "--audit", log, "--"];
    wrap.into_iter().chain(server.iter().copied()).collect()
}

pub fn expect_envelope(contract: &str, result: &Value, place: &str) {
    assert_eq!(result["isError"], true, "{place}: {result}");
    let text = result["content"][0]["text"].as_str().expect(place);
    let contract = builtin(contract).unwrap();
    contract.read_any(Surface::Mcp, text.as_bytes()).unwrap_or_else(|e| panic!("{place}: {e}"));
}

/// What works is as it is without us, and what fails is an envelope.
pub fn expect_results(
    server: &Server,
    contract: &str,
    direct: &Value,
    through: &Value,
    place: &str,
) {
    for (at, (tool, _)) in server.works.iter().enumerate() {
        assert_eq!(through["results"][at], direct["results"][at], "{place}: {tool}");
    }
    for (at, (tool, arguments)) in server.fails.iter().enumerate() {
        let result = &through["results"][server.works.len() + at];
        expect_envelope(contract, result, &format!("{place}: {tool} {arguments}"));
    }
}

/// One client with all servers, each under another contract.
fn drive(client: &str, turn: usize) {
    let dir = Dir::new();
    for (at, server) in servers(&dir).iter().enumerate() {
        let contract = BUILTINS[(at + turn) % BUILTINS.len()];
        let place = format!("{client}, {}, {contract}", server.name);
        let calls: Vec<(&str, Value)> = server.works.iter().chain(&server.fails).cloned().collect();
        let direct = run(client, &server.command(), &server.works);
        let log = dir.join(&format!("log-{}", server.name));
        let through = run(client, &wrapped(&server.command(), contract, &log), &calls);
        assert_eq!(through["tools"], direct["tools"], "{place}");
        assert_eq!(through["era"], direct["era"], "{place}");
        expect_results(server, contract, &direct, &through, &place);
    }
}

#[test]
fn a8_k9_the_python_client_1() {
    drive("python1.py", 0);
}

#[test]
fn a8_k9_the_python_client_2() {
    drive("python2.py", 1);
}

#[test]
fn a8_k9_the_typescript_client_1() {
    drive("typescript1.mjs", 2);
}

#[test]
fn a8_k9_the_typescript_client_2() {
    drive("typescript2.mjs", 3);
}

#[test]
fn k9_w8_every_failure_is_an_envelope_under_each_contract() {
    let dir = Dir::new();
    let check = |server: &Server| {
        for contract in BUILTINS {
            let mut client = Client::wrap(&["--contract", contract], &server.command());
            client.handshake();
            for (tool, arguments) in &server.works {
                let reply = client.call(tool, arguments);
                assert_ne!(reply["result"]["isError"], true, "{}: {tool}: {reply}", server.name);
            }
            for (tool, arguments) in &server.fails {
                let reply = client.call(tool, arguments);
                let place = format!("{} under {contract}: {tool}", server.name);
                expect_envelope(contract, &reply["result"], &place);
                let record = client.record_of(&reply["id"]);
                assert!(record["fault"]["origin"].is_string(), "{place}");
                assert!(record["fault"]["outcome"].is_string(), "{place}");
            }
            // A method that the server does not have is a JSON-RPC error around the envelope.
            let reply = client.ask("no/such", &json!({}));
            let data = reply["error"]["data"].to_string();
            let contract = builtin(contract).unwrap();
            contract.read_any(Surface::Mcp, data.as_bytes()).expect(server.name);
        }
    };
    let servers = servers(&dir);
    std::thread::scope(|scope| {
        for half in [&servers[..3], &servers[3..]] {
            scope.spawn(|| half.iter().for_each(check));
        }
    });
}

#[test]
fn u5_no_real_success_is_taken_for_a_mismatch() {
    let dir = Dir::new();
    for server in servers(&dir) {
        let mut direct = Client::direct(&server.command());
        let mut client = Client::wrap(&["--output", "enforce"], &server.command());
        direct.handshake();
        client.handshake();
        let list = client.ask("tools/list", &json!({}));
        let declares = |name: &str| {
            let tools = list["result"]["tools"].as_array().unwrap();
            tools.iter().any(|tool| tool["name"] == name && tool.get("outputSchema").is_some())
        };
        direct.ask("tools/list", &json!({}));
        for (tool, arguments) in &server.works {
            let expected = direct.call(tool, arguments);
            let reply = client.call(tool, arguments);
            let compared = expected["result"].get("structuredContent").is_some();
            assert_eq!(compared, declares(tool), "{}: {tool}: {expected}", server.name);
            assert_eq!(reply, expected, "{}: {tool}", server.name);
        }
    }
}

#[test]
fn u6_a_server_that_crashes_at_its_start_says_why_at_once() {
    let dir = Dir::new();
    let sqlite = parts().join("crashing/bin/mcp-server-sqlite").display().to_string();
    let db = dir.join("data.db");
    let server = [sqlite.as_str(), "--db-path", &db];
    let mut client = Client::wrap(&["--contract", "kaiza"], &server);
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {} });
    let reply = client.ask("initialize", &params);
    let data = &reply["error"]["data"];
    assert_eq!(data.as_object().unwrap().len(), 11, "{reply}");
    assert!(data["human_message"].as_str().unwrap().contains("status 1"), "{reply}");
    let record = client.record_of(&reply["id"]);
    assert_eq!(record["fault"]["condition"], "start_failed");
    assert!(record.to_string().contains("AttributeError"), "{record}");
    // The official clients are told, too, and do not wait for what will never come.
    for name in ["python1.py", "python2.py", "typescript1.mjs", "typescript2.mjs"] {
        let log = dir.join(name);
        let command = wrapped(&server, "kaiza", &log);
        let plan = json!({ "command": command, "calls": [], "may_fail": true });
        let told = run_plan(name, plan)["failed"].as_str().unwrap().to_owned();
        assert!(told.contains("exited with status 1"), "{name}: {told}");
    }
}
