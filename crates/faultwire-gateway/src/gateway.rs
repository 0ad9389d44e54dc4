//! The gateway: everything that `serve` runs, from its settings to its end.

mod setup;

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use faultwire::audit::Log;
use serde::Serialize;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Handle};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::backlog::Backlog;
use crate::door::Door;
use crate::edge;
use crate::front::http::accept;
pub use crate::front::http::{BadNetwork, Hosts, Network};
use crate::guard::access::Clients;
use crate::guard::budget::Budgets;
use crate::guard::refusals::Refusals;
use crate::linger::Linger;
use crate::metrics::Metrics;
use crate::mount::Mount;
use crate::outlet::Outlet;
use crate::party::{Party, session_of};
use crate::recent::Shown;
use crate::room::Room;
use crate::settings::Settings;
use crate::spans::Spans;
use crate::sparse::Sparse;
pub use setup::{HttpLimits, MountSettings, Reload, Renewed, Serve, ServeError};

static UNREAD: Sparse = Sparse::new();

/// How often the gateway looks after its sessions.
const SWEEP: Duration = Duration::from_secs(1);

/// How long the last answers may take.
const LAST_ANSWERS: Duration = Duration::from_secs(3);

/// How long servers may take to end, from being asked to until being made to.
const LAST_SERVERS: Duration = Duration::from_secs(7);

/// What the status page shows.
#[derive(Serialize)]
pub(crate) struct Status {
    pub mounts: Vec<MountStatus>,
    pub failures: Vec<Shown>,
}

/// What it shows of a mount.
#[derive(Serialize)]
pub(crate) struct MountStatus {
    pub name: String,
    pub contract: String,
    pub servers: usize,
    pub open_calls: usize,
}

/// What all connections share.
pub(crate) struct Gateway {
    door: Arc<Door>,
    mounts: Vec<Arc<Mount>>,
    pub hosts: Hosts,
    clients: RwLock<Arc<Clients>>,
    pub budgets: Arc<Budgets>,
    pub limits: HttpLimits,
    /// Requests that were refused before a client was known.
    pub refusals: Refusals,
    pub linger: Linger,
    closing: AtomicBool,
    /// Whether the clients' patterns were compared with the tools.
    patterns_seen: AtomicBool,
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

    /// Everything that is counted, as Prometheus reads it.
    pub(crate) fn metrics(&self) -> String {
        let sum = |of: fn(&Mount) -> usize| self.mounts.iter().map(|mount| of(mount) as u64).sum();
        let now = [
            ("faultwire_calls_in_flight", "Calls that are open.", sum(Mount::open_calls)),
            ("faultwire_servers", "Servers that run.", sum(Mount::servers)),
        ];
        self.door.metrics.as_ref().map(|metrics| metrics.page(&now)).unwrap_or_default()
    }

    /// What runs, and what failed lately.
    pub(crate) fn status(&self) -> Status {
        let mounts = self.mounts.iter().map(|mount| MountStatus {
            name: mount.name.clone(),
            contract: mount.settings().contract.name.clone(),
            servers: mount.servers(),
            open_calls: mount.open_calls(),
        });
        let metrics = self.door.metrics.as_ref();
        Status {
            mounts: mounts.collect(),
            failures: metrics.map(|metrics| metrics.recent.all()).unwrap_or_default(),
        }
    }

    /// What may be held for clients that do not read.
    pub(crate) fn room(&self) -> &Arc<Room> {
        &self.door.room
    }

    /// A connection has ended. If it had to be cut, that is recorded: an answer went astray.
    pub(crate) fn connection_ended(&self, error: Option<&hyper::Error>) {
        if error.is_some_and(hyper::Error::is_parse_too_large) {
            // The library has refused it, before there was a request to answer.
            let contract = &self.mounts[0].settings().contract;
            self.door.event("head_too_long", &Value::Null, contract.redactor());
        }
        let source = error.and_then(|error| error.source()?.downcast_ref::<io::Error>());
        if source.is_some_and(|error| error.kind() == io::ErrorKind::TimedOut) {
            UNREAD.note(|count| {
                tracing::warn!(count, "a client does not read its answer; its connection is cut");
            });
            let contract = &self.mounts[0].settings().contract;
            self.door.event("answer_not_taken", &Value::Null, contract.redactor());
        }
    }

    /// Who may call, as of now.
    pub(crate) fn clients(&self) -> Arc<Clients> {
        Arc::clone(&self.clients.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// What is done every now and then.
    fn look_after(&self, at_end: bool) {
        let now = edge::now();
        for summary in self.refusals.summaries(now, at_end) {
            let contract = &self.mounts[0].settings().contract;
            self.door.record_event("refusals", &summary, contract.redactor());
        }
        self.mounts.iter().for_each(|mount| mount.sweep(now));
        self.look_at_patterns();
        if let Err(error) = self.budgets.save() {
            tracing::error!(%error, "the budgets cannot be written down");
        }
    }

    /// Compares the clients' patterns with the tools, once those of all mounts are known.
    fn look_at_patterns(&self) {
        if self.patterns_seen.load(Ordering::Relaxed) {
            return;
        }
        let names: Option<Vec<_>> = self.mounts.iter().map(|mount| mount.tool_names()).collect();
        if let Some(names) = names {
            self.patterns_seen.store(true, Ordering::Relaxed);
            self.clients().warn_of_unmatched(&names.concat());
        }
    }

    /// Who asks there before anything is known of the client.
    pub(crate) fn anybody_at(&self, path: &str) -> Arc<Party> {
        self.mount_at(path).unwrap_or(&self.mounts[0]).anybody()
    }

    /// Whether failures can be recorded, without which none can be answered.
    pub(crate) fn can_record(&self) -> bool {
        self.door.can_record()
    }

    /// Takes on new settings, or keeps the old ones if they are not right.
    fn renew(&self, reload: Option<&Reload>) {
        let Some(reload) = reload else { return };
        let renewed = match reload() {
            Ok(renewed) => renewed,
            Err(why) => {
                tracing::error!("the new settings are not right, and the old ones stay: {why}");
                return;
            }
        };
        let before = self.clients();
        let clients = Arc::new(Clients::new(&renewed.clients, &self.budgets, Some(&before)));
        *self.clients.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&clients);
        self.patterns_seen.store(false, Ordering::Relaxed);
        // Who may not call any more does not go on listening, either.
        self.mounts.iter().for_each(|mount| mount.keep(|name| clients.still_knows(name, &before)));
        self.mounts.iter().for_each(|mount| mount.withhold(&renewed.withheld));
        for (name, settings) in renewed.mounts {
            if let Some(mount) = self.mounts.iter().find(|mount| mount.name == name) {
                mount.renew(settings);
            }
        }
        tracing::info!("new settings");
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }
}

/// Serves until the operator ends it. `on_ready` is told where.
pub fn serve(
    serve: Serve,
    log: &Log,
    reload: Option<Reload>,
    on_ready: impl FnOnce(SocketAddr),
) -> Result<(), ServeError> {
    let runtime = match serve.threads {
        0 | 1 => Builder::new_current_thread().enable_all().build()?,
        more => Builder::new_multi_thread().worker_threads(more).enable_all().build()?,
    };
    runtime.block_on(run(serve, log, reload, on_ready))
}

async fn run(
    serve: Serve,
    log: &Log,
    reload: Option<Reload>,
    on_ready: impl FnOnce(SocketAddr),
) -> Result<(), ServeError> {
    let (broken, mut breakdown) = tokio::sync::mpsc::unbounded_channel();
    let (queue, errands) = channel();
    let metrics = Arc::new(Metrics::new().map_err(io::Error::other)?);
    let lines = serve.mounts.iter().map(|mount| mount.settings.limits.line_bytes);
    let longest = lines.chain([serve.limits.body_bytes]).max().unwrap_or_default();
    let mut door = Door::new(log.clone(), queue);
    (door.room, door.metrics) = (Room::new(longest), Some(metrics));
    let waits = serve.mounts.iter().map(|mount| mount.settings.limits.backlog_bytes);
    door.backlog = Backlog::new(waits.max().unwrap_or_default());
    if let Some(collector) = &serve.collector {
        let spans = Spans::to(collector, Handle::current()).map_err(ServeError::Collector)?;
        door.spans = Some(spans);
    }
    let door = Arc::new(door);
    let (made, to_record) = channel();
    watched("door", broken.clone(), {
        let door = Arc::clone(&door);
        move || door.serve(&errands, &made)
    })?;
    watched("recorder", broken, {
        let (door, runtime) = (Arc::clone(&door), Handle::current());
        // Clients are served by tasks: they are told by one, which costs one wake for all.
        let hand_on = {
            let door = Arc::clone(&door);
            move |settled| {
                let door = Arc::clone(&door);
                runtime.spawn(async move { door.deliver(&settled) });
            }
        };
        move || door.record_made(&to_record, hand_on)
    })?;
    let gateway = Arc::new(gateway(&serve, &door)?);
    let address = serve.listen;
    let listener =
        TcpListener::bind(address).await.map_err(|error| ServeError::Listen { address, error })?;
    let (close, closing) = watch::channel(false);
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    // From here on it is ready for signals, too.
    on_ready(listener.local_addr()?);
    if serve.linger {
        let gateway = Arc::clone(&gateway);
        tokio::spawn(async move { gateway.linger.run().await });
    }
    let accepting = tokio::spawn(accept(Arc::clone(&gateway), listener, closing));
    let mut sweep = tokio::time::interval(SWEEP);
    let end = loop {
        tokio::select! {
            _ = sweep.tick() => gateway.look_after(false),
            _ = hangup.recv() => gateway.renew(reload.as_ref()),
            _ = terminate.recv() => break Ok(()),
            _ = interrupt.recv() => break Ok(()),
            Some(part) = breakdown.recv() => break Err(ServeError::Broken(part)),
        }
    };
    gateway.closing.store(true, Ordering::Relaxed);
    gateway.mounts.iter().for_each(|mount| mount.drain());
    let longest = gateway.mounts.iter().map(|mount| mount.settings().drain).max();
    let until = edge::now() + longest.unwrap_or_default() + LAST_SERVERS;
    let alive = |mount: &Arc<Mount>| mount.alive.load(Ordering::Relaxed) > 0;
    while gateway.mounts.iter().any(alive) && edge::now() < until {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let _ = close.send(true);
    // Who was answered last has a moment to read it.
    let _ = tokio::time::timeout(LAST_ANSWERS, accepting).await;
    gateway.look_after(true);
    door.close();
    // What was handed over is still on its way to disk.
    let until = edge::now() + LAST_ANSWERS;
    while !door.is_settled() && edge::now() < until {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let ended = tokio::task::spawn_blocking(move || {
        if let Some(spans) = &door.spans {
            spans.close();
        }
    });
    let _ = ended.await;
    end
}

fn gateway(serve: &Serve, door: &Arc<Door>) -> Result<Gateway, ServeError> {
    let mounts = serve.mounts.iter().map(|mount| Mount::new(mount.clone(), Arc::clone(door)));
    let mounts: Vec<Arc<Mount>> =
        mounts.map(|mount| mount.map(Arc::new)).collect::<Result<_, _>>()?;
    let budgets = Arc::new(Budgets::open(serve.budgets.clone()));
    let clients = RwLock::new(Arc::new(Clients::new(&serve.clients, &budgets, None)));
    Ok(Gateway {
        door: Arc::clone(door),
        mounts,
        clients,
        budgets,
        hosts: serve.hosts.clone(),
        limits: serve.limits,
        refusals: Refusals::default(),
        linger: Linger::default(),
        closing: AtomicBool::new(false),
        patterns_seen: AtomicBool::new(false),
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
