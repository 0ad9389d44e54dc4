//! Server-sent events, as they come in: bytes in, the data of whole events out.

use memchr::memchr2;

/// A stream of events, so far.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Events {
    /// A line that is not whole yet.
    line: Vec<u8>,
    /// The data of the event that is not whole yet.
    data: Vec<u8>,
    /// Whether it has any.
    has_data: bool,
    /// Whether it has a name that is not the usual one; such events are not for us.
    is_other: bool,
    /// The last byte was a carriage return: a line feed after it ends nothing.
    after_return: bool,
    begun: bool,
    /// An event was longer than it may be. Nothing after it is read: where it ends depends on what
    /// was left out of it.
    overlong: bool,
    whole: std::collections::VecDeque<Vec<u8>>,
    limit: usize,
}

/// How much longer than its data a line may be: it has the name of a field, too.
const FIELD: usize = 64;

impl Events {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            line: Vec::new(),
            data: Vec::new(),
            has_data: false,
            is_other: false,
            after_return: false,
            begun: false,
            overlong: false,
            whole: std::collections::VecDeque::new(),
            limit,
        }
    }

    pub(crate) fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && !self.overlong {
            if std::mem::take(&mut self.after_return) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = memchr2(b'\n', b'\r', bytes);
            let part = &bytes[..end.unwrap_or(bytes.len())];
            // Judged before it is kept, so that it does not matter in which pieces a line comes.
            if self.unfinished() + part.len() > self.limit.saturating_add(FIELD) {
                self.overlong = true;
                return;
            }
            self.line.extend_from_slice(part);
            let Some(end) = end else { return };
            self.after_return = bytes[end] == b'\r';
            let line = std::mem::take(&mut self.line);
            self.end_line(&line);
            bytes = &bytes[end + 1..];
        }
    }

    /// The data of the next event that is whole.
    pub(crate) fn next_event(&mut self) -> Option<Vec<u8>> {
        self.whole.pop_front()
    }

    /// How much is there of an event that is not whole yet.
    pub(crate) fn unfinished(&self) -> usize {
        self.line.len() + self.data.len()
    }

    /// Whether an event is longer than it may be.
    pub(crate) fn is_overlong(&self) -> bool {
        self.overlong
    }

    /// Whether an event was begun and not ended.
    pub(crate) fn is_midway(&self) -> bool {
        self.has_data || !self.line.is_empty()
    }

    fn end_line(&mut self, line: &[u8]) {
        let begun = std::mem::replace(&mut self.begun, true);
        let marked = line.strip_prefix("\u{feff}".as_bytes()).filter(|_| !begun);
        let line = marked.unwrap_or(line);
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            let meant = std::mem::take(&mut self.has_data) & !std::mem::take(&mut self.is_other);
            if meant && !data.trim_ascii().is_empty() {
                self.whole.push_back(data);
            }
            return;
        }
        let (field, value) = match line.iter().position(|b| *b == b':') {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &b""[..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                self.data.extend_from_slice(value);
                self.overlong = self.data.len() > self.limit;
            }
            b"event" => self.is_other = !matches!(value, b"" | b"message"),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same bytes in pieces of every size must mean the same.
    fn check(stream: &str, expected: &[&str], midway: bool) {
        for size in 1..=stream.len().max(1) {
            let mut events = Events::new(1000);
            let mut seen = Vec::new();
            for piece in stream.as_bytes().chunks(size) {
                events.push(piece);
                while let Some(event) = events.next_event() {
                    seen.push(String::from_utf8(event).unwrap());
                }
            }
            assert_eq!(seen, expected, "{stream:?} in pieces of {size}");
            assert_eq!(events.is_midway(), midway, "{stream:?} in pieces of {size}");
        }
    }

    #[test]
    fn events_in_every_form() {
        check("", &[], false);
        check("data: {}\n\n", &["{}"], false);
        check("data:{}\n\n", &["{}"], false);
        check("data: {}\r\n\r\ndata: 2\r\rdata: 3\n\n", &["{}", "2", "3"], false);
        check("event: message\nid: 7\nretry: 10\ndata: {}\n\n", &["{}"], false);
        check("event: ping\ndata: {}\n\ndata: 1\n\n", &["1"], false);
        check("data: {\ndata: }\n\n", &["{\n}"], false);
        check(": alive\n\n: alive\n\ndata: 1\n\n", &["1"], false);
        check("\u{feff}data: 1\n\n", &["1"], false);
        check("data\n\ndata:\n\n", &[], false);
        check("data: {\"a\":1}\n", &[], true);
        check("data: {\"a\"", &[], true);
        check("nonsense\n\ndata: 1\n\n", &["1"], false);
    }

    #[test]
    fn endless_ones_are_noticed_and_take_no_room() {
        let mut events = Events::new(100);
        for _ in 0..1000 {
            events.push(b"data: xxxxxxxxxx\n");
        }
        assert!(events.is_overlong());
        assert!(events.data.len() < 300);
        let mut events = Events::new(100);
        events.push(&[b'x'; 10_000]);
        assert!(events.is_overlong());
        assert!(events.line.len() < 300);
    }

    #[test]
    fn x7_an_overlong_event_is_refused_in_whichever_pieces_it_comes() {
        let blanks = " ".repeat(300);
        let streams = [
            format!("data: {{}}{blanks}\n\ndata: 1\n\n"),
            format!("data: {{}}\ndata: {blanks}\n\ndata: 1\n\n"),
            format!(": {blanks}\n\ndata: 1\n\n"),
        ];
        for stream in streams {
            for size in 1..=stream.len() {
                let mut events = Events::new(100);
                for piece in stream.as_bytes().chunks(size) {
                    events.push(piece);
                    assert!(events.unfinished() <= 100 + FIELD);
                }
                assert!(events.is_overlong(), "{stream:?} in pieces of {size}");
                assert_eq!(events.next_event(), None, "{stream:?} in pieces of {size}");
            }
        }
        let mut events = Events::new(100);
        events.push(format!("event: message\ndata: {}\n\n", "x".repeat(100)).as_bytes());
        assert_eq!(events.next_event().map(|event| event.len()), Some(100));
        assert!(!events.is_overlong());
    }
}
