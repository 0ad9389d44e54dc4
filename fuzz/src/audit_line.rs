//! Lines of an audit log: a head that is read is written the same, its readers agree on it, and
//! a sealed log in which one byte differs is refused (X5).
#![no_main]

use std::sync::LazyLock;

use faultwire::audit::{
    Before, Chain, Check, Checkpoint, Checkpoints, Head, Key, Lines, Shape, Summary, legacy, origin,
};
use libfuzzer_sys::fuzz_target;
use serde::Deserialize;

const LOG: &str = "0123456789abcdef0123456789abcdef";
const MOMENT: &str = "2026-01-19T15:32:10.123Z";

static KEY: LazyLock<Key> = LazyLock::new(|| Key::generate(&origin(LOG)).expect("randomness"));

fuzz_target!(|data: &[u8]| {
    every_line(data);
    let _ = legacy::verify(data, &mut |_| {});
    if let [place @ .., change] = data
        && let Some((place, entries)) = place.split_first_chunk::<2>()
    {
        tampered(u16::from_be_bytes(*place).into(), *change, entries);
    }
});

fn every_line(data: &[u8]) {
    let (mut lines, mut read) = (Lines::new(data), Vec::new());
    let mut check = Check::new(Checkpoints::default());
    check.begin(1);
    let mut holds = true;
    while let Some(line) = lines.next_line().expect("memory can be read") {
        assert_eq!(line.offset, read.len() as u64);
        read.extend_from_slice(line.raw);
        read.extend((line.shape == Shape::Whole).then_some(b'\n'));
        let summary = Summary::read(line.raw);
        let _ = legacy::is_legacy(line.raw);
        holds &= check.line(&line).is_ok();
        let Ok((head, body)) = Head::read(line.raw) else {
            assert!(!holds, "what has no head is no record");
            continue;
        };
        let mut written = Vec::new();
        head.write(&mut written);
        written.extend_from_slice(body);
        assert_eq!(written, line.raw, "only one spelling of a head counts");
        if let Ok(summary) = summary {
            assert_eq!((summary.seq, &*summary.ts, &*summary.kind), (head.seq, head.ts, head.kind));
        }
        resumed(line.raw, &head);
    }
    assert_eq!(read, data);
}

/// A chain that can be taken up from a segment's first line goes on with that line.
fn resumed(raw: &[u8], head: &Head<'_>) {
    #[derive(Deserialize)]
    struct First {
        before: Option<Before>,
    }
    let Ok(first) = serde_json::from_slice::<First>(raw) else { return };
    let Some(mut chain) = Chain::resume(head, first.before.as_ref()) else { return };
    assert_eq!(chain.next(), head.seq);
    if chain.take(raw).is_ok() {
        assert_eq!(chain.next(), head.seq + 1);
    }
}

/// Writes and seals a log of these entries, changes one byte of it, and expects a refusal.
fn tampered(place: usize, change: u8, entries: &[u8]) {
    let mut chain = Chain::new(LOG.to_owned());
    let mut log = Vec::new();
    chain.write(br#""type":"segment","segment":1,"before":null}"#, MOMENT, 0, &mut log);
    for entry in entries.split(|b| *b == b'\n').take(8) {
        let entry = [br#""type":"event","name":""#, entry, b"\"}"].concat();
        let synced = chain.next() - 1;
        chain.write(&entry, MOMENT, synced, &mut log);
    }
    let sealed = Checkpoint { log: LOG.to_owned(), size: chain.next(), root: chain.root() };
    let notes = sealed.sign(&KEY);
    assert!(holds(&log, &notes), "what was written holds");
    if change != 0 {
        let at = place % log.len();
        log[at] ^= change;
        assert!(!holds(&log, &notes), "byte {at} was changed");
    }
}

fn holds(log: &[u8], notes: &str) -> bool {
    let checkpoints = Checkpoints::read(notes.as_bytes().to_vec(), Some(KEY.public()));
    let mut check = Check::new(checkpoints.expect("the notes are as they were written"));
    check.begin(1);
    let mut lines = Lines::new(log);
    while let Some(line) = lines.next_line().expect("memory can be read") {
        if check.line(&line).is_err() {
            return false;
        }
    }
    check.end().is_ok() && check.finish(1).is_ok()
}
