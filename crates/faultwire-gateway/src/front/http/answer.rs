//! From what the pipeline said to what HTTP says.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use faultwire_contract::{Condition, Surface};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};

use crate::body::Body;
use crate::body::OnEnd;
use crate::call::{ClientContext, RequestContext};
use crate::client_sink::ClientSink;
use crate::exchange::{Exchange, HttpError, Piece};
use crate::failing::CallFailure;
use crate::front::http::accept::Accept;
use crate::guard::refusals::Stranger;
use crate::wire;

/// How long a reply is waited for before the answer begins without it, for clients that take a
/// stream: a proxy on the way may give up on an answer that does not begin.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is known of the answer before there is one.
pub(crate) struct ResponseOptions {
    pub client: Arc<ClientContext>,
    pub surface: Surface,
    pub modern: bool,
    /// A status that the protocol fixes for failures.
    pub status: Option<StatusCode>,
}

impl ResponseOptions {
    pub(crate) fn new(client: &Arc<ClientContext>, surface: Surface) -> Self {
        Self { client: Arc::clone(client), surface, modern: false, status: None }
    }

    /// The media type of a failure.
    fn failure_type(&self) -> HeaderValue {
        let media = self.client.contract().content_type(Surface::Http);
        match self.surface {
            Surface::Http => HeaderValue::from_str(media).unwrap_or(JSON),
            Surface::Mcp => JSON,
        }
    }
}

/// The answer to a request that stays outside: no message of MCP was read.
pub(crate) async fn refuse(
    client: &Arc<ClientContext>,
    stranger: &Stranger<'_>,
    trace: Option<&str>,
    condition: Condition,
    why: &str,
) -> Response<Body> {
    let failing = CallFailure::observed(client.contract(), condition).saying(why);
    let stranger = Some(stranger);
    let accept = Accept { streams: false, surface: Surface::Http, trace, stranger };
    refuse_with(client, accept, None, None, failing, wire::INVALID_REQUEST).await
}

/// The same for a failure that is known better, with the status that the protocol fixes.
pub(crate) async fn refuse_with(
    client: &Arc<ClientContext>,
    accept: Accept<'_>,
    status: Option<StatusCode>,
    id: Option<&str>,
    failing: CallFailure,
    number: i64,
) -> Response<Body> {
    let exchange = Arc::new(Exchange::owing(1, false, client.responder.quota()));
    let sink = Arc::clone(&exchange) as Arc<dyn ClientSink>;
    let context = RequestContext { sink: Some(&sink), ..accept.context(client) };
    client.responder.refuse(context, id, number, failing);
    let options = ResponseOptions { status, ..ResponseOptions::new(client, accept.surface) };
    of(exchange, options, Box::new(|_| {})).await
}

/// Waits for what the pipeline says, and puts it as JSON, or as a stream if there is more to it.
pub(crate) async fn of(
    exchange: Arc<Exchange>,
    options: ResponseOptions,
    on_end: OnEnd,
) -> Response<Body> {
    let mut guard = Leaving { exchange: Arc::clone(&exchange), on_end: Some(on_end) };
    let Some(first) = first(&exchange).await else {
        return stream(&exchange, None, guard.take());
    };
    match first {
        Some(Piece::Message(_)) => stream(&exchange, first, guard.take()),
        Some(_) if !exchange.is_over() && exchange.streams => {
            stream(&exchange, first, guard.take())
        }
        Some(Piece::Reply(line)) => json(line),
        Some(Piece::Failed(line, http_error)) => failed(line, http_error, &options),
        None => accepted(),
    }
}

/// The same for the answers to several requests: a list, or a stream of them.
pub(crate) async fn of_all(exchange: Arc<Exchange>, options: &ResponseOptions) -> Response<Body> {
    let on_end: OnEnd = Box::new(|exchange| _ = exchange.abandon());
    let mut guard = Leaving { exchange: Arc::clone(&exchange), on_end: Some(on_end) };
    let mut next = first(&exchange).await;
    let (mut list, mut replies, mut http_error) = (vec![b'['], 0, None);
    loop {
        let Some(piece) = next else { return stream(&exchange, None, guard.take()) };
        let Some(piece) = piece else { break };
        if exchange.streams && !exchange.is_over() {
            return stream(&exchange, Some(piece), guard.take());
        }
        let (Piece::Message(line) | Piece::Reply(line) | Piece::Failed(line, _)) = &piece;
        if replies > 0 {
            list.push(b',');
        }
        list.extend_from_slice(line);
        replies += 1;
        if let Piece::Failed(_, why) = piece {
            http_error = Some(why);
        }
        next = Some(poll_fn(|context| exchange.poll_piece(context)).await);
    }
    list.push(b']');
    match (replies, http_error) {
        (0, _) => accepted(),
        (1, Some(http_error)) => failed(list.into(), http_error, options),
        _ => json(list),
    }
}

/// What comes first; none if that takes too long for who takes a stream.
async fn first(exchange: &Exchange) -> Option<Option<Piece>> {
    let next = poll_fn(|context| exchange.poll_piece(context));
    if exchange.streams {
        tokio::time::timeout(PATIENCE, next).await.ok()
    } else {
        Some(next.await)
    }
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A message as it is.
pub(crate) fn json(line: impl Into<Bytes>) -> Response<Body> {
    let mut answer = Response::new(Body::whole(line));
    answer.headers_mut().insert(CONTENT_TYPE, JSON);
    answer
}

/// Nothing is to be answered.
pub(crate) fn accepted() -> Response<Body> {
    bare(StatusCode::ACCEPTED)
}

/// A status and nothing else.
pub(crate) fn bare(status: StatusCode) -> Response<Body> {
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = status;
    answer
}

/// A stream of events.
pub(crate) fn stream(
    exchange: &Arc<Exchange>,
    first: Option<Piece>,
    on_end: OnEnd,
) -> Response<Body> {
    let mut answer = Response::new(Body::events(Arc::clone(exchange), first, on_end));
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    answer
}

fn failed(line: Bytes, http_error: HttpError, options: &ResponseOptions) -> Response<Body> {
    let http = options.surface == Surface::Http;
    let status = match (http, http_error.number) {
        (true, _) => StatusCode::from_u16(http_error.status).ok(),
        (false, Some(number)) => options.status.or_else(|| fixed_status(number, options.modern)),
        (false, None) => options.status,
    };
    let status = status.unwrap_or(StatusCode::OK);
    let mut answer = Response::new(Body::whole(line));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, options.failure_type());
    if let Some(seconds) = http_error.retry_after.filter(|_| status.as_u16() >= 400) {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    answer
}

/// The status that goes with a JSON-RPC error.
fn fixed_status(number: i64, modern: bool) -> Option<StatusCode> {
    match number {
        wire::PARSE_ERROR | wire::INVALID_REQUEST => Some(StatusCode::BAD_REQUEST),
        -32601 if modern => Some(StatusCode::NOT_FOUND),
        -32602 | -32020 | -32021 | -32022 if modern => Some(StatusCode::BAD_REQUEST),
        _ => None,
    }
}

/// Knows when the client leaves before its answer came.
struct Leaving {
    exchange: Arc<Exchange>,
    on_end: Option<OnEnd>,
}

impl Leaving {
    /// Leaves that to the stream.
    fn take(&mut self) -> OnEnd {
        self.on_end.take().unwrap_or_else(|| Box::new(|_| {}))
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        if let Some(on_end) = self.on_end.take() {
            on_end(&self.exchange);
        }
    }
}
