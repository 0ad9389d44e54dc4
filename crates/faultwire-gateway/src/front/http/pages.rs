//! Everything that is no MCP: health, metrics, and a page that shows how things are.

use faultwire_contract::Condition;
use hyper::body::Incoming;
use hyper::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};

use crate::body::Body;
use crate::front::http::accept::Accept;
use crate::front::http::answer::refuse;
use crate::front::http::mcp::unknown;
use crate::gateway::{Gateway, Status};
use crate::guard::host::Hosts;
use crate::guard::refusals::Stranger;

const PAGE: &str = include_str!("status.html");

pub(crate) async fn answer(
    gateway: &Gateway,
    stranger: &Stranger<'_>,
    request: &Request<Incoming>,
) -> Response<Body> {
    let path = match *request.method() {
        Method::GET | Method::HEAD => request.uri().path(),
        _ => "",
    };
    match path {
        "/healthz" => return with("text/plain; charset=utf-8", "ok\n"),
        "/readyz" if gateway.is_closing() => return not_ready("closing\n"),
        "/readyz" if !gateway.can_record() => return not_ready("failures cannot be recorded\n"),
        "/readyz" => return with("text/plain; charset=utf-8", "ready\n"),
        "/" | "/metrics" | "/api/status" => {}
        _ => {
            let client = gateway.anybody_at(path);
            let accept = Accept { stranger: Some(stranger), ..Accept::of(request.headers()) };
            return unknown(&client, accept, StatusCode::NOT_FOUND, "Not found").await;
        }
    }
    // What failed here, and for whom, is shown only on this machine.
    if !stranger.peer.is_local || !Hosts::is_loopback(request.headers()) {
        let why = "This page is only shown on the gateway's own machine, and not through a proxy";
        let client = gateway.anybody_at(path);
        return refuse(&client, stranger, None, Condition::Forbidden, why).await;
    }
    match path {
        "/metrics" => with("text/plain; version=0.0.4; charset=utf-8", gateway.metrics()),
        "/api/status" => {
            let status = serde_json::to_string(&gateway.status()).unwrap_or_default();
            with("application/json", status)
        }
        _ => {
            let mut answer = with("text/html; charset=utf-8", page(&gateway.status()));
            let policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";
            let policy = HeaderValue::from_static(policy);
            answer.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
            answer
        }
    }
}

fn not_ready(why: &'static str) -> Response<Body> {
    let mut answer = with("text/plain; charset=utf-8", why);
    *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    answer
}

fn with(media: &'static str, text: impl Into<bytes::Bytes>) -> Response<Body> {
    let mut answer = Response::new(Body::whole(text));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media));
    answer
}

fn page(status: &Status) -> String {
    let mut mounts = String::new();
    for mount in &status.mounts {
        let name = format!("<code>/mcp/{}</code>", escaped(&mount.name));
        let (contract, servers) = (escaped(&mount.contract), mount.servers);
        let open = mount.open_calls;
        mounts.push_str(&format!("<tr><td>{name}<td>{contract}<td>{servers}<td>{open}</tr>\n"));
    }
    let mut failures = String::new();
    for shown in &status.failures {
        failures.push_str(&format!(
            "<tr><td class=time>{}<td class=code><code>{}</code><td>{}<td>{}\
             <td class=message>{}<td class=incident><code>{}</code></tr>\n",
            escaped(&shown.time),
            escaped(&shown.code),
            escaped(&shown.tool),
            escaped(&shown.client),
            escaped(&shown.message),
            escaped(&shown.incident)
        ));
    }
    if failures.is_empty() {
        failures.push_str("<tr><td colspan=6 class=none>None since the start.</tr>\n");
    }
    PAGE.replace("{{mounts}}", &mounts).replace("{{failures}}", &failures)
}

fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // A message must not look like a place for something else.
            '{' => safe.push_str("&#123;"),
            c => safe.push(c),
        }
    }
    safe
}
