//! The legacy handshake, kept as the client sent it, to be said again to a server that was
//! restarted, and the lasting requests of the client since.

use faultwire_contract::peek;
use serde_json::Value;

use crate::replayed_requests::ReplayedRequests;
use crate::{request, wire};

/// What the client said to begin its session.
#[derive(Default)]
pub(crate) struct Handshake {
    initialize: Option<Box<[u8]>>,
    id: Box<str>,
    initialized: Option<Box<[u8]>>,
    /// Whether the server agreed.
    agreed: bool,
    /// What it was told to do from then on.
    pub replayed: ReplayedRequests,
    /// The client begins again, and the server has not agreed to that yet.
    next: Option<Begun>,
}

struct Begun {
    initialize: Box<[u8]>,
    id: Box<str>,
    /// Some say it without waiting for the answer.
    initialized: Option<Box<[u8]>>,
}

impl Handshake {
    /// The client begins; who it is.
    pub(crate) fn begin(&mut self, id: &str, line: &[u8]) -> Option<String> {
        self.next = Some(Begun { initialize: line.into(), id: id.into(), initialized: None });
        let info: Value = wire::member(peek(line).params?, "clientInfo")?;
        request::named(&info)
    }

    /// The server agrees to what the client began last.
    pub(crate) fn agree(&mut self) {
        if let Some(Begun { initialize, id, initialized }) = self.next.take() {
            let initialize = Some(initialize);
            *self = Self { initialize, id, initialized, agreed: true, ..Self::default() };
        }
    }

    /// The client has heard the answer.
    pub(crate) fn confirm(&mut self, line: &[u8]) {
        let place = match &mut self.next {
            Some(next) => &mut next.initialized,
            None => &mut self.initialized,
        };
        *place = Some(line.into());
    }

    pub(crate) fn is_agreed(&self) -> bool {
        self.agreed
    }

    /// What to say first to a new server, if the session was begun that way.
    pub(crate) fn opening(&self) -> Option<&[u8]> {
        self.initialize.as_deref().filter(|_| self.agreed)
    }

    /// Whether a reply answers the opening.
    pub(crate) fn is_answer(&self, id: &str) -> bool {
        *self.id == *id
    }

    /// What to say when it is answered.
    pub(crate) fn closing(&self) -> Option<&[u8]> {
        self.initialized.as_deref()
    }
}
