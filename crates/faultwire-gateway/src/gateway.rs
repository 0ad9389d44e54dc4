//! The gateway: everything that connections share.

mod setup;

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;
use serde::Serialize;
use serde_json::Value;

use crate::busy_poll::BusyPoll;
use crate::call::ClientContext;
use crate::edge;
use crate::guard::access::Clients;
use crate::guard::budget::Budgets;
use crate::guard::host::Hosts;
use crate::guard::refusals::Refusals;
use crate::memory_quota::MemoryQuota;
use crate::mount::Mount;
use crate::recent::Shown;
use crate::responder::FaultResponder;
use crate::sparse::Sparse;
pub use setup::{HttpLimits, Reload, Renewed, Serve, ServeError};

static UNREAD: Sparse = Sparse::new();

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
    responder: Arc<FaultResponder>,
    pub mounts: Vec<Arc<Mount>>,
    pub hosts: Hosts,
    clients: RwLock<Arc<Clients>>,
    pub budgets: Arc<Budgets>,
    pub limits: HttpLimits,
    /// Requests that were refused before a client was known.
    pub refusals: Refusals,
    pub busy_poll: BusyPoll,
    pub closing: AtomicBool,
    /// Whether the clients' patterns were compared with the tools.
    patterns_seen: AtomicBool,
}

impl Gateway {
    /// As set up; nothing runs yet.
    pub(crate) fn new(serve: &Serve, responder: &Arc<FaultResponder>) -> Result<Self, ServeError> {
        let mounts =
            serve.mounts.iter().map(|mount| Mount::new(mount.clone(), Arc::clone(responder)));
        let mounts: Vec<Arc<Mount>> =
            mounts.map(|mount| mount.map(Arc::new)).collect::<Result<_, _>>()?;
        let budgets = Arc::new(Budgets::open(serve.budgets.clone()));
        let clients = RwLock::new(Arc::new(Clients::new(&serve.clients, &budgets, None)));
        Ok(Self {
            responder: Arc::clone(responder),
            mounts,
            clients,
            budgets,
            hosts: serve.hosts.clone(),
            limits: serve.limits,
            refusals: Refusals::default(),
            busy_poll: BusyPoll::default(),
            closing: AtomicBool::new(false),
            patterns_seen: AtomicBool::new(false),
        })
    }

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
        self.responder.metrics.as_ref().map(|metrics| metrics.page(&now)).unwrap_or_default()
    }

    /// What runs, and what failed lately.
    pub(crate) fn status(&self) -> Status {
        let mounts = self.mounts.iter().map(|mount| MountStatus {
            name: mount.name.clone(),
            contract: mount.settings().contract.name.clone(),
            servers: mount.servers(),
            open_calls: mount.open_calls(),
        });
        let metrics = self.responder.metrics.as_ref();
        Status {
            mounts: mounts.collect(),
            failures: metrics.map(|metrics| metrics.recent.all()).unwrap_or_default(),
        }
    }

    /// What may be held for clients that do not read.
    pub(crate) fn quota(&self) -> &Arc<MemoryQuota> {
        &self.responder.quota
    }

    /// A connection has ended. If it had to be cut, that is recorded: an answer went astray.
    pub(crate) fn connection_ended(&self, error: Option<&hyper::Error>) {
        if error.is_some_and(hyper::Error::is_parse_too_large) {
            // The library has refused it, before there was a request to answer.
            let contract = &self.mounts[0].settings().contract;
            self.responder.event("head_too_long", &Value::Null, contract.redactor());
        }
        let source = error.and_then(|error| error.source()?.downcast_ref::<io::Error>());
        if source.is_some_and(|error| error.kind() == io::ErrorKind::TimedOut) {
            UNREAD.note(|count| {
                tracing::warn!(count, "a client does not read its answer; closing its connection");
            });
            let contract = &self.mounts[0].settings().contract;
            self.responder.event("answer_not_taken", &Value::Null, contract.redactor());
        }
    }

    /// Who may call, as of now.
    pub(crate) fn clients(&self) -> Arc<Clients> {
        Arc::clone(&self.clients.read())
    }

    /// What is done every now and then.
    pub(crate) fn look_after(&self, at_end: bool) {
        let now = edge::now();
        for summary in self.refusals.summaries(now, at_end) {
            let contract = &self.mounts[0].settings().contract;
            self.responder.record_event("refusals", &summary, contract.redactor());
        }
        self.mounts.iter().for_each(|mount| mount.sweep(now));
        self.look_at_patterns();
        if let Err(error) = self.budgets.save() {
            tracing::error!(%error, "the budgets cannot be saved");
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
    pub(crate) fn anybody_at(&self, path: &str) -> Arc<ClientContext> {
        self.mount_at(path).unwrap_or(&self.mounts[0]).anybody()
    }

    /// Whether failures can be recorded, without which none can be answered.
    pub(crate) fn can_record(&self) -> bool {
        self.responder.can_record()
    }

    /// Applies new settings, or keeps the old ones if they are invalid.
    pub(crate) fn renew(&self, reload: Option<&Reload>) {
        let Some(reload) = reload else { return };
        let renewed = match reload() {
            Ok(renewed) => renewed,
            Err(why) => {
                tracing::error!("the new settings are invalid, keeping the old ones: {why}");
                return;
            }
        };
        let before = self.clients();
        let clients = Arc::new(Clients::new(&renewed.clients, &self.budgets, Some(&before)));
        *self.clients.write() = Arc::clone(&clients);
        self.patterns_seen.store(false, Ordering::Relaxed);
        // Who may not call any more does not go on listening, either.
        self.mounts.iter().for_each(|mount| mount.keep(|name| clients.still_knows(name, &before)));
        self.mounts.iter().for_each(|mount| mount.withhold(&renewed.withheld));
        for (name, settings) in renewed.mounts {
            if let Some(mount) = self.mounts.iter().find(|mount| mount.name == name) {
                mount.renew(settings);
            }
        }
        tracing::info!("reloaded the settings");
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }
}
