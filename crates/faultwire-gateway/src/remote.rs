//! A server behind a URL: every message is a request of its own, and what comes back goes through
//! the same pipeline as the lines of a process.

mod connections;
mod events;
mod http_error;
mod http_transport;
mod message_headers;
mod response;

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use bytes::Bytes;
use faultwire_contract::Line;
use hashbrown::HashMap;
use hyper::Method;
use hyper::header::{HeaderMap, HeaderValue};
use parking_lot::{Mutex, MutexGuard};
use serde_json::value::RawValue;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use crate::connection::Connection;
use crate::upstream::writer::Transport;
use crate::wire;
pub(crate) use events::Events;
pub(crate) use http_transport::HttpTransport;
use message_headers::MessageHeaders;
use response::SentIn;

/// How long to wait before a stream that ended is opened again.
const AGAIN: Duration = Duration::from_secs(1);

/// How long a server may take to hear that a session is over.
const GOODBYE: Duration = Duration::from_secs(10);

/// One session with a server behind a URL.
pub(crate) struct Remote {
    transport: Arc<HttpTransport>,
    runtime: Handle,
    connection: OnceLock<Weak<Connection>>,
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
    held: Option<Vec<(Bytes, MessageHeaders)>>,
    /// What every message of the session is sent with: these two, and what the server wants
    /// besides.
    posting: Arc<HeaderMap>,
    /// Requests on their way, by id.
    open: HashMap<Box<str>, AbortHandle>,
    /// The stream for messages that belong to no call.
    standing: Option<AbortHandle>,
}

impl Remote {
    pub(crate) fn new(transport: Arc<HttpTransport>) -> Arc<Self> {
        let state = State {
            session: None,
            version: None,
            is_lost: false,
            held: None,
            posting: Arc::new(transport.posting.clone()),
            open: HashMap::new(),
            standing: None,
        };
        Arc::new(Self {
            transport,
            runtime: Handle::current(),
            connection: OnceLock::new(),
            state: Mutex::new(state),
        })
    }

    /// What comes back is for this connection.
    pub(crate) fn belong_to(&self, connection: &Arc<Connection>) {
        let _ = self.connection.set(Arc::downgrade(connection));
    }

    fn dispatch(self: &Arc<Self>, state: &mut State, line: Bytes, message: MessageHeaders) {
        if message.method.as_deref() == Some(wire::INITIALIZED) {
            state.held = Some(Vec::new());
        }
        let id = message.id.clone();
        // A task moves what it runs about when it is made and when it ends, so it gets a pointer.
        let task = self.runtime.spawn(Box::pin(Arc::clone(self).bring(line, message)));
        if let Some(id) = id {
            state.open.insert(id, task.abort_handle());
        }
    }

    /// The server knows that the handshake is over, or will not.
    fn let_go(self: &Arc<Self>) {
        let mut state = self.state();
        for (line, message) in state.held.take().unwrap_or_default() {
            match &mut state.held {
                Some(held) => held.push((line, message)),
                None => self.dispatch(&mut state, line, message),
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
            held.retain(|(_, message)| message.id.as_deref() != Some(id.get()));
        }
        state.version.is_none()
    }

    async fn bring(self: Arc<Self>, line: Bytes, message: MessageHeaders) {
        let ends_handshake = message.method.as_deref() == Some(wire::INITIALIZED);
        if message.id.is_some() {
            return self.bring_to_end(line, message).await;
        }
        // A message without a reply has no call with a deadline.
        let patience = self.connection.get().and_then(Weak::upgrade);
        let patience =
            patience.map_or(GOODBYE, |connection| connection.settings().deadlines.default);
        let brought = Arc::clone(&self).bring_to_end(line, message);
        let _ = tokio::time::timeout(patience, brought).await;
        if ends_handshake {
            self.let_go();
            if let Some(connection) = self.connection.get().and_then(Weak::upgrade) {
                self.stand(&connection);
            }
        }
    }

    async fn bring_to_end(self: Arc<Self>, line: Bytes, message: MessageHeaders) {
        let Some(connection) = self.connection.get().and_then(Weak::upgrade) else { return };
        let begins = message.method.as_deref() == Some(wire::INITIALIZE);
        let (mut headers, session, has_begun, had_one) = {
            let state = self.state();
            let had_one = !begins && (state.session.is_some() || state.is_lost);
            let has_begun = state.version.is_some();
            (Arc::clone(&state.posting), state.session.clone(), has_begun, had_one)
        };
        if begins {
            headers = Arc::new(self.transport.posting.clone());
        } else if message.version.is_some() && !has_begun {
            // A server of the legacy era gets the version of its handshake in each request.
            let headers = Arc::make_mut(&mut headers);
            message.put(headers);
            if let Some(tool) = &message.name {
                connection.repeat_arguments(tool, &line, headers);
            }
        }
        let trace = message.id.as_deref().and_then(|id| connection.session().traceparent_of(id));
        if let Some(trace) = trace.and_then(|trace| HeaderValue::from_str(&trace).ok()) {
            Arc::make_mut(&mut headers).insert(&wire::TRACE, trace);
        }
        let answer = self.transport.send(Method::POST, &headers, line).await;
        if message.method.as_deref() == Some(wire::INITIALIZED) {
            self.let_go();
        }
        let failing = match answer {
            Ok(answer) => {
                if begins && answer.0.status().is_success() {
                    let mut state = self.state();
                    state.session = answer.0.headers().get(&wire::SESSION).cloned();
                    state.is_lost = false;
                    state.renew(&self.transport);
                }
                self.hear(
                    &connection,
                    answer,
                    &message,
                    had_one.then_some(SentIn(session.as_ref())),
                )
                .await
            }
            Err(error) => Some(error.failing(connection.contract())),
        };
        self.forget(&message);
        if let Some(failing) = failing
            && let Some(id) = &message.id
        {
            connection.send_failed(id, failing);
        }
    }

    /// The server does not know the session. Another call may have found that out before, and there
    /// is a new one already, which stays. Whether it was this one.
    fn lose(&self, session: Option<&HeaderValue>) -> bool {
        let mut state = self.state();
        let is_this = state.session.as_ref() == session;
        if is_this {
            state.session = None;
            state.is_lost = true;
            state.renew(&self.transport);
        }
        is_this
    }

    fn forget(&self, message: &MessageHeaders) {
        if let Some(id) = &message.id {
            self.state().open.remove(id);
        }
    }

    /// Opens the stream for messages that belong to no call, and again when it ends.
    fn stand(self: &Arc<Self>, connection: &Arc<Connection>) {
        let mut state = self.state();
        if let Some(before) = state.standing.take() {
            before.abort();
        }
        let (remote, connection) = (Arc::clone(self), Arc::downgrade(connection));
        let task = self.runtime.spawn(async move {
            let message = MessageHeaders { id: None, method: None, name: None, version: None };
            while let Some(connection) = connection.upgrade() {
                let headers = remote.state().among(&remote.transport.asking);
                let answer = remote.transport.send(Method::GET, &headers, Bytes::new()).await;
                match answer {
                    Ok(answer) if answer.0.status().is_success() => {
                        let _ = remote.hear(&connection, answer, &message, None).await;
                    }
                    // It has none, or does not know the session any more.
                    Ok((answer, _)) if answer.status().is_client_error() => return,
                    Ok(_) | Err(_) => {}
                }
                drop(connection);
                tokio::time::sleep(AGAIN).await;
            }
        });
        state.standing = Some(task.abort_handle());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl Transport for Remote {
    fn send(self: Arc<Self>, line: &[u8], seen: &Line<'_>) {
        let message = MessageHeaders::of(seen);
        if message.method.as_deref() == Some(wire::CANCELLED) && self.take_back(seen) {
            return;
        }
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = Bytes::copy_from_slice(line);
        let mut state = self.state();
        match &mut state.held {
            Some(held) => held.push((line, message)),
            None => self.dispatch(&mut state, line, message),
        }
    }

    fn forget_greeting(&self) {
        let mut state = self.state();
        state.open.drain().for_each(|(_, task)| task.abort());
        (state.session, state.version, state.held) = (None, None, None);
        state.renew(&self.transport);
    }

    fn close(self: Arc<Self>) {
        let mut state = self.state();
        if let Some(standing) = state.standing.take() {
            standing.abort();
        }
        state.open.drain().for_each(|(_, task)| task.abort());
        state.held = None;
        let headers = state.among(&self.transport.asking);
        if state.session.take().is_some() {
            state.renew(&self.transport);
            let transport = Arc::clone(&self.transport);
            self.runtime.spawn(async move {
                let sent = transport.send(Method::DELETE, &headers, Bytes::new());
                let _ = tokio::time::timeout(GOODBYE, sent).await;
            });
        }
    }
}

impl State {
    /// Session or version have changed.
    fn renew(&mut self, transport: &HttpTransport) {
        self.posting = Arc::new(self.among(&transport.posting));
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
