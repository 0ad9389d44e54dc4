//! WorkRail as a server: workflows, one step at a time. Clients only hold signed tokens; each
//! session has its own log of what was done.
//!
//! `cargo run -p faultwire --example workrail --features rmcp -- DIR AUDIT`
//!
//! DIR holds the `workflows`, the `sessions` and the `key` that signs tokens.

mod failures;
mod session;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use faultwire::Boundary;
use faultwire::audit::{Log, Options};
use faultwire::workrail::{Code, Failure};
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::{ServerHandler, ServiceExt, schemars, tool, tool_handler, tool_router};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use failures::{AckFailure, WorkflowError, told};
use session::{Scope, Session, Token};

type Answer = Result<String, Failure>;

#[derive(Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Start {
    workflow_id: String,
    /// What is known at the beginning.
    #[serde(default)]
    context: Map<String, Value>,
}

#[derive(Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Continue {
    state_token: String,
    /// Says that the step is done. Without it, the step is shown again.
    ack_token: Option<String>,
    /// What the step brought.
    output: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
struct Workflow {
    #[serde(skip)]
    hash: String,
    /// What must be known to begin.
    #[serde(default)]
    requires: Vec<String>,
    steps: Vec<Step>,
}

#[derive(Serialize, Deserialize)]
struct Step {
    id: String,
    prompt: String,
}

impl Workflow {
    fn read(dir: &Path, id: &str) -> Result<Self, WorkflowError> {
        let named = id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        let text = named.then(|| fs::read(dir.join(format!("{id}.json"))).ok()).flatten();
        let absent = || WorkflowError::WorkflowNotFound(format!("There is no workflow {id}"));
        let text = text.ok_or_else(absent)?;
        let mut workflow: Self = serde_json::from_slice(&text)
            .map_err(|error| WorkflowError::InvalidState(format!("{id}: {error}")))?;
        workflow.hash = data_encoding::HEXLOWER.encode(&Sha256::digest(&text));
        Ok(workflow)
    }
}

#[derive(Clone)]
struct WorkRail {
    dir: PathBuf,
    key: [u8; 64],
    tool_router: ToolRouter<Self>,
}

#[tool_router]
impl WorkRail {
    #[tool(description = "Starts a workflow, and shows its first step")]
    async fn start_workflow(&self, Parameters(asked): Parameters<Start>) -> Answer {
        let server = self.clone();
        tokio::task::spawn_blocking(move || server.begin(asked)).await?
    }

    #[tool(description = "Shows the step of a workflow, or acknowledges it and shows the next")]
    async fn continue_workflow(&self, Parameters(asked): Parameters<Continue>) -> Answer {
        let server = self.clone();
        tokio::task::spawn_blocking(move || server.go_on(&asked)).await?
    }

    fn begin(&self, Start { workflow_id, context }: Start) -> Answer {
        let workflow = Workflow::read(&self.dir.join("workflows"), &workflow_id)?;
        if let Some(key) = workflow.requires.iter().find(|key| !context.contains_key(*key)) {
            return Err(WorkflowError::MissingContext(format!("The context lacks {key}")).into());
        }
        let (session, hash) = (uuid::Uuid::new_v4().to_string(), workflow.hash.clone());
        Session::open(&self.dir.join("sessions").join(&session), true)?.append(0, &context)?;
        let token = Token { scope: Scope::State, session, node: 0, workflow: workflow_id, hash };
        self.shown(&workflow, token)
    }

    fn go_on(&self, asked: &Continue) -> Answer {
        let mut token = Token::read(&asked.state_token, &self.key, Scope::State)?;
        let ack = asked.ack_token.as_ref().map(|ack| Token::read(ack, &self.key, Scope::Ack));
        let ack = ack.transpose()?;
        if ack.as_ref().is_some_and(|it| (&it.session, it.node) != (&token.session, token.node)) {
            return Err(told(Code::TokenScopeMismatch, json!({})));
        }
        let workflow = Workflow::read(&self.dir.join("workflows"), &token.workflow)?;
        if workflow.hash != token.hash {
            return Err(AckFailure::WorkflowHashMismatch.into());
        }
        let mut session = Session::open(&self.dir.join("sessions").join(&token.session), false)?;
        let events = session.events()?;
        if token.node >= events {
            return Err(AckFailure::MissingNodeOrRun.into());
        }
        if ack.is_some() {
            workflow.steps.get(token.node).ok_or(AckFailure::NoPendingStep)?;
            token.node += 1;
        }
        // An acknowledged step is not done twice, even with another output.
        if token.node == events {
            session.append(token.node, &asked.output.clone().unwrap_or_default())?;
        }
        self.shown(&workflow, token)
    }

    /// What a client sees of a session.
    fn shown(&self, workflow: &Workflow, mut token: Token) -> Answer {
        let step = workflow.steps.get(token.node);
        let state = token.sign(&self.key)?;
        token.scope = Scope::Ack;
        let ack = token.sign(&self.key)?;
        let shown = json!({
            "stateToken": state, "ackToken": ack, "isComplete": step.is_none(), "step": step,
        });
        Ok(shown.to_string())
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for WorkRail {}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [dir, audit] = &arguments[..] else { return Err("usage: workrail DIR AUDIT".into()) };
    let dir = PathBuf::from(dir);
    fs::create_dir_all(dir.join("sessions"))?;
    let key = session::key(&dir.join("key"))?;
    let log = Log::open(audit, Options::default())?;
    let rail = WorkRail { dir, key, tool_router: WorkRail::tool_router() };
    let server = Boundary::<Code, _>::new(rail, log).deadline(Duration::from_secs(2));
    server.serve(rmcp::transport::stdio()).await?.waiting().await?;
    Ok(())
}
