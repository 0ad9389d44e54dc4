//! Real servers behind `serve`, driven by the official clients over HTTP.

use serde_json::{Value, json};

use crate::serve::gateway::Gateway;
use crate::support::{BUILTINS, Dir};
use crate::wrap::parts::servers;
use crate::wrap::real::{expect_results, run_plan};

/// One client with all servers, each under another contract.
fn drive(client: &str, turn: usize) {
    let dir = Dir::new();
    for (at, server) in servers(&dir).iter().enumerate() {
        let contract = BUILTINS[(at + turn) % BUILTINS.len()];
        let place = format!("{client}, {}, {contract}", server.name);
        let calls: Vec<(&str, Value)> = server.works.iter().chain(&server.fails).cloned().collect();
        let direct =
            run_plan(client, json!({ "command": server.command(), "calls": server.works }));
        let gateway = Gateway::before(&["--contract", contract], &server.command());
        let through = run_plan(client, json!({ "url": gateway.url(), "calls": calls }));
        // A client of the modern era knows other members of a tool than one of the legacy era.
        let crossed = through["era"] != direct["era"];
        let names = |got: &Value| -> Vec<Value> {
            got["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect()
        };
        assert!(names(&through) == names(&direct), "{place}");
        assert!(crossed || through["tools"] == direct["tools"], "{place}");
        expect_results(server, contract, &direct, &through, &place);
    }
}

#[test]
fn a8_k9_the_python_client_1_over_http() {
    drive("python1.py", 0);
}

#[test]
fn a8_k9_the_python_client_2_over_http() {
    drive("python2.py", 1);
}

#[test]
fn a8_k9_the_typescript_client_1_over_http() {
    drive("typescript1.mjs", 2);
}

#[test]
fn a8_k9_the_typescript_client_2_over_http() {
    drive("typescript2.mjs", 3);
}
