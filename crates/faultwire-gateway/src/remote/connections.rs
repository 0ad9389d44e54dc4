//! Connections to a server, kept open and used again.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::http::uri::{Authority, Scheme};
use hyper::{Request, Response, Uri};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use parking_lot::Mutex;
use tower_service::Service;

use crate::body::Body;
use crate::edge;

/// How long an unused connection is kept.
const KEPT: Duration = Duration::from_mins(1);
/// How many are kept at most.
const MOST_IDLE: usize = 256;

/// The connections of all sessions with a server.
pub(crate) struct Connections {
    connector: HttpsConnector<HttpConnector>,
    idle: Mutex<Vec<Idle>>,
}

/// An idle connection.
struct Idle {
    host: HostKey,
    sender: SendRequest<Body>,
    since: Instant,
}

/// Where a connection leads.
#[derive(Clone, PartialEq, Eq)]
struct HostKey {
    scheme: Option<Scheme>,
    authority: Option<Authority>,
}

/// A connection in use. It is closed when it is dropped.
pub(crate) struct PooledConnection {
    connections: Arc<Connections>,
    host: HostKey,
    sender: SendRequest<Body>,
}

/// Why a request has no answer.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// There is no connection.
    Unreachable(Box<dyn Error + Send + Sync>),
    /// It broke after the request was sent.
    Broken(hyper::Error),
}

impl Connections {
    pub(crate) fn new(connector: HttpsConnector<HttpConnector>) -> Arc<Self> {
        Arc::new(Self { connector, idle: Mutex::default() })
    }

    /// Sends a request to where the URL leads. What an idle connection did not take, because it was
    /// closed by then, goes through another one.
    pub(crate) async fn send(
        self: &Arc<Self>,
        url: &Uri,
        mut request: Request<Body>,
    ) -> Result<(Response<Incoming>, PooledConnection), Unanswered> {
        let host = HostKey { scheme: url.scheme().cloned(), authority: url.authority().cloned() };
        loop {
            let idle = self.take(&host);
            let is_new = idle.is_none();
            let mut sender = match idle {
                Some(sender) => sender,
                None => self.connect(url).await?,
            };
            if let Err(error) = sender.ready().await {
                if is_new {
                    return Err(Unanswered::Broken(error));
                }
                continue;
            }
            match sender.try_send_request(request).await {
                Ok(answer) => {
                    let connections = Arc::clone(self);
                    return Ok((answer, PooledConnection { connections, host, sender }));
                }
                Err(mut error) => match error.take_message() {
                    Some(unsent) if !is_new => request = unsent,
                    _ => return Err(Unanswered::Broken(error.into_error())),
                },
            }
        }
    }

    async fn connect(&self, url: &Uri) -> Result<SendRequest<Body>, Unanswered> {
        let mut connector = self.connector.clone();
        let stream = connector.call(url.clone()).await.map_err(Unanswered::Unreachable)?;
        let (sender, connection) = handshake(stream).await.map_err(Unanswered::Broken)?;
        tokio::spawn(async move {
            // The request that uses it gets the error.
            let _ = connection.await;
        });
        Ok(sender)
    }

    fn take(&self, host: &HostKey) -> Option<SendRequest<Body>> {
        let mut idle = self.idle.lock();
        // The one that was used last is the likeliest to live.
        while let Some(at) = idle.iter().rposition(|idle| idle.host == *host) {
            let found = idle.swap_remove(at);
            if !found.sender.is_closed()
                && edge::now().saturating_duration_since(found.since) < KEPT
            {
                return Some(found.sender);
            }
        }
        None
    }
}

impl PooledConnection {
    /// The answer was read to its end: the connection can be used again.
    pub(crate) fn give_back(self) {
        let Self { connections, host, sender } = self;
        let mut idle = connections.idle.lock();
        let now = edge::now();
        if idle.first().is_some_and(|oldest| now.saturating_duration_since(oldest.since) >= KEPT) {
            idle.retain(|idle| now.saturating_duration_since(idle.since) < KEPT);
        }
        if idle.len() < MOST_IDLE && !sender.is_closed() {
            idle.push(Idle { host, sender, since: now });
        }
    }
}
