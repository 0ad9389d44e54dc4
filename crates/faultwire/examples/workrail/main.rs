//! WorkRail as a server: workflows, one step at a time. Clients hold nothing but signed tokens;
//! what was done stands in a log of its own for each session.
//!
//! `cargo run -p faultwire --example workrail --features rmcp -- DIR AUDIT`
//!
//! DIR holds the `workflows`, the `sessions` and the `key` that signs tokens.

mod failures;
mod store;
mod token;
mod workflow;

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use faultwire::Boundary;
use faultwire::audit::{Log, Options};
use faultwire::workrail::{Code, Failure};
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::{ServerHandler, ServiceExt, schemars, tool, tool_handler, tool_router};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use failures::{AckFailure, TokenError};
use store::Session;
use token::{Scope, Token};
use workflow::{State, Workflow};

const DEADLINE: Duration = Duration::from_secs(2);

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
    /// What the step brought: an object.
    #[serde(default)]
    output: Option<Value>,
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
    async fn start_workflow(
        &self,
        Parameters(asked): Parameters<Start>,
    ) -> Result<String, Failure> {
        let server = self.clone();
        tokio::task::spawn_blocking(move || server.begin(asked)).await?
    }

    #[tool(description = "Shows the step of a workflow, or acknowledges it and shows the next")]
    async fn continue_workflow(
        &self,
        Parameters(asked): Parameters<Continue>,
    ) -> Result<String, Failure> {
        let server = self.clone();
        tokio::task::spawn_blocking(move || server.go_on(asked)).await?
    }

    fn begin(&self, Start { workflow_id, context }: Start) -> Result<String, Failure> {
        let workflow = Workflow::read(&self.dir.join("workflows"), &workflow_id)?;
        let state = workflow.begin(context)?;
        let id = uuid::Uuid::new_v4().to_string();
        fs::create_dir_all(self.dir.join("sessions").join(&id))?;
        let session = Session::open(&self.dir.join("sessions"), &id)?;
        session.append(0, &workflow_id, &state)?;
        self.shown(&workflow, &state, &id, 0)
    }

    fn go_on(&self, asked: Continue) -> Result<String, Failure> {
        let token = Token::read(&asked.state_token, &self.key, Scope::State)?;
        let ack =
            asked.ack_token.map(|ack| Token::read(&ack, &self.key, Scope::Ack)).transpose()?;
        if ack.as_ref().is_some_and(|it| (&it.session, it.node) != (&token.session, token.node)) {
            return Err(TokenError(Code::TokenScopeMismatch).into());
        }
        let session = Session::open(&self.dir.join("sessions"), &token.session)?;
        let events = session.events()?;
        let event = events.get(token.node).ok_or(AckFailure::MissingNodeOrRun)?;
        let workflow = Workflow::read(&self.dir.join("workflows"), &event.workflow)?;
        if workflow.hash != token.workflow_hash {
            return Err(AckFailure::WorkflowHashMismatch.into());
        }
        let state = session.snapshot(token.node)?;
        if ack.is_none() {
            return self.shown(&workflow, &state, &token.session, token.node);
        }
        let node = token.node + 1;
        // What was acknowledged before is not done twice, whatever it brings this time.
        if node < events.len() {
            return self.shown(&workflow, &session.snapshot(node)?, &token.session, node);
        }
        let state = workflow.next(state, asked.output.unwrap_or_else(|| json!({})))?;
        session.append(node, &event.workflow, &state)?;
        self.shown(&workflow, &state, &token.session, node)
    }

    /// What a client sees of a session.
    fn shown(
        &self,
        workflow: &Workflow,
        state: &State,
        session: &str,
        node: usize,
    ) -> Result<String, Failure> {
        let sign = |scope| {
            let (session, workflow_hash) = (session.to_owned(), workflow.hash.clone());
            Token { scope, session, node, workflow_hash }.sign(&self.key)
        };
        let step = workflow.step(state);
        let shown = json!({
            "stateToken": sign(Scope::State)?,
            "ackToken": sign(Scope::Ack)?,
            "isComplete": step.is_none(),
            "step": step,
        });
        Ok(shown.to_string())
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for WorkRail {}

/// The key that signs tokens; made when there is none, for nobody else to read.
fn key(path: &Path) -> Result<[u8; 64], Box<dyn std::error::Error>> {
    if let Ok(mut file) = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        let mut key = [0; 64];
        getrandom::fill(&mut key)?;
        file.write_all(&key)?;
    }
    let key = fs::read(path)?;
    key.try_into().map_err(|_| "the key is not 64 bytes long".into())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [dir, audit] = &arguments[..] else { return Err("usage: workrail DIR AUDIT".into()) };
    let dir = PathBuf::from(dir);
    fs::create_dir_all(&dir)?;
    let key = key(&dir.join("key"))?;
    let log = Log::open(audit, Options::default())?;
    let rail = WorkRail { dir, key, tool_router: WorkRail::tool_router() };
    let server = Boundary::<Code, _>::new(rail, log).deadline(DEADLINE);
    server.serve(rmcp::transport::stdio()).await?.waiting().await?;
    Ok(())
}
