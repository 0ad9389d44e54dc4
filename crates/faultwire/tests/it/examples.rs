//! The example servers, as processes, asked by the client of rmcp.

mod context_resolve;
mod kaiza;
mod owlclaw;
mod tuitbot;
pub(crate) mod workrail;

use std::path::PathBuf;
use std::process::Stdio;

use rmcp::ServiceExt;
use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::{RoleClient, RunningService};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::process::{Child, Command};

/// An example that runs.
struct Example {
    client: RunningService<RoleClient, ()>,
    _process: Child,
}

impl Example {
    async fn start(name: &str, arguments: &[&str]) -> Self {
        Self::start_with(name, arguments, &[]).await
    }

    async fn start_with(name: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut process = Command::new(program(name))
            .args(arguments)
            .env_remove("DEBUG_STACK")
            .env_remove("X_TOKEN")
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|e| panic!("{name}: {e}; cargo build --examples builds it"));
        let streams = (process.stdout.take().unwrap(), process.stdin.take().unwrap());
        Self { client: ().serve(streams).await.unwrap(), _process: process }
    }

    async fn call(&self, tool: &'static str, arguments: Value) -> CallToolResult {
        let Value::Object(arguments) = arguments else { panic!("an object") };
        let request = CallToolRequestParams::new(tool).with_arguments(arguments);
        self.client.call_tool(request).await.unwrap()
    }
}

/// Examples stand beside the directory of the tests.
fn program(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    tests.parent().and_then(|deps| deps.parent()).unwrap().join("examples").join(name)
}

fn text(result: &CallToolResult) -> &str {
    &result.content[0].as_text().unwrap().text
}

/// The SHA-256, as people write it.
fn hash(bytes: impl AsRef<[u8]>) -> String {
    data_encoding::HEXLOWER.encode(&Sha256::digest(bytes))
}

/// They are there to be read.
#[test]
fn each_example_is_short_enough_to_be_read_in_one_go() {
    let examples = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples");
    for name in ["context-resolve", "kaiza", "owlclaw", "tuitbot", "workrail"] {
        let one = examples.join(name).with_extension("rs");
        let files = match std::fs::read_dir(examples.join(name)) {
            Ok(several) => several.map(|entry| entry.unwrap().path()).collect(),
            Err(_) => vec![one],
        };
        let sources = files.iter().filter(|path| path.extension().is_some_and(|it| it == "rs"));
        let texts = sources.map(|path| std::fs::read_to_string(path).unwrap());
        let lines: usize = texts.map(|text| text.lines().count()).sum();
        assert!((150..=400).contains(&lines), "{name} has {lines} lines");
    }
}
