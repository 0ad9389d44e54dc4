//! The way to a server: connections that are used again, TLS, and few redirects.

use std::error::Error;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use faultwire_contract::{Condition, Contract, Outcome};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, LOCATION};
use hyper::{Method, Request, Response, StatusCode, Uri};
use tokio::sync::Semaphore;

use crate::body::Body;
use crate::endpoint::{Endpoint, RemoteError};
use crate::failing::CallFailure;
use crate::http_client::connector;
use crate::remote::connections::{Connections, PooledConnection, Unanswered};

/// More redirects than that lead nowhere.
const MOST_REDIRECTS: usize = 5;
/// More streams that have said all are not kept open.
const MOST_SEEN_OFF: usize = 32;

/// The way to a server, for all its sessions.
pub(crate) struct HttpTransport {
    connections: Arc<Connections>,
    url: Uri,
    /// What every message is sent with.
    pub posting: HeaderMap,
    /// What all else is.
    pub asking: HeaderMap,
    /// Room for streams that have said all, and have not ended yet.
    pub seeing_off: Arc<Semaphore>,
}

/// An answer, and the connection that it comes by.
pub(crate) type Answer = (Response<Incoming>, PooledConnection);

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    Failed(Unanswered),
    /// It leads elsewhere, or in circles.
    Redirected(String),
}

impl HttpTransport {
    pub(crate) fn new(endpoint: &Endpoint) -> Result<Arc<Self>, RemoteError> {
        let connections = Connections::new(connector(endpoint.trust.as_deref())?);
        let headers = |takes: &'static str| {
            let mut headers = HeaderMap::with_capacity(16);
            headers.insert(HOST, host(&endpoint.url));
            for (name, value) in &endpoint.headers {
                // A host that is set takes the place of the URL's.
                headers.insert(name, value.clone());
            }
            headers.insert(ACCEPT, HeaderValue::from_static(takes));
            headers
        };
        let mut posting = headers("application/json, text/event-stream");
        posting.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let asking = headers("text/event-stream");
        let seeing_off = Arc::new(Semaphore::new(MOST_SEEN_OFF));
        Ok(Arc::new(Self { connections, url: endpoint.url.clone(), posting, asking, seeing_off }))
    }

    /// Sends a request, and follows it to where it leads.
    pub(crate) async fn send(
        &self,
        method: Method,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Result<Answer, NoAnswer> {
        let mut url = &self.url;
        let mut elsewhere;
        for _ in 0..=MOST_REDIRECTS {
            let request = self.request(&method, url, headers, &body);
            let answer = self.connections.send(url, request).await.map_err(NoAnswer::Failed)?;
            match answer.0.status() {
                StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => {
                    elsewhere = onward(url, answer.0.headers())?;
                    url = &elsewhere;
                }
                _ => return Ok(answer),
            }
        }
        Err(NoAnswer::Redirected(format!("more than {MOST_REDIRECTS} redirects")))
    }

    fn request(
        &self,
        method: &Method,
        url: &Uri,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Request<Body> {
        let mut all = headers.clone();
        if *url != self.url {
            all.insert(HOST, host(url));
        }
        let body = if body.is_empty() { Body::empty() } else { Body::whole(body.clone()) };
        let mut request = Request::new(body);
        *request.method_mut() = method.clone();
        *request.uri_mut() = url.path_and_query().cloned().map_or_else(Uri::default, Uri::from);
        *request.headers_mut() = all;
        request
    }
}

/// What a server is called in a request.
fn host(url: &Uri) -> HeaderValue {
    let name = url.host().unwrap_or_default();
    let host = match port(url) {
        port if port == usual_port(url) => HeaderValue::from_str(name),
        port => HeaderValue::from_str(&format!("{name}:{port}")),
    };
    host.unwrap_or(HeaderValue::from_static(""))
}

/// Where a redirect leads. Only to the same server: what we say is not for others.
fn onward(from: &Uri, headers: &HeaderMap) -> Result<Uri, NoAnswer> {
    let wrong = |what: &str| NoAnswer::Redirected(what.to_owned());
    let location = headers.get(LOCATION).and_then(|location| location.to_str().ok());
    let location = location.ok_or_else(|| wrong("a redirect without a location"))?;
    let no_url = || wrong("a redirect to no URL");
    let to: Uri = beside(from, location).parse().map_err(|_| no_url())?;
    let mut parts = to.into_parts();
    if parts.authority.is_none() {
        (parts.scheme, parts.authority) = (from.scheme().cloned(), from.authority().cloned());
    }
    let to = Uri::from_parts(parts).map_err(|_| no_url())?;
    let host = |url: &Uri| url.host().map(str::to_ascii_lowercase);
    let is_same = host(&to) == host(from) && port(&to) == port(from);
    // From http to https the usual port is another one.
    let is_safer = host(&to) == host(from)
        && (from.scheme_str(), to.scheme_str()) == (Some("http"), Some("https"))
        && (port(&to) == HTTPS || port(&to) == port(from));
    if !is_safer && (!is_same || to.scheme() != from.scheme()) {
        return Err(wrong("a redirect to another server"));
    }
    Ok(to)
}

/// A place that is named by its last part, or by its query alone, in full.
fn beside(from: &Uri, location: &str) -> String {
    let path = from.path();
    if location.starts_with("//") {
        return format!("{}:{location}", from.scheme_str().unwrap_or("http"));
    }
    if location.starts_with('?') {
        return format!("{path}{location}");
    }
    if location.starts_with('/') || location.contains("://") {
        return location.to_owned();
    }
    let directory = path.rfind('/').map_or("/", |end| &path[..=end]);
    format!("{directory}{location}")
}

fn port(url: &Uri) -> u16 {
    url.port_u16().unwrap_or_else(|| usual_port(url))
}

const HTTPS: u16 = 443;

fn usual_port(url: &Uri) -> u16 {
    if url.scheme_str() == Some("https") { HTTPS } else { 80 }
}

impl NoAnswer {
    pub(crate) fn failing(&self, contract: &Contract) -> CallFailure {
        let (condition, outcome, why) = match self {
            Self::Failed(Unanswered::Unreachable(error)) => (
                Condition::UpstreamUnreachable,
                Outcome::NotSent,
                format!("The server cannot be reached: {}", root(&**error)),
            ),
            Self::Failed(Unanswered::Broken(error)) if error.is_parse() => (
                Condition::UpstreamProtocol,
                Outcome::MaybeExecuted,
                "The server does not speak HTTP".to_owned(),
            ),
            Self::Failed(Unanswered::Broken(error)) => (
                Condition::UpstreamCrashed,
                Outcome::MaybeExecuted,
                format!("The connection to the server broke: {}", root(error)),
            ),
            Self::Redirected(why) => (
                Condition::UpstreamUnreachable,
                Outcome::NotSent,
                format!("The server cannot be reached: {why}"),
            ),
        };
        CallFailure::observed(contract, condition).saying(why).outcome(outcome)
    }
}

/// What is at the bottom of an error, in words that tell.
fn root(error: &(dyn Error + 'static)) -> String {
    let mut bottom = error;
    while let Some(source) = bottom.source() {
        bottom = source;
    }
    match bottom.downcast_ref::<io::Error>().map(io::Error::kind) {
        Some(io::ErrorKind::ConnectionRefused) => "the connection was refused".to_owned(),
        Some(io::ErrorKind::TimedOut) => "it does not accept connections in time".to_owned(),
        _ => bottom.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_sent_once_and_those_of_the_gateway_are_not_for_others_to_set() {
        let remote = Endpoint::at("http://127.0.0.1:9/mcp").unwrap();
        let remote = remote.with_header("host", "elsewhere").unwrap();
        let remote = remote.with_header("mcp-api-key", "7").unwrap();
        let transport = HttpTransport::new(&remote).unwrap();
        let sent: Vec<_> = transport.posting.get_all(HOST).iter().collect();
        assert_eq!(sent, ["elsewhere"]);
        assert_eq!(transport.asking["mcp-api-key"], "7");
        for own in ["Mcp-Name", "mcp-param-region", "TE", "traceparent", "content-length"] {
            let refused = remote.clone().with_header(own, "7");
            assert!(matches!(refused, Err(RemoteError::OwnHeader(name)) if name == own), "{own}");
        }
    }

    #[test]
    fn a_redirect_leads_to_the_same_server_only() {
        let from: Uri = "http://host:81/a/mcp".parse().unwrap();
        let rows = [
            ("/other", Some("http://host:81/other")),
            ("other", Some("http://host:81/a/other")),
            ("?q=1", Some("http://host:81/a/mcp?q=1")),
            ("http://HOST:81/other", Some("http://HOST:81/other")),
            ("//host:81/x", Some("http://host:81/x")),
            ("https://host/x", Some("https://host/x")),
            ("https://host:9999/x", None),
            ("http://host:82/x", None),
            ("http://host/x", None),
            ("http://host.evil:81/x", None),
            ("//evil/x", None),
        ];
        for (location, to) in rows {
            let headers = HeaderMap::from_iter([(LOCATION, location.parse().unwrap())]);
            let led = onward(&from, &headers).ok().map(|url| url.to_string());
            assert_eq!(led.as_deref(), to, "{location}");
        }
        let secure: Uri = "https://host/mcp".parse().unwrap();
        let headers = HeaderMap::from_iter([(LOCATION, "http://host:443/x".parse().unwrap())]);
        assert!(onward(&secure, &headers).is_err());
    }
}
