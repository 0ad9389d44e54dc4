//! A session of the legacy era: a client, and a server of its own.

use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use faultwire_contract::Session as Facts;
use sha2::{Digest, Sha256};

use crate::edge;
use crate::era::Bridge;
use crate::front::http::streams::Streams;
use crate::guard::access::Access;
use crate::mount::Mount;
use crate::outlet::Outlet;
use crate::party::Party;
use crate::running::Running;
use crate::supervisor::Source;

/// One session.
pub(crate) struct Session {
    pub id: Box<str>,
    /// Whose it is. Nobody else may use it.
    pub owner: String,
    pub running: Running,
    pub party: Arc<Party>,
    pub streams: Arc<Streams>,
    /// Set when the server is of another era.
    pub bridge: OnceLock<Bridge>,
    used: Mutex<Instant>,
}

impl Session {
    pub(crate) fn start(
        mount: &Mount,
        id: Box<str>,
        facts: Facts,
        access: &Arc<Access>,
        source: Source,
        on_over: impl FnOnce() + Send + 'static,
    ) -> io::Result<Arc<Self>> {
        let settings = &mount.settings();
        let door = &mount.door;
        let streams = Arc::new(Streams::new(&door.room));
        let outlet = Arc::clone(&streams) as Arc<dyn Outlet>;
        // Who knows the id of a session can use it: envelopes, records and spans have another one.
        let facts = Facts { id: Some(public_id(&id)), ..facts };
        let party = Party::limited(
            Arc::clone(door),
            Arc::clone(settings),
            Arc::clone(&outlet),
            access,
            facts,
            None,
        );
        let running = Running::start(
            door,
            settings,
            outlet,
            source,
            &mount.breaker,
            &mount.tasks_of_session(),
            &mount.alive,
            on_over,
        )?;
        streams.belong_to(&running.link);
        let used = Mutex::new(edge::now());
        Ok(Arc::new(Self {
            id,
            owner: access.name.clone(),
            running,
            party,
            streams,
            bridge: OnceLock::new(),
            used,
        }))
    }

    pub(crate) fn touch(&self, now: Instant) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    /// For how long nobody has used it. An open call is use, and so is to listen.
    pub(crate) fn unused(&self, now: Instant) -> Duration {
        if !self.running.link.state().calls.is_empty() || self.streams.has_listener() {
            return Duration::ZERO;
        }
        now.saturating_duration_since(*self.used.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The id under which a session is written down, which does not lead back to its own.
fn public_id(id: &str) -> String {
    let digest = Sha256::digest(id);
    let (head, _) = digest.split_at(8);
    head.iter().fold("s_".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}

impl Drop for Session {
    fn drop(&mut self) {
        self.streams.close();
    }
}
