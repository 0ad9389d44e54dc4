//! KAIZA as a server: a workspace in which agents read and write under plans that somebody approved.
//! Sessions are begun with a role, and lock when a rule is broken; nothing leads out of the
//! workspace.
//!
//! `cargo run -p faultwire --example kaiza --features rmcp -- WORKSPACE AUDIT`
//!
//! Plans are the JSON files in `docs/plans` of the workspace, named by their SHA-256. What is
//! written under `docs/reports` needs none.

mod plan;
mod policy;
mod workspace;

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use faultwire::audit::{Disk, Expect, Log, OpenError, Options, verify};
use faultwire::contract::{Profile, Report, Session, Surface};
use faultwire::kaiza::{self as errors, Code, Failure};
use faultwire::{Boundary, ResultExt};
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::{ServerHandler, ServiceExt, schemars, tool, tool_handler, tool_router};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use workspace::Workspace;

const DEADLINE: Duration = Duration::from_secs(2);

/// Who works in a session.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
enum Role {
    /// Writes plans and other documents.
    Antigravity,
    /// Carries plans out.
    Windsurf,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Begin {
    role: Role,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Read {
    /// A path in the workspace.
    path: String,
}

/// Where something is written, and what allows it.
#[derive(Deserialize, schemars::JsonSchema)]
struct Target {
    /// A path in the workspace.
    path: String,
    /// The SHA-256 of the plan that this belongs to.
    #[schemars(extend("pattern" = "^[0-9a-f]{64}$"))]
    plan_hash: Option<String>,
    /// The phase of the plan.
    phase_id: Option<String>,
    /// The SHA-256 of what is there now. Without it, nothing may be there.
    previous_hash: Option<String>,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct WriteFile {
    #[serde(flatten)]
    target: Target,
    content: String,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct ApplyPatch {
    #[serde(flatten)]
    target: Target,
    /// A unified diff of the file.
    patch: String,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct ReadAudit {
    /// How many records, from the newest on.
    #[schemars(range(min = 1, max = 100))]
    last: usize,
}

/// A session that was begun.
#[derive(Clone)]
struct Begun {
    id: String,
    role: Role,
    workspace: Workspace,
}

#[derive(Clone)]
struct Kaiza {
    root: PathBuf,
    audit: PathBuf,
    session: Arc<Mutex<Option<Begun>>>,
    tool_router: ToolRouter<Self>,
}

#[tool_router]
impl Kaiza {
    #[tool(description = "Begins a session in a role, or begins it anew")]
    async fn begin_session(
        &self,
        Parameters(Begin { role }): Parameters<Begin>,
    ) -> Result<String, Failure> {
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        if session.as_ref().is_some_and(|begun| begun.role != role) {
            return Err(errors::role_mismatch().message("The session has another role").into());
        }
        let workspace = Workspace::open(&self.root).fault(Code::SessionInitializationFailed)?;
        let id = uuid::Uuid::new_v4().to_string();
        let begun = session.insert(Begun { id, role, workspace });
        Ok(json!({ "session_id": begun.id }).to_string())
    }

    #[tool(description = "Ends the session")]
    async fn end_session(&self) -> Result<String, Failure> {
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok("ended".to_owned())
    }

    #[tool(description = "Reads a file", annotations(read_only_hint = true))]
    async fn read_file(
        &self,
        Parameters(Read { path }): Parameters<Read>,
    ) -> Result<String, Failure> {
        let workspace = self.begun()?.workspace;
        let text = blocking(move || workspace.place(&path)?.read()).await?;
        Ok(json!({ "sha256": workspace::hash(text.as_bytes()), "text": text }).to_string())
    }

    #[tool(description = "Writes a file under a plan")]
    async fn write_file(
        &self,
        Parameters(WriteFile { target, content }): Parameters<WriteFile>,
    ) -> Result<String, Failure> {
        let kaiza = self.clone();
        blocking(move || kaiza.write(&target, |_| Ok(content))).await
    }

    #[tool(description = "Applies a patch to a file under a plan")]
    async fn apply_patch(
        &self,
        Parameters(ApplyPatch { target, patch }): Parameters<ApplyPatch>,
    ) -> Result<String, Failure> {
        let kaiza = self.clone();
        let change = move |now: Vec<u8>| {
            let now = String::from_utf8(now).fault(Code::PatchApplyFailed)?;
            let patch = diffy::Patch::from_str(&patch).fault(Code::PatchInvalid)?;
            diffy::apply(&now, &patch).fault(Code::PatchApplyFailed)
        };
        blocking(move || kaiza.write(&target, change)).await
    }

    #[tool(description = "Reads the audit log", annotations(read_only_hint = true))]
    async fn read_audit_log(
        &self,
        Parameters(ReadAudit { last }): Parameters<ReadAudit>,
    ) -> Result<String, Failure> {
        let audit = self.audit.clone();
        let text = blocking(move || {
            verify(&Disk::new(&audit), &Expect::default(), &mut |_| {}).map_err(|finding| {
                let cause = Some(finding.to_string().into());
                let context = Report { cause, ..Report::default() };
                Failure::invariant_violation("AUDIT_LOG_INTACT", context)
            })?;
            Ok(std::fs::read_to_string(audit.join("audit-log.jsonl"))?)
        });
        let text = text.await?;
        let records: Vec<Value> = text
            .lines()
            .rev()
            .take(last)
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        Ok(json!({ "records": records }).to_string())
    }

    /// Changes a file, if role, plan, policy and the file itself allow it.
    fn write(
        &self,
        target: &Target,
        change: impl FnOnce(Vec<u8>) -> Result<String, Failure>,
    ) -> Result<String, Failure> {
        self.change(target, change).map_err(|failure| placed(failure, target))
    }

    fn change(
        &self,
        target: &Target,
        change: impl FnOnce(Vec<u8>) -> Result<String, Failure>,
    ) -> Result<String, Failure> {
        let Begun { role, workspace, .. } = self.begun()?;
        let place = workspace.place(&target.path)?;
        match role {
            Role::Antigravity if !place.is_under("docs") => {
                let what = "This role writes documents only";
                return Err(errors::unauthorized_action().message(what).into());
            }
            Role::Windsurf if place.is_under("docs/plans") => {
                let what = "This role carries plans out, and writes none";
                return Err(errors::unauthorized_action().message(what).into());
            }
            Role::Antigravity | Role::Windsurf => {}
        }
        if role == Role::Windsurf && !place.is_under("docs/reports") {
            plan::allows(&workspace, target.plan_hash.as_deref(), &place)?;
        }
        // One at a time, here and in other processes: what was seen must still be there.
        let lock = File::create(self.audit.join("workspace.lock"))?;
        lock.lock()?;
        let now = place.unchanged(target.previous_hash.as_deref())?;
        let content = change(now)?;
        policy::allows(&place, &content)?;
        place.write(&content)?;
        Ok(json!({ "sha256": workspace::hash(content.as_bytes()) }).to_string())
    }

    /// The session. The boundary lets nothing come here without one.
    fn begun(&self) -> Result<Begun, Failure> {
        let session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(session.clone().ok_or_else(errors::session_not_initialized)?)
    }

    /// What an envelope says of the session.
    fn told(&self) -> Session {
        let Ok(Begun { id, role, workspace }) = self.begun() else { return Session::default() };
        let role = json!(role).as_str().map(str::to_owned);
        let workspace_root = Some(workspace.root().display().to_string());
        Session { id: Some(id), role, workspace_root, ..Session::default() }
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Kaiza {}

/// Work that waits for a disk, on a thread that may.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work).await?
}

/// Names the plan and its phase in a failure.
fn placed(mut failure: Failure, target: &Target) -> Failure {
    let session = &mut failure.report_mut().session;
    session.plan_hash.clone_from(&target.plan_hash);
    session.phase.clone_from(&target.phase_id);
    failure
}

/// The program audits itself before it serves (K15).
fn start(root: &Path, audit: &Path) -> Result<Boundary<Code, Kaiza>, Failure> {
    let bootstrap = |what: String| {
        let context = Report { message: Some(what), ..Report::default() };
        Failure::startup_failure(Code::BootstrapFailure, context)
    };
    let workspace = Workspace::open(root);
    let workspace =
        workspace.map_err(|error| bootstrap(format!("There is no workspace: {error}")))?;
    // Whoever reads the log's key can write another log.
    std::fs::create_dir_all(audit).map_err(|error| bootstrap(error.to_string()))?;
    if audit.canonicalize().is_ok_and(|audit| audit.starts_with(workspace.root())) {
        return Err(bootstrap("The audit log cannot be in the workspace".to_owned()));
    }
    let log = Log::open(audit, Options::default()).map_err(|error| {
        let code = match &error {
            OpenError::Locked { .. } => Code::AuditLockFailed,
            _ => Code::SelfAuditFailure,
        };
        let message = Some(error.to_string());
        Failure::startup_failure(code, Report { message, ..Report::default() })
    })?;
    let kaiza = Kaiza {
        root: root.to_owned(),
        audit: audit.to_owned(),
        session: Arc::default(),
        tool_router: Kaiza::tool_router(),
    };
    Ok(Boundary::new(kaiza, log).deadline(DEADLINE).session_from(Kaiza::told))
}

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [root, audit] = &arguments[..] else { return Err("usage: kaiza WORKSPACE AUDIT".into()) };
    match start(Path::new(root), Path::new(audit)) {
        Ok(server) => {
            server.serve(rmcp::transport::stdio()).await?.waiting().await?;
            Ok(ExitCode::SUCCESS)
        }
        Err(failure) => {
            let envelope = failure.into_fault().envelope(Surface::Mcp, Profile::default());
            std::io::stderr().write_all(&[&*envelope, b"\n"].concat())?;
            Ok(ExitCode::FAILURE)
        }
    }
}
