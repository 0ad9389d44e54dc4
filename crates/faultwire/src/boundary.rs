//! The boundary of a server made with rmcp: whatever a handler does, its client gets one envelope,
//! recorded before it is sent.
//!
//! A handler returns `Result<_, Failure>`; what it does beside that (an error of rmcp's, a panic,
//! no answer at all) ends here, too. Successes pass as they are, unless the contract wraps them.

mod answer;
mod handler;
mod slot;
mod turn;

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use faultwire_contract::{Meta, Profile, Session, SessionState};
use rmcp::model::Tool;

use crate::arguments::Schema;
use crate::audit::Log;
use crate::manifest::Manifest;
use crate::typed::TypedCode;

/// How long a handler may take when nobody says otherwise.
const DEADLINE: Duration = Duration::from_mins(1);

/// A server whose failures are those of the contract of `C`. Where the contract has rules for
/// sessions, each boundary is one session: give every connection its own, or a clone, which begins
/// anew.
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
    deadline: Duration,
    profile: Profile,
    session: Session,
    /// What the handler knows of its session.
    told_session: Option<fn(&H) -> Session>,
    /// How the session stands, where the contract has rules for it.
    standing: Mutex<SessionState>,
    meta: Meta,
    manifest: Arc<Manifest>,
    /// An undeclared code is a failure of its own.
    is_strict: bool,
    /// How many undeclared codes were answered, over all clones.
    undeclared: Arc<AtomicU64>,
    /// Schemas of tools, compiled at their first use.
    schemas: Mutex<HashMap<String, Arc<Schema>>>,
    code: PhantomData<fn() -> C>,
}

impl<C: TypedCode, H: 'static> Boundary<C, H> {
    /// Stands around a handler. Failures are recorded in this log.
    #[must_use]
    pub fn new(handler: H, log: Log) -> Self {
        Self {
            inner: handler,
            log,
            deadline: DEADLINE,
            profile: Profile::default(),
            session: Session::default(),
            told_session: None,
            standing: Mutex::default(),
            meta: Meta::default(),
            manifest: Arc::new(Manifest::of::<H>()),
            is_strict: cfg!(debug_assertions),
            undeclared: Arc::default(),
            schemas: Mutex::default(),
            code: PhantomData,
        }
    }

    /// How long a call may take. A minute without it.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// The profile of the contract that is spoken.
    #[must_use]
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// What is known of every session.
    #[must_use]
    pub fn session(mut self, session: Session) -> Self {
        self.session = session;
        self
    }

    /// How to ask the handler what it knows of its session when a call has failed.
    #[must_use]
    pub fn session_from(mut self, told: fn(&H) -> Session) -> Self {
        self.told_session = Some(told);
        self
    }

    /// What is known of every call.
    #[must_use]
    pub fn meta(mut self, meta: Meta) -> Self {
        self.meta = meta;
        self
    }

    /// What happens when a tool in the [manifest](crate::manifest) answers with a code that it does
    /// not declare. If this is true, as it is in debug builds, the client is told an internal
    /// failure instead, so that a test sees it; else the code passes. Either way it is counted, and
    /// marked in the log.
    #[must_use]
    pub fn strict(mut self, is_strict: bool) -> Self {
        self.is_strict = is_strict;
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

    /// The session as the handler knows it, else as it was told to all.
    fn known_session(&self) -> Session {
        let Session { id, client, role, workspace_root, phase, plan_hash } = self.session.clone();
        let told = self.told_session.map(|told| told(&self.inner)).unwrap_or_default();
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
            deadline: self.deadline,
            profile: self.profile,
            session: self.session.clone(),
            told_session: self.told_session,
            standing: Mutex::default(),
            meta: self.meta.clone(),
            manifest: Arc::clone(&self.manifest),
            is_strict: self.is_strict,
            undeclared: Arc::clone(&self.undeclared),
            schemas: Mutex::default(),
            code: PhantomData,
        }
    }
}
