//! A server behind a URL: every message is a request of its own, and what comes back goes through
//! the same pipeline as the lines of a process.

mod connections;
mod events;
mod label;
mod trouble;
mod way;

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use faultwire_contract::{Aspect, Condition, Line, Sort, malformed, peek};
use hashbrown::HashMap;
use http_body::Body as _;
use hyper::Method;
use hyper::body::Incoming;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use crate::failing::Failing;
use crate::link::{Link, Verdict};
use crate::pipeline::NO_ROOM;
use crate::room::{SHORT, Share};
use crate::wire;
use connections::Lent;
use events::Events;
use label::Label;
use way::Answer;
pub(crate) use way::{HttpsClient, Way, https_client};
pub use way::{Remote as RemoteSettings, RemoteError};

/// How long to wait before a stream that ended is opened again.
const AGAIN: Duration = Duration::from_secs(1);

/// How long a server may take to hear that a session is over.
const GOODBYE: Duration = Duration::from_secs(10);

/// One session with a server behind a URL.
pub(crate) struct Remote {
    way: Arc<Way>,
    runtime: Handle,
    link: OnceLock<Weak<Link>>,
    state: Mutex<State>,
}

struct State {
    /// What the server calls the session.
    session: Option<HeaderValue>,
    /// The version that client and server agreed on.
    version: Option<HeaderValue>,
    /// Whether the server has forgotten a session, and no other one has begun since.
    is_lost: bool,
    /// What waits until the server has heard that the handshake is over: requests that come before
    /// are refused.
    held: Option<Vec<(Bytes, Label)>>,
    /// What every message of the session is sent with: these two, and what the server wants
    /// besides.
    posting: Arc<HeaderMap>,
    /// Requests on their way, by id.
    open: HashMap<Box<str>, AbortHandle>,
    /// The stream for messages that belong to no call.
    standing: Option<AbortHandle>,
}

impl Remote {
    pub(crate) fn new(way: Arc<Way>) -> Arc<Self> {
        let state = State {
            session: None,
            version: None,
            is_lost: false,
            held: None,
            posting: Arc::new(way.posting.clone()),
            open: HashMap::new(),
            standing: None,
        };
        Arc::new(Self {
            way,
            runtime: Handle::current(),
            link: OnceLock::new(),
            state: Mutex::new(state),
        })
    }

    /// What comes back is for this link.
    pub(crate) fn belong_to(&self, link: &Arc<Link>) {
        let _ = self.link.set(Arc::downgrade(link));
    }

    /// Sends lines on their way, and waits for nothing.
    pub(crate) fn send(self: &Arc<Self>, lines: &[u8]) {
        for line in lines.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
            self.send_seen(line, &peek(line));
        }
    }

    /// Sends one line on its way.
    pub(crate) fn send_seen(self: &Arc<Self>, line: &[u8], seen: &Line<'_>) {
        let label = Label::of(seen);
        if label.method.as_deref() == Some(wire::CANCELLED) && self.take_back(seen) {
            return;
        }
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = Bytes::copy_from_slice(line);
        let mut state = self.state();
        match &mut state.held {
            Some(held) => held.push((line, label)),
            None => self.dispatch(&mut state, line, label),
        }
    }

    fn dispatch(self: &Arc<Self>, state: &mut State, line: Bytes, label: Label) {
        if label.method.as_deref() == Some(wire::INITIALIZED) {
            state.held = Some(Vec::new());
        }
        let id = label.id.clone();
        // A task moves what it runs about when it is made and when it ends, so it gets a pointer.
        let task = self.runtime.spawn(Box::pin(Arc::clone(self).bring(line, label)));
        if let Some(id) = id {
            state.open.insert(id, task.abort_handle());
        }
    }

    /// The server knows that the handshake is over, or will not.
    fn let_go(self: &Arc<Self>) {
        let mut state = self.state();
        for (line, label) in state.held.take().unwrap_or_default() {
            match &mut state.held {
                Some(held) => held.push((line, label)),
                None => self.dispatch(&mut state, line, label),
            }
        }
    }

    /// Hangs up on a request. Whether that says it all, as it does in the modern era.
    fn take_back(&self, seen: &Line<'_>) -> bool {
        let id = seen.params.and_then(|p| wire::member::<&RawValue>(p, "requestId"));
        let mut state = self.state();
        if let Some(task) = id.and_then(|id| state.open.remove(id.get())) {
            task.abort();
        }
        if let (Some(id), Some(held)) = (id, &mut state.held) {
            held.retain(|(_, label)| label.id.as_deref() != Some(id.get()));
        }
        state.version.is_none()
    }

    /// Ends the session with the server.
    pub(crate) fn close(self: &Arc<Self>) {
        let mut state = self.state();
        if let Some(standing) = state.standing.take() {
            standing.abort();
        }
        state.open.drain().for_each(|(_, task)| task.abort());
        state.held = None;
        let headers = state.among(&self.way.asking);
        if state.session.take().is_some() {
            state.renew(&self.way);
            let way = Arc::clone(&self.way);
            self.runtime.spawn(async move {
                let sent = way.send(Method::DELETE, &headers, Bytes::new());
                let _ = tokio::time::timeout(GOODBYE, sent).await;
            });
        }
    }

    async fn bring(self: Arc<Self>, line: Bytes, label: Label) {
        let ends_handshake = label.method.as_deref() == Some(wire::INITIALIZED);
        if label.id.is_some() {
            return self.bring_to_end(line, label).await;
        }
        // Nobody watches the time of what is not answered.
        let patience = self.link.get().and_then(Weak::upgrade);
        let patience = patience.map_or(GOODBYE, |link| link.settings().deadlines.default);
        let brought = Arc::clone(&self).bring_to_end(line, label);
        let _ = tokio::time::timeout(patience, brought).await;
        if ends_handshake {
            self.let_go();
            if let Some(link) = self.link.get().and_then(Weak::upgrade) {
                self.stand(&link);
            }
        }
    }

    async fn bring_to_end(self: Arc<Self>, line: Bytes, label: Label) {
        let Some(link) = self.link.get().and_then(Weak::upgrade) else { return };
        let begins = label.method.as_deref() == Some(wire::INITIALIZE);
        let (mut headers, session, has_begun, had_one) = {
            let state = self.state();
            let had_one = !begins && (state.session.is_some() || state.is_lost);
            let has_begun = state.version.is_some();
            (Arc::clone(&state.posting), state.session.clone(), has_begun, had_one)
        };
        if begins {
            headers = Arc::new(self.way.posting.clone());
        } else if label.version.is_some() && !has_begun {
            // A server of the legacy era is told the version of its handshake, whoever asks.
            let headers = Arc::make_mut(&mut headers);
            label.put(headers);
            if let Some(tool) = &label.name {
                link.repeat_arguments(tool, &line, headers);
            }
        }
        let trace = label.id.as_deref().and_then(|id| link.traceparent_of(id));
        if let Some(trace) = trace.and_then(|trace| HeaderValue::from_str(&trace).ok()) {
            Arc::make_mut(&mut headers).insert(&wire::TRACE, trace);
        }
        let answer = self.way.send(Method::POST, &headers, line).await;
        if label.method.as_deref() == Some(wire::INITIALIZED) {
            self.let_go();
        }
        let failing = match answer {
            Ok(answer) => {
                if begins && answer.0.status().is_success() {
                    let mut state = self.state();
                    state.session = answer.0.headers().get(&wire::SESSION).cloned();
                    state.is_lost = false;
                    state.renew(&self.way);
                }
                self.hear(&link, answer, &label, had_one.then_some(SentIn(session.as_ref()))).await
            }
            Err(error) => Some(error.failing(link.contract())),
        };
        self.forget(&label);
        if let Some(failing) = failing
            && let Some(id) = &label.id
        {
            link.fail_open(id, failing);
        }
    }

    /// The server does not know the session. Another call may have found that out before, and there
    /// is a new one already, which stays.
    fn lose(&self, session: Option<&HeaderValue>) {
        let mut state = self.state();
        if state.session.as_ref() == session {
            state.session = None;
            state.is_lost = true;
            state.renew(&self.way);
        }
    }

    fn forget(&self, label: &Label) {
        if let Some(id) = &label.id {
            self.state().open.remove(id);
        }
    }

    /// Takes in an answer to something that was sent in a session, if there was one. What is wrong
    /// with it, if nothing else told.
    async fn hear(
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
            self.lose(session);
            link.session_lost(id);
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

    /// Opens the stream for messages that belong to no call, and again when it ends.
    fn stand(self: &Arc<Self>, link: &Arc<Link>) {
        let mut state = self.state();
        if let Some(before) = state.standing.take() {
            before.abort();
        }
        let (remote, link) = (Arc::clone(self), Arc::downgrade(link));
        let task = self.runtime.spawn(async move {
            let label = Label { id: None, method: None, name: None, version: None };
            while let Some(link) = link.upgrade() {
                let headers = remote.state().among(&remote.way.asking);
                let answer = remote.way.send(Method::GET, &headers, Bytes::new()).await;
                match answer {
                    Ok(answer) if answer.0.status().is_success() => {
                        let _ = remote.hear(&link, answer, &label, None).await;
                    }
                    // It has none, or does not know the session any more.
                    Ok((answer, _)) if answer.status().is_client_error() => return,
                    Ok(_) | Err(_) => {}
                }
                drop(link);
                tokio::time::sleep(AGAIN).await;
            }
        });
        state.standing = Some(task.abort_handle());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Session or version have changed.
    fn renew(&mut self, way: &Way) {
        self.posting = Arc::new(self.among(&way.posting));
    }

    /// These headers, and those that tell which session it is.
    fn among(&self, headers: &HeaderMap) -> HeaderMap {
        let mut headers = headers.clone();
        let told = [(&wire::SESSION, &self.session), (&wire::VERSION, &self.version)];
        for (name, value) in told {
            if let Some(value) = value {
                headers.insert(name, value.clone());
            }
        }
        headers
    }
}

/// The session in which something was sent; without a name if the server had lost it before.
struct SentIn<'a>(Option<&'a HeaderValue>);

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
