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

use faultwire_contract::{Meta, Profile, Session};
use rmcp::model::Tool;

use crate::arguments::Schema;
use crate::audit::Log;
use crate::boundary::turn::Standing;
use crate::manifest::Manifest;
use crate::typed::TypedCode;
use crate::watch::{caught, keep_stacks};

/// How long a handler may take when nobody says otherwise.
const DEADLINE: Duration = Duration::from_mins(1);

/// A server whose failures are those of the contract of `C`.
///
/// Where the contract has rules for sessions, each boundary is one session: give every connection
/// its own, or a clone, for which nothing was begun yet. What the handler keeps of a session is its
/// own to begin anew. Requests over HTTP that stand for themselves, as in the newest protocol, have
/// no session that lasts: there the gateway keeps them.
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
    /// How the session stands, where the contract has rules for it.
    standing: Mutex<Standing>,
    /// Schemas of tools, compiled at their first use.
    schemas: Mutex<HashMap<String, Arc<Schema>>>,
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
    /// An undeclared code is a failure of its own.
    is_strict: bool,
}

impl<H> Clone for Settings<H> {
    fn clone(&self) -> Self {
        Self { session: self.session.clone(), meta: self.meta.clone(), ..*self }
    }
}

impl<C: TypedCode, H: 'static> Boundary<C, H> {
    /// Stands around a handler. Failures are recorded in this log.
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
                is_strict: cfg!(debug_assertions),
            }),
            manifest: Arc::new(Manifest::of::<H>()),
            undeclared: Arc::default(),
            standing: Mutex::default(),
            schemas: Mutex::default(),
            code: PhantomData,
        }
    }

    /// How long a call may take. A minute without it.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        Arc::make_mut(&mut self.settings).deadline = deadline;
        self
    }

    /// The profile of the contract that is spoken.
    #[must_use]
    pub fn profile(mut self, profile: Profile) -> Self {
        Arc::make_mut(&mut self.settings).profile = profile;
        self
    }

    /// What is known of every session.
    #[must_use]
    pub fn session(mut self, session: Session) -> Self {
        Arc::make_mut(&mut self.settings).session = session;
        self
    }

    /// How to ask the handler what it knows of its session when a call has failed.
    #[must_use]
    pub fn session_from(mut self, told: fn(&H) -> Session) -> Self {
        Arc::make_mut(&mut self.settings).told_session = Some(told);
        self
    }

    /// What is known of every call.
    #[must_use]
    pub fn meta(mut self, meta: Meta) -> Self {
        Arc::make_mut(&mut self.settings).meta = meta;
        self
    }

    /// What happens when a tool of a server with a [manifest](crate::manifest) answers with a code
    /// that it does not declare, or is not in the manifest itself. If this is true, as it is in debug builds, the client is told an internal
    /// failure instead, so that a test sees it; else the code passes. Either way it is counted, and
    /// marked in the log.
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

    /// The session as the handler knows it, else as it was told to all.
    fn known_session(&self) -> Session {
        let Session { id, client, role, workspace_root, phase, plan_hash } =
            self.settings.session.clone();
        let told = self.settings.told_session;
        // Whoever cannot tell its session does not keep the failure from being told.
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
            code: PhantomData,
        }
    }
}
