//! Taking in what a server behind a URL answers: a body, or a stream of events.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use faultwire_contract::{Aspect, Condition, Line, Sort, malformed, peek};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use serde_json::Value;

use super::connections::Lent;
use super::events::Events;
use super::label::Label;
use super::way::Answer;
use super::{AGAIN, Remote, trouble};
use crate::failing::Failing;
use crate::link::{Link, Verdict};
use crate::pipeline::NO_ROOM;
use crate::room::{SHORT, Share};
use crate::wire;

/// The session in which something was sent; without a name if the server had lost it before.
pub(super) struct SentIn<'a>(pub Option<&'a HeaderValue>);

impl Remote {
    /// Takes in an answer to something that was sent in a session, if there was one. What is wrong
    /// with it, if nothing else told.
    pub(super) async fn hear(
        &self,
        link: &Arc<Link>,
        (answer, lent): Answer,
        label: &Label,
        session: Option<SentIn<'_>>,
    ) -> Option<Failing> {
        let (head, body) = answer.into_parts();
        let limit = link.settings().limits.line_bytes;
        let media = head.headers.get(CONTENT_TYPE).and_then(|media| media.to_str().ok());
        let media = media.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        let coded = head.headers.get(CONTENT_ENCODING).is_some_and(|coding| coding != "identity");
        if coded {
            let why = "The server answered in a compressed form, which nobody asked for";
            return Some(protocol(link, Aspect::Malformed, why));
        }
        if head.status.is_success() && media.eq_ignore_ascii_case("text/event-stream") {
            return self.hear_events(link, body, lent, label).await;
        }
        let (body, _share) = match collect(link, body, limit).await {
            Ok(body) => body,
            Err(Cut::Overlong) => {
                let why = format!("The server's answer has more than {limit} bytes");
                return Some(protocol(link, Aspect::Oversize, why));
            }
            Err(Cut::NoRoom) => return Some(protocol(link, Aspect::Oversize, NO_ROOM)),
            Err(Cut::Broken(why)) => return Some(trouble::cut_off(link.contract(), &why)),
        };
        lent.give_back();
        let json = media.eq_ignore_ascii_case("application/json");
        let body = if json { line_of(body) } else { body };
        let id = label.id.as_deref();
        let seen = peek(&body);
        let is_reply = json && label.is_answered_by(&seen);
        if let Some(SentIn(session)) = session
            && trouble::knows_no_session(head.status, &body, is_reply)
        {
            if self.lose(session) {
                link.session_lost(id);
            } else {
                link.send_again(id);
            }
            return None;
        }
        // A reply is one, whatever the status says.
        if is_reply {
            if let (Some(id), Some(wait)) = (id, trouble::retry_after(&head.headers)) {
                link.told_to_wait(id, wait);
            }
            self.take(link, &body, &seen, label);
            return None;
        }
        if !head.status.is_success() {
            return Some(trouble::of_status(link.contract(), head.status, &head.headers, &body));
        }
        match (json, body.trim_ascii().is_empty(), id) {
            (_, true, None) => None,
            (true, false, None) => {
                self.take(link, &body, &seen, label);
                None
            }
            (true, false, Some(_)) => Some(wrong_reply(link, &body)),
            (_, true, Some(_)) => {
                let why = format!("The server answered {} and nothing else", head.status.as_u16());
                Some(protocol(link, Aspect::Malformed, why))
            }
            (false, false, _) => {
                let why = format!("The server answered with {media:?}, which is no MCP");
                Some(protocol(link, Aspect::Malformed, why))
            }
        }
    }

    async fn hear_events(
        &self,
        link: &Arc<Link>,
        mut body: Incoming,
        lent: Lent,
        label: &Label,
    ) -> Option<Failing> {
        let limit = link.settings().limits.line_bytes;
        let mut events = Events::new(limit);
        let mut share = None;
        loop {
            match next_data(&mut body).await {
                Some(Ok(data)) => {
                    events.push(&data);
                    while let Some(event) = events.next_event() {
                        // A reply on the stream of a request is for that request or for nobody.
                        let event = line_of(event);
                        let seen = peek(&event);
                        let is_reply = !matches!(seen.sort(), Sort::Request | Sort::Notification);
                        if is_reply && label.id.is_some() && !label.is_answered_by(&seen) {
                            return Some(wrong_reply(link, &event));
                        }
                        self.take(link, &event, &seen, label);
                        if is_reply && label.id.is_some() {
                            // More is not asked for, and its end is nobody's failure.
                            self.see_off(body, lent);
                            return None;
                        }
                    }
                    let long = events.unfinished();
                    if long < SHORT {
                        share = None;
                    } else {
                        let share = share.get_or_insert_with(|| link.door.room.share());
                        if share.grow(long).await.is_err() {
                            return Some(protocol(link, Aspect::Oversize, NO_ROOM));
                        }
                    }
                    if events.is_overlong() {
                        let why = format!("An event has more than {limit} bytes");
                        return Some(protocol(link, Aspect::Oversize, why));
                    }
                }
                Some(Err(error)) => {
                    return Some(trouble::cut_off(link.contract(), &error.to_string()));
                }
                None if events.is_midway() => {
                    return Some(trouble::cut_off(link.contract(), "in the middle of an event"));
                }
                None => {
                    lent.give_back();
                    let why = "The server's stream ended without the reply";
                    return Some(protocol(link, Aspect::Malformed, why));
                }
            }
        }
    }

    /// Waits a moment for the end of a stream that has nothing more to say, so that its connection
    /// can be used again. It is hung up on otherwise, and at once if many wait.
    fn see_off(&self, mut body: Incoming, lent: Lent) {
        let Ok(slot) = Arc::clone(&self.way.seeing_off).try_acquire_owned() else { return };
        self.runtime.spawn(async move {
            let ended = async { while let Some(Ok(_)) = next_data(&mut body).await {} };
            if tokio::time::timeout(AGAIN, ended).await.is_ok() {
                lent.give_back();
            }
            drop(slot);
        });
    }

    /// A message of the server.
    fn take(&self, link: &Link, line: &[u8], seen: &Line<'_>, label: &Label) {
        if label.method.as_deref() == Some(wire::INITIALIZE) {
            self.agree(line, label);
        }
        let _together = link.door.burst();
        // What comes along with an answer is for whoever asked.
        let asker = || {
            let asker = label.id.as_deref().and_then(|id| link.outlet_of(id));
            asker.filter(|asker| asker.takes_messages())
        };
        match link.hear_seen_of_server(line, seen) {
            Verdict::Pass => match asker() {
                Some(asker) => asker.send(line),
                None => link.client.send(line),
            },
            Verdict::Instead(other) => link.client.send(&other),
            Verdict::Drop => {}
            Verdict::Unfinished => link.garbled(line),
        }
    }

    /// The version that client and server agreed on is told with everything from now on.
    fn agree(&self, line: &[u8], label: &Label) {
        let reply: Option<Value> = serde_json::from_slice(line).ok();
        let version = reply.as_ref().and_then(|r| r.pointer("/result/protocolVersion")?.as_str());
        if peek(line).id == label.id.as_deref() {
            let mut state = self.state();
            state.version = version.and_then(|v| HeaderValue::from_str(v).ok());
            state.renew(&self.way);
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
async fn collect(link: &Link, mut body: Incoming, limit: usize) -> Result<(Vec<u8>, Share), Cut> {
    let mut all = Vec::new();
    let mut share = link.door.room.share();
    while let Some(data) = next_data(&mut body).await {
        let data = data.map_err(|e| Cut::Broken(e.to_string()))?;
        if all.len() + data.len() > limit {
            return Err(Cut::Overlong);
        }
        all.extend_from_slice(&data);
        if all.len() > SHORT {
            share.grow(all.len()).await.map_err(|_| Cut::NoRoom)?;
        }
    }
    Ok((all, share))
}

/// The next piece of a body.
pub(crate) async fn next_data(body: &mut Incoming) -> Option<Result<Bytes, hyper::Error>> {
    loop {
        let frame = std::future::poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await?;
        match frame.map(http_body::Frame::into_data) {
            Ok(Ok(data)) => return Some(Ok(data)),
            // Trailers are of no use here.
            Ok(Err(_)) => {}
            Err(error) => return Some(Err(error)),
        }
    }
}

/// Something that is no reply to the request that it answers.
fn wrong_reply(link: &Link, body: &[u8]) -> Failing {
    match peek(body).sort() {
        Sort::Reply => protocol(
            link,
            Aspect::WrongId,
            "The server answered under an id that nobody asked under",
        ),
        Sort::Malformed(why) => Failing::classified(malformed(link.contract(), why)),
        Sort::Request | Sort::Notification => {
            protocol(link, Aspect::Malformed, "The server answered with no reply")
        }
    }
}

fn protocol(link: &Link, aspect: Aspect, why: impl Into<String>) -> Failing {
    Failing::finer(link.contract(), Condition::UpstreamProtocol, Some(aspect)).saying(why)
}
