//! A look at a line: which message it is, and the few members that can make it a failure.
//! Nothing is built; values are borrowed from the line. What was seen before the line turned out
//! to be broken is kept: mostly the id is among it.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::fast_path;
use super::slow_path;
use crate::fold::fold;
use crate::json_escape::is_plain;
use crate::nesting::deeper_than;

/// A line of JSON-RPC, looked at once.
///
/// ```
/// let line = faultwire_contract::peek(br#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#);
/// assert_eq!((line.id, line.method.as_deref()), (Some("7"), Some("ping")));
/// assert_eq!(line.sort(), faultwire_contract::Sort::Request);
/// ```
pub struct Line<'a> {
    /// The line without blanks around it; empty if it is no UTF-8.
    pub text: &'a str,
    /// The id, as the bytes in which it was written.
    pub id: Option<&'a str>,
    /// The method of a request or notification.
    pub method: Option<Cow<'a, str>>,
    /// Its params, as the bytes in which they were written.
    pub params: Option<&'a str>,
    pub(super) message: Message<'a>,
    /// Whether a request has a result or an error beside its method.
    pub(super) reply_too: bool,
    scanned: Scanned,
}

/// What a scan found out on its way; nothing of it holds for a line that took a closer look.
#[derive(Clone, Copy, Default)]
pub(super) struct Scanned {
    /// The line is nested less than [`SHALLOW`] levels.
    pub shallow: bool,
    /// Every parser finds the same members in it.
    pub clear: bool,
}

/// No line that is scanned is nested so deeply.
pub(super) const SHALLOW: usize = 40;

/// Why a line is no message that may go on in the next one.
pub const CUT_OFF: &str = "JSON that is cut off";

/// What sort of message a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// It wants an answer.
    Request,
    /// It wants none.
    Notification,
    /// It is the answer to a request.
    Reply,
    /// It is no JSON-RPC message, and why.
    Malformed(&'static str),
}

/// What a line is.
pub(super) enum Message<'a> {
    Result(Peek<'a>),
    /// A result that no tool can have given.
    OddResult,
    Error(&'a str),
    /// A request, a notification.
    Other,
    Malformed(&'static str),
}

impl<'a> Line<'a> {
    /// The `structuredContent` of a result, as it was written.
    #[must_use]
    pub fn structured(&self) -> Option<&'a str> {
        match &self.message {
            Message::Result(result) => result.structured,
            _ => None,
        }
    }

    /// Whether it is a result that does not say that it is an error.
    #[must_use]
    pub fn is_success(&self) -> bool {
        matches!(&self.message, Message::Result(result) if !result.is_error)
    }

    /// Whether a request or notification has a result or an error, too: some servers would read it
    /// as a reply.
    #[must_use]
    pub fn is_reply_too(&self) -> bool {
        self.reply_too
    }

    /// Whether it is nested deeper than `limit`.
    #[must_use]
    pub fn is_deeper_than(&self, limit: usize) -> bool {
        let surely_not = self.scanned.shallow && limit >= SHALLOW;
        !surely_not && deeper_than(self.text.as_bytes(), limit)
    }

    /// Whether every parser finds the same members in it, as far as that was found out already.
    pub(crate) fn is_clear(&self) -> bool {
        self.scanned.clear
    }

    /// What sort of message it is.
    #[must_use]
    pub fn sort(&self) -> Sort {
        match (&self.message, self.id) {
            (Message::Malformed(why), _) => Sort::Malformed(why),
            (Message::Other, Some(_)) => Sort::Request,
            (Message::Other, None) => Sort::Notification,
            (Message::Result(_) | Message::OddResult | Message::Error(_), _) => Sort::Reply,
        }
    }

    /// The number of a JSON-RPC error.
    #[must_use]
    pub fn error_number(&self) -> Option<i64> {
        #[derive(serde::Deserialize)]
        struct Number<'a> {
            #[serde(borrow)]
            code: &'a RawValue,
        }
        let Message::Error(raw) = self.message else { return None };
        let error: Number<'_> = serde_json::from_str(raw).ok()?;
        error.code.get().parse().ok()
    }
}

/// What matters of a result.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a member of a result, or its absence")]
pub(super) struct Peek<'a> {
    /// What the result's own names and those of its blocks say beside each other.
    pub names: Judged,
    pub is_error: bool,
    /// Whether a member says so that MCP does not know: `is_error` of the result, `error` of a block.
    pub says_error: bool,
    pub has_content: bool,
    /// The text blocks, still as JSON strings: most results have one.
    first_text: Option<&'a str>,
    more_texts: Vec<&'a str>,
    /// Whether there are blocks that are no text.
    pub other_blocks: bool,
    pub structured: Option<&'a str>,
    /// All of it, where it has neither content nor a structured part.
    pub bare: Option<&'a str>,
}

impl<'a> Peek<'a> {
    /// The text blocks, still as JSON strings.
    pub(super) fn texts(&self) -> impl Iterator<Item = &'a str> {
        self.first_text.into_iter().chain(self.more_texts.iter().copied())
    }

    /// The text, when there is just one.
    pub(super) fn only_text(&self) -> Option<&'a str> {
        self.first_text.filter(|_| self.more_texts.is_empty())
    }

    pub(super) fn push_text(&mut self, text: &'a str) {
        match self.first_text {
            None => self.first_text = Some(text),
            Some(_) => self.more_texts.push(text),
        }
    }
}

/// Looks at a line. It never fails: what is no message is [`Sort::Malformed`].
#[must_use]
pub fn peek(bytes: &[u8]) -> Line<'_> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Line::malformed("", "no UTF-8");
    };
    // Blanks of JSON and no others: some parsers take no form feed.
    let text = text.trim_matches([' ', '\t', '\n', '\r']);
    match text.as_bytes().first() {
        Some(b'{') => {}
        Some(_) if serde_json::from_str::<IgnoredAny>(text).is_ok() => {
            return Line::malformed(text, "JSON that is no object");
        }
        Some(_) => return Line::malformed(text, "no JSON"),
        None => return Line::malformed(text, "an empty line"),
    }
    match fast_path::top(text) {
        Some(top) => top.line(text),
        None => slow_path::read(text),
    }
}

/// The members that matter, as they are written.
#[derive(Default)]
pub(super) struct Top<'a> {
    pub id: Option<&'a str>,
    pub method: Option<&'a str>,
    pub params: Option<&'a str>,
    pub result: Option<Found<'a>>,
    pub error: Option<&'a str>,
    /// A member stood there before: who reads the first one would read another message.
    pub twice: bool,
    /// A member's name only folds to one of the protocol's: a parser that takes no notice of case
    /// would read another message.
    pub folded: bool,
    pub scanned: Scanned,
}

impl<'a> Line<'a> {
    fn malformed(text: &'a str, why: &'static str) -> Self {
        Top::default().broken(text, why)
    }
}

/// The members of a message, as far as their names alone are compared.
pub(super) const TOP: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

impl<'a> Top<'a> {
    /// Takes in what the names of the message and of its result say beside each other.
    pub fn judge(&mut self, own: Judged) {
        let inner = match &self.result {
            Some(Found::Object(peek)) => peek.names,
            _ => Judged::default(),
        };
        self.twice |= own.twice | inner.twice;
        self.folded |= own.folded | inner.folded;
    }

    pub fn line(self, text: &'a str) -> Line<'a> {
        if self.twice {
            return self.broken(text, "a member twice");
        }
        if self.folded {
            return self.broken(text, "a member that differs from the protocol's only in case");
        }
        let (id, params, scanned) = (self.id, self.params, self.scanned);
        let is_error = self.error.is_some_and(|raw| raw != "null");
        let has_result = !matches!(self.result, None | Some(Found::Null));
        let reply_too = self.method.is_some() && (is_error || has_result);
        match self.method.map(method_name) {
            Some(Some(method)) => {
                let message = Message::Other;
                Line { text, id, method: Some(method), params, message, reply_too, scanned }
            }
            Some(None) => self.broken(text, "a method that is no text"),
            None => {
                let message = self.message();
                Line { text, id, method: None, params, message, reply_too, scanned }
            }
        }
    }

    pub fn broken(self, text: &'a str, why: &'static str) -> Line<'a> {
        Line {
            text,
            id: self.id,
            method: None,
            params: None,
            message: Message::Malformed(why),
            reply_too: false,
            scanned: Scanned::default(),
        }
    }

    fn message(self) -> Message<'a> {
        // JSON-RPC 1 servers write `"error":null` beside a result, and the other way round.
        let error = self.error.filter(|raw| *raw != "null");
        match (self.result, error) {
            (Some(Found::Null) | None, Some(error)) => Message::Error(error),
            (Some(_), Some(_)) => Message::Malformed("both result and error"),
            (None, None) => Message::Malformed("neither result nor error"),
            (Some(Found::Object(result)), None) => Message::Result(result),
            (Some(Found::NoObject | Found::Null), None) => Message::OddResult,
        }
    }
}

/// Which names of the protocol were seen, and whether each was seen once, as it is written there.
#[derive(Clone, Copy, Default)]
pub(super) struct Judged {
    pub twice: bool,
    pub folded: bool,
}

/// The names of one object, compared with some of the protocol's.
#[derive(Default)]
pub(super) struct Seen(u32);

impl Seen {
    /// Notes a name. None if it takes a closer look to tell what it is.
    pub(super) fn plain(&mut self, name: &[u8], known: &[&str], judged: &mut Judged) -> Option<()> {
        if let Some(place) = known.iter().position(|known| known.as_bytes() == name) {
            self.note(place, true, judged);
            return Some(());
        }
        match known.iter().position(|known| known.as_bytes().eq_ignore_ascii_case(name)) {
            Some(place) => self.note(place, false, judged),
            None if name.iter().all(u8::is_ascii_graphic) => {}
            None => return None,
        }
        Some(())
    }

    /// The same for a name that may be anything.
    pub(super) fn any(&mut self, name: &str, known: &[&str], judged: &mut Judged) {
        let folded = fold(name);
        let folded = folded.trim_matches(|c: char| c.is_whitespace() || c.is_control());
        if let Some(place) = known.iter().position(|known| fold(known) == folded) {
            self.note(place, known[place] == name, judged);
        }
    }

    fn note(&mut self, place: usize, exact: bool, judged: &mut Judged) {
        let bit = 1 << place;
        judged.twice |= exact && self.0 & bit != 0;
        judged.folded |= !exact;
        self.0 |= bit;
    }
}

fn method_name(raw: &str) -> Option<Cow<'_, str>> {
    #[derive(serde::Deserialize)]
    struct Name<'a>(#[serde(borrow)] Cow<'a, str>);
    let inside = raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"'));
    match inside.filter(|inside| is_plain(inside.as_bytes())) {
        Some(plain) => Some(Cow::Borrowed(plain)),
        None => serde_json::from_str::<Name<'_>>(raw).ok().map(|Name(name)| name),
    }
}

/// The member `result`.
pub(super) enum Found<'a> {
    Object(Peek<'a>),
    NoObject,
    Null,
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: [&str; 17] = [
        r#"{"id":1,"result":{"is_error":true,"content":[{"type":"text","text":"a","error":true}]}}"#,
        r#"{"id":1,"result":{"content":[{"text":"a","isError":true},{"text":"b","error":"true"}]}}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t","arguments":{"a":[1,-2.5e+3,0,true,null]}}}"#,
        r#"{"id":"a\"b","jsonrpc":"2.0","result":{"content":[{"type":"text","text":"it\u00e9 \ud83e\udd8a\n"},{"type":"image","data":"x"}],"isError":true,"structuredContent":{"a":{}}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"é is no ASCII","data":[[],[{}]]}}"#,
        r#"{ "jsonrpc" : "2.0" , "id" : null , "result" : { "content" : [ ] , "isError" : false } }"#,
        "{\t\"method\":\r\n\"notifications/x\"\n}",
        r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text"},7,"x",{"text":5}],"isError":"TRUE"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":[1],"error":null}"#,
        r#"{"jsonrpc":"2.0","id":1,"id":2,"result":{}}"#,
        r#"{"m\u0065thod":"x","id":1.0e-1}"#,
        r#"{"method":"tools\/call","id":01}"#,
        r#"{"id":-,"result":{"isError":1e999}}"#,
        r#"{"result":{"isError":true,"isError":false,"content":[{"text":"a","text":"b"}],"content":[{"text":"c"}]},"x":{"deep":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}}"#,
        "{}",
        r#"{"id":1}x"#,
        r#"{"id":1,"\u0069d":2,"result":{}}"#,
    ];

    /// All that a line tells.
    fn told(line: &Line<'_>) -> String {
        let message = match &line.message {
            Message::Result(peek) => format!(
                "result {} {} {} {:?} {} {:?} {:?}",
                peek.is_error,
                peek.says_error,
                peek.has_content,
                peek.texts().collect::<Vec<_>>(),
                peek.other_blocks,
                peek.structured,
                peek.bare
            ),
            Message::OddResult => "odd".to_owned(),
            Message::Error(raw) => format!("error {raw}"),
            Message::Other => "other".to_owned(),
            Message::Malformed(why) => format!("malformed {why}"),
        };
        format!("{:?} {:?} {:?} {:?} {message}", line.text, line.id, line.method, line.params)
    }

    fn same(bytes: &[u8]) {
        let Ok(text) = str::from_utf8(bytes) else { return };
        let text = text.trim_matches([' ', '\t', '\n', '\r']);
        if text.starts_with('{') {
            assert_eq!(told(&peek(bytes)), told(&slow_path::read(text)), "{text}");
        }
    }

    #[test]
    fn the_usual_is_what_a_closer_look_would_see() {
        let (usual, odd) = LINES.split_at(7);
        assert!(usual.iter().all(|line| fast_path::top(line).is_some()));
        let left = odd.iter().filter(|line| fast_path::top(line).is_none()).count();
        assert_eq!(left, odd.len() - 2, "two of them are odd in what they say, not in how");
        for line in LINES {
            same(line.as_bytes());
            let mut bytes = line.as_bytes().to_vec();
            for at in 0..bytes.len() {
                same(&bytes[..at]);
                let was = bytes[at];
                for other in (0..128).chain([0xc3, 0xa9]) {
                    bytes[at] = other;
                    same(&bytes);
                }
                bytes[at] = was;
                let mut longer = bytes.clone();
                for more in *b"\"\\{}[],:0-.e \n\0" {
                    longer.insert(at, more);
                    same(&longer);
                    longer.remove(at);
                }
            }
        }
    }
}
