//! What a server says that answers no call, or is no message at all.

use std::sync::LazyLock;
use std::time::Duration;

use faultwire_contract::{Aspect, Condition, Sort, bound, malformed, oversize, peek};
use memchr::memmem;
use serde_json::{Value, json};

use crate::calls::Unmatched;
use crate::failing::Failing;
use crate::link::Link;
use crate::wire;

/// Why a line is read over.
#[derive(Clone, Copy)]
pub(crate) enum TooLong {
    /// No line may be that long.
    Limit,
    /// It is long, and nothing was free for it.
    NoRoom,
}

/// What a client is told then.
pub(crate) const NO_ROOM: &str = "The answer is long, and there was no room for it: too much waits for \
                       clients that do not read";

/// How long a server may take to answer a notification, which it should not.
const NOTICE: Duration = Duration::from_secs(1);

impl Link {
    /// A reply that answers no open call.
    pub(super) fn misdirected(&self, id: Option<&str>, bytes: &[u8]) {
        let mut state = self.state();
        let (name, why) = match id.map_or(Unmatched::Unknown, |id| state.calls.unmatched(id)) {
            Unmatched::Late(why) => ("late_reply", why),
            Unmatched::Duplicate => ("duplicate_reply", "it was answered before"),
            Unmatched::Unknown => ("unmatched_reply", "nobody asked"),
        };
        // A method that it does not know, and nobody's id: it answers a notification, if it has
        // just got one.
        let is_no_call = id.is_none_or(|id| id == "null")
            && peek(bytes).error_number() == Some(wire::UNKNOWN_METHOD)
            && state.notified.take().is_some_and(|at| at.elapsed() < NOTICE);
        let blames = name == "unmatched_reply" && !is_no_call;
        let meant = if blames { state.calls.meant(id) } else { None };
        drop(state);
        let Some(call) = meant else {
            let id: Value = id.and_then(|id| serde_json::from_str(id).ok()).unwrap_or_default();
            let facts = json!({ "id": id, "why": why, "bytes": bytes.len() });
            return self.event(name, &facts);
        };
        let said = id.map_or("no id".to_owned(), |id| format!("the id {}", self.shortened(id)));
        let message = format!("The server answered under {said}, which nobody asked under");
        let aspect = Some(Aspect::WrongId);
        self.fail(
            call,
            Failing::finer(self.contract(), Condition::UpstreamProtocol, aspect).saying(message),
        );
    }

    /// Bytes that are no message. If they were meant as an answer, its call fails now.
    pub(crate) fn garbled(&self, bytes: &[u8]) {
        let line = peek(bytes);
        let why = match line.sort() {
            Sort::Malformed(why) => why,
            _ => "no `jsonrpc`",
        };
        let meant = is_meant(bytes);
        let id = wire::salvage_id(bytes).filter(|_| meant);
        let mut state = self.state();
        let call = match id.as_deref() {
            Some(id) => state.calls.answered(id),
            None if meant => state.calls.meant(None),
            None => None,
        };
        if let Some(call) = call {
            drop(state);
            return self.fail(call, Failing::classified(malformed(self.contract(), why)));
        }
        state.noise += 1;
        let count = state.noise;
        let in_key = state.key_lines.hides(bytes);
        drop(state);
        // A server that prints its log there would fill ours.
        if count.is_power_of_two() {
            let text = self.noise_text(bytes, in_key);
            tracing::warn!(count, "the server printed something that is no message");
            let facts = json!({ "why": why, "count": count, "begins": text });
            self.event("stray_output", &facts);
        }
    }

    /// An id that a server made up, made safe before it is cut (X6).
    fn shortened(&self, id: &str) -> String {
        let safe = self.contract().redactor().redact_credentials(id);
        safe[..safe.floor_char_boundary(64)].to_owned()
    }

    /// How a line of noise begins, made safe before it is cut (X6).
    fn noise_text(&self, bytes: &[u8], in_key: bool) -> String {
        if in_key {
            return "[redacted]".to_owned();
        }
        let text = String::from_utf8_lossy(bytes);
        let safe = self.contract().redactor().redact_credentials(&text);
        bound::cut(safe.trim_end(), 256).into_owned()
    }

    /// A line that is too long. Whether it could be answered.
    pub(crate) fn overlong(&self, id: Option<&str>, ended: bool, why: TooLong) -> bool {
        let mut state = self.state();
        let call = match id {
            Some(id) => state.calls.answered(id),
            None if ended => state.calls.meant(None),
            None => None,
        };
        drop(state);
        let limit = self.settings().limits.line_bytes;
        match call {
            Some(call) => {
                let failing = Failing::classified(oversize(self.contract(), limit));
                self.fail(
                    call,
                    match why {
                        TooLong::Limit => failing,
                        TooLong::NoRoom => failing.saying(NO_ROOM),
                    },
                );
            }
            None if ended => self.event("oversize_output", &json!({ "limit": limit })),
            None => return false,
        }
        true
    }
}

/// Whether something that is no message was meant as an answer. Servers print what they hear: a
/// request in a log line, or a message that a line of JSON tells of.
fn is_meant(bytes: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Top {
        jsonrpc: Option<serde::de::IgnoredAny>,
    }
    if !says_jsonrpc(bytes) {
        return false;
    }
    if let Ok(top) = serde_json::from_slice::<Top>(bytes) {
        return top.jsonrpc.is_some();
    }
    let mut start = bytes.iter().filter(|b| !matches!(b, 0 | b' ' | b'\t' | 0xef | 0xbb | 0xbf));
    let begins = match start.next() {
        Some(b'{') => true,
        Some(b'[') => start.next() == Some(&b'{'),
        _ => false,
    };
    let has = |word: &[u8]| memmem::find(bytes, word).is_some();
    begins || (!has(b"\"method\"") && (has(b"\"result\"") || has(b"\"error\"")))
}

/// Whether a message says what it is.
pub(crate) fn says_jsonrpc(bytes: &[u8]) -> bool {
    static WORD: LazyLock<memmem::Finder<'static>> =
        LazyLock::new(|| memmem::Finder::new("\"jsonrpc\""));
    WORD.find(bytes).is_some()
}
