//! Server-sent events: the same bytes mean the same in whichever pieces they come, no more than
//! the limit is held, and the events are those that the specification's own words lead to.
#![no_main]

use faultwire_gateway::fuzzing::Events;
use libfuzzer_sys::fuzz_target;

/// The name of a field and the line end may come on top of the data.
const OVERHEAD: usize = 64;

#[derive(Debug, PartialEq)]
struct Seen {
    events: Vec<Vec<u8>>,
    overlong: bool,
    /// Nobody asks for it after an event that is too long.
    midway: Option<bool>,
}

fuzz_target!(|data: &[u8]| {
    let [limit, count, rest @ ..] = data else { return };
    let (limit, count) = (usize::from(*limit) * 4, usize::from(*count % 8) + 1);
    if rest.len() < count {
        return;
    }
    let (sizes, bytes) = rest.split_at(count);
    let whole = read(limit, [bytes]);
    assert!(whole.events.iter().all(|event| event.len() <= limit));
    assert_eq!(read(limit, bytes.chunks(1)), whole);
    let (mut left, mut pieces) = (bytes, Vec::new());
    for size in sizes.iter().cycle() {
        let (piece, more) =
            left.split_at(usize::from(*size).clamp(1, left.len().max(1)).min(left.len()));
        pieces.push(piece);
        left = more;
        if left.is_empty() {
            break;
        }
    }
    assert_eq!(read(limit, pieces), whole);
    if !whole.overlong {
        assert_eq!(whole.events, by_the_book(bytes));
    }
});

fn read<'a>(limit: usize, pieces: impl IntoIterator<Item = &'a [u8]>) -> Seen {
    let (mut events, mut seen) = (Events::new(limit), Vec::new());
    for piece in pieces {
        events.push(piece);
        assert!(events.unfinished() <= limit + OVERHEAD, "more is held than the limit");
        seen.extend(std::iter::from_fn(|| events.next_event()));
    }
    let overlong = events.is_overlong();
    Seen { events: seen, overlong, midway: (!overlong).then(|| events.is_midway()) }
}

/// The events of a stream that is there as a whole.
fn by_the_book(bytes: &[u8]) -> Vec<Vec<u8>> {
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    let (mut events, mut data, mut name) = (Vec::new(), Vec::new(), &b""[..]);
    for line in whole_lines(bytes) {
        if line.is_empty() {
            let event = std::mem::take(&mut data).join(&b'\n');
            let is_usual = matches!(std::mem::take(&mut name), b"" | b"message");
            // An event without a message in it is for keeping the connection alive.
            if is_usual && !event.trim_ascii().is_empty() {
                events.push(event);
            }
            continue;
        }
        let colon = line.iter().position(|b| *b == b':');
        let (field, value) = line.split_at(colon.unwrap_or(line.len()));
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => data.push(value),
            b"event" => name = value,
            _ => {}
        }
    }
    events
}

fn whole_lines(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    while let Some(end) = bytes.iter().position(|b| matches!(b, b'\n' | b'\r')) {
        lines.push(&bytes[..end]);
        let taken = if bytes[end..].starts_with(b"\r\n") { 2 } else { 1 };
        bytes = &bytes[end + taken..];
    }
    lines
}
