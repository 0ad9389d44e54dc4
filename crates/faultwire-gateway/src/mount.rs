//! A mount: one upstream under a name of its own, with the sessions that use it.

pub(crate) mod session;
mod settings;
pub(crate) mod shared;
pub(crate) mod streams;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use faultwire_contract::Session as Facts;
use hashbrown::HashMap;
use parking_lot::{Mutex, MutexGuard, RwLock};

use crate::call::{ClientContext, session_of};
use crate::client_sink::ClientSink;
use crate::edge;
use crate::endpoint::RemoteError;
use crate::guard::access::Access;
use crate::guard::breaker::Breaker;
use crate::guard::tasks::Tasks;
use crate::remote::{HttpTransport, Remote};
use crate::responder::FaultResponder;
use crate::settings::Settings;
use crate::supervisor::Source;
use crate::upstream::pool::Pool;
use crate::upstream::process::StartedServer;
use session::ClientSession;
pub use settings::{MountSettings, SessionLimits, Upstream};
use shared::Shared;

/// An upstream that can be used.
enum UpstreamHandle {
    Command(Arc<Pool>),
    Url(Arc<HttpTransport>),
}

impl UpstreamHandle {
    /// For one more session.
    fn source(&self) -> Source {
        match self {
            Self::Command(pool) => Source::Command(Arc::clone(pool)),
            Self::Url(transport) => Source::Remote(Remote::new(Arc::clone(transport))),
        }
    }
}

/// One upstream, and who uses it.
pub(crate) struct Mount {
    pub name: String,
    settings: RwLock<Arc<Settings>>,
    pub responder: Arc<FaultResponder>,
    /// Who asks as long as nothing is known of the client.
    anybody: RwLock<Arc<ClientContext>>,
    behind: UpstreamHandle,
    pub breaker: Arc<Breaker>,
    /// How many servers have not ended yet, whether they are still of use or not.
    pub alive: Arc<AtomicUsize>,
    /// Sessions whose server is being started.
    beginning: AtomicUsize,
    /// Whose the tasks are of a server that clients share.
    tasks: Arc<Tasks>,
    /// Clients without a session, by name.
    clients: Mutex<HashMap<String, Arc<ClientContext>>>,
    /// Those of them that were served under settings before these.
    former: Mutex<HashMap<String, Arc<ClientContext>>>,
    session_limits: SessionLimits,
    sessions: Mutex<HashMap<Box<str>, Arc<ClientSession>>>,
    shared: Mutex<Option<Arc<Shared>>>,
    /// Held by the one who starts it.
    starting: tokio::sync::Mutex<()>,
    /// Those that were shared before, while calls wait for them.
    replaced: Mutex<Vec<Weak<Shared>>>,
    /// Set when the server has turned out to speak only the modern version.
    only_modern: AtomicBool,
}

/// A session whose server is being started.
struct Place(Arc<Mount>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.beginning.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Why a session cannot begin.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoSession {
    #[error("{0} sessions are open already, or ending")]
    Crowded(usize),
    #[error("the server cannot be started: {0}")]
    Start(#[from] io::Error),
}

impl Mount {
    pub(crate) fn new(
        mount: MountSettings,
        responder: Arc<FaultResponder>,
    ) -> Result<Self, RemoteError> {
        let settings = Arc::new(mount.settings);
        let anybody = anybody(&responder, &settings);
        let behind = match mount.upstream {
            Upstream::Command(launch) => UpstreamHandle::Command(Arc::new(Pool::new(launch))),
            Upstream::Url(remote) => UpstreamHandle::Url(HttpTransport::new(&remote)?),
        };
        Ok(Self {
            name: mount.name,
            behind,
            breaker: Arc::new(Breaker::new(mount.breaker)),
            alive: Arc::default(),
            beginning: AtomicUsize::new(0),
            starting: tokio::sync::Mutex::new(()),
            tasks: Arc::default(),
            clients: Mutex::default(),
            former: Mutex::default(),
            session_limits: mount.session_limits,
            settings: RwLock::new(settings),
            responder,
            anybody: RwLock::new(anybody),
            sessions: Mutex::default(),
            shared: Mutex::default(),
            replaced: Mutex::default(),
            only_modern: AtomicBool::new(false),
        })
    }

    /// Begins a session with a server of its own. No lock is held while that is started.
    pub(crate) async fn begin(
        self: &Arc<Self>,
        facts: Facts,
        access: &Arc<Access>,
    ) -> Result<Arc<ClientSession>, NoSession> {
        let place = self.reserve()?;
        let started = self.started().await?;
        let id: Box<str> = edge::secret()?.into();
        let is_over = Arc::new(AtomicBool::new(false));
        let over = self.forgets(&id, &is_over);
        let source = self.behind.source();
        let session =
            ClientSession::begin(self, id.clone(), facts, access, &source, started, over)?;
        let mut sessions = self.sessions();
        sessions.insert(id.clone(), Arc::clone(&session));
        if is_over.load(Ordering::SeqCst) {
            sessions.remove(&id);
        }
        let left = self.session_limits.sessions.saturating_sub(sessions.len());
        drop(sessions);
        drop(place);
        self.prepare(self.session_limits.spare.min(left));
        Ok(session)
    }

    /// A place for one more session.
    fn reserve(self: &Arc<Self>) -> Result<Place, NoSession> {
        let mut sessions = self.sessions();
        let beginning = self.beginning.load(Ordering::Relaxed);
        // Servers take a while to end, and are there until they have.
        let alive = self.alive.load(Ordering::Relaxed) + beginning;
        if alive >= self.session_limits.sessions.saturating_mul(2) {
            return Err(NoSession::Crowded(alive));
        }
        let open = sessions.len() + beginning;
        if open >= self.session_limits.sessions {
            let now = edge::now();
            let idle = sessions.values().max_by_key(|session| session.unused(now));
            // A client that comes back after a while can begin a new session.
            let idle = idle.filter(|session| session.unused(now) > Duration::from_mins(1));
            let Some(idle) = idle.map(|session| session.id.clone()) else {
                return Err(NoSession::Crowded(open));
            };
            let idle = sessions.remove(&*idle);
            drop(sessions);
            drop(idle);
        }
        self.beginning.fetch_add(1, Ordering::Relaxed);
        Ok(Place(Arc::clone(self)))
    }

    /// A server of the command, started on a thread of the blocking pool.
    async fn started(&self) -> io::Result<Option<StartedServer>> {
        let UpstreamHandle::Command(pool) = &self.behind else { return Ok(None) };
        let pool = Arc::clone(pool);
        let started = tokio::task::spawn_blocking(move || pool.take()).await;
        started.map_err(io::Error::other)?.map(Some)
    }

    /// Has servers started for sessions to come.
    fn prepare(&self, spare: usize) {
        if let UpstreamHandle::Command(pool) = &self.behind
            && spare > 0
        {
            let pool = Arc::clone(pool);
            // Starting a process takes longer than a client should wait for another's.
            tokio::task::spawn_blocking(move || pool.fill(spare));
        }
    }

    /// Forgets a session whose server is gone for good.
    fn forgets(
        self: &Arc<Self>,
        id: &str,
        is_over: &Arc<AtomicBool>,
    ) -> impl FnOnce() + Send + use<> {
        let (mount, id): (Weak<Self>, Box<str>) = (Arc::downgrade(self), id.into());
        let is_over = Arc::clone(is_over);
        move || {
            is_over.store(true, Ordering::SeqCst);
            if let Some(mount) = mount.upgrade() {
                let session = mount.sessions().remove(&id);
                drop(session);
            }
        }
    }

    pub(crate) fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.read())
    }

    pub(crate) fn anybody(&self) -> Arc<ClientContext> {
        Arc::clone(&self.anybody.read())
    }

    /// From now on under other settings. Sessions that are open go on as they began; a server
    /// that many share is replaced once its open calls are answered.
    pub(crate) fn renew(&self, settings: Settings) {
        let settings = Arc::new(settings);
        let anybody = anybody(&self.responder, &settings);
        *self.settings.write() = settings;
        *self.anybody.write() = anybody;
        let former = std::mem::take(&mut *self.clients.lock());
        self.former().extend(former);
        let shared = self.shared.lock().take();
        let mut replaced = self.replaced.lock();
        replaced.retain(|before| before.strong_count() > 0);
        replaced.extend(shared.as_ref().map(Arc::downgrade));
        drop(replaced);
        drop(shared);
    }

    /// From now on its servers are started without these variables.
    pub(crate) fn withhold(&self, withheld: &BTreeSet<OsString>) {
        if let UpstreamHandle::Command(pool) = &self.behind {
            pool.withhold(withheld);
        }
    }

    /// The context of a client that has no session.
    pub(crate) fn client(&self, access: &Arc<Access>) -> Arc<ClientContext> {
        let mut clients = self.clients.lock();
        let known = clients.get(&access.name);
        if let Some(client) = known.filter(|client| client.is_of(access)) {
            return Arc::clone(client);
        }
        let former = known.cloned().or_else(|| self.former().remove(&access.name));
        let (responder, settings, anybody) =
            (Arc::clone(&self.responder), self.settings(), self.anybody());
        let sink = Arc::clone(&anybody.sink);
        let facts = anybody.session().clone();
        let client =
            ClientContext::limited(responder, settings, sink, access, facts, former.as_deref());
        clients.insert(access.name.clone(), Arc::clone(&client));
        client
    }

    /// A session of this client.
    pub(crate) fn session(&self, id: &str, access: &Arc<Access>) -> Option<Arc<ClientSession>> {
        let session = self.sessions().get(id).cloned()?;
        if session.owner != access.name {
            return None;
        }
        // What the client may do can have changed since the session began.
        if !session.client.is_of(access) {
            session.client.allow(access);
        }
        session.touch(edge::now());
        Some(session)
    }

    /// Ends the sessions of clients that are not let in any more.
    pub(crate) fn keep(&self, is_let_in: impl Fn(&str) -> bool) {
        self.sessions().retain(|_, session| is_let_in(&session.owner));
    }

    /// Ends a session. Whether there was one.
    pub(crate) fn end(&self, id: &str) -> bool {
        let session = self.sessions().remove(id);
        session.is_some()
    }

    /// The server that all clients of the modern era share. It is started when it is needed; who
    /// comes meanwhile waits for it.
    pub(crate) async fn shared(&self) -> io::Result<Arc<Shared>> {
        if let Some(shared) = self.running_shared() {
            return Ok(shared);
        }
        let _alone = self.starting.lock().await;
        if let Some(shared) = self.running_shared() {
            return Ok(shared);
        }
        let started = self.started().await?;
        let shared = Arc::new(Shared::begin(self, &self.behind.source(), started)?);
        *self.shared.lock() = Some(Arc::clone(&shared));
        Ok(shared)
    }

    fn running_shared(&self) -> Option<Arc<Shared>> {
        let shared = self.shared.lock();
        shared.as_ref().filter(|shared| !shared.is_over()).cloned()
    }

    /// Whose the tasks of a session's server are. A process of its own has tasks of its own; behind
    /// a URL all sessions may meet the same ones.
    pub(crate) fn tasks_of_session(&self) -> Arc<Tasks> {
        match self.behind {
            UpstreamHandle::Command(_) => Arc::default(),
            UpstreamHandle::Url(_) => Arc::clone(&self.tasks),
        }
    }

    pub(crate) fn is_only_modern(&self) -> bool {
        self.only_modern.load(Ordering::Relaxed)
    }

    /// The server has refused the legacy handshake and taken the modern one, or does so no more.
    pub(crate) fn turns_out_modern(&self, is_so: bool) {
        self.only_modern.store(is_so, Ordering::Relaxed);
    }

    /// Ends sessions that were not used for long.
    pub(crate) fn sweep(&self, now: Instant) {
        self.sessions().retain(|_, session| session.unused(now) < self.session_limits.idle);
    }

    /// Accepts no new calls, and ends when the open ones are answered.
    pub(crate) fn drain(&self) {
        if let UpstreamHandle::Command(pool) = &self.behind {
            pool.close();
        }
        for session in self.sessions().values() {
            session.running.drain();
        }
        if let Some(shared) = &*self.shared.lock() {
            shared.running.drain();
        }
        let replaced = self.replaced.lock();
        replaced.iter().filter_map(Weak::upgrade).for_each(|before| before.running.drain());
    }

    /// The names of its tools, once some server has told all of them.
    pub(crate) fn tool_names(&self) -> Option<Vec<String>> {
        let shared = self.shared.lock().clone();
        if let Some(names) =
            shared.and_then(|shared| shared.running.connection.session().tool_names())
        {
            return Some(names);
        }
        let sessions: Vec<_> = self.sessions().values().map(Arc::clone).collect();
        sessions.iter().find_map(|session| session.running.connection.session().tool_names())
    }

    /// How many calls are open.
    pub(crate) fn open_calls(&self) -> usize {
        let shared = self.shared.lock();
        let shared =
            shared.as_ref().map_or(0, |shared| shared.running.connection.session().open_calls());
        let sessions = self.sessions();
        let of = |session: &Arc<ClientSession>| session.running.connection.session().open_calls();
        shared + sessions.values().map(of).sum::<usize>()
    }

    /// How many servers run.
    pub(crate) fn servers(&self) -> usize {
        let shared = self.shared.lock();
        let shared = usize::from(shared.as_ref().is_some_and(|shared| !shared.is_over()));
        self.sessions().len() + shared
    }

    fn former(&self) -> MutexGuard<'_, HashMap<String, Arc<ClientContext>>> {
        self.former.lock()
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<Box<str>, Arc<ClientSession>>> {
        self.sessions.lock()
    }
}

/// A client that nothing is known of.
fn anybody(responder: &Arc<FaultResponder>, settings: &Arc<Settings>) -> Arc<ClientContext> {
    struct Nowhere;
    impl ClientSink for Nowhere {
        fn send(&self, _lines: &[u8]) {}
    }
    let session = session_of(settings);
    let responder = Arc::clone(responder) as Arc<_>;
    ClientContext::new(responder, Arc::clone(settings), Arc::new(Nowhere), session)
}
