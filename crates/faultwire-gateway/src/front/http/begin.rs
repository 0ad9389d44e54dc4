//! The beginning of a session: a server for it, and what client and server call it.

use std::sync::Arc;

use faultwire_contract::Line;
use hyper::header::HeaderValue;
use hyper::{Response, StatusCode};

use crate::era::{self, Bridge};
use crate::front::http::Body;
use crate::front::http::answer::{Takes, bare};
use crate::front::http::mcp::{crowded, in_session, reply};
use crate::guard::access::Access;
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
        Err(why) => return crowded(mount, takes, seen, &why).await,
    };
    // A client that has left never hears the session's id.
    let mut begun = Begun { mount, id: &session.id, kept: false };
    let mut answer = if mount.is_only_modern() {
        bare(StatusCode::BAD_GATEWAY)
    } else {
        // A stream would have to begin before it is known whether there is a session to name.
        in_session(&session, Takes { streams: false, ..takes }, line, seen).await
    };
    let mut agreed = session.running.link.state().handshake.agreed;
    if !agreed && let Some(greeting) = bridged(mount, &session, seen).await {
        (answer, agreed) = (reply(seen, &greeting), true);
    }
    if agreed {
        if let Ok(id) = HeaderValue::from_str(&session.id) {
            answer.headers_mut().insert(&wire::SESSION, id);
        }
        begun.kept = true;
    }
    answer
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
    // One that has not answered at all is not asked again.
    if !link.state().answered && !mount.is_only_modern() {
        return None;
    }
    let discovered = era::discover(link, link.settings().deadlines.start).await?;
    mount.turns_out_modern();
    let bridge = session.bridge.get_or_init(|| Bridge::new(seen, &discovered));
    Some(bridge.greeting().clone())
}
