//! The fault matrix: the table in the docs, driven row by row.

use std::sync::atomic::{AtomicUsize, Ordering};

use faultwire_contract::{Condition, builtin};
use serde_json::Value;

use crate::support::BUILTINS;
use crate::wrap::client::Client;

struct Row {
    tool: String,
    arguments: Value,
    /// None for a success.
    failure: Option<(Condition, String)>,
}

fn rows() -> Vec<Row> {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/fault-matrix.md"));
    let text = text.unwrap();
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(" | ").collect();
        let call = cells[0].strip_prefix("| `")?.strip_suffix('`')?;
        let (tool, arguments) = call.split_once(' ')?;
        let bare = |cell: &str| cell.trim_matches([' ', '|', '`']).to_owned();
        let condition = bare(cells[3]);
        let failure = (!condition.is_empty()).then(|| (condition.parse().unwrap(), bare(cells[4])));
        let arguments = serde_json::from_str(arguments).unwrap();
        Some(Row { tool: tool.to_owned(), arguments, failure })
    };
    text.lines().filter_map(row).collect()
}

/// One row in a session of its own: one answer, the right one, in time, and the session goes on.
fn drive(row: &Row, contract: &str) {
    let place = format!("{} {} under {contract}", row.tool, row.arguments);
    // A gibibyte takes its time.
    let timeout = if row.tool == "endless" { "20s" } else { "1200ms" };
    let mut client = Client::demo(&["--contract", contract, "--timeout", timeout]);
    let id = client.post_call(&row.tool, &row.arguments);
    let reply = client.reply(&id);
    match &row.failure {
        None => {
            assert!(reply["result"]["isError"].is_null(), "{place}: {reply}");
            let faults = client.records().iter().filter(|r| r["type"] == "fault").count();
            assert_eq!(faults, 0, "{place}");
        }
        Some((condition, outcome)) => {
            let contract = builtin(contract).unwrap();
            let text = reply["result"]["content"][0]["text"].as_str().unwrap();
            let (read, _) =
                contract.read_any(faultwire_contract::Surface::Mcp, text.as_bytes()).expect(&place);
            let record = client.record_of(&id);
            let fault = &record["fault"];
            assert_eq!(fault["condition"], condition.name(), "{place}: {record}");
            assert_eq!(fault["outcome"], **outcome, "{place}: {record}");
            assert_eq!(fault["code"], *read.code, "{place}");
            assert!(fault["origin"].is_string(), "{place}");
            assert_eq!(reply["result"]["isError"], true, "{place}");
            assert!(!text.contains("hunter2"), "{place}: {text}");
            assert!(!record.to_string().contains("hunter2"), "{place}: {record}");
        }
    }
    if row.tool == "late" {
        client.until("the late reply is recorded", |c| c.events().contains(&"late_reply".into()));
    }
    if row.tool != "deaf" {
        // A server that has just ended may take one more call with it.
        let mut echo = Value::Null;
        for _ in 0..20 {
            echo = client.call("echo", &serde_json::json!({ "text": "still there" }));
            if echo["result"]["isError"].is_null() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        assert_eq!(echo["result"]["content"][0]["text"], "still there", "{place}: {echo}");
    }
    if row.tool == "endless" {
        let peak = client.status("VmHWM");
        assert!(peak < 160 * 1024, "{place}: {peak} KiB");
    }
    let ended = client.end();
    assert_eq!(ended.code, Some(0), "{place}");
    for (id, times) in ended.replies {
        assert_eq!(times, 1, "{place}: id {id}");
    }
}

/// Two at a time: there are two cores, and some rows wait for a deadline.
fn drive_all(contract: &str) {
    let rows = rows();
    assert!(rows.len() >= 40, "{}", rows.len());
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // What it takes to move a gibibyte does not depend on the contract.
                    if row.tool != "endless" || contract == BUILTINS[4] {
                        drive(row, contract);
                    }
                }
            });
        }
    });
}

#[test]
fn a5_a6_a8_k13_the_matrix_under_owlclaw() {
    drive_all("owlclaw");
}

#[test]
fn k9_the_matrix_under_kaiza() {
    drive_all("kaiza");
}

#[test]
fn a5_the_matrix_under_tuitbot() {
    drive_all("tuitbot");
}

#[test]
fn w8_the_matrix_under_workrail() {
    drive_all("workrail");
}

#[test]
fn a5_the_matrix_under_context_resolve() {
    drive_all("context-resolve");
}
