//! A reply that says that its call failed: what is kept of it, how far the call got, and what the
//! tool list knows about it.

use std::sync::Arc;

use faultwire::arguments::Misfit;
use faultwire_contract::{Caller, Condition, Failure, Line, Outcome, Redactor, peek};
use serde_json::{Value, json};

use crate::call::{Call, Method};
use crate::edge;
use crate::failing::{Failing, Said};
use crate::guard::scope::Kind;
use crate::link::{Link, Verdict};
use crate::party::Bridged;
use crate::patched::Patched;
use crate::tools::Tool;
use crate::wire::{self, Flow};

impl Link {
    /// The server says that a call failed, in whichever way.
    pub(super) fn failed(
        &self,
        call: Call,
        failure: Failure,
        line: &Line<'_>,
        bytes: &[u8],
    ) -> Verdict {
        // To read the request again takes time, and hardly any failure needs it.
        let is_modern = || call.story().is_modern();
        let flow = Flow::of(line.error_number());
        if flow == Flow::Elicitation
            && !is_modern()
            && wire::asks_for_urls(bytes)
            && let Some(told) = self.negotiated(&call, bytes)
        {
            let passed = call.answer(&peek(&told), Patched::new(&told));
            return if passed { Verdict::Drop } else { Verdict::Instead(told) };
        }
        let mut failing = Failing::classified(failure);
        if let Some(number) = failing.rpc.filter(|number| wire::modern_number(*number) != *number) {
            let is_modern = call.bridged != Bridged::LegacyClient && is_modern();
            failing.rpc = Some(if is_modern { wire::modern_number(number) } else { number });
        }
        if failing.report.retry_after_ms.is_none() && call.wait.is_some() {
            failing = failing.after(self.contract(), call.wait);
        }
        failing.report.outcome = Some(self.outcome_of(&failing));
        // What was asked was the next round of a tool that has run already, not the tool.
        failing.is_protocol =
            failing.rpc == Some(wire::INVALID_PARAMS) && call.story().is_next_round();
        if flow == Flow::Negotiation && (is_modern() || call.method == Method::Initialize) {
            failing.is_protocol = true;
            if let Some(line) = self.negotiated(&call, bytes) {
                failing.said = Said::Protocol(line);
            }
        }
        self.advise(&call, &mut failing);
        self.refused(call, failing);
        Verdict::Drop
    }

    /// How far a call got that the server says it failed (A7). It was sent: a code's promise that
    /// it was not is not what we saw, and words in a text are no proof that no tool has run.
    fn outcome_of(&self, failing: &Failing) -> Outcome {
        let report = &failing.report;
        let row = self.contract().code(&report.code);
        let tempts = row.is_some_and(|row| row.retry.iter().any(|class| class.is_retryable()));
        match report.condition.map(Condition::reported_outcome) {
            Some(Outcome::NotSent) if tempts || failing.rpc.is_none() => Outcome::MaybeExecuted,
            seen => seen.unwrap_or(Outcome::MaybeExecuted),
        }
    }

    /// An error that the protocol wants to reach the client: its number, and what stands in its
    /// data, without what nobody should read.
    fn negotiated(&self, call: &Call, bytes: &[u8]) -> Option<Vec<u8>> {
        #[derive(serde::Deserialize)]
        struct Reply {
            error: Told,
        }
        #[derive(serde::Deserialize)]
        struct Told {
            code: i64,
            message: Option<String>,
            data: Option<Value>,
        }
        let Reply { error } = serde_json::from_slice(bytes).ok()?;
        let contract = self.contract();
        let known = call.party().map_or_else(Caller::default, |party| party.caller());
        let caller = known.sent_raw(call.params());
        let message = error.message.as_deref().map(|text| contract.redact_for(text, &caller));
        let mut told = json!({ "code": error.code, "message": message.unwrap_or_default() });
        if let Some(mut data) = error.data {
            // Addresses that a user is to open hold what they must; all around them is text.
            let urls = data.as_object_mut().and_then(|data| data.remove(wire::ELICITATIONS));
            let mut data = contract.redact_json_for(data, &caller);
            if let (Some(urls), Some(data)) = (urls, data.as_object_mut()) {
                let urls = without_secrets(urls, contract.redactor());
                data.insert(wire::ELICITATIONS.to_owned(), urls);
            }
            told["data"] = data;
        }
        Some(wire::told(call.client_id(), &told))
    }

    /// Adds what the tool list knows about a failure that is the caller's.
    fn advise(&self, call: &Call, failing: &mut Failing) {
        let (Some(name), Some(condition)) = (call.tool(), failing.report.condition) else {
            return;
        };
        match condition {
            Condition::UnknownTool => {
                let near = self.tools().nearest(name).map(str::to_owned);
                // Nobody is led to a tool that is kept from them.
                let near =
                    near.filter(|near| call.party().is_none_or(|p| p.may_use(Kind::Tool, near)));
                failing.report.suggestion =
                    near.as_ref().map(|near| format!("Did you mean {near:?}?"));
                failing.report.hints.nearest = near;
            }
            Condition::InvalidArguments => {
                let arguments = call.story().arguments.map(|a| a.to_string());
                let tool = self.tools().get(name).cloned();
                let check = |tool: Arc<Tool>| tool.schema(name).misfit(arguments.as_deref());
                let misfit = tool.and_then(|tool| edge::aside(|| check(tool)));
                // What only the server noticed is an issue, too (W4).
                let said = failing.report.message.as_deref().unwrap_or_default();
                let misfit = misfit.unwrap_or_else(|| Misfit::told_by_handler(said));
                failing.report.hints.missing = misfit.missing();
                failing.report.details = Some(misfit.details_with(failing.report.details.take()));
            }
            _ => {}
        }
    }
}

/// What a server says beside the addresses that it wants opened, without credentials.
fn without_secrets(elicitations: Value, redactor: &Redactor) -> Value {
    let Value::Array(all) = elicitations else {
        return redactor.redact_json_credentials(elicitations);
    };
    let safe = |mut one: Value| {
        let url = one.as_object_mut().and_then(|one| one.remove("url"));
        let mut one = redactor.redact_json_credentials(one);
        if let (Some(one), Some(url)) = (one.as_object_mut(), url) {
            one.insert("url".to_owned(), url);
        }
        one
    };
    all.into_iter().map(safe).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x6_an_elicitation_keeps_its_address_and_loses_secrets_around_it() {
        let asked = json!([{ "mode": "url", "elicitationId": "e1",
            "url": "https://login.example/start?token=abc123def456&state=x",
            "message": "Sign in; password=hunter2hunter2" }]);
        let safe = without_secrets(asked.clone(), &Redactor::default());
        assert_eq!(safe[0]["url"], asked[0]["url"]);
        assert_eq!(safe[0]["elicitationId"], "e1");
        assert!(!safe.to_string().contains("hunter2"), "{safe}");
    }
}
