//! What a server says that answers no call, or is no message at all.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use faultwire_contract::{Aspect, Condition, Sort, bound, malformed, oversize, peek};
use memchr::memmem;
use serde_json::{Value, json};

use super::Session;
use crate::calls::Unmatched;
use crate::failing::CallFailure;
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

impl Session {
    /// A reply that answers no open call.
    pub(super) fn misdirected(&mut self, id: Option<&str>, bytes: &[u8], now: Instant) {
        let (name, why) = match id.map_or(Unmatched::Unknown, |id| self.calls.unmatched(id)) {
            Unmatched::Late(why) => ("late_reply", why),
            Unmatched::Duplicate => ("duplicate_reply", "it was answered before"),
            Unmatched::Unknown => ("unmatched_reply", "it matches no open request"),
        };
        // An unknown method and no id: it answers a notification, if it has
        // just got one.
        let is_no_call = id.is_none_or(|id| id == "null")
            && peek(bytes).error_number() == Some(wire::UNKNOWN_METHOD)
            && self.notified.take().is_some_and(|at| now.saturating_duration_since(at) < NOTICE);
        let blames = name == "unmatched_reply" && !is_no_call;
        let meant = if blames { self.calls.meant(id) } else { None };
        let Some(call) = meant else {
            let id: Value = id.and_then(|id| serde_json::from_str(id).ok()).unwrap_or_default();
            let facts = json!({ "id": id, "why": why, "bytes": bytes.len() });
            return self.event(name, facts);
        };
        let said = id.map_or("no id".to_owned(), |id| format!("the id {}", self.shortened(id)));
        let message = format!("The server replied with {said}, which matches no open request");
        let aspect = Some(Aspect::WrongId);
        let failure = CallFailure::finer(self.contract(), Condition::UpstreamProtocol, aspect);
        self.fail(call, failure.saying(message));
    }

    /// Bytes that are no message. If they were meant as an answer, its call fails now.
    pub(crate) fn on_garbled(&mut self, bytes: &[u8]) {
        let line = peek(bytes);
        let why = match line.sort() {
            Sort::Malformed(why) => why,
            _ => "no `jsonrpc`",
        };
        let meant = is_meant(bytes);
        let id = wire::salvage_id(bytes).filter(|_| meant);
        let call = match id.as_deref() {
            Some(id) => self.calls.answered(id),
            None if meant => self.calls.meant(None),
            None => None,
        };
        if let Some(call) = call {
            let failure = CallFailure::classified(malformed(self.contract(), why));
            return self.fail(call, failure);
        }
        self.noise += 1;
        let count = self.noise;
        let in_key = self.key_lines.hides(bytes);
        // A server that prints its log there would fill ours.
        if count.is_power_of_two() {
            let text = self.noise_text(bytes, in_key);
            tracing::warn!(count, "the server printed a line that is not a message");
            self.event("stray_output", json!({ "why": why, "count": count, "begins": text }));
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
    pub(crate) fn on_overlong(&mut self, id: Option<&str>, ended: bool, why: TooLong) -> bool {
        let call = match id {
            Some(id) => self.calls.answered(id),
            None if ended => self.calls.meant(None),
            None => None,
        };
        let limit = self.settings.limits.line_bytes;
        match call {
            Some(call) => {
                let failure = CallFailure::classified(oversize(self.contract(), limit));
                let failure = match why {
                    TooLong::Limit => failure,
                    TooLong::NoRoom => failure.saying(NO_ROOM),
                };
                self.fail(call, failure);
            }
            None if ended => self.event("oversize_output", json!({ "limit": limit })),
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
