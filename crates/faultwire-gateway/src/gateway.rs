//! The gateway: everything that `serve` runs, from its settings to its end.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use faultwire::audit::Log;
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::door::Door;
use crate::edge;
pub use crate::front::http::Hosts;
use crate::front::http::accept;
use crate::mount::{Crowd, Mount, Upstream};
use crate::outlet::Outlet;
use crate::party::{Party, session_of};
use crate::settings::Settings;
use crate::upstream::remote::RemoteError;

/// How often the gateway looks after its sessions.
const SWEEP: Duration = Duration::from_secs(5);

/// How a gateway is set up.
#[derive(Clone, Debug)]
pub struct Serve {
    /// Where it listens.
    pub listen: SocketAddr,
    /// What stands behind it.
    pub mounts: Vec<MountSettings>,
    /// Which names it goes by.
    pub hosts: Hosts,
    /// How much is taken from clients.
    pub limits: HttpLimits,
    /// Threads that serve clients. One has the shortest way from client to server and back.
    pub threads: usize,
}

/// One upstream under a name.
#[derive(Clone, Debug)]
pub struct MountSettings {
    /// It is found at `/mcp/NAME`; the first one at `/mcp`, too.
    pub name: String,
    /// What stands behind it.
    pub upstream: Upstream,
    /// How many servers it may run.
    pub crowd: Crowd,
    /// How its calls are treated.
    pub settings: Settings,
}

/// How much is taken from clients over HTTP.
#[derive(Clone, Copy, Debug)]
pub struct HttpLimits {
    /// The longest body.
    pub body_bytes: usize,
    /// The longest head.
    pub header_bytes: usize,
    /// Connections that are open at once.
    pub connections: usize,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self { body_bytes: 4 * 1024 * 1024, header_bytes: 64 * 1024, connections: 4096 }
    }
}

/// Why a gateway cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// Which one.
        address: SocketAddr,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// An upstream cannot be used.
    #[error("{0}")]
    Remote(#[from] RemoteError),
    /// Something that the system must give us.
    #[error("{0}")]
    System(#[from] io::Error),
    /// A part of the gateway itself failed.
    #[error("the gateway's {0} failed; nothing can be relied on any more")]
    Broken(&'static str),
}

/// What all connections share.
pub(crate) struct Gateway {
    mounts: Vec<Arc<Mount>>,
    pub hosts: Hosts,
    pub limits: HttpLimits,
    /// Who asks before anything is known of the client.
    pub anybody: Arc<Party>,
    closing: AtomicBool,
}

impl Gateway {
    /// The mount that a path leads to.
    pub(crate) fn mount_at(&self, path: &str) -> Option<&Arc<Mount>> {
        let rest = path.strip_prefix("/mcp")?;
        match rest.trim_end_matches('/') {
            "" => self.mounts.first(),
            name => {
                let name = name.strip_prefix('/')?;
                self.mounts.iter().find(|mount| mount.name == name)
            }
        }
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }
}

/// Serves until the operator ends it. `on_ready` is told where.
pub fn serve(serve: Serve, log: &Log, on_ready: impl FnOnce(SocketAddr)) -> Result<(), ServeError> {
    let runtime = match serve.threads {
        0 | 1 => Builder::new_current_thread().enable_all().build()?,
        more => Builder::new_multi_thread().worker_threads(more).enable_all().build()?,
    };
    runtime.block_on(run(serve, log, on_ready))
}

async fn run(serve: Serve, log: &Log, on_ready: impl FnOnce(SocketAddr)) -> Result<(), ServeError> {
    let (broken, mut breakdown) = tokio::sync::mpsc::unbounded_channel();
    let (queue, errands) = channel();
    let door = Arc::new(Door::new(log.clone(), queue));
    let (made, to_record) = channel();
    watched("door", broken.clone(), {
        let door = Arc::clone(&door);
        move || door.serve(&errands, &made)
    })?;
    watched("recorder", broken, {
        let door = Arc::clone(&door);
        move || door.record_made(&to_record)
    })?;
    let gateway = Arc::new(gateway(&serve, &door)?);
    let address = serve.listen;
    let listener =
        TcpListener::bind(address).await.map_err(|error| ServeError::Listen { address, error })?;
    let (close, closing) = watch::channel(false);
    on_ready(listener.local_addr()?);
    let accepting = tokio::spawn(accept(Arc::clone(&gateway), listener, closing));
    let mut sweep = tokio::time::interval(SWEEP);
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let end = loop {
        tokio::select! {
            _ = sweep.tick() => gateway.mounts.iter().for_each(|mount| mount.sweep(edge::now())),
            _ = terminate.recv() => break Ok(()),
            _ = interrupt.recv() => break Ok(()),
            Some(part) = breakdown.recv() => break Err(ServeError::Broken(part)),
        }
    };
    gateway.closing.store(true, Ordering::Relaxed);
    gateway.mounts.iter().for_each(|mount| mount.drain());
    let _ = close.send(true);
    let longest = gateway.mounts.iter().map(|mount| mount.settings.drain).max();
    let until = edge::now() + longest.unwrap_or_default();
    while gateway.mounts.iter().any(|mount| mount.servers() > 0) && edge::now() < until {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    drop(accepting);
    door.close();
    end
}

fn gateway(serve: &Serve, door: &Arc<Door>) -> Result<Gateway, ServeError> {
    let mounts = serve.mounts.iter().map(|mount| Mount::new(mount.clone(), Arc::clone(door)));
    let mounts: Vec<Arc<Mount>> =
        mounts.map(|mount| mount.map(Arc::new)).collect::<Result<_, _>>()?;
    let anybody = Arc::clone(&mounts[0].anybody);
    Ok(Gateway {
        mounts,
        hosts: serve.hosts.clone(),
        limits: serve.limits,
        anybody,
        closing: AtomicBool::new(false),
    })
}

/// A client that nothing is known of.
pub(crate) fn anybody(door: &Arc<Door>, settings: &Arc<Settings>) -> Arc<Party> {
    struct Nowhere;
    impl Outlet for Nowhere {
        fn send(&self, _lines: &[u8]) {}
    }
    let session = session_of(settings);
    Party::new(Arc::clone(door), Arc::clone(settings), Arc::new(Nowhere), session)
}

/// A thread without which nothing works.
fn watched(
    name: &'static str,
    broken: tokio::sync::mpsc::UnboundedSender<&'static str>,
    run: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    let guarded = move || {
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err() {
            let _ = broken.send(name);
        }
    };
    std::thread::Builder::new().name(name.to_owned()).spawn(guarded).map(drop)
}
