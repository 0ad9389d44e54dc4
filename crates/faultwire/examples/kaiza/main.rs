//! KAIZA as a server: a workspace in which agents write under approved plans. Sessions begin with a
//! role, and lock if a rule is broken. No path leads out of the workspace.
//!
//! `cargo run -p faultwire --example kaiza --features rmcp -- WORKSPACE AUDIT`
//!
//! Plans are the files in its `docs/plans`, named by their SHA-256; `docs/reports` need none.

mod place;
mod plan;

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use faultwire::audit::{Disk, Expect, Log, OpenError, Options, verify};
use faultwire::contract::{Profile, Report, Session, Surface};
use faultwire::kaiza::{self as errors, Code, Failure};
use faultwire::{Boundary, ResultExt};
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::{ServerHandler, ServiceExt, schemars, tool, tool_handler, tool_router};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::task::spawn_blocking;

use place::Place;

/// What a tool answers.
type Answer = Result<String, Failure>;

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

#[derive(Clone)]
struct Kaiza {
    root: PathBuf,
    audit: PathBuf,
    /// The session that was begun, and what envelopes say of it.
    session: Arc<Mutex<Option<(Role, Session)>>>,
    tool_router: ToolRouter<Self>,
}

#[tool_router]
impl Kaiza {
    #[tool(description = "Begins a session in a role, or begins it anew")]
    async fn begin_session(&self, Parameters(Begin { role }): Parameters<Begin>) -> Answer {
        let mut session = self.session();
        if session.as_ref().is_some_and(|(now, _)| *now != role) {
            return Err(errors::role_mismatch().message("The session has another role").into());
        }
        fs::read_dir(&self.root).fault(Code::SessionInitializationFailed)?;
        let id = uuid::Uuid::new_v4().to_string();
        let told = Session {
            id: Some(id.clone()),
            role: json!(role).as_str().map(str::to_owned),
            workspace_root: Some(self.root.display().to_string()),
            ..Session::default()
        };
        *session = Some((role, told));
        Ok(json!({ "session_id": id }).to_string())
    }

    #[tool(description = "Ends the session")]
    async fn end_session(&self) -> Answer {
        *self.session() = None;
        Ok("ended".to_owned())
    }

    #[tool(description = "Reads a file", annotations(read_only_hint = true))]
    async fn read_file(&self, Parameters(Read { path }): Parameters<Read>) -> Answer {
        let root = self.root.clone();
        let text = spawn_blocking(move || Place::find(&root, &path)?.read()).await??;
        Ok(json!({ "sha256": place::hash(text.as_bytes()), "text": text }).to_string())
    }

    #[tool(description = "Writes a file under a plan")]
    async fn write_file(&self, Parameters(asked): Parameters<WriteFile>) -> Answer {
        self.write(asked.target, |_| Ok(asked.content)).await
    }

    #[tool(description = "Applies a patch to a file under a plan")]
    async fn apply_patch(&self, Parameters(asked): Parameters<ApplyPatch>) -> Answer {
        let change = move |now| {
            let now = String::from_utf8(now).fault(Code::PatchApplyFailed)?;
            let patch = diffy::Patch::from_str(&asked.patch).fault(Code::PatchInvalid)?;
            diffy::apply(&now, &patch).fault(Code::PatchApplyFailed)
        };
        self.write(asked.target, change).await
    }

    #[tool(description = "Reads the audit log", annotations(read_only_hint = true))]
    async fn read_audit_log(&self, Parameters(asked): Parameters<ReadAudit>) -> Answer {
        let audit = self.audit.clone();
        spawn_blocking(move || {
            verify(&Disk::new(&audit), &Expect::default(), &mut |_| {})
                .map_err(|it| Failure::invariant_violation("AUDIT_LOG_INTACT", saying(&it)))?;
            let records = fs::read_to_string(audit.join("audit-log.jsonl"))?;
            Ok(records.lines().rev().take(asked.last).collect::<Vec<_>>().join("\n"))
        })
        .await?
    }

    /// Changes a file, and names plan and phase if that fails.
    async fn write(
        &self,
        target: Target,
        change: impl FnOnce(Vec<u8>) -> Answer + Send + 'static,
    ) -> Answer {
        let kaiza = self.clone();
        spawn_blocking(move || {
            kaiza.change(&target, change).map_err(|mut failure| {
                let session = &mut failure.report_mut().session;
                (session.plan_hash, session.phase) = (target.plan_hash, target.phase_id);
                failure
            })
        })
        .await?
    }

    /// Changes a file, if role, plan, policy and the file itself allow it.
    fn change(&self, target: &Target, change: impl FnOnce(Vec<u8>) -> Answer) -> Answer {
        let role = self.session().as_ref().map(|(role, _)| *role);
        let role = role.ok_or_else(errors::session_not_initialized)?;
        let place = Place::find(&self.root, &target.path)?;
        let under = |directory| place.relative.starts_with(directory);
        match role {
            Role::Antigravity if under("docs") => {}
            Role::Windsurf if under("docs/reports") => {}
            Role::Windsurf if !under("docs/plans") => {
                plan::allows(&self.root, target.plan_hash.as_deref(), &place)?;
            }
            _ => return Err(errors::unauthorized_action().message("Others write there").into()),
        }
        // One writer at a time, in this and other processes: the file must still be what the caller
        // has seen.
        let lock = File::create(self.audit.join("workspace.lock"))?;
        lock.lock()?;
        let content = change(place.unchanged(target.previous_hash.as_deref())?)?;
        plan::policy_allows(&place, &content)?;
        place.write(&content)?;
        Ok(json!({ "sha256": place::hash(content.as_bytes()) }).to_string())
    }

    fn session(&self) -> MutexGuard<'_, Option<(Role, Session)>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Kaiza {}

fn saying(what: &impl ToString) -> Report {
    Report { message: Some(what.to_string()), ..Report::default() }
}

/// The program audits itself before it serves (K15).
fn start(root: &Path, audit: &Path) -> Result<Boundary<Code, Kaiza>, Failure> {
    let places = fs::read_dir(root)
        .and_then(|_| fs::create_dir_all(audit))
        .and_then(|()| Ok((root.canonicalize()?, audit.canonicalize()?)))
        .map_err(|error| Failure::startup_failure(Code::BootstrapFailure, saying(&error)));
    let (root, audit) = places?;
    // With the log's key, another log could be written.
    if audit.starts_with(&root) {
        let what = saying(&"The audit log cannot be in the workspace");
        return Err(Failure::startup_failure(Code::BootstrapFailure, what));
    }
    let log = Log::open(&audit, Options::default()).map_err(|error| {
        let locked = matches!(error, OpenError::Locked { .. });
        let code = if locked { Code::AuditLockFailed } else { Code::SelfAuditFailure };
        Failure::startup_failure(code, saying(&error))
    })?;
    let kaiza = Kaiza { root, audit, session: Arc::default(), tool_router: Kaiza::tool_router() };
    let boundary = Boundary::new(kaiza, log).deadline(Duration::from_secs(2));
    Ok(boundary.session_from(|it| it.session().clone().map(|it| it.1).unwrap_or_default()))
}

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [root, audit] = &arguments[..] else { return Err("usage: kaiza WORKSPACE AUDIT".into()) };
    let server = match start(Path::new(root), Path::new(audit)) {
        Ok(server) => server,
        Err(failure) => {
            let envelope = failure.into_fault().envelope(Surface::Mcp, Profile::default());
            std::io::stderr().write_all(&[&*envelope, b"\n"].concat())?;
            return Ok(ExitCode::FAILURE);
        }
    };
    server.serve(rmcp::transport::stdio()).await?.waiting().await?;
    Ok(ExitCode::SUCCESS)
}
