//! A session of the legacy era: a client, and a server of its own.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use faultwire_contract::Session as Facts;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use crate::call::ClientContext;
use crate::client_sink::ClientSink;
use crate::connection::Ends;
use crate::edge;
use crate::era::Bridge;
use crate::guard::access::Access;
use crate::mount::Mount;
use crate::mount::streams::Streams;
use crate::running::Running;
use crate::supervisor::Source;
use crate::upstream::process::StartedServer;

/// One session.
pub(crate) struct ClientSession {
    pub id: Box<str>,
    /// The client that it belongs to. No other may use it.
    pub owner: String,
    pub running: Running,
    pub client: Arc<ClientContext>,
    pub streams: Arc<Streams>,
    /// Set when the server is of another era.
    pub bridge: OnceLock<Bridge>,
    used: Mutex<Instant>,
}

impl ClientSession {
    /// Begins a session with a server that was started, or with the one behind a URL.
    pub(crate) fn begin(
        mount: &Mount,
        id: Box<str>,
        facts: Facts,
        access: &Arc<Access>,
        source: &Source,
        started: Option<StartedServer>,
        on_over: impl FnOnce() + Send + 'static,
    ) -> io::Result<Arc<Self>> {
        let settings = &mount.settings();
        let responder = &mount.responder;
        let streams = Arc::new(Streams::new(&responder.quota));
        let sink = Arc::clone(&streams) as Arc<dyn ClientSink>;
        // Who knows the id of a session can use it: envelopes, records and spans have another one.
        let facts = Facts { id: Some(public_id(&id)), ..facts };
        let client = ClientContext::limited(
            Arc::clone(responder) as Arc<_>,
            Arc::clone(settings),
            Arc::clone(&sink),
            access,
            facts,
            None,
        );
        let ends = |events| Ends {
            responder: Arc::clone(responder),
            settings: Arc::clone(settings),
            sink,
            events,
            breaker: Some(Arc::clone(&mount.breaker)),
            tasks: Some(mount.tasks_of_session()),
            is_remote: source.is_remote(),
            directories: source.directories(),
        };
        let running = Running::begin(ends, source.clone(), started, &mount.alive, on_over)?;
        streams.belong_to(&running.connection);
        let used = Mutex::new(edge::now());
        Ok(Arc::new(Self {
            id,
            owner: access.name.clone(),
            running,
            client,
            streams,
            bridge: OnceLock::new(),
            used,
        }))
    }

    pub(crate) fn touch(&self, now: Instant) {
        *self.used.lock() = now;
    }

    /// For how long it was not used. An open call is use, and so is to listen.
    pub(crate) fn unused(&self, now: Instant) -> Duration {
        if self.running.connection.session().open_calls() > 0 || self.streams.has_listener() {
            return Duration::ZERO;
        }
        now.saturating_duration_since(*self.used.lock())
    }
}

/// The id under which a session is written down, which does not lead back to its own.
fn public_id(id: &str) -> String {
    let digest = Sha256::digest(id);
    let (head, _) = digest.split_at(8);
    head.iter().fold("s_".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}

impl Drop for ClientSession {
    fn drop(&mut self) {
        self.streams.close();
    }
}
