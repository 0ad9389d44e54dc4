//! From the client to the server.

use std::sync::MutexGuard;
use std::time::Instant;

use faultwire_contract::protocol::REQUESTS;
use faultwire_contract::{Aspect, Condition, Line, Outcome, Sort, ambiguity, peek};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::refusal::says_method;
use crate::batch;
use crate::call::{Call, Method, Stage};
use crate::failing::{Failing, Said};
use crate::link::{Examined, LEFT_ALONE, Link, Phase, State, Verdict};
use crate::party::Asker;
use crate::request::ToolCall;
use crate::wire;

/// Where a line would stand in the server's input.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    /// At which byte.
    pub at: u64,
    /// How much more the server's input takes.
    pub room: usize,
    /// When it came.
    pub now: Instant,
}

impl Link {
    /// A line of the client.
    pub(crate) fn hear_client(&self, asker: Asker<'_>, line: &[u8], place: Place) -> Verdict {
        if let Some(clean) = on_one_line(line) {
            return match self.hear_client(asker, &clean, place) {
                Verdict::Pass => Verdict::Instead(clean),
                verdict => verdict,
            };
        }
        match line.trim_ascii_start().first() {
            None => return Verdict::Drop,
            Some(b'[') => {
                if let Some(members) = batch::members(line) {
                    self.state().batches = true;
                    return batch::judged(line, &members, true, |member| {
                        self.message_of_client(asker, member, place)
                    });
                }
            }
            Some(_) => {}
        }
        self.message_of_client(asker, line, place)
    }

    /// The same for a line that was looked at already, and is no batch.
    pub(crate) fn hear_seen(
        &self,
        asker: Asker<'_>,
        line: &[u8],
        seen: &Line<'_>,
        examined: Option<Examined>,
        place: Place,
    ) -> Verdict {
        if line.trim_ascii_start().is_empty() {
            return Verdict::Drop;
        }
        self.seen_of_client(asker, line, seen, examined, place)
    }

    /// A line of the client that is too long, of which only the id is known.
    pub(crate) fn overlong_of_client(&self, asker: Asker<'_>, part: &[u8]) -> Verdict {
        let id = wire::salvage_id(part);
        let id = id.as_deref();
        let answers = |id: &&str| !says_method(part) && self.state().asked.remove(*id).is_some();
        if let Some(id) = id.filter(answers) {
            let message = "The client's answer is too long";
            return Verdict::Instead(wire::error(
                Some(id),
                wire::INVALID_REQUEST,
                message,
                b"null",
            ));
        }
        let id = id.filter(|id| !self.state().calls.contains(id));
        let limit = self.settings().limits.line_bytes;
        let message = format!("The request has more than {limit} bytes");
        let failing = self.bad(Aspect::Value).saying(message);
        self.door.refuse(asker, id, wire::INVALID_REQUEST, failing);
        Verdict::Drop
    }

    fn message_of_client(&self, asker: Asker<'_>, bytes: &[u8], place: Place) -> Verdict {
        self.seen_of_client(asker, bytes, &peek(bytes), None, place)
    }

    fn seen_of_client(
        &self,
        asker: Asker<'_>,
        bytes: &[u8],
        line: &Line<'_>,
        examined: Option<Examined>,
        place: Place,
    ) -> Verdict {
        match (line.sort(), line.id) {
            (Sort::Malformed(why), id) => return self.malformed_line(asker, bytes, id, why),
            (sort, id) => {
                let limit = self.settings().limits.depth;
                let found = if line.is_deeper_than(limit) {
                    Some(format!("it is nested deeper than {limit} levels"))
                } else {
                    ambiguity(line).map(|found| found.to_string())
                };
                if let Some(found) = found {
                    let asked = id.filter(|id| sort == Sort::Request && wire::is_id(id));
                    return match asked {
                        Some(id) => self.refuse_request(asker, id, line, place, &found),
                        None => self.malformed_line(asker, bytes, id, &found),
                    };
                }
            }
        }
        match (line.sort(), line.id) {
            (Sort::Request, Some(id)) => self.request(asker, id, line, examined, place),
            // No server must run what was not checked, and there is no id to answer to.
            (Sort::Request | Sort::Notification, _) if is_request(line) => {
                self.refuse_line(asker, bytes, "a request without an id")
            }
            (Sort::Request | Sort::Notification, _)
                if !asker.party.may_notify(line.method.as_deref().unwrap_or_default()) =>
            {
                self.refuse_line(asker, bytes, "this client may not send this notification")
            }
            (Sort::Request | Sort::Notification, _) => self.notification(line, bytes, place),
            (Sort::Reply, Some(id)) => self.answer_to_server(id),
            (Sort::Reply | Sort::Malformed(_), _) => {
                self.refuse_line(asker, bytes, "a reply without an id")
            }
        }
    }

    /// Something of the client's own that cannot be sent on.
    pub(super) fn bad(&self, aspect: Aspect) -> Failing {
        Failing::finer(self.contract(), Condition::InvalidArguments, Some(aspect))
    }

    fn answer_to_server(&self, id: &str) -> Verdict {
        if self.state().take_asked(id) {
            return Verdict::Pass;
        }
        // The server that asked is gone, or took its question back.
        self.event("stray_answer", &serde_json::json!({ "id": id }));
        Verdict::Drop
    }

    fn notification(&self, line: &Line<'_>, bytes: &[u8], place: Place) -> Verdict {
        let mut state = self.state();
        match line.method.as_deref() {
            Some(wire::INITIALIZED) => state.handshake.confirm(bytes),
            Some(wire::CANCELLED) => {
                let cancelled = line.params.and_then(|p| wire::member::<&RawValue>(p, "requestId"));
                return cancelled.map_or(Verdict::Pass, |id| self.cancel(state, id.get(), place));
            }
            _ => {}
        }
        // Whoever comes back hears the handshake anew; anything else was said to somebody else.
        let heard = state.phase == Phase::Up && bytes.len() <= place.room;
        if heard {
            state.notified = Some(place.now);
        }
        if heard { Verdict::Pass } else { Verdict::Drop }
    }

    /// The client takes a call back.
    fn cancel(&self, mut state: MutexGuard<'_, State>, id: &str, place: Place) -> Verdict {
        let up = state.phase == Phase::Up;
        let Some(call) = state.calls.give_up(id, "cancelled") else {
            return if up { Verdict::Pass } else { Verdict::Drop };
        };
        state.notified = Some(place.now);
        drop(state);
        let sent = matches!(call.stage, Stage::Sent { .. });
        let outcome = if sent { Outcome::MaybeExecuted } else { Outcome::NotSent };
        let mut failing = Failing::observed(self.contract(), Condition::Cancelled)
            .saying("The client took the call back")
            .outcome(outcome);
        if !self.settings().answer_cancelled {
            failing.said = Said::Nothing;
        }
        self.unheard();
        call.fail(failing);
        if sent && up && place.room > 0 { Verdict::Pass } else { Verdict::Drop }
    }

    fn request(
        &self,
        asker: Asker<'_>,
        id: &str,
        line: &Line<'_>,
        examined: Option<Examined>,
        place: Place,
    ) -> Verdict {
        if !wire::is_id(id) {
            let failing = self.bad(Aspect::Type).saying("An id is a text or a number");
            self.door.refuse(asker, None, wire::INVALID_REQUEST, failing);
            return Verdict::Drop;
        }
        let name = line.method.as_deref().unwrap_or_default();
        if name != wire::TOOLS_CALL {
            let method = method(name, line.params);
            let call = Call::new(asker, line, id, method, None, place.now);
            if let Some(failing) = self.target_refusal(asker, name, line.params) {
                call.fail(failing);
                return Verdict::Drop;
            }
            return self.open(call, place);
        }
        let params = ToolCall::read(line.params);
        let tool = params.as_ref().map(|params| &*params.name);
        let call = self.owned(Call::new(asker, line, id, Method::ToolsCall, tool, place.now));
        let Some(params) = params else {
            call.fail(self.bad(Aspect::Missing).saying("tools/call needs the name of a tool"));
            return Verdict::Drop;
        };
        if params.name.chars().any(char::is_control) {
            let message = "The tool's name has a control character";
            call.fail(self.bad(Aspect::Value).saying(message).outcome(Outcome::NotSent));
            return Verdict::Drop;
        }
        let refused = asker.party.objection(Some(&params.name));
        if let Some(failing) = refused.or_else(|| self.task_refusal(asker, name, line.params)) {
            call.fail(failing);
            return Verdict::Drop;
        }
        let known = {
            let tools = self.tools();
            if tools.must_be_listed(&params.name) {
                Err(())
            } else {
                Ok(tools.get(&params.name).cloned())
            }
        };
        let arguments = params.arguments.map(RawValue::get);
        if let Ok(tool) = &known
            && let Some(failing) =
                self.out_of_turn(asker.party, &params.name, tool.as_deref(), arguments)
        {
            call.fail(failing);
            return Verdict::Drop;
        }
        match known {
            Err(()) => self.open_after_list(call, place),
            Ok(None) => self.open(call, place),
            Ok(Some(tool)) => match self.refusal(&call, &params.name, &tool, arguments, examined) {
                Some(failing) => {
                    call.fail(failing);
                    Verdict::Drop
                }
                None => self.open(call, place),
            },
        }
    }

    /// Opens a call, or says why not.
    fn open(&self, call: Call, place: Place) -> Verdict {
        let Some((mut call, mut state)) = self.admit(call, place) else { return Verdict::Drop };
        if call.method == Method::Initialize {
            let client = state.handshake.begin(call.id(), call.line());
            tracing::info!(client, "a client begins its session");
            if let Some(party) = call.party() {
                party.greet(client);
            }
        }
        let goes = state.phase == Phase::Up;
        if goes {
            call.stage = Stage::Sent { at: place.at };
            state.employed = true;
        }
        let deadline = call.deadline;
        state.calls.insert(call);
        self.watch(&mut state, deadline);
        if goes { Verdict::Pass } else { Verdict::Drop }
    }

    /// Opens a call whose arguments cannot be checked before the server has told its tools.
    fn open_after_list(&self, call: Call, place: Place) -> Verdict {
        let Some((call, mut state)) = self.admit(call, place) else { return Verdict::Drop };
        let asks = state.listing.is_none() && state.phase == Phase::Up;
        let (deadline, era) = (call.deadline, asks.then(|| call.story().era()));
        let span = call.span.filter(|_| self.may_hurry());
        state.calls.insert(call);
        let ask = era.map(|era| self.ask_for_tools(&mut state, era, None));
        let listed = state.listing.as_mut().and_then(|listing| listing.hurry(place.now, span));
        self.watch(&mut state, deadline.into_iter().chain(listed).min());
        ask.map_or(Verdict::Drop, Verdict::Instead)
    }

    /// Lets a call in, with the state locked, or fails it.
    fn admit(&self, call: Call, place: Place) -> Option<(Call, MutexGuard<'_, State>)> {
        let mut state = self.state();
        state.budget.earn();
        let Some(failing) = self.admission(&state, &call, place) else {
            return Some((call, state));
        };
        drop(state);
        call.fail(failing);
        None
    }

    /// Why a call cannot be opened at all.
    fn admission(&self, state: &State, call: &Call, place: Place) -> Option<Failing> {
        let limits = &self.settings().limits;
        if state.calls.contains(call.id()) {
            let message = format!("The request id {} is still in use", call.id());
            return Some(self.bad(Aspect::Value).saying(message).outcome(Outcome::NotSent));
        }
        if state.closing {
            let failing = Failing::observed(self.contract(), Condition::NotReady);
            return Some(failing.saying("The gateway is shutting down"));
        }
        // One that is about to be started is waited for.
        if let Phase::Down { until, why, failed_start } = &state.phase
            && until.is_none_or(|until| until > place.now)
        {
            return Some(self.unreachable(*until, why, failed_start.as_deref()));
        }
        let bytes = state.calls.bytes().saturating_add(call.line().len());
        let crowded = bytes > limits.backlog_bytes || state.calls.is_crowded_for(call.line().len());
        let too_much = crowded && !state.calls.is_empty();
        if state.calls.len() >= limits.in_flight || too_much {
            let message = format!("{} calls are open already", state.calls.len());
            return Some(
                Failing::observed(self.contract(), Condition::RateLimited).saying(message),
            );
        }
        if call.line().len() > place.room {
            return Some(
                Failing::observed(self.contract(), Condition::UpstreamUnreachable)
                    .saying("The server does not read its input")
                    .outcome(Outcome::NotSent),
            );
        }
        // Last: whoever is let through here may be the one who finds out how the server is.
        let breaker = self.breaker.as_ref().filter(|_| call.method == Method::ToolsCall)?;
        let wait = breaker.admit(place.now).err()?;
        Some(
            Failing::observed(self.contract(), Condition::UpstreamUnreachable)
                .saying(LEFT_ALONE)
                .outcome(Outcome::NotSent)
                .after(self.contract(), Some(wait)),
        )
    }
}

/// Whether a message without an id names what only a request may ask for.
fn is_request(line: &Line<'_>) -> bool {
    line.method.as_deref().is_some_and(|method| REQUESTS.contains(&method))
}

/// The line without carriage returns in it. Servers that read in text mode end a line at each, so
/// that a value inside a message could become a message of its own.
fn on_one_line(line: &[u8]) -> Option<Vec<u8>> {
    let inner = line.trim_ascii_end();
    memchr::memchr(b'\r', inner)?;
    // They can only stand between the members: in a text they would be escaped.
    let blank = |b: &u8| if *b == b'\r' { b' ' } else { *b };
    let mut line: Vec<u8> = inner.iter().map(blank).collect();
    line.push(b'\n');
    Some(line)
}

pub(super) fn method(name: &str, params: Option<&str>) -> Method {
    #[derive(Deserialize)]
    struct Paged {
        cursor: Option<Value>,
    }
    match name {
        wire::INITIALIZE => Method::Initialize,
        wire::TOOLS_CALL => Method::ToolsCall,
        wire::TOOLS_LIST => {
            let paged = params.and_then(|p| serde_json::from_str::<Paged>(p).ok());
            Method::ToolsList { first_page: paged.and_then(|p| p.cursor).is_none() }
        }
        other => Method::Other(other.into()),
    }
}
