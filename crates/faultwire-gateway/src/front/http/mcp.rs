//! MCP over HTTP: which session a message belongs to, and what the protocol wants around it.

use std::sync::Arc;

use faultwire_contract::{Aspect, Condition, Line, Outcome, Sort, Surface, peek, start_check};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};

use crate::body::Body;
use crate::body::OnEnd;
use crate::call::{Bridged, ClientContext, KnownAs, RequestContext, trace_of};
use crate::era;
use crate::failing::CallFailure;
use crate::front::http::accept::Accept;
use crate::front::http::answer::{self, accepted, bare, refuse, refuse_with};
use crate::front::http::dispatch::{self, exchange, hand_over, in_session};
use crate::front::http::initialize::begin;
use crate::front::http::read_body::read;
use crate::gateway::Gateway;
use crate::guard::access::Access;
use crate::guard::refusals::Stranger;
use crate::guard::version::{self, Objection};
use crate::header_params::{self, Head};
use crate::last_output::LastOutput;
use crate::memory_quota::SHORT;
use crate::mount::session::ClientSession;
use crate::mount::shared::progress_token;
use crate::mount::{Mount, NoSession};
use crate::probe::Era;
use crate::request::ToolCall;

use crate::wire;

const NOT_FOUND: Option<StatusCode> = Some(StatusCode::NOT_FOUND);
const BAD: Option<StatusCode> = Some(StatusCode::BAD_REQUEST);

/// A request to a mount.
pub(crate) async fn answer(
    gateway: &Arc<Gateway>,
    mount: &Arc<Mount>,
    stranger: &Stranger<'_>,
    request: Request<Incoming>,
) -> Response<Body> {
    let clients = gateway.clients();
    let Some(access) = clients.find(bearer(request.headers())) else {
        return unauthorized(gateway, mount, stranger, request).await;
    };
    match *request.method() {
        Method::POST => post(gateway, mount, access, request).await,
        Method::GET => get(mount, access, request.headers()).await,
        Method::DELETE => delete(mount, access, request.headers()).await,
        _ => not_allowed(&mount.client(access), request.headers()).await,
    }
}

/// The answer to a client without a valid token: to the request, if it can be read, else to HTTP.
async fn unauthorized(
    gateway: &Gateway,
    mount: &Mount,
    stranger: &Stranger<'_>,
    request: Request<Incoming>,
) -> Response<Body> {
    let why = "Send a valid bearer token in the Authorization header";
    let condition = Condition::Unauthorized;
    let (head, body) = request.into_parts();
    let accept = Accept::of(&head.headers);
    let client = &mount.anybody();
    if head.method != Method::POST {
        return refuse(client, stranger, accept.trace, condition, why).await;
    }
    let limit = SHORT.min(gateway.limits.body_bytes);
    let line = read(body, limit, mount).await.unwrap_or_default();
    let seen = peek(&line);
    let trace = trace_of(accept.trace, &seen);
    let is_request = matches!(seen.sort(), Sort::Request) && seen.id.is_some_and(wire::is_id);
    if accept.surface == Surface::Http || !is_request {
        return refuse(client, stranger, trace.as_deref(), condition, why).await;
    }
    let failing = CallFailure::observed(client.contract(), condition).saying(why);
    let number = condition.rpc_code();
    let row = client.contract().code_for(condition, None);
    let status = row.status.first().and_then(|status| StatusCode::from_u16(*status).ok());
    let accept = Accept { trace: trace.as_deref(), stranger: Some(stranger), ..accept };
    refuse_with(client, accept, status, seen.id, failing, number).await
}

async fn not_allowed(client: &Arc<ClientContext>, headers: &HeaderMap) -> Response<Body> {
    let why = "Without a session only POST is supported";
    let mut answer =
        unknown(client, Accept::of(headers), StatusCode::METHOD_NOT_ALLOWED, why).await;
    answer.headers_mut().insert("allow", HeaderValue::from_static("GET, POST, DELETE"));
    answer
}

/// The answer to an unsupported request.
pub(crate) async fn unknown(
    client: &Arc<ClientContext>,
    accept: Accept<'_>,
    status: StatusCode,
    why: &str,
) -> Response<Body> {
    let condition = Condition::UnknownMethod;
    let failing =
        CallFailure::observed(client.contract(), condition).saying(why).outcome(Outcome::NotSent);
    // There is no request of JSON-RPC to answer.
    let accept = Accept { surface: Surface::Http, ..accept };
    let mut answer = refuse_with(client, accept, None, None, failing, condition.rpc_code()).await;
    *answer.status_mut() = status;
    answer
}

/// The token that a request shows.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

async fn post(
    gateway: &Arc<Gateway>,
    mount: &Arc<Mount>,
    access: &Arc<Access>,
    request: Request<Incoming>,
) -> Response<Body> {
    let (head, body) = request.into_parts();
    let accept = Accept::of(&head.headers);
    let line = match read(body, gateway.limits.body_bytes, mount).await {
        Ok(line) => line,
        Err(why) => {
            let client = &mount.client(access);
            let failing = CallFailure::finer(
                client.contract(),
                Condition::InvalidArguments,
                Some(Aspect::Value),
            );
            return refuse_with(
                client,
                Accept { surface: Surface::Http, ..accept },
                None,
                None,
                failing.saying(why),
                0,
            )
            .await;
        }
    };
    let seen = peek(&line);
    let asks = || matches!(seen.sort(), Sort::Request) || crate::batch::members(&line).is_some();
    if gateway.is_closing() && asks() {
        return closing(&mount.client(access), accept, &seen).await;
    }
    if let Some(id) = session_id(&head.headers) {
        return match mount.session(id, access) {
            Some(session) => {
                let contract = session.client.contract();
                if let Err(objection) = version::in_session(contract, &head.headers, Some(&seen)) {
                    return object(&session.client, accept, BAD, &seen, objection).await;
                }
                in_session(&session, accept, &line, &seen).await
            }
            None => no_session(&mount.client(access), accept, Some(&seen)).await,
        };
    }
    let initializes = seen.method.as_deref() == Some(wire::INITIALIZE);
    if initializes && !version::is_modern(&head.headers, &seen) {
        let client = &mount.client(access);
        if let Err(objection) = version::at_first(client.contract(), &head.headers, &seen) {
            return object(client, accept, BAD, &seen, objection).await;
        }
        return begin(mount, access, accept, &line, &seen).await;
    }
    let client = &mount.client(access);
    if !matches!(seen.sort(), Sort::Malformed(_))
        && let Err(objection) = version::statelessly(client.contract(), &head.headers, &seen)
    {
        return object(client, accept, BAD, &seen, objection).await;
    }
    match seen.sort() {
        Sort::Request if seen.id.is_some_and(wire::is_id) => {}
        Sort::Request => {
            return no_message(client, accept, &line, "its id is no text or number").await;
        }
        // Many share the server: what a client says beside its requests could be about another's.
        Sort::Notification | Sort::Reply => return accepted(),
        Sort::Malformed(why) => return no_message(client, accept, &line, why).await,
    }
    if initializes {
        let objection = version::removed(client.contract(), wire::INITIALIZE);
        return object(client, accept, NOT_FOUND, &seen, objection).await;
    }
    statelessly(mount, client, accept, &header_params::head(&head.headers), &seen).await
}

/// The answer to a body that is no request of the modern era, batches included.
async fn no_message(
    client: &Arc<ClientContext>,
    accept: Accept<'_>,
    line: &[u8],
    why: &str,
) -> Response<Body> {
    let number = match serde_json::from_slice::<serde::de::IgnoredAny>(line) {
        Ok(_) => wire::INVALID_REQUEST,
        Err(_) => wire::PARSE_ERROR,
    };
    let failing =
        dispatch::no_message(client, format!("The body is not a JSON-RPC request: {why}"));
    refuse_with(client, accept, BAD, None, failing, number).await
}

/// The gateway takes nothing new.
async fn closing(
    client: &Arc<ClientContext>,
    accept: Accept<'_>,
    seen: &Line<'_>,
) -> Response<Body> {
    let condition = Condition::NotReady;
    let failing = CallFailure::observed(client.contract(), condition)
        .saying("The gateway is shutting down")
        .outcome(Outcome::NotSent);
    let objection = Box::new(Objection { failing, number: condition.rpc_code() });
    let mut answer = object(client, accept, None, seen, objection).await;
    *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    answer
}

/// The answer to a request that is refused before it is a call.
pub(super) async fn object(
    client: &Arc<ClientContext>,
    accept: Accept<'_>,
    status: Option<StatusCode>,
    seen: &Line<'_>,
    objection: Box<Objection>,
) -> Response<Body> {
    let trace = trace_of(accept.trace, seen);
    let accept = Accept { trace: trace.as_deref(), ..accept };
    let Objection { mut failing, number } = *objection;
    failing.report.method = seen.method.as_deref().map(str::to_owned);
    if seen.method.as_deref() == Some(wire::TOOLS_CALL) {
        failing.report.tool = ToolCall::read(seen.params).map(|call| call.name.into_owned());
    }
    refuse_with(client, accept, status, seen.id, failing, number).await
}

/// A reply of our own.
pub(super) fn reply(seen: &Line<'_>, result: &serde_json::Value) -> Response<Body> {
    let mut line = wire::result(seen.id.unwrap_or("null"), |out| {
        out.extend_from_slice(result.to_string().as_bytes());
    });
    line.pop();
    answer::json(line)
}

/// A message that stands for itself, as all do in the modern era.
async fn statelessly(
    mount: &Arc<Mount>,
    client: &Arc<ClientContext>,
    accept: Accept<'_>,
    head: &Head,
    seen: &Line<'_>,
) -> Response<Body> {
    let shared = match mount.shared().await {
        Ok(shared) => shared,
        Err(why) => return crowded(client, accept, seen, &NoSession::Start(why)).await,
    };
    let connection = Arc::clone(&shared.running.connection);
    // What it takes to find that out is a part of the call's time.
    let patience = client.settings.deadlines.default;
    let Ok(era) = tokio::time::timeout(patience, shared.era()).await else {
        let condition = Condition::Timeout;
        let failing = CallFailure::observed(client.contract(), condition)
            .saying("The server does not say which protocol version it supports")
            .outcome(Outcome::NotSent);
        let objection = Box::new(Objection { failing, number: condition.rpc_code() });
        return object(client, accept, None, seen, objection).await;
    };
    let bridged = match era {
        Some(Era::Legacy { initialized }) => {
            let method = seen.method.as_deref().unwrap_or_default();
            if method == wire::DISCOVER {
                return reply(seen, &era::introduction(initialized));
            }
            if era::is_only_legacy(method) {
                let objection = version::removed(client.contract(), method);
                return object(client, accept, NOT_FOUND, seen, objection).await;
            }
            if method == wire::LISTEN {
                let objection = version::not_carried(client.contract(), method, &version::LEGACY);
                return object(client, accept, None, seen, objection).await;
            }
            Bridged::ModernClient
        }
        Some(Era::Modern) | None => Bridged::No,
    };
    let token = match progress_token(seen) {
        Ok(token) => token,
        Err(why) => {
            // One parser takes the first of two, another the last.
            let why = format!("The request has a member that occurs twice: {why}");
            let failing = dispatch::no_message(client, why);
            let objection = Box::new(Objection { failing, number: wire::INVALID_PARAMS });
            return object(client, accept, BAD, seen, objection).await;
        }
    };
    let translated = shared.translate(seen, token);
    let known = KnownAs { id: seen.id.unwrap_or_default(), token };
    let seen = peek(&translated.line);
    // The server stays for as long as the answer takes, though another may have taken its place.
    // A client that only listens has to open its stream again.
    let listens = seen.method.as_deref() == Some(wire::LISTEN);
    let stays = (!listens).then(|| Arc::clone(&shared));
    let (leaving, id) = (Arc::clone(&connection), translated.id);
    let on_end: OnEnd = Box::new(move |exchange| {
        if exchange.abandon() > 0 {
            leaving.client_left(&id);
        }
        drop(stays);
    });
    let line = &translated.line;
    let context = RequestContext {
        known_as: Some(known),
        bridged,
        head: Some(head),
        ..accept.context(client)
    };
    let checked = connection.check_aside(client, &seen).await;
    let hear = |context: RequestContext<'_>| {
        hand_over(&connection, context, line, &seen, checked.as_ref());
    };
    exchange(context, accept, &seen, on_end, hear).await
}

/// The stream for messages that belong to no call.
async fn get(mount: &Arc<Mount>, access: &Arc<Access>, headers: &HeaderMap) -> Response<Body> {
    let session = match named(mount, access, headers).await {
        Ok(session) => session,
        Err(refused) => return refused,
    };
    let standing = session.streams.open();
    answer::stream(&standing, None, Box::new(|exchange| _ = exchange.abandon()))
}

async fn delete(mount: &Arc<Mount>, access: &Arc<Access>, headers: &HeaderMap) -> Response<Body> {
    match named(mount, access, headers).await {
        Ok(session) if mount.end(&session.id) => bare(StatusCode::NO_CONTENT),
        Ok(_) => no_session(&mount.client(access), Accept::of(headers), None).await,
        Err(refused) => refused,
    }
}

/// The session that a request without a message is about.
async fn named(
    mount: &Mount,
    access: &Arc<Access>,
    headers: &HeaderMap,
) -> Result<Arc<ClientSession>, Response<Body>> {
    let (client, accept) = (&mount.client(access), Accept::of(headers));
    let Some(id) = session_id(headers) else { return Err(not_allowed(client, headers).await) };
    let Some(session) = mount.session(id, access) else {
        return Err(no_session(client, accept, None).await);
    };
    match version::in_session(client.contract(), headers, None) {
        Ok(()) => Ok(session),
        Err(objection) => {
            let Objection { failing, number } = *objection;
            let accept = Accept { surface: Surface::Http, ..accept };
            Err(refuse_with(client, accept, None, None, failing, number).await)
        }
    }
}

fn session_id(headers: &HeaderMap) -> Option<&str> {
    headers.get(&wire::SESSION)?.to_str().ok()
}

/// The protocol says 404 here, and clients begin a new session then.
async fn no_session(
    client: &Arc<ClientContext>,
    accept: Accept<'_>,
    seen: Option<&Line<'_>>,
) -> Response<Body> {
    let failing = CallFailure::observed(client.contract(), Condition::NotReady)
        .saying("Unknown session; send initialize to start a new one");
    let status = Some(StatusCode::NOT_FOUND);
    let id = seen.and_then(|seen| seen.id).filter(|id| wire::is_id(id));
    let surface = if seen.is_some() { accept.surface } else { Surface::Http };
    let trace = seen.map_or(accept.trace.map(Into::into), |seen| trace_of(accept.trace, seen));
    let accept = Accept { surface, trace: trace.as_deref(), ..accept };
    let mut answer = refuse_with(client, accept, status, id, failing, wire::INVALID_REQUEST).await;
    *answer.status_mut() = StatusCode::NOT_FOUND;
    answer
}

pub(super) async fn crowded(
    client: &Arc<ClientContext>,
    accept: Accept<'_>,
    seen: &Line<'_>,
    why: &NoSession,
) -> Response<Body> {
    let condition = match why {
        NoSession::Crowded(_) => Condition::RateLimited,
        NoSession::Start(error) if LastOutput::is_fault_of_command(error) => Condition::StartFailed,
        NoSession::Start(_) => Condition::UpstreamUnreachable,
    };
    let mut failing = CallFailure::observed(client.contract(), condition).saying(why.to_string());
    if let NoSession::Start(error) = why {
        failing.report.hints.check = start_check(&error.to_string()).map(str::to_owned);
    }
    let status = Some(StatusCode::SERVICE_UNAVAILABLE);
    object(
        client,
        accept,
        status,
        seen,
        Box::new(Objection { failing, number: condition.rpc_code() }),
    )
    .await
}
