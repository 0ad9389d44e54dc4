//! The beginning of a session: a server for it, and what client and server call it.

use std::pin::pin;
use std::sync::Arc;

use faultwire_contract::{Condition, Line, Outcome};
use hyper::Response;
use hyper::header::HeaderValue;
use tokio::sync::oneshot;

use crate::call::Call;
use crate::era::{self, Bridge};
use crate::failing::Failing;
use crate::front::http::Body;
use crate::front::http::handing::in_session;
use crate::front::http::mcp::{crowded, object, reply};
use crate::front::http::takes::Takes;
use crate::guard::access::Access;
use crate::guard::version::Objection;
use crate::link::Link;
use crate::mount::Mount;
use crate::mount::session::Session;
use crate::wire;

/// The first message of a session.
pub(super) async fn begin(
    mount: &Arc<Mount>,
    access: &Arc<Access>,
    takes: Takes<'_>,
    line: &[u8],
    seen: &Line<'_>,
) -> Response<Body> {
    let facts = mount.anybody().session().clone();
    let session = match mount.begin(facts, access) {
        Ok(session) => session,
        Err(why) => return crowded(&mount.party(access), takes, seen, &why).await,
    };
    // A client that has left never hears the session's id.
    let mut begun = Begun { mount, id: &session.id, kept: false };
    let mut answer = if mount.is_only_modern() {
        if let Some(greeting) = bridged(mount, &session, seen).await {
            reply(seen, &greeting)
        } else {
            // Next time it may be another one.
            mount.turns_out_modern(false);
            unmet(&session, takes, seen).await
        }
    } else {
        greeted(mount, &session, takes, line, seen).await
    };
    if session.bridge.get().is_some() || session.running.link.state().handshake.is_agreed() {
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
    session: &Arc<Session>,
    takes: Takes<'_>,
    line: &[u8],
    seen: &Line<'_>,
) -> Response<Body> {
    let link = &session.running.link;
    let (doubt, doubted) = oneshot::channel();
    link.state().doubts = Some(doubt);
    // A stream would have to begin before it is known whether there is a session to name.
    let takes = Takes { streams: false, ..takes };
    let mut answer = pin!(in_session(session, takes, line, seen));
    let refused = tokio::select! {
        answer = answer.as_mut() => return answer,
        Ok(refused) = doubted => refused,
    };
    let mut refused = Refused { link, refused: Some(refused) };
    let Some(greeting) = bridged(mount, session, seen).await else {
        drop(refused);
        return answer.await;
    };
    if let Some((call, _)) = refused.refused.take() {
        call.dismiss();
    }
    reply(seen, &greeting)
}

/// A greeting that was refused, which is a failure unless somebody says otherwise.
struct Refused<'a> {
    link: &'a Link,
    refused: Option<(Call, Failing)>,
}

impl Drop for Refused<'_> {
    fn drop(&mut self) {
        if let Some((call, failing)) = self.refused.take() {
            self.link.fail(call, failing);
        }
    }
}

/// The answer where a server of the modern era does not say who it is.
async fn unmet(session: &Session, takes: Takes<'_>, seen: &Line<'_>) -> Response<Body> {
    let party = &session.party;
    let condition = Condition::UpstreamUnreachable;
    let failing = Failing::observed(party.contract(), condition)
        .saying("The server does not say what it speaks")
        .outcome(Outcome::NotSent);
    object(party, takes, None, seen, Box::new(Objection { failing, number: condition.rpc_code() }))
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
async fn bridged(mount: &Mount, session: &Session, seen: &Line<'_>) -> Option<serde_json::Value> {
    let link = &session.running.link;
    let discovered = era::discover(link, link.settings().deadlines.start).await?;
    mount.turns_out_modern(true);
    let bridge = session.bridge.get_or_init(|| Bridge::new(seen, &discovered));
    Some(bridge.greeting().clone())
}
