//! Messages of a client that go no further: broken ones, ambiguous ones, and those that name what
//! the client may not use.

use faultwire_contract::{Aspect, Condition, Line, Outcome};

use super::Place;
use super::inbound::method;
use crate::call::{Call, Method};
use crate::failing::Failing;
use crate::guard::tasks;
use crate::link::{Link, Verdict};
use crate::party::Asker;
use crate::request::ToolCall;
use crate::wire;

impl Link {
    /// A request that a server could read in another way than it was judged, or not at all.
    pub(super) fn refuse_request(
        &self,
        asker: Asker<'_>,
        id: &str,
        line: &Line<'_>,
        place: Place,
        why: &str,
    ) -> Verdict {
        let method = method(line.method.as_deref().unwrap_or_default(), None);
        let params = ToolCall::read(line.params).filter(|_| method == Method::ToolsCall);
        let tool = params.as_ref().map(|params| &*params.name);
        let call = self.owned(Call::new(asker, line, id, method, tool, place.now));
        let message = format!("The request is refused: {why}");
        call.fail(self.bad(Aspect::Format).saying(message).outcome(Outcome::NotSent));
        Verdict::Drop
    }

    /// A line that is no message, or could be read as two. If the server waits for an answer
    /// under its id, an error of our own is that answer: no byte of the line reaches it.
    pub(super) fn malformed_line(
        &self,
        asker: Asker<'_>,
        bytes: &[u8],
        id: Option<&str>,
        why: &str,
    ) -> Verdict {
        let asked = id.filter(|_| !says_method(bytes));
        let known = asked.and_then(|id| self.state().asked.remove_entry(id));
        let Some((id, _)) = known else { return self.refuse_line(asker, bytes, why) };
        self.event("malformed_answer", &serde_json::json!({ "why": why, "bytes": bytes.len() }));
        let message = "The client's answer is not a valid message";
        Verdict::Instead(wire::error(Some(&id), wire::INVALID_REQUEST, message, b"null"))
    }

    pub(super) fn refuse_line(&self, asker: Asker<'_>, bytes: &[u8], why: &str) -> Verdict {
        let number = match serde_json::from_slice::<serde::de::IgnoredAny>(bytes) {
            Ok(_) => wire::INVALID_REQUEST,
            Err(_) => wire::PARSE_ERROR,
        };
        let id = wire::salvage_id(bytes).filter(|id| !self.state().calls.contains(id));
        let failing =
            self.bad(Aspect::Format).saying(format!("This is no JSON-RPC message: {why}"));
        self.door.refuse(asker, id.as_deref(), number, failing);
        Verdict::Drop
    }

    /// Why a request that is no call of a tool is refused for what it names.
    pub(super) fn target_refusal(
        &self,
        asker: Asker<'_>,
        method: &str,
        params: Option<&str>,
    ) -> Option<Failing> {
        let refused = asker.party.target_objection(method, params).map(|why| {
            Failing::observed(self.contract(), Condition::Forbidden)
                .saying(why)
                .outcome(Outcome::NotSent)
        });
        refused.or_else(|| self.task_refusal(asker, method, params))
    }

    /// Why a request is refused for the tasks that it names: another's is not found.
    pub(super) fn task_refusal(
        &self,
        asker: Asker<'_>,
        method: &str,
        params: Option<&str>,
    ) -> Option<Failing> {
        let tasks = self.tasks.as_ref()?;
        let is_own = |id: &String| tasks.is_owner(&asker.party.owner, id);
        if tasks::named(method, params).is_ok_and(|named| named.iter().all(is_own)) {
            return None;
        }
        let failing = self.bad(Aspect::Value).saying("Task not found").outcome(Outcome::NotSent);
        Some(Failing { rpc: Some(wire::INVALID_PARAMS), is_protocol: true, ..failing })
    }
}

/// Whether a broken line may have been meant as a request: both sides count their ids from 1.
pub(super) fn says_method(bytes: &[u8]) -> bool {
    memchr::memmem::find(bytes, b"\"method\"").is_some()
}
