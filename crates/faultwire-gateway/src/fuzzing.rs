//! Readers of foreign bytes that are private otherwise, for the fuzz targets. Not part of the API.

use faultwire_contract::{Contract, Sort, ambiguity, peek};
use hyper::header::HeaderMap;
use serde_json::Value;

use crate::guard::version;
use crate::remote;
use crate::request::{ToolCall, progress_token};
use crate::settings::Limits;
use crate::{batch, wire};

/// A request that the HTTP front accepts, as the gateway reads it.
#[derive(Debug)]
pub struct Request {
    /// The message; in a batch, one of several.
    pub line: String,
    /// The id, as it was written.
    pub id: String,
    /// The method.
    pub method: String,
    /// The tool of a `tools/call`.
    pub tool: Option<String>,
    /// The token under which progress is reported.
    pub progress_token: Option<Value>,
    /// Whether it is of the modern era.
    pub is_modern: bool,
}

/// The requests of a body that pass every check that needs the body alone.
#[must_use]
pub fn requests(contract: &Contract, body: &[u8]) -> Vec<Request> {
    match batch::members(body) {
        Some(members) => members.iter().filter_map(|one| request(contract, one.get())).collect(),
        None => {
            str::from_utf8(body).ok().and_then(|body| request(contract, body)).into_iter().collect()
        }
    }
}

fn request(contract: &Contract, line: &str) -> Option<Request> {
    let seen = peek(line.as_bytes());
    let is_deep = seen.is_deeper_than(Limits::default().depth);
    if seen.sort() != Sort::Request || is_deep || ambiguity(&seen).is_some() {
        return None;
    }
    // Without headers there is always an objection; what matters is that it can be told.
    let _ = version::statelessly(contract, &HeaderMap::new(), &seen);
    let _ = version::at_first(contract, &HeaderMap::new(), &seen);
    let method = seen.method.as_deref()?.to_owned();
    let tool = match method.as_str() {
        wire::TOOLS_CALL => Some(ToolCall::read(seen.params)?.name.into_owned()),
        _ => None,
    };
    Some(Request {
        id: seen.id.filter(|id| wire::is_id(id))?.to_owned(),
        progress_token: progress_token(line),
        is_modern: version::is_modern(&HeaderMap::new(), &seen),
        line: line.to_owned(),
        method,
        tool,
    })
}

/// A stream of server-sent events.
pub struct Events(remote::Events);

impl Events {
    /// No event may be longer than `limit`.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self(remote::Events::new(limit))
    }

    /// Takes in the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.push(bytes);
    }

    /// The data of the next whole event.
    pub fn next_event(&mut self) -> Option<Vec<u8>> {
        self.0.next_event()
    }

    /// How many bytes are held of an event that is not whole yet.
    #[must_use]
    pub fn unfinished(&self) -> usize {
        self.0.unfinished()
    }

    /// Whether an event was longer than the limit.
    #[must_use]
    pub fn is_overlong(&self) -> bool {
        self.0.is_overlong()
    }

    /// Whether an event has begun and not ended.
    #[must_use]
    pub fn is_midway(&self) -> bool {
        self.0.is_midway()
    }
}
