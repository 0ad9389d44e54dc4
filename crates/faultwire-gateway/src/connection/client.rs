//! Lines of the client.

use faultwire_contract::{Line, peek};

use super::{Connection, Verdict, verdict};
use crate::batch;
use crate::call::{RequestContext, Responder};
use crate::session::{Checked, ClientVerdict, Incoming, UpstreamSlot};

impl Connection {
    /// A line of the client, whatever it is.
    pub(crate) fn on_client(
        &self,
        context: RequestContext<'_>,
        line: &[u8],
        slot: UpstreamSlot,
    ) -> Verdict {
        if let Some(clean) = on_one_line(line) {
            return match self.on_client(context, &clean, slot) {
                Verdict::Pass => Verdict::Instead(clean),
                verdict => verdict,
            };
        }
        match line.trim_ascii_start().first() {
            None => return Verdict::Drop,
            Some(b'[') => {
                if let Some(members) = batch::members(line) {
                    self.session().note_batch();
                    return verdict::of_batch(line, &members, true, |member| {
                        self.on_message(context, member, slot)
                    });
                }
            }
            Some(_) => {}
        }
        self.on_message(context, line, slot)
    }

    fn on_message(&self, context: RequestContext<'_>, bytes: &[u8], slot: UpstreamSlot) -> Verdict {
        let seen = peek(bytes);
        let incoming = Incoming::read(context, bytes, &seen, self.settings.limits.depth, slot.now);
        let checked = self.check(&incoming);
        self.on_incoming(incoming, checked.as_ref(), slot)
    }

    /// A line that was peeked at already, and is no batch.
    pub(crate) fn on_client_seen(
        &self,
        context: RequestContext<'_>,
        bytes: &[u8],
        seen: &Line<'_>,
        checked: Option<&Checked<'_>>,
        slot: UpstreamSlot,
    ) -> Verdict {
        if bytes.trim_ascii_start().is_empty() {
            return Verdict::Drop;
        }
        let depth = self.settings.limits.depth;
        let incoming = Incoming::read(context, bytes, seen, depth, slot.now);
        self.on_incoming(incoming, checked, slot)
    }

    fn on_incoming(
        &self,
        incoming: Incoming<'_>,
        checked: Option<&Checked<'_>>,
        slot: UpstreamSlot,
    ) -> Verdict {
        let context = incoming.context();
        let verdict = self.with(|session| session.on_client(incoming, checked, slot));
        self.verdict_on_client(context, verdict)
    }

    /// A line of the client that is too long, of which only a part is known.
    pub(crate) fn on_overlong_client(&self, context: RequestContext<'_>, part: &[u8]) -> Verdict {
        let verdict = self.with(|session| session.on_overlong_client(part));
        self.verdict_on_client(context, verdict)
    }

    fn verdict_on_client(&self, context: RequestContext<'_>, verdict: ClientVerdict) -> Verdict {
        match verdict {
            ClientVerdict::Pass => Verdict::Pass,
            ClientVerdict::Drop => Verdict::Drop,
            ClientVerdict::Instead(line) => Verdict::Instead(line),
            ClientVerdict::Refuse(refusal) => {
                let id = refusal.id.as_deref();
                self.responder.refuse(context, id, refusal.number, refusal.failure);
                Verdict::Drop
            }
        }
    }
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
