//! MCP over HTTP: which session a message belongs to, and what the protocol wants around it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;

use faultwire_contract::{Aspect, Condition, Line, Sort, Surface, peek};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};

use crate::edge;
use crate::exchange::Exchange;
use crate::failing::Failing;
use crate::front::http::Body;
use crate::front::http::answer::{self, Manner, accepted, bare, refuse_with};
use crate::front::http::body::OnEnd;
use crate::gateway::Gateway;
use crate::link::{Link, Verdict};
use crate::mount::session::Session;
use crate::mount::{Mount, NoSession};
use crate::outlet::Outlet;
use crate::party::{Asker, KnownAs, Party};
use crate::pipeline::Place;
use crate::wire;

const SESSION: &str = "mcp-session-id";

/// A request to a mount.
pub(crate) async fn answer(
    gateway: &Arc<Gateway>,
    mount: &Arc<Mount>,
    request: Request<Incoming>,
) -> Response<Body> {
    match *request.method() {
        Method::POST => post(gateway, mount, request).await,
        Method::GET => get(mount, request.headers()).await,
        Method::DELETE => delete(mount, request.headers()).await,
        _ => {
            let mut answer = bare(StatusCode::METHOD_NOT_ALLOWED);
            answer.headers_mut().insert("allow", HeaderValue::from_static("GET, POST, DELETE"));
            answer
        }
    }
}

/// What a client takes for an answer.
#[derive(Clone, Copy)]
struct Takes {
    streams: bool,
    surface: Surface,
}

impl Takes {
    fn of(headers: &HeaderMap) -> Self {
        let mut takes = Self { streams: false, surface: Surface::Mcp };
        let Some(accept) = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()) else {
            return takes;
        };
        let has = |media: &str| memchr::memmem::find(accept.as_bytes(), media.as_bytes()).is_some();
        takes.streams = has("text/event-stream");
        // Who takes problem details and nothing of MCP asks as a client of HTTP.
        if !takes.streams && has("application/problem+json") {
            takes.surface = Surface::Http;
        }
        takes
    }
}

async fn post(
    gateway: &Arc<Gateway>,
    mount: &Arc<Mount>,
    request: Request<Incoming>,
) -> Response<Body> {
    let (head, body) = request.into_parts();
    let takes = Takes::of(&head.headers);
    let line = match read(body, gateway.limits.body_bytes).await {
        Ok(line) => line,
        Err(why) => {
            let party = &mount.anybody;
            let failing =
                Failing::finer(party.contract(), Condition::InvalidArguments, Some(Aspect::Value));
            return refuse_with(party, Surface::Http, None, failing.saying(why), 0).await;
        }
    };
    let seen = peek(&line);
    if let Some(id) = session_id(&head.headers) {
        return match mount.session(id) {
            Some(session) => in_session(&session, takes, &line, &seen).await,
            None => no_session(mount, takes.surface).await,
        };
    }
    if seen.method.as_deref() == Some(wire::INITIALIZE) {
        return begin(mount, takes, &line, &seen).await;
    }
    statelessly(mount, takes, &line, &seen).await
}

/// A message of a session.
async fn in_session(
    session: &Arc<Session>,
    takes: Takes,
    line: &[u8],
    seen: &Line<'_>,
) -> Response<Body> {
    let link = &session.running.link;
    exchange(link, &session.party, takes, None, line, seen, Box::new(|_| {})).await
}

/// The first message of a session.
async fn begin(mount: &Arc<Mount>, takes: Takes, line: &[u8], seen: &Line<'_>) -> Response<Body> {
    let facts = mount.anybody.session().clone();
    let session = match mount.begin(facts) {
        Ok(session) => session,
        Err(why) => return crowded(mount, takes.surface, &why).await,
    };
    let mut answer = in_session(&session, takes, line, seen).await;
    if session.running.link.state().handshake.agreed {
        if let Ok(id) = HeaderValue::from_str(&session.id) {
            answer.headers_mut().insert(SESSION, id);
        }
    } else {
        mount.end(&session.id);
    }
    answer
}

/// A message that stands for itself, as all do in the modern era.
async fn statelessly(
    mount: &Arc<Mount>,
    takes: Takes,
    line: &[u8],
    seen: &Line<'_>,
) -> Response<Body> {
    let party = &mount.anybody;
    let shared = match mount.shared() {
        Ok(shared) => shared,
        Err(why) => return crowded(mount, takes.surface, &NoSession::Start(why)).await,
    };
    let link = Arc::clone(&shared.running.link);
    if !matches!(seen.sort(), Sort::Request) {
        return exchange(&link, party, takes, None, line, seen, Box::new(|_| {})).await;
    }
    let translated = shared.translate(seen);
    let known = KnownAs {
        id: seen.id.unwrap_or_default(),
        token: crate::mount::shared::progress_token(seen),
    };
    let seen = peek(&translated.line);
    let (leaving, id) = (Arc::clone(&link), translated.id);
    let on_end: OnEnd = Box::new(move |exchange| {
        if exchange.abandon() > 0 {
            leaving.left(&id);
        }
    });
    let line = &translated.line;
    exchange(&link, party, takes, Some(known), line, &seen, on_end).await
}

/// Hands a message to the pipeline, and waits for what comes of it.
async fn exchange(
    link: &Arc<Link>,
    party: &Arc<Party>,
    takes: Takes,
    known_as: Option<KnownAs<'_>>,
    line: &[u8],
    seen: &Line<'_>,
    on_end: OnEnd,
) -> Response<Body> {
    let replies = expected(line, seen);
    let limits = &party.settings.limits;
    let exchange = Arc::new(Exchange::owing(replies.max(1), takes.streams, limits.line_bytes));
    let outlet = Arc::clone(&exchange) as Arc<dyn Outlet>;
    let asker = Asker { party, outlet: Some(&outlet), known_as, surface: takes.surface };
    let passed = hand_over(link, asker, line);
    if replies == 0 && (passed || !is_refused(seen)) {
        return accepted();
    }
    let modern = known_as.is_some();
    let manner = Manner { modern, ..Manner::new(party, takes.surface) };
    drop(outlet);
    answer::of(exchange, manner, on_end).await
}

/// Gives a line to the server. Whether it passed.
fn hand_over(link: &Link, asker: Asker<'_>, line: &[u8]) -> bool {
    let mut pipe = link.inlet.lock();
    let place = Place { at: pipe.position(), room: pipe.room(), now: edge::now() };
    match link.hear_client(asker, line, place) {
        Verdict::Pass => {
            link.inlet.send(&mut pipe, line);
            true
        }
        Verdict::Instead(other) => {
            link.inlet.send(&mut pipe, &other);
            true
        }
        Verdict::Drop | Verdict::Unfinished => false,
    }
}

/// How many replies a message will get.
fn expected(line: &[u8], seen: &Line<'_>) -> usize {
    match seen.sort() {
        Sort::Request => 1,
        Sort::Malformed(_) if line.trim_ascii_start().starts_with(b"[") => {
            let members = crate::batch::members(line).unwrap_or_default();
            members
                .iter()
                .filter(|m| matches!(peek(m.get().as_bytes()).sort(), Sort::Request))
                .count()
        }
        Sort::Reply | Sort::Notification | Sort::Malformed(_) => 0,
    }
}

/// Whether the pipeline answers a message that is no request.
fn is_refused(seen: &Line<'_>) -> bool {
    match seen.sort() {
        Sort::Malformed(_) => true,
        Sort::Reply => seen.id.is_none(),
        Sort::Request | Sort::Notification => false,
    }
}

/// The stream for messages that belong to no call.
async fn get(mount: &Arc<Mount>, headers: &HeaderMap) -> Response<Body> {
    let Some(id) = session_id(headers) else { return bare(StatusCode::METHOD_NOT_ALLOWED) };
    let Some(session) = mount.session(id) else { return no_session(mount, Surface::Mcp).await };
    let standing = session.streams.open();
    answer::stream(&standing, None, Box::new(|exchange| _ = exchange.abandon()))
}

async fn delete(mount: &Arc<Mount>, headers: &HeaderMap) -> Response<Body> {
    let Some(id) = session_id(headers) else { return bare(StatusCode::METHOD_NOT_ALLOWED) };
    if mount.end(id) { bare(StatusCode::NO_CONTENT) } else { no_session(mount, Surface::Mcp).await }
}

fn session_id(headers: &HeaderMap) -> Option<&str> {
    headers.get(SESSION)?.to_str().ok()
}

/// The protocol says 404 here, and clients begin a new session then.
async fn no_session(mount: &Mount, surface: Surface) -> Response<Body> {
    let party = &mount.anybody;
    let failing = Failing::observed(party.contract(), Condition::NotReady)
        .saying("There is no such session; begin a new one");
    let status = Some(StatusCode::NOT_FOUND);
    refuse_with(party, surface, status, failing, wire::INVALID_REQUEST).await
}

async fn crowded(mount: &Mount, surface: Surface, why: &NoSession) -> Response<Body> {
    let party = &mount.anybody;
    let condition = match why {
        NoSession::Crowded(_) => Condition::RateLimited,
        NoSession::Start(_) => Condition::UpstreamUnreachable,
    };
    let failing = Failing::observed(party.contract(), condition).saying(why.to_string());
    let status = Some(StatusCode::SERVICE_UNAVAILABLE);
    refuse_with(party, surface, status, failing, condition.rpc_code()).await
}

/// The body on one line.
async fn read(body: Incoming, limit: usize) -> Result<Vec<u8>, String> {
    let too_long = || format!("The body has more than {limit} bytes");
    let expected = body.size_hint().exact().and_then(|n| usize::try_from(n).ok());
    if expected.is_some_and(|n| n > limit) {
        return Err(too_long());
    }
    let mut line = Vec::with_capacity(expected.unwrap_or(0).min(64 * 1024) + 1);
    let mut body = body;
    while let Some(frame) = next_frame(&mut body).await {
        let frame = frame.map_err(|_| "The body was cut off".to_owned())?;
        if let Some(data) = frame.data_ref() {
            if line.len() + data.len() > limit {
                return Err(too_long());
            }
            line.extend_from_slice(data);
        }
    }
    // Line ends are blanks in JSON; inside texts they cannot stand.
    if memchr::memchr2(b'\n', b'\r', &line).is_some() {
        line.iter_mut().filter(|b| matches!(b, b'\n' | b'\r')).for_each(|b| *b = b' ');
    }
    line.push(b'\n');
    Ok(line)
}

async fn next_frame(
    body: &mut Incoming,
) -> Option<Result<http_body::Frame<bytes::Bytes>, hyper::Error>> {
    std::future::poll_fn(|context: &mut Context<'_>| Pin::new(&mut *body).poll_frame(context)).await
}
