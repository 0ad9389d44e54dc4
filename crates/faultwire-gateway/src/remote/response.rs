//! Taking in what a server behind a URL answers: a body, or a stream of events.

use std::sync::Arc;

use faultwire_contract::{Aspect, Condition, Line, Sort, malformed, peek};
use hyper::body::Incoming;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use serde_json::Value;

use super::connections::PooledConnection;
use super::events::Events;
use super::http_transport::Answer;
use super::message_headers::MessageHeaders;
use super::{AGAIN, Remote, http_error};
use crate::connection::{Connection, Verdict};
use crate::failing::CallFailure;
use crate::http_client::next_data;
use crate::memory_quota::{Reservation, SHORT};
use crate::session::NO_ROOM;
use crate::wire;

/// The session in which something was sent; without a name if the server had lost it before.
pub(super) struct SentIn<'a>(pub Option<&'a HeaderValue>);

impl Remote {
    /// Takes in an answer to something that was sent in a session, if there was one. What is wrong
    /// with it, if nothing else told.
    pub(super) async fn hear(
        &self,
        connection: &Arc<Connection>,
        (answer, pooled): Answer,
        message: &MessageHeaders,
        session: Option<SentIn<'_>>,
    ) -> Option<CallFailure> {
        let (head, body) = answer.into_parts();
        let limit = connection.settings().limits.line_bytes;
        let media = head.headers.get(CONTENT_TYPE).and_then(|media| media.to_str().ok());
        let media = media.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        let coded = head.headers.get(CONTENT_ENCODING).is_some_and(|coding| coding != "identity");
        if coded {
            let why = "The server sent a compressed reply, which was not requested";
            return Some(protocol(connection, Aspect::Malformed, why));
        }
        if head.status.is_success() && media.eq_ignore_ascii_case("text/event-stream") {
            return self.hear_events(connection, body, pooled, message).await;
        }
        let (body, _share) = match collect(connection, body, limit).await {
            Ok(body) => body,
            Err(Cut::Overlong) => {
                let why = format!("The server's answer has more than {limit} bytes");
                return Some(protocol(connection, Aspect::Oversize, why));
            }
            Err(Cut::NoRoom) => return Some(protocol(connection, Aspect::Oversize, NO_ROOM)),
            Err(Cut::Broken(why)) => return Some(http_error::cut_off(connection.contract(), &why)),
        };
        pooled.give_back();
        let json = media.eq_ignore_ascii_case("application/json");
        let body = if json { line_of(body) } else { body };
        let id = message.id.as_deref();
        let seen = peek(&body);
        let is_reply = json && message.is_answered_by(&seen);
        if let Some(SentIn(session)) = session
            && http_error::knows_no_session(head.status, &body, is_reply)
        {
            if self.lose(session) {
                connection.session_lost(id);
            } else {
                connection.send_again(id);
            }
            return None;
        }
        // A reply is one, whatever the status says.
        if is_reply {
            if let (Some(id), Some(wait)) = (id, http_error::retry_after(&head.headers)) {
                connection.session().told_to_wait(id, wait);
            }
            self.take(connection, &body, &seen, message).await;
            return None;
        }
        if !head.status.is_success() {
            return Some(http_error::of_status(
                connection.contract(),
                head.status,
                &head.headers,
                &body,
            ));
        }
        match (json, body.trim_ascii().is_empty(), id) {
            (_, true, None) => None,
            (true, false, None) => {
                self.take(connection, &body, &seen, message).await;
                None
            }
            (true, false, Some(_)) => Some(wrong_reply(connection, &body)),
            (_, true, Some(_)) => {
                let why = format!("The server sent status {} without a body", head.status.as_u16());
                Some(protocol(connection, Aspect::Malformed, why))
            }
            (false, false, _) => {
                let why = format!("The server sent the content type {media:?}, which is not MCP");
                Some(protocol(connection, Aspect::Malformed, why))
            }
        }
    }

    async fn hear_events(
        &self,
        connection: &Arc<Connection>,
        mut body: Incoming,
        pooled: PooledConnection,
        message: &MessageHeaders,
    ) -> Option<CallFailure> {
        let limit = connection.settings().limits.line_bytes;
        let mut events = Events::new(limit);
        let mut reservation = None;
        loop {
            match next_data(&mut body).await {
                Some(Ok(data)) => {
                    events.push(&data);
                    while let Some(event) = events.next_event() {
                        // A reply on the stream of a request is for that request only.
                        let event = line_of(event);
                        let seen = peek(&event);
                        let is_reply = !matches!(seen.sort(), Sort::Request | Sort::Notification);
                        if is_reply && message.id.is_some() && !message.is_answered_by(&seen) {
                            return Some(wrong_reply(connection, &event));
                        }
                        self.take(connection, &event, &seen, message).await;
                        if is_reply && message.id.is_some() {
                            // The rest of the stream is not needed, and its end is not a failure.
                            self.see_off(body, pooled);
                            return None;
                        }
                    }
                    let long = events.unfinished();
                    if long < SHORT {
                        reservation = None;
                    } else {
                        let reservation = reservation
                            .get_or_insert_with(|| connection.responder.quota.reservation());
                        if reservation.grow(long).await.is_err() {
                            return Some(protocol(connection, Aspect::Oversize, NO_ROOM));
                        }
                    }
                    if events.is_overlong() {
                        let why = format!("An event has more than {limit} bytes");
                        return Some(protocol(connection, Aspect::Oversize, why));
                    }
                }
                Some(Err(error)) => {
                    return Some(http_error::cut_off(connection.contract(), &error.to_string()));
                }
                None if events.is_midway() => {
                    return Some(http_error::cut_off(
                        connection.contract(),
                        "in the middle of an event",
                    ));
                }
                None => {
                    pooled.give_back();
                    let why = "The server's stream ended without the reply";
                    return Some(protocol(connection, Aspect::Malformed, why));
                }
            }
        }
    }

    /// Waits a moment for the end of a stream that has nothing more to say, so that its connection
    /// can be used again. It is hung up on otherwise, and at once if many wait.
    fn see_off(&self, mut body: Incoming, pooled: PooledConnection) {
        let Ok(slot) = Arc::clone(&self.transport.seeing_off).try_acquire_owned() else { return };
        self.runtime.spawn(async move {
            let ended = async { while let Some(Ok(_)) = next_data(&mut body).await {} };
            if tokio::time::timeout(AGAIN, ended).await.is_ok() {
                pooled.give_back();
            }
            drop(slot);
        });
    }

    /// A message of the server.
    async fn take(
        &self,
        connection: &Arc<Connection>,
        line: &[u8],
        seen: &Line<'_>,
        message: &MessageHeaders,
    ) {
        if message.method.as_deref() == Some(wire::INITIALIZE) {
            self.agree(line, message);
        }
        // A message on the stream of a request is for the client of that request.
        let context = || {
            let context = message.id.as_deref().and_then(|id| connection.session().sink_of(id));
            context.filter(|context| context.takes_messages())
        };
        let verdict = loop {
            let together = connection.responder.burst();
            match connection.on_server_seen(line, seen) {
                Verdict::Later(due) => {
                    drop(together);
                    connection.compare_aside(due).await;
                }
                verdict => break verdict,
            }
        };
        match verdict {
            Verdict::Pass => match context() {
                Some(context) => context.send(line),
                None => connection.sink.send(line),
            },
            Verdict::Instead(other) => connection.sink.send(&other),
            Verdict::Drop | Verdict::Later(_) => {}
            Verdict::Unfinished => connection.on_garbled(line),
        }
    }

    /// The version that client and server agreed on is told with everything from now on.
    fn agree(&self, line: &[u8], message: &MessageHeaders) {
        let reply: Option<Value> = serde_json::from_slice(line).ok();
        let version = reply.as_ref().and_then(|r| r.pointer("/result/protocolVersion")?.as_str());
        if peek(line).id == message.id.as_deref() {
            let mut state = self.state();
            state.version = version.and_then(|v| HeaderValue::from_str(v).ok());
            state.renew(&self.transport);
        }
    }
}

/// A message as a line of a process would be: on one line, with its end.
fn line_of(mut message: Vec<u8>) -> Vec<u8> {
    message.truncate(message.trim_ascii_end().len());
    message.drain(..message.len() - message.trim_ascii_start().len());
    message.iter_mut().filter(|b| matches!(b, b'\n' | b'\r')).for_each(|b| *b = b' ');
    message.push(b'\n');
    message
}

/// Why a body could not be read to its end.
enum Cut {
    Overlong,
    NoRoom,
    Broken(String),
}

/// All of a body, and its share of the room.
async fn collect(
    connection: &Connection,
    mut body: Incoming,
    limit: usize,
) -> Result<(Vec<u8>, Reservation), Cut> {
    let mut all = Vec::new();
    let mut reservation = connection.responder.quota.reservation();
    while let Some(data) = next_data(&mut body).await {
        let data = data.map_err(|e| Cut::Broken(e.to_string()))?;
        if all.len() + data.len() > limit {
            return Err(Cut::Overlong);
        }
        all.extend_from_slice(&data);
        if all.len() > SHORT {
            reservation.grow(all.len()).await.map_err(|_| Cut::NoRoom)?;
        }
    }
    Ok((all, reservation))
}

/// Something that is no reply to the request that it answers.
fn wrong_reply(connection: &Connection, body: &[u8]) -> CallFailure {
    match peek(body).sort() {
        Sort::Reply => protocol(
            connection,
            Aspect::WrongId,
            "The server replied with an id that matches no open request",
        ),
        Sort::Malformed(why) => CallFailure::classified(malformed(connection.contract(), why)),
        Sort::Request | Sort::Notification => {
            protocol(connection, Aspect::Malformed, "The server sent a message that is not a reply")
        }
    }
}

fn protocol(connection: &Connection, aspect: Aspect, why: impl Into<String>) -> CallFailure {
    CallFailure::finer(connection.contract(), Condition::UpstreamProtocol, Some(aspect)).saying(why)
}
