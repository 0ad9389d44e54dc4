//! Errors of a domain, as a server's own types, on their way to a client of rmcp.

use faultwire::audit::{Log, Options};
use faultwire::workrail::{Code, Failure};
use faultwire::{Boundary, ResultExt};
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::CallToolRequestParams;
use rmcp::service::{RoleClient, RunningService};
use rmcp::{ServerHandler, ServiceExt, schemars, tool, tool_handler, tool_router};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::examples::workrail::failures::{AckFailure, WorkflowError};
use crate::support::Dir;

#[derive(Deserialize, schemars::JsonSchema)]
struct Run {
    error: Value,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Acknowledge {
    failure: Value,
}

/// A server that fails as it is told.
#[derive(Clone)]
struct Server {
    tool_router: ToolRouter<Self>,
}

#[tool_router]
impl Server {
    #[tool(description = "Fails with an error of a workflow")]
    async fn run(&self, Parameters(run): Parameters<Run>) -> Result<String, Failure> {
        let error: WorkflowError = serde_json::from_value(run.error)?;
        Err(error.into())
    }

    #[tool(description = "Fails as an acknowledgement does")]
    async fn acknowledge(&self, asked: Parameters<Acknowledge>) -> Result<String, Failure> {
        let failure: AckFailure =
            serde_json::from_value(asked.0.failure).fault(Code::ValidationError)?;
        Err(failure.into())
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Server {}

/// A client of it. The log is there for as long as the directory is.
async fn client() -> (RunningService<RoleClient, ()>, Dir) {
    let dir = Dir::new();
    let log = Log::open(dir.path(), Options::default()).unwrap();
    let server = Server { tool_router: Server::tool_router() };
    let server = Boundary::<Code, _>::new(server, log);
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    tokio::spawn(async move { server.serve(theirs).await.unwrap().waiting().await });
    (().serve(ours).await.unwrap(), dir)
}

/// The envelope that a call fails with.
async fn fails(
    client: &RunningService<RoleClient, ()>,
    tool: &'static str,
    arguments: Value,
) -> Value {
    let arguments = arguments.as_object().unwrap().clone();
    let request = CallToolRequestParams::new(tool).with_arguments(arguments);
    let result = client.call_tool(request).await.unwrap();
    assert_eq!(result.is_error, Some(true));
    serde_json::from_str(&result.content[0].as_text().unwrap().text).unwrap()
}

#[tokio::test]
async fn w9_domain_errors_are_mapped_by_an_exhaustive_match() {
    let (client, _log) = client().await;
    let what = || "w".to_owned();
    for (error, code) in [
        (WorkflowError::WorkflowNotFound(what()), "NOT_FOUND"),
        (WorkflowError::InvalidState(what()), "VALIDATION_ERROR"),
        (WorkflowError::InvalidLoop(what()), "VALIDATION_ERROR"),
        (WorkflowError::MissingContext(what()), "PRECONDITION_FAILED"),
        (WorkflowError::MaxIterationsExceeded(what()), "PRECONDITION_FAILED"),
        (WorkflowError::ConditionEvalFailed(what()), "INTERNAL_ERROR"),
    ] {
        let told = fails(&client, "run", json!({ "error": error })).await;
        assert_eq!(told["code"], code, "{error:?}: {told}");
        assert_eq!(told["message"], "w", "it is the tool's: {told}");
        assert_eq!(told["details"], Value::Null, "and nothing was made up: {told}");
    }
    let told = fails(&client, "run", json!({ "error": "nobody knows" })).await;
    assert_eq!(told["code"], "INTERNAL_ERROR", "what is unknown: {told}");
}

#[tokio::test]
async fn w11_w12_each_kind_of_acknowledgement_failure_reaches_the_client_whole() {
    let (client, _log) = client().await;
    let reason = json!({ "code": "EIO", "message": "The disk is gone" });
    let never = json!({ "kind": "not_retryable" });
    let later = json!({ "kind": "retryable_after_ms", "afterMs": 2000 });
    for (failure, code, retry) in [
        (json!({ "kind": "missing_node_or_run" }), "TOKEN_UNKNOWN_NODE", &never),
        (json!({ "kind": "workflow_hash_mismatch" }), "TOKEN_WORKFLOW_HASH_MISMATCH", &never),
        (json!({ "kind": "missing_snapshot" }), "INTERNAL_ERROR", &never),
        (json!({ "kind": "no_pending_step" }), "PRECONDITION_FAILED", &never),
        (json!({ "kind": "advance_apply_failed", "message": "a" }), "VALIDATION_ERROR", &never),
        (json!({ "kind": "advance_next_failed", "message": "b" }), "INTERNAL_ERROR", &never),
        (json!({ "kind": "session_store_error", "error": reason }), "INTERNAL_ERROR", &later),
        (json!({ "kind": "snapshot_store_error", "error": reason }), "INTERNAL_ERROR", &later),
    ] {
        let told = fails(&client, "acknowledge", json!({ "failure": failure })).await;
        assert_eq!((&told["code"], &told["retry"]), (&json!(code), retry), "{told}");
        let mut details = told["details"].clone();
        let named = details.as_object_mut().unwrap().remove("tokenErrorCode");
        assert_eq!(named, code.starts_with("TOKEN_").then(|| json!(code)), "W11: {told}");
        assert_eq!(details, failure);
    }
}
