//! Lines of a client that go no further: broken ones, ambiguous ones, ones that are too long.

use faultwire_contract::Aspect;
use serde_json::json;

use super::Session;
use super::effect::{ClientVerdict, Refusal};
use crate::call::OpenCall;
use crate::wire;

impl Session {
    /// A request that a server could read in another way than it was judged, or not at all.
    pub(super) fn refuse_request(&mut self, call: OpenCall, why: &str) -> ClientVerdict {
        let failure = self.bad(Aspect::Format).saying(format!("The request is refused: {why}"));
        self.fail(call, failure);
        ClientVerdict::Drop
    }

    /// A line that is no message, or could be read as two. If the server waits for a reply under
    /// its id, an error of our own is that reply: no byte of the line reaches it.
    pub(super) fn malformed_line(
        &mut self,
        bytes: &[u8],
        id: Option<&str>,
        why: &str,
    ) -> ClientVerdict {
        let asked = id.filter(|_| !says_method(bytes));
        let known = asked.and_then(|id| self.asked.remove_entry(id));
        let Some((id, _)) = known else { return self.refuse_line(bytes, why) };
        self.event("malformed_answer", json!({ "why": why, "bytes": bytes.len() }));
        let message = "The client's answer is not a valid message";
        ClientVerdict::Instead(wire::error(Some(&id), wire::INVALID_REQUEST, message, b"null"))
    }

    pub(super) fn refuse_line(&self, bytes: &[u8], why: &str) -> ClientVerdict {
        let number = match serde_json::from_slice::<serde::de::IgnoredAny>(bytes) {
            Ok(_) => wire::INVALID_REQUEST,
            Err(_) => wire::PARSE_ERROR,
        };
        let id = wire::salvage_id(bytes).filter(|id| !self.calls.contains(id));
        let message = format!("The line is not a JSON-RPC message: {why}");
        let failure = self.bad(Aspect::Format).saying(message);
        ClientVerdict::Refuse(Refusal { id, number, failure })
    }

    pub(super) fn refuse_id(&self) -> ClientVerdict {
        let failure = self.bad(Aspect::Type).saying("An id is a string or a number");
        ClientVerdict::Refuse(Refusal { id: None, number: wire::INVALID_REQUEST, failure })
    }

    /// A line of the client that is too long, of which only a part is known.
    pub(crate) fn on_overlong_client(&mut self, part: &[u8]) -> ClientVerdict {
        let id = wire::salvage_id(part);
        if let Some(id) = id.as_deref()
            && !says_method(part)
            && self.asked.remove(id).is_some()
        {
            let message = "The client's answer is too long";
            return ClientVerdict::Instead(wire::error(
                Some(id),
                wire::INVALID_REQUEST,
                message,
                b"null",
            ));
        }
        let id = id.filter(|id| !self.calls.contains(id));
        let limit = self.settings.limits.line_bytes;
        let message = format!("The request has more than {limit} bytes");
        let failure = self.bad(Aspect::Value).saying(message);
        ClientVerdict::Refuse(Refusal { id, number: wire::INVALID_REQUEST, failure })
    }
}

/// Whether a broken line may have been meant as a request: both sides count their ids from 1.
fn says_method(bytes: &[u8]) -> bool {
    memchr::memmem::find(bytes, b"\"method\"").is_some()
}
