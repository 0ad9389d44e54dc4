//! Bounds: nothing that reaches a client is larger than the contract says.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// Replaces the part that was cut.
pub const ELLIPSIS: &str = "...";

/// At most `max` bytes of the text, cut at a character, the ellipsis counted in (W6).
///
/// ```
/// use faultwire_contract::bound::cut;
///
/// assert_eq!(cut("short", 8), "short");
/// assert_eq!(cut("ünïcödé", 8), "ünï...");
/// ```
#[must_use]
pub fn cut(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max {
        return Cow::Borrowed(text);
    }
    let room = max.saturating_sub(ELLIPSIS.len());
    let kept = &text[..text.floor_char_boundary(room)];
    Cow::Owned(format!("{kept}{}", &ELLIPSIS[..ELLIPSIS.len().min(max)]))
}

/// The same for a text that is not redacted yet: it is cut only where no secret can be cut in two
/// (X6).
#[must_use]
pub fn cut_unredacted(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max {
        return Cow::Borrowed(text);
    }
    let kept = crate::redact::prefix(text, max.saturating_sub(ELLIPSIS.len()));
    Cow::Owned(format!("{kept}{ELLIPSIS}"))
}

/// At most `max` bytes of a long text: its first and last lines, and how much is missing between
/// them (U3). The decisive part is often at the end.
///
/// ```
/// use faultwire_contract::bound::middle;
///
/// let text = format!("begins\n{}ends", "and goes on\n".repeat(30));
/// assert_eq!(middle(&text, 64), "begins\n… 361 bytes omitted …\nends");
/// ```
#[must_use]
pub fn middle(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max {
        return Cow::Borrowed(text);
    }
    Cow::Owned(ends(text, text, text.len(), max))
}

/// The same for the beginning and the end of a text of `whole` bytes.
pub(crate) fn ends(head: &str, tail: &str, whole: usize, max: usize) -> String {
    let room = max.saturating_sub(OMITTED);
    let head = &head[..head.floor_char_boundary(room * 2 / 5)];
    let head = head.rfind('\n').map_or(head, |end| &head[..end]);
    let from = tail.ceil_char_boundary(tail.len().saturating_sub(room - room * 2 / 5));
    let tail = &tail[from..];
    let tail = match tail.find('\n') {
        // A last line that is longer than that is cut rather than lost.
        Some(end) if end + 1 < tail.len() => &tail[end + 1..],
        _ => tail,
    };
    let omitted = thousands(whole.saturating_sub(head.len() + tail.len()));
    format!("{head}\n… {omitted} bytes omitted …\n{tail}")
}

/// The longest omission mark.
const OMITTED: usize = 48;

fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let first = digits.len() % 3;
    let (head, rest) = digits.split_at(first);
    let groups = rest.as_bytes().chunks(3).filter_map(|group| str::from_utf8(group).ok());
    let parts: Vec<&str> = Some(head).filter(|h| !h.is_empty()).into_iter().chain(groups).collect();
    parts.join(",")
}

/// The value with at most `depth` levels and `bytes` of JSON. The first parts are kept, and the
/// rest is replaced by the ellipsis.
#[must_use]
pub fn json(value: Value, depth: usize, bytes: usize) -> Value {
    Budget { left: bytes, whole: false }.take(value, depth)
}

/// The same for a value that is not redacted yet: a long text is only cut where no secret can be
/// cut in two (X6).
#[must_use]
pub fn json_unredacted(value: Value, depth: usize, bytes: usize) -> Value {
    Budget { left: bytes, whole: true }.take(value, depth)
}

struct Budget {
    left: usize,
    /// Texts are cut between words only.
    whole: bool,
}

/// What an ellipsis costs, with its quotes and a comma.
const MARK: usize = ELLIPSIS.len() + 3;

impl Budget {
    fn take(&mut self, value: Value, depth: usize) -> Value {
        match value {
            Value::String(s) => Value::String(self.text(s)),
            Value::Array(_) | Value::Object(_) if depth == 0 => self.mark(),
            Value::Array(items) => self.list(items, depth),
            Value::Object(members) => self.object(members, depth),
            scalar => {
                let size = scalar.to_string().len() + 1;
                if self.spend(size) { scalar } else { self.mark() }
            }
        }
    }

    /// Space for the omission mark is reserved before anything is kept.
    fn list(&mut self, items: Vec<Value>, depth: usize) -> Value {
        // The brackets, and a comma after them.
        if !self.spend(3 + MARK) {
            return self.mark();
        }
        let mut kept = Vec::new();
        for item in items {
            if self.left <= 2 * MARK {
                kept.push(Value::from(ELLIPSIS));
                return Value::Array(kept);
            }
            kept.push(self.take(item, depth - 1));
        }
        self.left += MARK;
        Value::Array(kept)
    }

    fn object(&mut self, members: Map<String, Value>, depth: usize) -> Value {
        if !self.spend(3 + 2 * MARK) {
            return self.mark();
        }
        let mut kept = Map::new();
        for (key, value) in members {
            let lead = escaped_len(&key) + 4;
            if self.left <= lead + 2 * MARK {
                kept.insert(ELLIPSIS.to_owned(), Value::from(ELLIPSIS));
                return Value::Object(kept);
            }
            self.spend(lead);
            let value = self.take(value, depth - 1);
            kept.insert(key, value);
        }
        self.left += 2 * MARK;
        Value::Object(kept)
    }

    fn text(&mut self, s: String) -> String {
        let size = escaped_len(&s) + 3;
        if self.spend(size) {
            return s;
        }
        let room = self.left.saturating_sub(3);
        let mut end = s.floor_char_boundary(room.saturating_sub(ELLIPSIS.len()));
        while escaped_len(&s[..end]) + ELLIPSIS.len() > room && end > 0 {
            end = s.floor_char_boundary(end / 2);
        }
        self.left = 0;
        let kept = if self.whole { crate::redact::prefix(&s, end) } else { &s[..end] };
        format!("{kept}{ELLIPSIS}")
    }

    fn mark(&mut self) -> Value {
        self.spend(MARK);
        Value::String(ELLIPSIS.to_owned())
    }

    fn spend(&mut self, size: usize) -> bool {
        let fits = size <= self.left;
        self.left = self.left.saturating_sub(if fits { size } else { 0 });
        fits
    }
}

/// The length of a string in JSON, without the quotes.
fn escaped_len(text: &str) -> usize {
    let extra = |b: u8| match b {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 1,
        0..=0x1f => 5,
        _ => 0,
    };
    text.len() + text.bytes().map(extra).sum::<usize>()
}
