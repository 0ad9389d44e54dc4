//! Clients over HTTP: connections in, answers out.

mod answer;
mod begin;
mod body;
mod host;
mod mcp;
mod pages;
mod patience;
pub(crate) mod streams;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

use crate::gateway::Gateway;
pub(crate) use body::Body;
pub use host::Hosts;
use patience::Patient;

/// How long a client may take to send the head of a request, and how long it may then be silent.
const HEAD_PATIENCE: Duration = Duration::from_secs(20);

/// Accepts connections until the gateway closes, and waits until they are closed.
pub(crate) async fn accept(
    gateway: Arc<Gateway>,
    listener: TcpListener,
    mut closing: watch::Receiver<bool>,
) {
    let slots = Arc::new(Semaphore::new(gateway.limits.connections));
    while !*closing.borrow() {
        let slot = Arc::clone(&slots).acquire_owned();
        let accepted = tokio::select! {
            slot = slot => match slot {
                Ok(slot) => tokio::select! {
                    accepted = listener.accept() => (accepted, slot),
                    _ = closing.changed() => break,
                },
                Err(_) => break,
            },
            _ = closing.changed() => break,
        };
        match accepted {
            (Ok((stream, peer)), slot) => {
                let (gateway, closing) = (Arc::clone(&gateway), closing.clone());
                tokio::spawn(async move {
                    serve(gateway, stream, peer, closing).await;
                    drop(slot);
                });
            }
            (Err(e), _) => pause_after(&e).await,
        }
    }
    let all = u32::try_from(gateway.limits.connections).unwrap_or(u32::MAX);
    let _ = slots.acquire_many(all).await;
}

/// Out of descriptors is no reason to spin.
async fn pause_after(error: &io::Error) {
    tracing::warn!(%error, "a connection could not be accepted");
    tokio::time::sleep(Duration::from_millis(50)).await;
}

async fn serve(
    gateway: Arc<Gateway>,
    stream: TcpStream,
    peer: SocketAddr,
    mut closing: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let room = Arc::clone(gateway.room());
    let is_crowded = move || room.is_crowded();
    let service = service_fn(|request: Request<Incoming>| {
        let gateway = Arc::clone(&gateway);
        async move { Ok::<_, Infallible>(route(&gateway, request, peer).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_PATIENCE)
        .max_buf_size(gateway.limits.header_bytes.max(8192))
        .serve_connection(Patient::new(TokioIo::new(stream), is_crowded), service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => return gateway.connection_ended(ended.as_ref().err()),
        _ = closing.changed() => connection.as_mut().graceful_shutdown(),
    }
    gateway.connection_ended(connection.await.as_ref().err());
}

async fn route(
    gateway: &Arc<Gateway>,
    request: Request<Incoming>,
    peer: SocketAddr,
) -> Response<Body> {
    let _open = gateway.linger.open();
    if let Some(refused) = host::refused(gateway, request.headers()).await {
        return refused;
    }
    let path = request.uri().path();
    match gateway.mount_at(path) {
        Some(mount) => {
            let mount = Arc::clone(mount);
            mcp::answer(gateway, &mount, request).await
        }
        None => pages::answer(gateway, &request, peer).await,
    }
}
