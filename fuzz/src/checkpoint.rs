//! Signed notes and keys: each has one spelling, and a note in which one byte differs is refused.
#![no_main]

use std::sync::LazyLock;

use faultwire::audit::{Checkpoint, Checkpoints, Hash, Key, PublicKey, origin};
use libfuzzer_sys::fuzz_target;

const LOG: &str = "0123456789abcdef0123456789abcdef";

static KEY: LazyLock<Key> = LazyLock::new(|| Key::generate(&origin(LOG)).expect("randomness"));

fuzz_target!(|data: &[u8]| {
    file(data);
    if let Ok(text) = str::from_utf8(data) {
        note(text);
        keys(text);
    }
    if let Some((place, change)) = data.split_first_chunk::<2>()
        && let Some((change, seed)) = change.split_first()
    {
        tampered(u16::from_be_bytes(*place).into(), *change, seed);
    }
});

fn file(data: &[u8]) {
    let Ok(read) = Checkpoints::read(data.to_vec(), None) else { return };
    let len = usize::try_from(read.len()).expect("it fits in memory");
    assert_eq!(read.is_torn(), len < data.len());
    assert!(read.all.is_sorted_by(|a, b| a.size < b.size && a.log == b.log));
    assert!(read.all.iter().all(|one| read.root_at(one.size) == Some(one.root)));
    assert!(read.all.is_empty() || read.check_from(0, KEY.public()).is_err());
    let again = Checkpoints::read(data[..len].to_vec(), None).expect("the same notes");
    assert_eq!((&again.all, again.is_torn()), (&read.all, false));
}

fn note(text: &str) {
    let Ok(read) = Checkpoint::read(text, None) else { return };
    let rewritten = read.sign(&KEY);
    let body = |note: &str| note.split_once("\n\n").map(|(body, _)| body.to_owned());
    assert_eq!(body(&rewritten), body(text), "only one spelling of a note counts");
    assert!(Checkpoint::read(text, Some(KEY.public())).is_err(), "nobody else has the key");
}

fn keys(text: &str) {
    if let Ok(key) = PublicKey::parse(text) {
        assert_eq!(key.to_string(), text.trim());
    }
    if let Ok(key) = Key::parse(text) {
        assert_eq!(key.to_line(), text.trim());
        assert_eq!(PublicKey::parse(&key.public().to_string()).as_ref(), Ok(key.public()));
    }
}

fn tampered(place: usize, change: u8, seed: &[u8]) {
    let mut root = [0; 32];
    root.iter_mut().zip(seed).for_each(|(to, from)| *to = *from);
    let size = seed.iter().fold(1, |size: u64, b| size.wrapping_mul(31).wrapping_add((*b).into()));
    let written = Checkpoint { log: LOG.to_owned(), size, root: Hash(root) };
    let mut note = written.sign(&KEY).into_bytes();
    // The blank line after a note is not part of it.
    note.pop();
    let read = |note: &[u8]| Checkpoint::read(str::from_utf8(note).ok()?, Some(KEY.public())).ok();
    assert_eq!(read(&note).as_ref(), Some(&written));
    if change != 0 {
        let at = place % note.len();
        note[at] ^= change;
        assert_eq!(read(&note), None, "byte {at} was changed");
    }
}
