//! The server that all clients of the modern era share. Each request gets an id of ours on the
//! way in and its own on the way out, so that no client can be given another's answer.

use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use faultwire_contract::Line;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::Notify;

use crate::client_sink::ClientSink;
use crate::connection::Ends;
use crate::mount::Mount;
use crate::probe::{self, Era};
use crate::rewrite::Rewrite;
use crate::running::Running;
use crate::supervisor::Source;
use crate::upstream::process::StartedServer;

/// A server that many use.
pub(crate) struct Shared {
    pub running: Running,
    ids: AtomicU64,
    era: OnceLock<Era>,
    /// Whether a probe is running, and who waits for its result.
    asking: AtomicBool,
    asked: Notify,
    over: Arc<AtomicBool>,
}

/// A request under an id of ours.
pub(crate) struct Translated {
    pub line: Vec<u8>,
    pub id: String,
}

/// What a shared server says to all is for none of its clients.
struct NoClient;

impl ClientSink for NoClient {
    fn send(&self, _lines: &[u8]) {}

    fn is_somebody(&self) -> bool {
        false
    }
}

impl Shared {
    /// Begins with a server that was started, or with the one behind a URL.
    pub(crate) fn begin(
        mount: &Mount,
        source: &Source,
        started: Option<StartedServer>,
    ) -> io::Result<Self> {
        let over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&over);
        let on_over = move || told.store(true, Ordering::Relaxed);
        let ends = |events| Ends {
            responder: Arc::clone(&mount.responder),
            settings: mount.settings(),
            sink: Arc::new(NoClient),
            events,
            breaker: Some(Arc::clone(&mount.breaker)),
            tasks: Some(Arc::clone(&mount.tasks)),
            is_remote: source.is_remote(),
            directories: source.directories(),
        };
        let running = Running::begin(ends, source.clone(), started, &mount.alive, on_over)?;
        Ok(Self {
            running,
            ids: AtomicU64::new(1),
            era: OnceLock::new(),
            asking: AtomicBool::new(false),
            asked: Notify::new(),
            over,
        })
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// What the server speaks. It is asked until it has answered once, however long those wait who
    /// want to know.
    pub(crate) async fn era(self: &Arc<Self>) -> Option<&Era> {
        if let Some(era) = self.era.get() {
            return Some(era);
        }
        let mut asked = pin!(self.asked.notified());
        asked.as_mut().enable();
        if !self.asking.swap(true, Ordering::SeqCst) {
            let shared = Arc::clone(self);
            tokio::spawn(async move {
                let connection = &shared.running.connection;
                if let Some(era) =
                    probe::of(connection, connection.settings().deadlines.start).await
                {
                    let _ = shared.era.set(era);
                }
                shared.asking.store(false, Ordering::SeqCst);
                shared.asked.notify_waiters();
            });
        }
        if self.era.get().is_none() {
            asked.await;
        }
        self.era.get()
    }

    /// Puts a request under an id of ours, and its progress too, if it has a token for that.
    pub(crate) fn translate(&self, line: &Line<'_>, token: Option<&str>) -> Translated {
        let id = self.ids.fetch_add(1, Ordering::Relaxed).to_string();
        let mut other = Rewrite::new(line.text.as_bytes());
        for part in line.id.into_iter().chain(token) {
            other.instead_of(part, &*id);
        }
        let mut line = other.to_vec();
        line.push(b'\n');
        Translated { line, id }
    }
}

/// The token of a request's progress, as it was written; an error if it is
/// ambiguous.
pub(crate) fn progress_token<'a>(line: &Line<'a>) -> Result<Option<&'a str>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow, rename = "_meta")]
        meta: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Meta<'a> {
        #[serde(borrow, rename = "progressToken")]
        token: Option<&'a RawValue>,
    }
    let Some(params) = line.params.filter(|raw| raw.starts_with('{')) else { return Ok(None) };
    let meta = serde_json::from_str::<Params<'a>>(params)?.meta.map(RawValue::get);
    let Some(meta) = meta.filter(|raw| raw.starts_with('{')) else { return Ok(None) };
    Ok(serde_json::from_str::<Meta<'a>>(meta)?.token.map(RawValue::get))
}
