//! A mount: one upstream under a name of its own, with the sessions that use it.

pub(crate) mod session;
pub(crate) mod shared;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

use faultwire_contract::Session as Facts;
use hashbrown::HashMap;

use crate::door::Door;
use crate::edge;
use crate::gateway::{self, MountSettings};
use crate::guard::access::Access;
use crate::guard::breaker::Breaker;
use crate::guard::tasks::Tasks;
use crate::party::Party;
use crate::settings::Settings;
use crate::supervisor::Source;
use crate::upstream::pool::Pool;
use crate::upstream::process::Launch;
use crate::upstream::remote::{Remote, RemoteError, RemoteSettings, Way};
use session::Session;
use shared::Shared;

/// What stands behind a mount.
#[derive(Clone, Debug)]
pub enum Upstream {
    /// A server that speaks over stdio, started as often as needed.
    Command(Launch),
    /// A server behind a URL.
    Url(RemoteSettings),
}

/// An upstream that can be used.
enum Behind {
    Command(Arc<Pool>),
    Url(Arc<Way>),
}

impl Behind {
    /// For one more session.
    fn source(&self) -> Source {
        match self {
            Self::Command(pool) => Source::Command(Arc::clone(pool)),
            Self::Url(way) => Source::Remote(Remote::new(Arc::clone(way))),
        }
    }
}

/// How many servers a mount may run, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Crowd {
    /// Sessions with a server of their own that may be open at once.
    pub sessions: usize,
    /// How long a session may go unused.
    pub idle: Duration,
    /// Servers that are started for sessions to come, once there has been one.
    pub spare: usize,
}

impl Default for Crowd {
    fn default() -> Self {
        Self { sessions: 64, idle: Duration::from_mins(30), spare: 1 }
    }
}

/// One upstream, and who uses it.
pub(crate) struct Mount {
    pub name: String,
    settings: RwLock<Arc<Settings>>,
    pub door: Arc<Door>,
    /// Who asks as long as nothing is known of the client.
    anybody: RwLock<Arc<Party>>,
    behind: Behind,
    pub breaker: Arc<Breaker>,
    /// How many servers have not ended yet, whether they are still of use or not.
    pub alive: Arc<AtomicUsize>,
    /// Whose the tasks are of a server that clients share.
    tasks: Arc<Tasks>,
    /// Clients without a session, by name.
    parties: Mutex<HashMap<String, Arc<Party>>>,
    /// Those of them that were served under settings before these.
    former: Mutex<HashMap<String, Arc<Party>>>,
    crowd: Crowd,
    sessions: Mutex<HashMap<Box<str>, Arc<Session>>>,
    shared: Mutex<Option<Arc<Shared>>>,
    /// Those that were shared before, for as long as somebody waits for them.
    replaced: Mutex<Vec<Weak<Shared>>>,
    /// Set when the server has turned out to speak only the modern version.
    only_modern: AtomicBool,
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
    pub(crate) fn new(mount: MountSettings, door: Arc<Door>) -> Result<Self, RemoteError> {
        let settings = Arc::new(mount.settings);
        let anybody = gateway::anybody(&door, &settings);
        let behind = match mount.upstream {
            Upstream::Command(launch) => Behind::Command(Arc::new(Pool::new(launch))),
            Upstream::Url(remote) => Behind::Url(Way::new(&remote)?),
        };
        Ok(Self {
            name: mount.name,
            behind,
            breaker: Arc::new(Breaker::new(mount.breaker)),
            alive: Arc::default(),
            tasks: Arc::default(),
            parties: Mutex::default(),
            former: Mutex::default(),
            crowd: mount.crowd,
            settings: RwLock::new(settings),
            door,
            anybody: RwLock::new(anybody),
            sessions: Mutex::default(),
            shared: Mutex::default(),
            replaced: Mutex::default(),
            only_modern: AtomicBool::new(false),
        })
    }

    /// Begins a session with a server of its own.
    pub(crate) fn begin(
        self: &Arc<Self>,
        facts: Facts,
        access: &Arc<Access>,
    ) -> Result<Arc<Session>, NoSession> {
        let mut sessions = self.sessions();
        // Servers take a while to end, and are there until they have.
        let alive = self.alive.load(Ordering::Relaxed);
        if alive >= self.crowd.sessions.saturating_mul(2) {
            return Err(NoSession::Crowded(alive));
        }
        if sessions.len() >= self.crowd.sessions {
            let now = edge::now();
            let idle = sessions.values().max_by_key(|session| session.unused(now));
            // Somebody who came back after a while finds a new session better than none.
            let idle = idle.filter(|session| session.unused(now) > Duration::from_mins(1));
            let Some(idle) = idle.map(|session| session.id.clone()) else {
                return Err(NoSession::Crowded(sessions.len()));
            };
            sessions.remove(&*idle);
        }
        let id: Box<str> = edge::secret()?.into();
        let over = self.forgets(&id);
        let session = Session::start(self, id.clone(), facts, access, self.behind.source(), over)?;
        sessions.insert(id, Arc::clone(&session));
        let spare = self.crowd.spare.min(self.crowd.sessions - sessions.len());
        drop(sessions);
        self.prepare(spare);
        Ok(session)
    }

    /// Has servers started for sessions to come.
    fn prepare(&self, spare: usize) {
        if let Behind::Command(pool) = &self.behind
            && spare > 0
        {
            let pool = Arc::clone(pool);
            // Starting a process takes longer than a client should wait for another's.
            tokio::task::spawn_blocking(move || pool.fill(spare));
        }
    }

    /// Forgets a session whose server is gone for good.
    fn forgets(self: &Arc<Self>, id: &str) -> impl FnOnce() + Send + use<> {
        let (mount, id): (Weak<Self>, Box<str>) = (Arc::downgrade(self), id.into());
        move || {
            if let Some(mount) = mount.upgrade() {
                let session = mount.sessions().remove(&id);
                drop(session);
            }
        }
    }

    pub(crate) fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn anybody(&self) -> Arc<Party> {
        Arc::clone(&self.anybody.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// From now on under other settings. Sessions that are open go on as they began; a server
    /// that many share is replaced once its open calls are answered.
    pub(crate) fn renew(&self, settings: Settings) {
        let settings = Arc::new(settings);
        let anybody = gateway::anybody(&self.door, &settings);
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = settings;
        *self.anybody.write().unwrap_or_else(PoisonError::into_inner) = anybody;
        let former =
            std::mem::take(&mut *self.parties.lock().unwrap_or_else(PoisonError::into_inner));
        self.former().extend(former);
        let shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut replaced = self.replaced.lock().unwrap_or_else(PoisonError::into_inner);
        replaced.retain(|before| before.strong_count() > 0);
        replaced.extend(shared.as_ref().map(Arc::downgrade));
        drop(replaced);
        drop(shared);
    }

    /// From now on its servers are started without these variables.
    pub(crate) fn withhold(&self, withheld: &BTreeSet<OsString>) {
        if let Behind::Command(pool) = &self.behind {
            pool.withhold(withheld);
        }
    }

    /// The party of a client that has no session.
    pub(crate) fn party(&self, access: &Arc<Access>) -> Arc<Party> {
        let mut parties = self.parties.lock().unwrap_or_else(PoisonError::into_inner);
        let known = parties.get(&access.name);
        if let Some(party) = known.filter(|party| party.is_of(access)) {
            return Arc::clone(party);
        }
        let former = known.cloned().or_else(|| self.former().remove(&access.name));
        let (door, settings, anybody) = (Arc::clone(&self.door), self.settings(), self.anybody());
        let outlet = Arc::clone(&anybody.outlet);
        let facts = anybody.session().clone();
        let party = Party::limited(door, settings, outlet, access, facts, former.as_deref());
        parties.insert(access.name.clone(), Arc::clone(&party));
        party
    }

    /// A session of this client.
    pub(crate) fn session(&self, id: &str, access: &Arc<Access>) -> Option<Arc<Session>> {
        let session = self.sessions().get(id).cloned()?;
        if session.owner != access.name {
            return None;
        }
        // What the client may do can have changed since the session began.
        if !session.party.is_of(access) {
            session.party.allow(access);
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

    /// The server that all clients of the modern era share. It is started when it is needed.
    pub(crate) fn shared(&self) -> io::Result<Arc<Shared>> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shared) = shared.as_ref().filter(|shared| !shared.is_over()) {
            return Ok(Arc::clone(shared));
        }
        let source = self.behind.source();
        let started = Arc::new(Shared::start(
            &self.door,
            &self.settings(),
            source,
            &self.breaker,
            &self.tasks,
            &self.alive,
        )?);
        *shared = Some(Arc::clone(&started));
        Ok(started)
    }

    /// Whose the tasks of a session's server are. A process of its own has tasks of its own; behind
    /// a URL all sessions may meet the same ones.
    pub(crate) fn tasks_of_session(&self) -> Arc<Tasks> {
        match self.behind {
            Behind::Command(_) => Arc::default(),
            Behind::Url(_) => Arc::clone(&self.tasks),
        }
    }

    pub(crate) fn is_only_modern(&self) -> bool {
        self.only_modern.load(Ordering::Relaxed)
    }

    /// The server has refused the legacy handshake and taken the modern one, or does so no more.
    pub(crate) fn turns_out_modern(&self, is_so: bool) {
        self.only_modern.store(is_so, Ordering::Relaxed);
    }

    /// Ends sessions that nobody has used for long.
    pub(crate) fn sweep(&self, now: Instant) {
        self.sessions().retain(|_, session| session.unused(now) < self.crowd.idle);
    }

    /// Takes no new calls, and ends when the open ones are answered.
    pub(crate) fn drain(&self) {
        if let Behind::Command(pool) = &self.behind {
            pool.close();
        }
        for session in self.sessions().values() {
            session.running.drain();
        }
        if let Some(shared) = &*self.shared.lock().unwrap_or_else(PoisonError::into_inner) {
            shared.running.drain();
        }
        let replaced = self.replaced.lock().unwrap_or_else(PoisonError::into_inner);
        replaced.iter().filter_map(Weak::upgrade).for_each(|before| before.running.drain());
    }

    /// The names of its tools, once some server has told all of them.
    pub(crate) fn tool_names(&self) -> Option<Vec<String>> {
        let shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(names) = shared.and_then(|shared| shared.running.link.tools().names()) {
            return Some(names);
        }
        let sessions: Vec<_> = self.sessions().values().map(Arc::clone).collect();
        sessions.iter().find_map(|session| session.running.link.tools().names())
    }

    /// How many calls are open.
    pub(crate) fn open_calls(&self) -> usize {
        let shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = shared.as_ref().map_or(0, |shared| shared.running.link.state().calls.len());
        let sessions = self.sessions();
        let of = |session: &Arc<Session>| session.running.link.state().calls.len();
        shared + sessions.values().map(of).sum::<usize>()
    }

    /// How many servers run.
    pub(crate) fn servers(&self) -> usize {
        let shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = usize::from(shared.as_ref().is_some_and(|shared| !shared.is_over()));
        self.sessions().len() + shared
    }

    fn former(&self) -> MutexGuard<'_, HashMap<String, Arc<Party>>> {
        self.former.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<Box<str>, Arc<Session>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
