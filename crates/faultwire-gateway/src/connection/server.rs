//! Lines of the server.

use std::sync::Arc;

use faultwire_contract::{Answers, Line, peek};

use super::{Connection, Event, Verdict, verdict};
use crate::batch;
use crate::call::{Call, OpenCall};
use crate::edge;
use crate::failing::CallFailure;
use crate::guard::scope::Kind;
use crate::method::Method;
use crate::reply::{Judged, Reply, Success, result_of};
use crate::rewrite::Rewrite;
use crate::session::{ServerVerdict, Session, TooLong};
use crate::tools::{ListedTool, Page};

impl Connection {
    /// A line of the server, whatever it is.
    pub(crate) fn on_server(&self, line: &[u8]) -> Verdict {
        match line.first() {
            Some(b'{') => self.on_server_message(line, &peek(line), true),
            Some(b'[') => match batch::members(line) {
                Some(members) => {
                    let mut due = members.iter().map(|member| batch::alone(member));
                    let due = due.find_map(|one| self.session().due(&peek(one.as_bytes())));
                    if let Some(due) = due {
                        return Verdict::Later(due);
                    }
                    let as_list = self.session().reads_batches();
                    verdict::of_batch(line, &members, as_list, |one| {
                        self.on_server_message(one, &peek(one), false)
                    })
                }
                None if batch::is_cut_off(line) => Verdict::Unfinished,
                None => self.on_server_message(line, &peek(line), false),
            },
            _ => self.on_oddly_begun(line),
        }
    }

    /// A line of the server that was peeked at already.
    pub(crate) fn on_server_seen(&self, line: &[u8], seen: &Line<'_>) -> Verdict {
        match line.first() {
            Some(b'{') => self.on_server_message(line, seen, true),
            _ => self.on_server(line),
        }
    }

    /// Blanks, a byte order mark or NULs around a message are taken off: no client reads them.
    fn on_oddly_begun(&self, line: &[u8]) -> Verdict {
        let bare = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        let bare = bare.trim_ascii();
        let bare = &bare[bare.iter().take_while(|b| **b == 0).count()..];
        if bare.is_empty() {
            return Verdict::Drop;
        }
        if bare.len() == line.len() || !matches!(bare[0], b'{' | b'[') {
            self.on_garbled(line);
            return Verdict::Drop;
        }
        let mut clean = bare.to_vec();
        clean.push(b'\n');
        match self.on_server(&clean) {
            Verdict::Pass => Verdict::Instead(clean),
            verdict => verdict,
        }
    }

    fn on_server_message(&self, bytes: &[u8], line: &Line<'_>, may_wait: bool) -> Verdict {
        let now = edge::now();
        match self.with(|session| session.on_server(bytes, line, may_wait, now)) {
            ServerVerdict::Pass => Verdict::Pass,
            ServerVerdict::Drop => Verdict::Drop,
            ServerVerdict::Unfinished => Verdict::Unfinished,
            ServerVerdict::Later(due) => Verdict::Later(due),
            ServerVerdict::Reply(call, tool) => self.on_reply(call, tool.as_ref(), line, bytes),
            ServerVerdict::Opened => {
                if line.failure(self.contract(), Answers::Other).is_some() {
                    tracing::warn!("the server was started again and refuses the handshake");
                    self.with(|session| session.on_handshake_refused(now));
                } else {
                    self.with_slot(Session::on_opened);
                }
                Verdict::Drop
            }
            ServerVerdict::Listed => {
                let page = result_of(bytes).and_then(Page::read);
                self.with(|session| session.on_listed(page));
                Verdict::Drop
            }
            ServerVerdict::OwnReply => {
                let id = line.id.unwrap_or_default();
                if self.with(|session| session.on_own_reply(id, line))
                    && let Some(waiting) = self.waiting().remove(id)
                {
                    // Who asked may have given up.
                    let _ = waiting.send(bytes.to_vec());
                }
                Verdict::Drop
            }
        }
    }

    /// A reply to an open call.
    fn on_reply(
        &self,
        call: OpenCall,
        tool: Option<&Arc<ListedTool>>,
        line: &Line<'_>,
        bytes: &[u8],
    ) -> Verdict {
        let tasks = self.tasks.as_deref();
        let reply = Reply { settings: &self.settings, tasks, tool, call: &call, line, bytes };
        match reply.judge() {
            Judged::Success(success) => self.succeeded(call, line, success),
            Judged::ProtocolError(line) => {
                let is_sent = call.answer(&peek(&line), Rewrite::new(&line));
                if is_sent { Verdict::Drop } else { Verdict::Instead(line) }
            }
            Judged::Mismatch(failure) => {
                self.count_mismatch(&call);
                self.fail(call, *failure, true);
                Verdict::Drop
            }
            Judged::Failure(mut failure) => {
                self.advise(&call, &mut failure);
                self.refused(call, *failure);
                Verdict::Drop
            }
        }
    }

    /// Adds what the tool list and the directories say about a failure that is the caller's.
    fn advise(&self, call: &Call, failure: &mut CallFailure) {
        let client = call.client();
        let may_know = |tool: &str| client.is_none_or(|client| client.may_use(Kind::Tool, tool));
        self.session().advise(call, failure, may_know);
    }

    fn count_mismatch(&self, call: &Call) {
        if let (Some(metrics), Some(tool)) = (&self.responder.metrics, call.tool()) {
            metrics.output_mismatch(tool);
        }
    }

    fn succeeded(&self, call: OpenCall, line: &Line<'_>, success: Success<'_>) -> Verdict {
        let Success { reply, page, events, is_mismatched } = success;
        if let Some(breaker) = &self.breaker {
            breaker.worked();
        }
        if is_mismatched {
            self.count_mismatch(&call);
        }
        for (name, facts) in events {
            self.event(name, &facts);
        }
        if let (Some(spans), Some(client)) = (&self.responder.spans, call.client()) {
            spans.ended(&call, client, None);
        }
        // A call of a tool changes nothing but where the contract has rules for sessions.
        if call.method != Method::ToolsCall || self.contract().session.is_some() {
            self.with(|session| session.on_success(&call, page));
        }
        if call.method == Method::ToolsCall
            && let (Some(metrics), Some(tool)) = (&self.responder.metrics, call.tool())
        {
            let took = edge::now().saturating_duration_since(call.since);
            metrics.succeeded(tool, || call.facts.is_listed, took);
        }
        if call.answer(line, reply) { Verdict::Drop } else { Verdict::Pass }
    }

    /// Bytes of the server that are no message.
    pub(crate) fn on_garbled(&self, bytes: &[u8]) {
        self.with(|session| session.on_garbled(bytes));
    }

    /// A line of the server that is too long. Whether it could be answered.
    pub(crate) fn on_overlong(&self, id: Option<&str>, ended: bool, why: TooLong) -> bool {
        self.with(|session| session.on_overlong(id, ended, why))
    }

    /// Ends the process of the server, which is started again.
    pub(crate) fn kill_server(&self) {
        self.events.send(Event::Kill);
    }
}
