//! WorkRail: tokens, sessions and workflows that break, each in its own way.

#[path = "../../../examples/workrail/failures.rs"]
#[allow(dead_code, reason = "the server makes what is only read here")]
pub(crate) mod failures;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use faultwire::workrail::{Code, Failure};
use serde_json::{Value, json};

use crate::examples::{Example, text};
use crate::support::Dir;
use failures::{AckFailure, Health, Reason, WorkflowError};

struct WorkRail {
    example: Example,
    dir: Dir,
    seen: BTreeSet<String>,
}

impl WorkRail {
    async fn start() -> Self {
        let dir = Dir::new();
        fs::create_dir_all(dir.path().join("workflows")).unwrap();
        let (root, audit) = (dir.path().to_str().unwrap(), dir.path().join("audit"));
        let example = Example::start("workrail", &[root, audit.to_str().unwrap()]).await;
        Self { example, dir, seen: BTreeSet::new() }
    }

    fn workflow(&self, id: &str, workflow: &Value) {
        let path = self.dir.path().join("workflows").join(format!("{id}.json"));
        fs::write(path, workflow.to_string()).unwrap();
    }

    /// The log of a session.
    fn session(&self, shown: &Value) -> PathBuf {
        let payload = shown["stateToken"].as_str().unwrap().split('.').nth(1).unwrap();
        let payload: Value = serde_json::from_slice(&BASE64.decode(payload).unwrap()).unwrap();
        self.dir.path().join("sessions").join(payload["session"].as_str().unwrap())
    }

    async fn begin(&self, id: &str) -> Value {
        self.fine("start_workflow", json!({ "workflowId": id, "context": { "who": "Ann" } })).await
    }

    async fn fine(&self, tool: &'static str, arguments: Value) -> Value {
        let result = self.example.call(tool, arguments).await;
        assert_ne!(result.is_error, Some(true), "{}", text(&result));
        serde_json::from_str(text(&result)).unwrap()
    }

    async fn fails(&mut self, tool: &'static str, arguments: Value, code: &str) -> Value {
        let result = self.example.call(tool, arguments).await;
        assert_eq!(result.is_error, Some(true), "{}", text(&result));
        let told: Value = serde_json::from_str(text(&result)).unwrap();
        assert_eq!(told["code"], code, "{told}");
        if code.starts_with("TOKEN_") {
            assert_eq!(told["details"]["tokenErrorCode"], code, "W11: {told}");
        }
        self.seen.insert(code.to_owned());
        told
    }

    /// What the acknowledgement of a step fails with (W12).
    async fn ack_fails(&mut self, shown: &Value, output: Value, code: &str) -> AckFailure {
        let told = self.fails("continue_workflow", acked(shown, &output), code).await;
        let mut details = told["details"].clone();
        details.as_object_mut().unwrap().remove("tokenErrorCode");
        serde_json::from_value(details).unwrap()
    }

    async fn health(&mut self, shown: &Value) -> Health {
        let arguments = json!({ "stateToken": shown["stateToken"] });
        let told = self.fails("continue_workflow", arguments, "SESSION_NOT_HEALTHY").await;
        serde_json::from_value(told["details"]["health"].clone()).unwrap()
    }
}

fn acked(shown: &Value, output: &Value) -> Value {
    json!({ "stateToken": shown["stateToken"], "ackToken": shown["ackToken"], "output": output })
}

fn reason(message: &str) -> Reason {
    Reason { code: "STORE_INVARIANT_VIOLATION".to_owned(), message: message.to_owned() }
}

#[tokio::test]
async fn a_workflow_from_its_first_step_to_its_last() {
    let it = WorkRail::start().await;
    it.workflow(
        "voyage",
        &json!({ "requires": ["who"], "steps": [
            { "id": "load", "prompt": "Load" },
            { "id": "wait", "prompt": "Wait for the tide" },
            { "id": "sail", "prompt": "Sail" },
        ] }),
    );
    let mut shown = it.begin("voyage").await;
    for (step, output) in
        [("load", json!({ "tons": 3 })), ("wait", json!({ "tide": "high" })), ("sail", json!({}))]
    {
        assert_eq!(shown["step"]["id"], step);
        let again =
            it.fine("continue_workflow", json!({ "stateToken": shown["stateToken"] })).await;
        assert_eq!(again, shown, "looking changes nothing");
        let next = it.fine("continue_workflow", acked(&shown, &output)).await;
        let twice = it.fine("continue_workflow", acked(&shown, &output)).await;
        assert_eq!(twice, next, "what is acknowledged twice is done once");
        let other = acked(&shown, &json!({ "tons": 9, "tide": "none" }));
        assert_eq!(it.fine("continue_workflow", other).await, next, "whatever it brings then");
        shown = next;
    }
    assert_eq!((&shown["isComplete"], &shown["step"]), (&json!(true), &Value::Null));
    let events = fs::read_to_string(it.session(&shown)).unwrap();
    let brought =
        [json!({ "who": "Ann" }), json!({ "tons": 3 }), json!({ "tide": "high" }), json!({})];
    for (index, (line, brought)) in events.lines().zip(&brought).enumerate() {
        let event: Value = serde_json::from_str(line).unwrap();
        assert_eq!(event, json!({ "v": 1, "index": index, "brought": brought }));
    }
    assert_eq!(events.lines().count(), brought.len());
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one row a condition")]
async fn w3_w9_w11_each_code_of_the_domain_is_answered_when_it_is_so() {
    let mut it = WorkRail::start().await;
    let step = json!({ "id": "only", "prompt": "Do it" });
    it.workflow("short", &json!({ "requires": ["who"], "steps": [step] }));

    // W4: arguments, and W9: workflows.
    let told = it.fails("start_workflow", json!({}), "VALIDATION_ERROR").await;
    assert_eq!(told["details"]["validationIssues"][0]["path"], "workflowId");
    for (id, workflow, code) in [
        ("nosuch", None, "NOT_FOUND"),
        ("../workflows/short", None, "NOT_FOUND"),
        ("stepless", Some(json!({})), "VALIDATION_ERROR"),
        ("wordless", Some(json!({ "steps": [{ "id": "a" }] })), "VALIDATION_ERROR"),
        ("short", None, "PRECONDITION_FAILED"),
    ] {
        if let Some(workflow) = workflow {
            it.workflow(id, &workflow);
        }
        it.fails("start_workflow", json!({ "workflowId": id }), code).await;
    }

    // Tokens.
    let shown = it.begin("short").await;
    let state = shown["stateToken"].as_str().unwrap();
    let ack = shown["ackToken"].as_str().unwrap();
    let (signed, signature) = state.rsplit_once('.').unwrap();
    let forged =
        json!({ "scope": "State", "session": "x", "node": 0, "workflow": "short", "hash": "" });
    let forged = format!("wr1.{}.{signature}", BASE64.encode(forged.to_string()));
    for (token, code) in [
        ("", "TOKEN_INVALID_FORMAT"),
        ("wr1", "TOKEN_INVALID_FORMAT"),
        ("wr1.!.!", "TOKEN_INVALID_FORMAT"),
        ("jwt.YQ.YQ", "TOKEN_INVALID_FORMAT"),
        (&state.replacen("wr1", "wr2", 1), "TOKEN_UNSUPPORTED_VERSION"),
        (&format!("{signed}."), "TOKEN_BAD_SIGNATURE"),
        (&forged, "TOKEN_BAD_SIGNATURE"),
        (ack, "TOKEN_SCOPE_MISMATCH"),
    ] {
        it.fails("continue_workflow", json!({ "stateToken": token }), code).await;
    }
    let other = it.begin("short").await;
    let mixed = json!({ "stateToken": state, "ackToken": other["ackToken"] });
    it.fails("continue_workflow", mixed, "TOKEN_SCOPE_MISMATCH").await;

    // W2: another process is at it.
    let lock = File::open(it.session(&shown)).unwrap();
    lock.lock().unwrap();
    let told =
        it.fails("continue_workflow", acked(&shown, &json!({})), "TOKEN_SESSION_LOCKED").await;
    assert_eq!(told["retry"], json!({ "kind": "retryable_after_ms", "afterMs": 1000 }));
    drop(lock);
    it.fine("continue_workflow", acked(&shown, &json!({}))).await;

    // The disk does not answer.
    let log = it.session(&other);
    fs::remove_file(&log).unwrap();
    assert!(Command::new("mkfifo").arg(&log).status().unwrap().success());
    let told = it.fails("continue_workflow", acked(&other, &json!({})), "TIMEOUT").await;
    assert_eq!(told["retry"]["kind"], "retryable_immediate");

    // W12: acknowledgements, by kind.
    let shown = it.begin("short").await;
    let told =
        it.fails("continue_workflow", acked(&shown, &json!("text")), "VALIDATION_ERROR").await;
    assert_eq!(told["details"]["validationIssues"][0]["path"], "output");
    let last = it.fine("continue_workflow", acked(&shown, &json!({}))).await;
    let done = it.ack_fails(&last, json!({}), "PRECONDITION_FAILED").await;
    assert_eq!(done, AckFailure::NoPendingStep);
    let events = it.session(&last);
    let whole = fs::read_to_string(&events).unwrap();
    fs::write(&events, whole.lines().next().unwrap().to_owned() + "\n").unwrap();
    let ahead = it.ack_fails(&last, json!({}), "TOKEN_UNKNOWN_NODE").await;
    assert_eq!(ahead, AckFailure::MissingNodeOrRun, "the log was cut");
    fs::remove_file(&events).unwrap();
    fs::create_dir(&events).unwrap();
    let told = it.fails("continue_workflow", acked(&last, &json!({})), "INTERNAL_ERROR").await;
    assert_eq!(told["retry"]["kind"], "retryable_after_ms");
    assert_eq!(told["details"]["kind"], "session_store_error");
    fs::remove_dir(&events).unwrap();
    let gone = it.ack_fails(&last, json!({}), "TOKEN_UNKNOWN_NODE").await;
    assert_eq!(gone, AckFailure::MissingNodeOrRun);
    let shown = it.begin("short").await;
    it.workflow("short", &json!({ "steps": [{ "id": "a", "prompt": "changed" }] }));
    let changed = it.ack_fails(&shown, json!({}), "TOKEN_WORKFLOW_HASH_MISMATCH").await;
    assert_eq!(changed, AckFailure::WorkflowHashMismatch);

    it.workflow("short", &json!({ "requires": ["who"], "steps": [step] }));

    // W10: sessions that are not what they were.
    for (log, expected) in [
        ("", Health::CorruptHead { reason: reason("The event log is empty") }),
        (
            "{\"v\":1,\"index\":7,\"brought\":{}}\n",
            Health::CorruptHead { reason: reason("Event log index mismatch") },
        ),
        (
            "{\"v\":1,\"index\":0,\"brought\":{}}\n{\"v\":1,\"index\":7,\"brought\":{}}\n",
            Health::CorruptTail { reason: reason("Event log index mismatch") },
        ),
        ("{}\n", Health::CorruptHead { reason: reason("Event log index mismatch") }),
        (
            "{\"v\":9,\"index\":0}\n",
            Health::UnknownVersion {
                reason: Reason {
                    code: "UNKNOWN_EVENT_VERSION".to_owned(),
                    message: "Event 0 has version 9".to_owned(),
                },
            },
        ),
    ] {
        let shown = it.begin("short").await;
        fs::write(it.session(&shown), log).unwrap();
        assert_eq!(it.health(&shown).await, expected);
    }
    let torn = it.begin("short").await;
    let log = it.session(&torn);
    fs::write(&log, fs::read_to_string(&log).unwrap() + "{\"v\":1,").unwrap();
    assert!(matches!(it.health(&torn).await, Health::CorruptTail { .. }));

    let all: BTreeSet<String> = Code::ALL.iter().map(|code| code.id().to_owned()).collect();
    assert_eq!(it.seen, all);
}

#[test]
fn w10_w12_unions_are_read_and_written_by_kind() {
    let message = "x".to_owned();
    let error = reason("y");
    for (failure, kind) in [
        (AckFailure::MissingNodeOrRun, "missing_node_or_run"),
        (AckFailure::WorkflowHashMismatch, "workflow_hash_mismatch"),
        (AckFailure::MissingSnapshot, "missing_snapshot"),
        (AckFailure::NoPendingStep, "no_pending_step"),
        (AckFailure::AdvanceApplyFailed { message: message.clone() }, "advance_apply_failed"),
        (AckFailure::AdvanceNextFailed { message }, "advance_next_failed"),
        (AckFailure::SessionStoreError { error: error.clone() }, "session_store_error"),
        (AckFailure::SnapshotStoreError { error: error.clone() }, "snapshot_store_error"),
    ] {
        let written = json!(failure);
        assert_eq!(written["kind"], kind);
        assert_eq!(serde_json::from_value::<AckFailure>(written).unwrap(), failure);
    }
    for wrong in [
        json!({ "kind": "nosuch" }),
        json!({ "kind": "advance_apply_failed" }),
        json!({ "kind": "advance_apply_failed", "message": "x", "more": 1 }),
        json!({}),
    ] {
        assert!(serde_json::from_value::<AckFailure>(wrong.clone()).is_err(), "{wrong}");
    }
    for (health, kind) in [
        (Health::Healthy, "healthy"),
        (Health::CorruptTail { reason: error.clone() }, "corrupt_tail"),
        (Health::CorruptHead { reason: error.clone() }, "corrupt_head"),
        (Health::UnknownVersion { reason: error }, "unknown_version"),
    ] {
        assert_eq!(json!(health)["kind"], kind);
    }
    for (wrong, code) in [
        (WorkflowError::WorkflowNotFound(String::new()), Code::NotFound),
        (WorkflowError::InvalidState(String::new()), Code::ValidationError),
        (WorkflowError::MissingContext(String::new()), Code::PreconditionFailed),
    ] {
        assert_eq!(Failure::from(wrong).code(), code);
    }
}
