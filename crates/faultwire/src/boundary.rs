//! The boundary of a server made with rmcp: whatever a handler does, its client gets one envelope,
//! recorded before it is sent.
//!
//! A handler returns `Result<_, Failure>`; every other outcome (an error of rmcp, a panic, no
//! answer) ends here, too. Successes pass unchanged, unless the contract wraps them.

mod answer;
mod handler;
mod output;
mod session_rules;
mod slot;

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use faultwire_contract::{Meta, Profile, Session};
use rmcp::model::Tool;

use crate::arguments::Schema;
use crate::audit::Log;
use crate::boundary::output::Outputs;
use crate::boundary::session_rules::Standing;
use crate::manifest::Manifest;
use crate::output::Output;
use crate::typed::TypedCode;
use crate::watch::{caught, keep_stacks};

/// The default deadline of a handler.
const DEADLINE: Duration = Duration::from_mins(1);

/// A server whose failures are those of the contract of `C`.
///
/// If the contract has rules for sessions, each boundary is one session: give every connection its
/// own boundary, or a clone that has not begun a session. A handler must reset its own session
/// state. HTTP requests of the modern protocol have no lasting session in the server; there, the
/// gateway keeps sessions.
///
/// ```
/// use faultwire::audit::{Log, Options};
/// use faultwire::{Boundary, owlclaw};
/// # use rmcp::ServerHandler;
/// # #[derive(Clone)]
/// # struct MyServer;
/// # impl ServerHandler for MyServer {}
/// # let dir = std::env::temp_dir().join(format!("faultwire-boundary-{}", std::process::id()));
///
/// let log = Log::open(&dir, Options::default())?;
/// let server = Boundary::<owlclaw::Code, _>::new(MyServer, log);
/// // server.serve(rmcp::transport::stdio()).await?;
/// # drop(server);
/// # std::fs::remove_dir_all(dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Boundary<C, H> {
    inner: H,
    log: Log,
    settings: Arc<Settings<H>>,
    manifest: Arc<Manifest>,
    /// How many undeclared codes were answered, over all clones.
    undeclared: Arc<AtomicU64>,
    /// The state of the session, if the contract has rules for sessions.
    standing: Mutex<Standing>,
    /// Schemas of tools, compiled at their first use.
    schemas: Mutex<HashMap<String, Arc<Schema>>>,
    /// The same for results.
    outputs: Arc<Outputs>,
    code: PhantomData<fn() -> C>,
}

/// What is the same for every call.
struct Settings<H> {
    deadline: Duration,
    profile: Profile,
    session: Session,
    /// What the handler knows of its session.
    told_session: Option<fn(&H) -> Session>,
    meta: Meta,
    /// What happens to results that do not match the tool's output schema.
    output: Output,
    /// An undeclared code becomes an internal failure.
    is_strict: bool,
}

impl<H> Clone for Settings<H> {
    fn clone(&self) -> Self {
        Self { session: self.session.clone(), meta: self.meta.clone(), ..*self }
    }
}

impl<C: TypedCode, H: 'static> Boundary<C, H> {
    /// Wraps a handler. Failures are recorded in this log.
    #[must_use]
    pub fn new(handler: H, log: Log) -> Self {
        keep_stacks::<C>();
        Self {
            inner: handler,
            log,
            settings: Arc::new(Settings {
                deadline: DEADLINE,
                profile: Profile::default(),
                session: Session::default(),
                told_session: None,
                meta: Meta::default(),
                output: Output::default(),
                is_strict: cfg!(debug_assertions),
            }),
            manifest: Arc::new(Manifest::of::<H>()),
            undeclared: Arc::default(),
            standing: Mutex::default(),
            schemas: Mutex::default(),
            outputs: Arc::default(),
            code: PhantomData,
        }
    }

    /// The deadline of a call; one minute by default.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        Arc::make_mut(&mut self.settings).deadline = deadline;
        self
    }

    /// The profile of the contract.
    #[must_use]
    pub fn profile(mut self, profile: Profile) -> Self {
        Arc::make_mut(&mut self.settings).profile = profile;
        self
    }

    /// Facts for every session.
    #[must_use]
    pub fn session(mut self, session: Session) -> Self {
        Arc::make_mut(&mut self.settings).session = session;
        self
    }

    /// A function that asks the handler for the facts of its session after a failed call.
    #[must_use]
    pub fn session_from(mut self, told: fn(&H) -> Session) -> Self {
        Arc::make_mut(&mut self.settings).told_session = Some(told);
        self
    }

    /// Facts for every call.
    #[must_use]
    pub fn meta(mut self, meta: Meta) -> Self {
        Arc::make_mut(&mut self.settings).meta = meta;
        self
    }

    /// What happens to a success that does not match the output schema of its tool. By default, it
    /// passes and is recorded.
    #[must_use]
    pub fn output(mut self, output: Output) -> Self {
        Arc::make_mut(&mut self.settings).output = output;
        self
    }

    /// How many successes did not match the output schema of their tool, over all clones.
    pub fn mismatched(&self) -> u64 {
        self.outputs.mismatched.load(Ordering::Relaxed)
    }

    /// What happens if a tool of a server with a [manifest](crate::manifest) answers with a code
    /// that it does not declare, or is not in the manifest. If this is true, which is the default
    /// in debug builds, the client gets an internal failure instead, so that tests notice it;
    /// otherwise the code passes. In both cases it is counted and marked in the log.
    #[must_use]
    pub fn strict(mut self, is_strict: bool) -> Self {
        Arc::make_mut(&mut self.settings).is_strict = is_strict;
        self
    }

    /// How many failures had a code that their tool does not declare.
    pub fn undeclared(&self) -> u64 {
        self.undeclared.load(Ordering::Relaxed)
    }

    /// The handler.
    pub fn handler(&self) -> &H {
        &self.inner
    }

    /// The session's facts from the handler, otherwise those that were set for all.
    fn known_session(&self) -> Session {
        let Session { id, client, role, workspace_root, phase, plan_hash } =
            self.settings.session.clone();
        let told = self.settings.told_session;
        // A handler that cannot report its session must not prevent the answer.
        let told = told.and_then(|told| caught(|| told(&self.inner)).ok()).unwrap_or_default();
        Session {
            id: told.id.or(id),
            client: told.client.or(client),
            role: told.role.or(role),
            workspace_root: told.workspace_root.or(workspace_root),
            phase: told.phase.or(phase),
            plan_hash: told.plan_hash.or(plan_hash),
        }
    }

    fn schema(&self, tool: &Tool) -> Arc<Schema> {
        let mut schemas = self.schemas.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(schema) = schemas.get(&*tool.name) {
            return Arc::clone(schema);
        }
        let text = serde_json::to_string(&tool.input_schema).ok();
        let schema = Arc::new(Schema::compile(&tool.name, text.as_deref()));
        schemas.insert(tool.name.to_string(), Arc::clone(&schema));
        schema
    }
}

impl<C, H: Clone> Clone for Boundary<C, H> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            log: self.log.clone(),
            settings: Arc::clone(&self.settings),
            manifest: Arc::clone(&self.manifest),
            undeclared: Arc::clone(&self.undeclared),
            standing: Mutex::default(),
            schemas: Mutex::default(),
            outputs: Arc::clone(&self.outputs),
            code: PhantomData,
        }
    }
}
