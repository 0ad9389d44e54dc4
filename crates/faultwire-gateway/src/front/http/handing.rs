//! Handing a message to the pipeline, or several at once, and waiting for what comes of it.

use std::sync::Arc;

use faultwire_contract::{Aspect, Condition, Line, Outcome, Sort, Surface, peek};
use hyper::{Response, StatusCode};
use serde_json::value::RawValue;

use crate::batch;
use crate::call::trace_of;
use crate::edge;
use crate::era;
use crate::exchange::{Exchange, Share};
use crate::failing::Failing;
use crate::front::http::Body;
use crate::front::http::answer::{self, Manner, accepted, refuse_with};
use crate::front::http::body::OnEnd;
use crate::front::http::takes::Takes;
use crate::guard::version::{self, Objection};
use crate::linger::FEW;
use crate::link::{Examined, Link, Verdict};
use crate::mount::session::Session;
use crate::outlet::Outlet;
use crate::party::{Asker, Bridged, Party};
use crate::patched::Patched;
use crate::pipeline::Place;
use crate::wire;

/// A message of a session, or a batch of them.
pub(super) async fn in_session(
    session: &Arc<Session>,
    takes: Takes<'_>,
    line: &[u8],
    seen: &Line<'_>,
) -> Response<Body> {
    if line.trim_ascii_start().starts_with(b"[")
        && let Some(members) = batch::members(line)
    {
        return several(session, takes, &members).await;
    }
    let asker = takes.asker(&session.party);
    // Where nobody reads any more, nothing is sent: there may be another stream.
    let on_end: OnEnd = Box::new(|exchange| _ = exchange.abandon());
    let examined = session.running.link.examine(&session.party, seen).await;
    exchange(asker, takes, seen, on_end, |asker| hear(session, asker, line, seen, examined)).await
}

/// The messages of a batch, each as if it had come alone: no server has to know what a batch is.
async fn several(
    session: &Arc<Session>,
    takes: Takes<'_>,
    members: &[&RawValue],
) -> Response<Body> {
    let party = &session.party;
    // A list is no problem that HTTP has details of.
    let takes = Takes { surface: Surface::Mcp, ..takes };
    let most = party.settings.limits.in_flight;
    if members.len() > most {
        let failing = no_message(party, format!("A batch has at most {most} messages"));
        let status = Some(StatusCode::BAD_REQUEST);
        return refuse_with(party, takes, status, None, failing, wire::INVALID_REQUEST).await;
    }
    let exchange = Arc::new(Exchange::owing(members.len(), takes.streams, &party.door.room));
    for member in members {
        let share = Arc::new(Share::of(&exchange)) as Arc<dyn Outlet>;
        let asker = Asker { outlet: Some(&share), ..takes.asker(party) };
        let line = format!("{}\n", member.get());
        let seen = peek(line.as_bytes());
        let examined = session.running.link.examine(party, &seen).await;
        hear(session, asker, line.as_bytes(), &seen, examined);
    }
    answer::of_all(exchange, &Manner::new(party, takes.surface)).await
}

/// Hands over a message of a session, or answers it where the server could not.
fn hear(
    session: &Session,
    asker: Asker<'_>,
    line: &[u8],
    seen: &Line<'_>,
    examined: Option<Examined>,
) {
    let link = &session.running.link;
    let Some(bridge) = session.bridge.get() else {
        return hand_over(link, asker, line, seen, examined);
    };
    let method = seen.method.as_deref().unwrap_or_default();
    if method == wire::INITIALIZED {
        return;
    }
    let asker = Asker { bridged: Bridged::LegacyClient, ..asker };
    let Some(id) = seen.id.filter(|id| wire::is_id(id)) else {
        return hand_over(link, asker, line, seen, examined);
    };
    if let Some(result) = bridge.answers(seen) {
        asker.outlet().reply(&Patched::new(&wire::result(id, |out| {
            out.extend_from_slice(result.to_string().as_bytes());
        })));
    } else if era::is_only_legacy(method) {
        let contract = asker.party.contract();
        let Objection { failing, number } =
            *version::not_carried(contract, method, &version::MODERN);
        let trace = trace_of(asker.trace, seen);
        let asker = Asker { trace: trace.as_deref(), ..asker };
        asker.party.door.refuse(asker, Some(id), number, failing);
    } else if let Some(modern) = bridge.modern(seen) {
        hand_over(link, asker, &modern, &peek(&modern), examined);
    } else {
        hand_over(link, asker, line, seen, examined);
    }
}

/// Has a message heard, and waits for what comes of it.
pub(super) async fn exchange(
    asker: Asker<'_>,
    takes: Takes<'_>,
    seen: &Line<'_>,
    on_end: OnEnd,
    hear: impl FnOnce(Asker<'_>),
) -> Response<Body> {
    let party = asker.party;
    let exchange = Arc::new(Exchange::owing(1, takes.streams, &party.door.room));
    let outlet = Arc::clone(&exchange) as Arc<dyn Outlet>;
    hear(Asker { outlet: Some(&outlet), ..asker });
    drop(outlet);
    // Whoever is to answer holds on to the exchange.
    if Arc::strong_count(&exchange) == 1 && exchange.is_empty() {
        if matches!(seen.sort(), Sort::Notification | Sort::Reply) {
            return accepted();
        }
        let failing = no_message(party, "There is no message in it");
        let status = Some(StatusCode::BAD_REQUEST);
        return refuse_with(party, takes, status, None, failing, wire::INVALID_REQUEST).await;
    }
    let modern = asker.known_as.is_some();
    let manner = Manner { modern, ..Manner::new(party, takes.surface) };
    answer::of(exchange, manner, on_end).await
}

/// Something that is no message.
pub(super) fn no_message(party: &Party, why: impl Into<String>) -> Failing {
    Failing::finer(party.contract(), Condition::InvalidArguments, Some(Aspect::Format))
        .saying(why)
        .outcome(Outcome::NotSent)
}

/// Gives a line to the server, if it may pass.
pub(super) fn hand_over(
    link: &Arc<Link>,
    asker: Asker<'_>,
    line: &[u8],
    seen: &Line<'_>,
    examined: Option<Examined>,
) {
    let mut pipe = link.inlet.lock();
    let place = Place { at: pipe.position(), room: pipe.room(), now: edge::now() };
    let verdict = link.hear_seen(asker, line, seen, examined, place);
    let line = match &verdict {
        Verdict::Pass if pipe.send_seen(line, seen) => return,
        Verdict::Pass => line,
        Verdict::Instead(other) => other,
        Verdict::Drop | Verdict::Unfinished => return,
    };
    if link.state().calls.len() <= FEW {
        return link.inlet.send(&mut pipe, line);
    }
    // Others have something for the server, too: all of it costs one write.
    if link.inlet.put(&mut pipe, line) {
        let link = Arc::clone(link);
        tokio::spawn(async move { link.inlet.flush() });
    }
}
