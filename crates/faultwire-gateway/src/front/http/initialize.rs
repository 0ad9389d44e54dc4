//! The beginning of a session: a server for it, and what client and server call it.

use std::pin::pin;
use std::sync::Arc;

use faultwire_contract::{Condition, Line, Outcome};
use hyper::Response;
use hyper::header::HeaderValue;
use tokio::sync::oneshot;

use crate::body::Body;
use crate::call::OpenCall;
use crate::connection::Connection;
use crate::era::Bridge;
use crate::failing::CallFailure;
use crate::front::http::accept::Accept;
use crate::front::http::dispatch::in_session;
use crate::front::http::mcp::{crowded, object, reply};
use crate::guard::access::Access;
use crate::guard::version::Objection;
use crate::mount::Mount;
use crate::mount::session::ClientSession;
use crate::probe;
use crate::wire;

/// The first message of a session.
pub(super) async fn begin(
    mount: &Arc<Mount>,
    access: &Arc<Access>,
    accept: Accept<'_>,
    line: &[u8],
    seen: &Line<'_>,
) -> Response<Body> {
    let facts = mount.anybody().session().clone();
    let session = match mount.begin(facts, access).await {
        Ok(session) => session,
        Err(why) => return crowded(&mount.client(access), accept, seen, &why).await,
    };
    // A client that has left never hears the session's id.
    let mut begun = Begun { mount, id: &session.id, kept: false };
    let mut answer = if mount.is_only_modern() {
        if let Some(greeting) = bridged(mount, &session, seen).await {
            reply(seen, &greeting)
        } else {
            // Next time it may be another one.
            mount.turns_out_modern(false);
            unmet(&session, accept, seen).await
        }
    } else {
        greeted(mount, &session, accept, line, seen).await
    };
    if session.bridge.get().is_some() || session.running.connection.session().is_agreed() {
        if let Ok(id) = HeaderValue::from_str(&session.id) {
            answer.headers_mut().insert(&wire::SESSION, id);
        }
        begun.kept = true;
    }
    answer
}

/// What the server says to the greeting. One that refuses it may be of the modern era, and then
/// nothing has failed.
async fn greeted(
    mount: &Mount,
    session: &Arc<ClientSession>,
    accept: Accept<'_>,
    line: &[u8],
    seen: &Line<'_>,
) -> Response<Body> {
    let connection = &session.running.connection;
    let (doubt, doubted) = oneshot::channel();
    connection.doubt(doubt);
    // A stream would have to begin before it is known whether there is a session to name.
    let accept = Accept { streams: false, ..accept };
    let mut answer = pin!(in_session(session, accept, line, seen));
    let refused = tokio::select! {
        answer = answer.as_mut() => return answer,
        Ok(refused) = doubted => refused,
    };
    let mut refused = Refused { connection, refused: Some(refused) };
    let Some(greeting) = bridged(mount, session, seen).await else {
        drop(refused);
        return answer.await;
    };
    if let Some((call, _)) = refused.refused.take() {
        call.dismiss();
    }
    reply(seen, &greeting)
}

/// A greeting that was refused, which is a failure unless the server turns out to be of the modern era.
struct Refused<'a> {
    connection: &'a Connection,
    refused: Option<(OpenCall, CallFailure)>,
}

impl Drop for Refused<'_> {
    fn drop(&mut self) {
        if let Some((call, failing)) = self.refused.take() {
            self.connection.fail(call, failing, true);
        }
    }
}

/// The answer where a server of the modern era does not say who it is.
async fn unmet(session: &ClientSession, accept: Accept<'_>, seen: &Line<'_>) -> Response<Body> {
    let client = &session.client;
    let condition = Condition::UpstreamUnreachable;
    let failing = CallFailure::observed(client.contract(), condition)
        .saying("The server does not say which protocol version it supports")
        .outcome(Outcome::NotSent);
    object(
        client,
        accept,
        None,
        seen,
        Box::new(Objection { failing, number: condition.rpc_code() }),
    )
    .await
}

/// A session that ends unless its client hears of it.
struct Begun<'a> {
    mount: &'a Mount,
    id: &'a str,
    kept: bool,
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        if !self.kept {
            self.mount.end(self.id);
        }
    }
}

/// The greeting of a server that does not know the handshake, if it is of the modern era.
async fn bridged(
    mount: &Mount,
    session: &ClientSession,
    seen: &Line<'_>,
) -> Option<serde_json::Value> {
    let connection = &session.running.connection;
    let discovered = probe::discover(connection, connection.settings().deadlines.start).await?;
    mount.turns_out_modern(true);
    let bridge = session.bridge.get_or_init(|| Bridge::new(seen, &discovered));
    Some(bridge.greeting().clone())
}
