//! What was done to a log afterwards is found: every flipped bit, and what a forger would try.

use std::fs;
use std::sync::Arc;

use faultwire::audit::{
    Chain, Check, Checkpoint, Checkpoints, Disk, Expect, Head, Key, Log, Options, PublicKey,
    segment, verify,
};

use crate::support::{Dir, entry, quiet};

const LIVE: &str = "audit-log.jsonl";
const CHECKPOINTS: &str = "audit-log.checkpoints";

/// A closed log of a few segments.
fn log_of(bytes: usize) -> Dir {
    let dir = Dir::new();
    let options = Options { segment_bytes: bytes as u64 / 4, ..quiet() };
    let log = Log::open(dir.path(), options).unwrap();
    for i in 0.. {
        log.append(entry(&format!("inc_{i}"))).unwrap();
        if files(&dir).iter().map(|name| dir.file(name).len()).sum::<usize>() >= bytes {
            break;
        }
    }
    log.close().unwrap();
    dir
}

/// The segments in order.
fn files(dir: &Dir) -> Vec<String> {
    let names = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name().into_string());
    let names: Vec<String> = names.map(Result::unwrap).collect();
    let fulls = segment::numbers(&names).into_iter().map(segment::full);
    fulls.chain([LIVE.to_owned()]).collect()
}

fn public_key(dir: &Dir) -> PublicKey {
    PublicKey::parse(&String::from_utf8(dir.file("audit-log.pub")).unwrap()).unwrap()
}

fn holds(dir: &Dir) -> bool {
    dir.verify().is_ok()
}

/// The same with the key from elsewhere.
fn holds_with(dir: &Dir, key: &PublicKey) -> bool {
    let expect = Expect { key: Some(key.clone()), archived: false };
    verify(&Disk::new(dir.path()), &expect, &mut |_| {}).is_ok()
}

#[test]
fn every_flipped_bit_is_found() {
    let dir = log_of(64 * 1024);
    assert!(holds(&dir));
    let key = public_key(&dir);
    let checkpoints = Checkpoints::read(dir.file(CHECKPOINTS), Some(&key)).unwrap();
    let mut segments: Vec<Vec<u8>> = files(&dir).iter().map(|name| dir.file(name)).collect();
    let total: usize = segments.iter().map(Vec::len).sum();
    assert!(total >= 64 * 1024 && segments.len() >= 4, "{total}");

    let mut flipped = 0;
    let mut check = Check::new(checkpoints);
    for number in 0..segments.len() {
        check.begin(number as u64 + 1);
        let mut from = 0;
        while from < segments[number].len() {
            let end = from + segments[number][from..].iter().position(|b| *b == b'\n').unwrap() + 1;
            for at in from..end {
                for bit in 0..8 {
                    segments[number][at] ^= 1 << bit;
                    assert!(
                        !rest_holds(check.clone(), &segments, number, from),
                        "bit {bit} of {at}"
                    );
                    segments[number][at] ^= 1 << bit;
                    flipped += 1;
                }
            }
            check.raw(&segments[number][from..end - 1]).unwrap();
            from = end;
        }
    }
    check.finish(segments.len() as u64).unwrap();
    assert_eq!(flipped, total * 8);
}

/// Goes on from here to the end, or to the first thing that is wrong.
fn rest_holds(mut check: Check, segments: &[Vec<u8>], number: usize, from: usize) -> bool {
    let mut from = from;
    for (i, bytes) in segments.iter().enumerate().skip(number) {
        if i > number {
            check.begin(i as u64 + 1);
        }
        for line in bytes[from..].split_inclusive(|b| *b == b'\n') {
            match line.strip_suffix(b"\n").map(|raw| check.raw(raw)) {
                Some(Ok(())) => {}
                _ => return false,
            }
        }
        if check.end().is_err() {
            return false;
        }
        from = 0;
    }
    check.finish(segments.len() as u64).is_ok()
}

#[test]
fn flipped_bits_are_found_in_files_too() {
    let dir = log_of(6 * 1024);
    let names: Vec<String> = files(&dir).into_iter().chain([CHECKPOINTS.to_owned()]).collect();
    for name in names {
        let whole = dir.file(&name);
        let step = if name == CHECKPOINTS { 1 } else { 37 };
        for bit in (0..whole.len() * 8).step_by(step) {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            dir.write(&name, &bytes);
            assert!(!holds(&dir), "bit {bit} of {name}");
        }
        dir.write(&name, &whole);
        assert!(holds(&dir));
    }
}

/// Lines of a one-segment log, to be put together anew.
struct Forger {
    dir: Dir,
    lines: Vec<Vec<u8>>,
    key: PublicKey,
}

impl Forger {
    fn new() -> Self {
        let dir = Dir::new();
        let log = Log::open(dir.path(), Options { checkpoint_every: 4, ..quiet() }).unwrap();
        for i in 0..10 {
            log.append(entry(&format!("inc_{i}"))).unwrap();
        }
        log.close().unwrap();
        let lines = dir.file(LIVE).split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
        let key = public_key(&dir);
        Self { dir, lines, key }
    }

    /// Whether the log with these lines still holds.
    fn passes(&self, lines: &[Vec<u8>]) -> bool {
        self.dir.write(LIVE, &lines.concat());
        holds_with(&self.dir, &self.key)
    }
}

/// The bodies of the lines, chained anew: a forger needs no key for that.
fn rehashed(lines: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let log = Head::read(&lines[0]).unwrap().0.log.to_owned();
    let mut chain = Chain::new(log);
    let again = |line: &Vec<u8>| {
        let (head, body) = Head::read(line).unwrap();
        let mut out = Vec::new();
        chain.write(body.strip_suffix(b"\n").unwrap(), head.ts, head.synced, &mut out);
        out
    };
    lines.iter().map(again).collect()
}

fn replaced(line: &[u8], from: &str, to: &str) -> Vec<u8> {
    let text = str::from_utf8(line).unwrap();
    assert!(text.contains(from));
    text.replace(from, to).into_bytes()
}

#[test]
fn what_a_forger_does_is_found() {
    let forger = Forger::new();
    let lines = &forger.lines;
    assert!(forger.passes(lines), "untouched");
    assert_eq!(rehashed(lines), *lines, "the forger's tools work");
    let other = Forger::new();
    for i in 0..lines.len() {
        let without = [&lines[..i], &lines[i + 1..]].concat();
        assert!(!forger.passes(&without), "record {i} deleted");
        assert!(!forger.passes(&rehashed_or(&without)), "record {i} deleted, rehashed");
        assert!(!forger.passes(&lines[..i]), "cut at record {i}");
        let twice = [&lines[..=i], &lines[i..]].concat();
        assert!(!forger.passes(&twice), "record {i} doubled");
        // A copy of the last one comes after all that was signed, where anybody can add.
        let last = i + 1 == lines.len();
        assert_eq!(forger.passes(&rehashed(&twice)), last, "record {i} doubled, rehashed");
        let mut spliced = lines.clone();
        spliced[i].clone_from(&other.lines[i]);
        assert!(!forger.passes(&spliced), "record {i} of another log");
        for j in i + 1..lines.len() {
            let mut swapped = lines.clone();
            swapped.swap(i, j);
            assert!(!forger.passes(&swapped), "records {i} and {j} swapped");
        }
        if i > 0 {
            let mut changed = lines.clone();
            changed[i] = replaced(&lines[i], "inc_", "inc_x");
            assert!(!forger.passes(&changed), "record {i} changed");
            assert!(!forger.passes(&rehashed(&changed)), "record {i} changed, rehashed");
        }
    }
    let more = [&lines[..], &[replaced(&lines[10], "\"seq\":10", "\"seq\":11")]].concat();
    assert!(!forger.passes(&more), "a record added that does not fit");
    assert!(!forger.passes(&[&lines[..], &[b"\n".to_vec()]].concat()), "a blank line added");
    assert!(!forger.passes(&[&lines[..], &[b"{".to_vec()]].concat()), "a torn line added");
    assert!(forger.passes(lines));
}

/// A log needs its first line to be chained at all.
fn rehashed_or(lines: &[Vec<u8>]) -> Vec<Vec<u8>> {
    if lines.is_empty() { Vec::new() } else { rehashed(lines) }
}

/// A forger with a key of his own signs what he made.
fn forged_checkpoint(lines: &[Vec<u8>], key: &Key) -> String {
    let log = Head::read(&lines[0]).unwrap().0.log.to_owned();
    let mut chain = Chain::new(log.clone());
    for line in lines {
        chain.take(line.strip_suffix(b"\n").unwrap()).unwrap();
    }
    Checkpoint { log, size: chain.next(), root: chain.root() }.sign(key)
}

#[test]
fn a_forger_with_another_key_is_found() {
    let forger = Forger::new();
    let mut changed = forger.lines.clone();
    changed[5] = replaced(&changed[5], "inc_", "inc_x");
    let changed = rehashed(&changed);
    let key = Key::generate(forger.key.name()).unwrap();
    forger.dir.write(CHECKPOINTS, forged_checkpoint(&changed, &key).as_bytes());
    assert!(!forger.passes(&changed), "another key under the same name");
    fs::remove_file(forger.dir.path().join(CHECKPOINTS)).unwrap();
    assert!(!forger.passes(&changed), "no checkpoints at all");
}

#[test]
fn checkpoints_out_of_order_are_found() {
    let forger = Forger::new();
    let text = String::from_utf8(forger.dir.file(CHECKPOINTS)).unwrap();
    let notes: Vec<String> =
        text.split_inclusive("\n\n").collect::<Vec<_>>().chunks(2).map(<[_]>::concat).collect();
    assert!(notes.len() >= 3, "{text}");
    for (i, note) in notes.iter().enumerate() {
        let twice = [&notes[..=i], std::slice::from_ref(note), &notes[i + 1..]].concat().concat();
        forger.dir.write(CHECKPOINTS, twice.as_bytes());
        assert!(!forger.passes(&forger.lines), "checkpoint {i} doubled");
    }
    let turned: Vec<String> = notes.iter().rev().cloned().collect();
    forger.dir.write(CHECKPOINTS, turned.concat().as_bytes());
    assert!(!forger.passes(&forger.lines), "turned around");
}

#[test]
fn missing_segments_are_found() {
    let dir = log_of(6 * 1024);
    let names = files(&dir);
    for (i, name) in names.iter().enumerate() {
        let whole = dir.file(name);
        fs::remove_file(dir.path().join(name)).unwrap();
        assert!(!holds(&dir), "{name} removed");
        let empty = Vec::new();
        dir.write(name, &empty);
        assert!(!holds(&dir), "{name} emptied");
        dir.write(name, &dir.file(&names[(i + 1) % names.len()]));
        assert!(!holds(&dir), "{name} is another");
        dir.write(name, &whole);
    }
    assert!(holds(&dir));
}

#[test]
fn segments_that_were_archived_are_allowed_when_one_says_so() {
    let dir = log_of(6 * 1024);
    fs::remove_file(dir.path().join(&files(&dir)[0])).unwrap();
    let archived = Expect { archived: true, ..Expect::default() };
    let disk = Disk::new(dir.path());
    let verified = verify(&disk, &archived, &mut |_| {}).unwrap();
    assert!(verified.first > 0 && verified.records > verified.first, "{verified:?}");
    // What stands in the place of the archived part must be what was signed.
    let name = &files(&dir)[0];
    let text = String::from_utf8(dir.file(name)).unwrap();
    let start = text.find("\"peaks\":[\"").unwrap() + 10;
    let other = if text.as_bytes()[start] == b'0' { "1" } else { "0" };
    let forged = [&text[..start], other, &text[start + 1..]].concat();
    dir.write(name, forged.as_bytes());
    assert!(verify(&disk, &archived, &mut |_| {}).is_err());
}

/// What docs/audit-format.md says that no log of this kind can show.
#[test]
fn what_the_docs_call_undetectable_is_just_that() {
    // Records after the last checkpoint, changed by somebody who chains them anew.
    let dir = Dir::new();
    let log = Log::open(dir.path(), Options { checkpoint_every: 4, ..quiet() }).unwrap();
    for i in 0..5 {
        log.append(entry(&format!("inc_{i}"))).unwrap();
    }
    let lines: Vec<Vec<u8>> =
        dir.file(LIVE).split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
    let before = dir.file(CHECKPOINTS);
    log.close().unwrap();
    dir.write(CHECKPOINTS, &before);
    let mut changed = lines.clone();
    changed[5] = replaced(&changed[5], "inc_4", "inc_9");
    dir.write(LIVE, &changed.concat());
    assert!(holds(&dir));
    // Log and checkpoints rolled back together.
    dir.write(LIVE, &lines[..4].concat());
    assert!(holds(&dir));
    // Everything made anew with a key of one's own, the key beside the log included; but not
    // for who kept the key elsewhere.
    let forger = Forger::new();
    let mut changed = forger.lines.clone();
    changed[5] = replaced(&changed[5], "inc_", "inc_x");
    let changed = rehashed(&changed);
    let key = Arc::new(Key::generate(forger.key.name()).unwrap());
    forger.dir.write(CHECKPOINTS, forged_checkpoint(&changed, &key).as_bytes());
    forger.dir.write("audit-log.pub", key.public().to_string().as_bytes());
    forger.dir.write(LIVE, &changed.concat());
    assert!(holds(&forger.dir));
    assert!(!holds_with(&forger.dir, &forger.key));
}

/// A segment is only closed with a signature, so without checkpoints there can be only one.
#[test]
fn segments_without_checkpoints_do_not_hold() {
    let dir = log_of(6 * 1024);
    fs::remove_file(dir.path().join(CHECKPOINTS)).unwrap();
    let said = dir.verify().unwrap_err().to_string();
    assert!(said.contains("000002.jsonl:1: no checkpoint covers"), "{said}");
}

/// A first segment has nothing before it: what was signed cannot be made to look archived.
#[test]
fn a_later_segment_cannot_pass_for_the_first() {
    let dir = log_of(6 * 1024);
    let key = public_key(&dir);
    let names = files(&dir);
    for full in &names[..names.len() - 1] {
        fs::remove_file(dir.path().join(full)).unwrap();
    }
    let text = String::from_utf8(dir.file(LIVE)).unwrap();
    let first = text.lines().next().unwrap();
    let number = format!("\"segment\":{}", names.len());
    dir.write(LIVE, format!("{}\n", first.replacen(&number, "\"segment\":1", 1)).as_bytes());
    assert!(!holds_with(&dir, &key));
}

/// A lock that somebody holds excuses what is being written, not what is gone.
#[test]
fn a_cut_log_does_not_hold_because_somebody_holds_its_lock() {
    let dir = log_of(6 * 1024);
    fs::remove_file(dir.path().join(LIVE)).unwrap();
    let lock = fs::File::options().write(true).open(dir.path().join("audit-log.lock")).unwrap();
    lock.lock().unwrap();
    assert!(!holds(&dir));
}
