//! Handing a message to the pipeline, or several at once, and waiting for what comes of it.

use std::sync::Arc;

use faultwire_contract::{Aspect, Condition, Line, Outcome, Sort, Surface, peek};
use hyper::{Response, StatusCode};
use serde_json::value::RawValue;

use crate::batch;
use crate::body::Body;
use crate::body::OnEnd;
use crate::busy_poll::FEW;
use crate::call::{Bridged, ClientContext, RequestContext, trace_of};
use crate::client_sink::ClientSink;
use crate::connection::{Connection, Verdict};
use crate::edge;
use crate::era;
use crate::exchange::{Exchange, ExchangeShare};
use crate::failing::CallFailure;
use crate::front::http::accept::Accept;
use crate::front::http::answer::{self, ResponseOptions, accepted, refuse_with};
use crate::guard::version::{self, Objection};
use crate::mount::session::ClientSession;
use crate::rewrite::Rewrite;
use crate::session::{Checked, UpstreamSlot};
use crate::wire;

/// A message of a session, or a batch of them.
pub(super) async fn in_session(
    session: &Arc<ClientSession>,
    accept: Accept<'_>,
    line: &[u8],
    seen: &Line<'_>,
) -> Response<Body> {
    if line.trim_ascii_start().starts_with(b"[")
        && let Some(members) = batch::members(line)
    {
        return several(session, accept, &members).await;
    }
    let context = accept.context(&session.client);
    // To a stream that is not read any more nothing is sent: there may be another one.
    let on_end: OnEnd = Box::new(|exchange| _ = exchange.abandon());
    let checked = session.running.connection.check_aside(&session.client, seen).await;
    let hear = |context: RequestContext<'_>| {
        hear(session, context, line, seen, checked.as_ref());
    };
    exchange(context, accept, seen, on_end, hear).await
}

/// The messages of a batch, each as if it had come alone: no server has to know what a batch is.
async fn several(
    session: &Arc<ClientSession>,
    accept: Accept<'_>,
    members: &[&RawValue],
) -> Response<Body> {
    let client = &session.client;
    // A list is no problem that HTTP has details of.
    let accept = Accept { surface: Surface::Mcp, ..accept };
    let most = client.settings.limits.in_flight;
    if members.len() > most {
        let failing = no_message(client, format!("A batch has at most {most} messages"));
        let status = Some(StatusCode::BAD_REQUEST);
        return refuse_with(client, accept, status, None, failing, wire::INVALID_REQUEST).await;
    }
    let exchange =
        Arc::new(Exchange::owing(members.len(), accept.streams, client.responder.quota()));
    for member in members {
        let share = Arc::new(ExchangeShare::of(&exchange)) as Arc<dyn ClientSink>;
        let context = RequestContext { sink: Some(&share), ..accept.context(client) };
        let line = format!("{}\n", member.get());
        let seen = peek(line.as_bytes());
        let checked = session.running.connection.check_aside(client, &seen).await;
        hear(session, context, line.as_bytes(), &seen, checked.as_ref());
    }
    answer::of_all(exchange, &ResponseOptions::new(client, accept.surface)).await
}

/// Hands over a message of a session, or answers it where the server could not.
fn hear(
    session: &ClientSession,
    context: RequestContext<'_>,
    line: &[u8],
    seen: &Line<'_>,
    checked: Option<&Checked<'_>>,
) {
    let connection = &session.running.connection;
    let Some(bridge) = session.bridge.get() else {
        return hand_over(connection, context, line, seen, checked);
    };
    let method = seen.method.as_deref().unwrap_or_default();
    if method == wire::INITIALIZED {
        return;
    }
    let context = RequestContext { bridged: Bridged::LegacyClient, ..context };
    let Some(id) = seen.id.filter(|id| wire::is_id(id)) else {
        return hand_over(connection, context, line, seen, checked);
    };
    if let Some(result) = bridge.answers(seen) {
        context.sink().reply(&Rewrite::new(&wire::result(id, |out| {
            out.extend_from_slice(result.to_string().as_bytes());
        })));
    } else if era::is_only_legacy(method) {
        let contract = context.client.contract();
        let Objection { failing, number } =
            *version::not_carried(contract, method, &version::MODERN);
        let trace = trace_of(context.trace, seen);
        let context = RequestContext { trace: trace.as_deref(), ..context };
        context.client.responder.refuse(context, Some(id), number, failing);
    } else if let Some(modern) = bridge.modern(seen) {
        hand_over(connection, context, &modern, &peek(&modern), checked);
    } else {
        hand_over(connection, context, line, seen, checked);
    }
}

/// Has a message heard, and waits for what comes of it.
pub(super) async fn exchange(
    context: RequestContext<'_>,
    accept: Accept<'_>,
    seen: &Line<'_>,
    on_end: OnEnd,
    hear: impl FnOnce(RequestContext<'_>),
) -> Response<Body> {
    let client = context.client;
    let exchange = Arc::new(Exchange::owing(1, accept.streams, client.responder.quota()));
    let sink = Arc::clone(&exchange) as Arc<dyn ClientSink>;
    hear(RequestContext { sink: Some(&sink), ..context });
    drop(sink);
    // Whatever is to answer holds a reference to the exchange.
    if Arc::strong_count(&exchange) == 1 && exchange.is_empty() {
        if matches!(seen.sort(), Sort::Notification | Sort::Reply) {
            return accepted();
        }
        let failing = no_message(client, "The body has no message");
        let status = Some(StatusCode::BAD_REQUEST);
        return refuse_with(client, accept, status, None, failing, wire::INVALID_REQUEST).await;
    }
    let modern = context.known_as.is_some();
    let options = ResponseOptions { modern, ..ResponseOptions::new(client, accept.surface) };
    answer::of(exchange, options, on_end).await
}

/// Something that is no message.
pub(super) fn no_message(client: &ClientContext, why: impl Into<String>) -> CallFailure {
    CallFailure::finer(client.contract(), Condition::InvalidArguments, Some(Aspect::Format))
        .saying(why)
        .outcome(Outcome::NotSent)
}

/// Gives a line to the server, if it may pass.
pub(super) fn hand_over(
    connection: &Arc<Connection>,
    context: RequestContext<'_>,
    line: &[u8],
    seen: &Line<'_>,
    checked: Option<&Checked<'_>>,
) {
    let mut pipe = connection.writer.lock();
    let slot = UpstreamSlot { at: pipe.position(), free: pipe.free(), now: edge::now() };
    let verdict = connection.on_client_seen(context, line, seen, checked, slot);
    let line = match &verdict {
        Verdict::Pass if pipe.send_seen(line, seen) => return,
        Verdict::Pass => line,
        Verdict::Instead(other) => other,
        Verdict::Drop | Verdict::Unfinished | Verdict::Later(_) => return,
    };
    if connection.session().open_calls() <= FEW {
        return connection.writer.send(&mut pipe, line);
    }
    // Others have something for the server, too: all of it costs one write.
    if connection.writer.put(&mut pipe, line) {
        let connection = Arc::clone(connection);
        tokio::spawn(async move { connection.writer.flush() });
    }
}
