//! Serving: from settings to a gateway that listens, and to its end in order.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::time::Duration;

use faultwire::audit::Log;
use faultwire_contract::prepare;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Handle};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::backlog::Backlog;
use crate::edge;
use crate::front::http::accept;
use crate::gateway::{Gateway, Reload, Serve, ServeError};
use crate::memory_quota::MemoryQuota;
use crate::metrics::Metrics;
use crate::mount::Mount;
use crate::responder::FaultResponder;
use crate::spans::Spans;

/// How often the gateway looks after its sessions.
const SWEEP: Duration = Duration::from_secs(1);

/// How long the last answers may take.
const LAST_ANSWERS: Duration = Duration::from_secs(3);

/// How long servers may take to end, from being asked to until being made to.
const LAST_SERVERS: Duration = Duration::from_secs(7);

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
    let (queue, items) = channel();
    let metrics = Arc::new(Metrics::new().map_err(io::Error::other)?);
    let lines = serve.mounts.iter().map(|mount| mount.settings.limits.line_bytes);
    let longest = lines.chain([serve.limits.body_bytes]).max().unwrap_or_default();
    let mut responder = FaultResponder::new(log.clone(), queue);
    (responder.quota, responder.metrics) = (MemoryQuota::new(longest), Some(metrics));
    let waits = serve.mounts.iter().map(|mount| mount.settings.limits.backlog_bytes);
    responder.backlog = Backlog::new(waits.max().unwrap_or_default());
    if let Some(collector) = &serve.collector {
        let spans = Spans::to(collector, Handle::current()).map_err(ServeError::Collector)?;
        responder.spans = Some(spans);
    }
    let responder = Arc::new(responder);
    let (made, to_record) = channel();
    watched("responder", broken.clone(), {
        let responder = Arc::clone(&responder);
        move || responder.serve(&items, &made)
    })?;
    watched("recorder", broken, {
        let (responder, runtime) = (Arc::clone(&responder), Handle::current());
        // Clients are served by tasks: they are told by one, which costs one wake for all.
        let hand_on = {
            let responder = Arc::clone(&responder);
            move |settled| {
                let responder = Arc::clone(&responder);
                runtime.spawn(async move { responder.deliver(&settled) });
            }
        };
        move || responder.record_made(&to_record, hand_on)
    })?;
    let gateway = Arc::new(Gateway::new(&serve, &responder)?);
    for mount in &gateway.mounts {
        let contract = Arc::clone(&mount.settings().contract);
        tokio::task::spawn_blocking(move || prepare(&contract));
    }
    let address = serve.listen;
    let listener =
        TcpListener::bind(address).await.map_err(|error| ServeError::Listen { address, error })?;
    let (close, closing) = watch::channel(false);
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    // From here on it is ready for signals, too.
    on_ready(listener.local_addr()?);
    if serve.busy_poll {
        let gateway = Arc::clone(&gateway);
        tokio::spawn(async move { gateway.busy_poll.run().await });
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
    responder.close();
    // What was handed over is still on its way to disk.
    let until = edge::now() + LAST_ANSWERS;
    while !responder.is_settled() && edge::now() < until {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let ended = tokio::task::spawn_blocking(move || {
        if let Some(spans) = &responder.spans {
            spans.close();
        }
    });
    let _ = ended.await;
    end
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
