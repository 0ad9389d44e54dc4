//! Clients over HTTP: connections in, answers out.

mod accept;
mod answer;
mod dispatch;
mod host;
mod initialize;
mod mcp;
mod pages;
mod read_body;
mod write_timeout;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use faultwire_contract::{Aspect, Condition, Surface};
use hyper::body::Incoming;
use hyper::header::{HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

use crate::body::Body;
use crate::failing::CallFailure;
use crate::gateway::Gateway;
use crate::guard::peer::Peer;
use crate::guard::refusals::Stranger;
use crate::sparse::Sparse;
use crate::wire;
use accept::Accept;
use answer::refuse_with;
use write_timeout::WriteTimeout;

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
    static REFUSED: Sparse = Sparse::new();
    REFUSED.note(|count| tracing::warn!(%error, count, "a connection could not be accepted"));
    tokio::time::sleep(Duration::from_millis(50)).await;
}

async fn serve(
    gateway: Arc<Gateway>,
    stream: TcpStream,
    peer: SocketAddr,
    mut closing: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let quota = Arc::clone(gateway.quota());
    let is_crowded = move || quota.is_crowded();
    let service = service_fn(|request: Request<Incoming>| {
        let gateway = Arc::clone(&gateway);
        async move { Ok::<_, Infallible>(route(&gateway, request, peer).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_PATIENCE)
        // A little beyond the limit a head is still read, so that it can be refused in our words.
        .max_buf_size(gateway.limits.header_bytes.max(8192) + 8192)
        .serve_connection(WriteTimeout::new(TokioIo::new(stream), is_crowded), service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => return gateway.connection_ended(ended.as_ref().err()),
        _ = closing.changed() => connection.as_mut().graceful_shutdown(),
    }
    gateway.connection_ended(connection.await.as_ref().err());
}

/// The answer to a request whose head is too long.
async fn too_long(
    gateway: &Gateway,
    stranger: &Stranger<'_>,
    request: &Request<Incoming>,
) -> Option<Response<Body>> {
    let limit = gateway.limits.header_bytes;
    // As they stand on the wire: a colon, a blank and a line end each.
    let line = |(name, value): (&HeaderName, &HeaderValue)| name.as_str().len() + value.len() + 4;
    let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    let head = target + request.headers().iter().map(line).sum::<usize>();
    if head <= limit {
        return None;
    }
    let client = &gateway.anybody_at(request.uri().path());
    let failing =
        CallFailure::finer(client.contract(), Condition::InvalidArguments, Some(Aspect::Value))
            .saying(format!("The head has more than {limit} bytes"));
    let stranger = Some(stranger);
    let accept = Accept { surface: Surface::Http, stranger, ..Accept::of(request.headers()) };
    let mut answer = refuse_with(client, accept, None, None, failing, wire::INVALID_REQUEST).await;
    *answer.status_mut() = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
    Some(answer)
}

async fn route(
    gateway: &Arc<Gateway>,
    request: Request<Incoming>,
    peer: SocketAddr,
) -> Response<Body> {
    let _open = gateway.busy_poll.open();
    let peer = Peer::of(peer.ip(), request.headers(), &gateway.hosts.proxies);
    let stranger = &Stranger { peer, refusals: &gateway.refusals };
    let (path, headers) = (request.uri().path(), request.headers());
    if let Some(refused) = host::refused(gateway, stranger, path, headers).await {
        return refused;
    }
    if let Some(refused) = too_long(gateway, stranger, &request).await {
        return refused;
    }
    let path = request.uri().path();
    match gateway.mount_at(path) {
        Some(mount) => {
            let mount = Arc::clone(mount);
            mcp::answer(gateway, &mount, stranger, request).await
        }
        None => pages::answer(gateway, stranger, &request).await,
    }
}
