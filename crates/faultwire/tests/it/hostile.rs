//! A log's directory in which somebody else put things: segments that the writer did not write,
//! links, pipes, and files that others may read or change.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use faultwire::audit::{
    Chain, Disk, Expect, Filter, Head, Index, Log, OpenError, Options, PublicKey, UnsafeFile,
    Wrong, each_line, segment, verify,
};

use crate::support::{Dir, entry, quiet};

const LIVE: &str = "audit-log.jsonl";
const FORGED: &str = "inc_forged";

/// A log of three segments, closed or with its writer still at work.
fn log() -> (Dir, Log) {
    let dir = Dir::new();
    let log = Log::open(dir.path(), Options { segment_bytes: 1500, ..quiet() }).unwrap();
    for i in 0..7 {
        log.append(entry(&format!("inc_{i}"))).unwrap();
    }
    assert!(dir.path().join(segment::full(2)).exists());
    (dir, log)
}

/// All lines of a segment with one incident replaced, chained so that they fit together again.
fn forged(dir: &Dir, name: &str) -> Vec<u8> {
    let text = String::from_utf8(dir.file(name)).unwrap();
    let mut lines = text.lines();
    let first = lines.next().unwrap();
    let (head, body) = Head::read(first.as_bytes()).unwrap();
    let before = serde_json::from_slice::<serde_json::Value>(first.as_bytes()).unwrap();
    let before = serde_json::from_value(before["before"].clone()).unwrap();
    let mut chain = Chain::resume(&head, Option::as_ref(&before)).unwrap();
    let mut out = Vec::new();
    chain.write(body, head.ts, head.synced, &mut out);
    for line in lines {
        let (head, body) = Head::read(line.as_bytes()).unwrap();
        let body = str::from_utf8(body).unwrap();
        let at = body.find("\"inc_").unwrap();
        let end = at + 1 + body[at + 1..].find('"').unwrap();
        let body = format!("{}\"{FORGED}{}", &body[..at], &body[end..]);
        chain.write(body.as_bytes(), head.ts, head.synced, &mut out);
    }
    assert!(String::from_utf8_lossy(&out).contains(FORGED));
    out
}

fn verified(dir: &Dir) -> Result<(), Wrong> {
    let key = PublicKey::parse(&String::from_utf8(dir.file("audit-log.pub")).unwrap()).unwrap();
    let expect = Expect { key: Some(key), archived: false };
    verify(&Disk::new(dir.path()), &expect, &mut |_| {}).map(drop).map_err(|found| found.why)
}

/// No reader shows a forged record: it refuses the log, or does not take the record for one of it.
fn never_shown(dir: &Dir, what: &str) {
    let never = |line: &[u8]| {
        assert!(!String::from_utf8_lossy(line).contains(FORGED), "{what}");
        Ok::<(), faultwire::audit::IndexError>(())
    };
    let _ = each_line(&Disk::new(dir.path()), never).map(Result::unwrap);
    if let Ok(index) = Index::open(dir.path(), &mut |_| {}) {
        let _ = index.find(&Filter::default(), None, never);
    }
}

#[test]
fn x5_segments_that_the_writer_did_not_write_are_found_while_it_runs_and_after() {
    let (dir, log) = log();
    let live = dir.verify().unwrap().segments;
    let planted = [forged(&dir, &segment::full(1)), forged(&dir, LIVE), dir.file(LIVE)];
    let check = |when: &str| {
        verified(&dir).unwrap();
        for number in [0, live, live + 1, 99, u64::MAX] {
            let name = segment::full(number);
            for bytes in &planted {
                dir.write(&name, bytes);
                let what = format!("{name} added, {when}");
                assert!(matches!(verified(&dir), Err(Wrong::Stray)), "{what}");
                never_shown(&dir, &what);
            }
            fs::remove_file(dir.path().join(&name)).unwrap();
            fs::create_dir(dir.path().join(&name)).unwrap();
            assert!(verified(&dir).is_err(), "{name} is a directory, {when}");
            fs::remove_dir(dir.path().join(&name)).unwrap();
        }
        verified(&dir).unwrap();
    };
    check("with a writer");
    log.close().unwrap();
    check("without one");
}

#[test]
fn x5_segments_that_were_replaced_or_renumbered_are_never_shown() {
    let (dir, log) = log();
    let check = |when: &str| {
        let (one, two) = (segment::full(1), segment::full(2));
        for (name, bytes) in [
            (&one, forged(&dir, &one)),
            (&two, forged(&dir, &two)),
            (&one, dir.file(&two)),
            (&two, dir.file(&one)),
            (&two, dir.file(LIVE)),
            (&two, [dir.file(&two), forged(&dir, &one)].concat()),
            (&one, Vec::new()),
        ] {
            let whole = dir.file(name);
            dir.write(name, &bytes);
            assert!(verified(&dir).is_err(), "{name}, {when}");
            assert!(Index::open(dir.path(), &mut |_| {}).is_err(), "{name}, {when}");
            never_shown(&dir, &format!("{name} replaced, {when}"));
            dir.write(name, &whole);
            verified(&dir).unwrap();
        }
    };
    check("with a writer");
    log.close().unwrap();
    check("without one");
}

#[test]
fn x5_a_record_that_was_changed_after_it_was_indexed_is_not_shown() {
    let (dir, log) = log();
    log.close().unwrap();
    drop(Index::open(dir.path(), &mut |_| {}).unwrap());
    let index = Index::open(dir.path(), &mut |_| {}).unwrap();
    for name in [LIVE.to_owned(), segment::full(1)] {
        let text = String::from_utf8(dir.file(&name)).unwrap();
        dir.write(&name, text.replacen("\"inc_", "\"inX_", 1).as_bytes());
        let shown = index.find::<faultwire::audit::IndexError>(&Filter::default(), None, |line| {
            assert!(!String::from_utf8_lossy(line).contains("inX_"));
            Ok(())
        });
        assert!(shown.unwrap_err().to_string().contains("was changed"));
        dir.write(&name, text.as_bytes());
    }
}

#[test]
fn x5_a_writer_notices_that_another_process_wrote_to_its_file() {
    let (dir, log) = log();
    let more = [dir.file(LIVE), b"{}\n".to_vec()].concat();
    dir.write(LIVE, &more);
    let said = log.append(entry("inc_next")).unwrap_err().to_string();
    assert!(said.contains("another process wrote to it"), "{said}");
}

/// Files of a log, and those that the writer makes on its way.
const NAMES: [&str; 8] = [
    LIVE,
    "audit-log.checkpoints",
    "audit-log.key",
    "audit-log.key.new",
    "audit-log.lock",
    "audit-log.pub",
    "audit-log.pub.new",
    "audit-log.000001.jsonl",
];

fn unsafe_or_fine(opened: Result<Log, OpenError>, what: &str) -> Option<UnsafeFile> {
    match opened {
        Ok(log) => {
            log.append(entry("inc_1")).unwrap();
            log.close().unwrap();
            None
        }
        Err(OpenError::Unsafe { why, .. }) => Some(why),
        Err(other) => panic!("{what}: {other}"),
    }
}

#[test]
fn x5_no_link_in_the_directory_is_followed() {
    let elsewhere = Dir::new();
    for name in NAMES {
        for there in [true, false] {
            let dir = Dir::new();
            let victim = elsewhere.path().join(format!("{name}-{there}"));
            if there {
                fs::write(&victim, b"precious\n").unwrap();
            }
            symlink(&victim, dir.path().join(name)).unwrap();
            let what = format!("{name} leads to {}", victim.display());
            let why = unsafe_or_fine(Log::open(dir.path(), quiet()), &what);
            // What is made anew takes the place of what has its name.
            let made = name.contains(".new");
            assert_eq!(why.is_none(), made, "{what}: {why:?}");
            if there {
                assert_eq!(fs::read(&victim).unwrap(), b"precious\n", "{what}");
            } else {
                assert!(!victim.exists(), "{what}");
            }
        }
    }
}

#[test]
fn x5_a_link_in_place_of_the_index_or_its_journals_is_not_followed() {
    let (dir, log) = log();
    log.close().unwrap();
    let victim = Dir::new();
    for suffix in ["", "-journal", "-wal", "-shm"] {
        let name = format!("audit-index.sqlite{suffix}");
        let _ = fs::remove_file(dir.path().join(&name));
        symlink(victim.path().join("victim"), dir.path().join(&name)).unwrap();
        victim.write("victim", b"");
        let index = Index::open(dir.path(), &mut |_| {}).unwrap();
        assert_eq!(index.count(&Filter::default(), 100).unwrap(), dir.records().len() as u64);
        assert_eq!(victim.file("victim"), b"", "{name}");
    }
}

#[test]
fn x5_pipes_and_directories_hold_nobody_up() {
    for name in NAMES.into_iter().chain(["audit-index.sqlite"]) {
        for directory in [false, true] {
            let (dir, log) = log();
            log.close().unwrap();
            let path = dir.path().join(name);
            let _ = fs::remove_file(&path);
            if directory {
                fs::create_dir(&path).unwrap();
            } else {
                assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
            }
            // What counts is that each of these ends.
            let _ = dir.verify();
            let _ = each_line(&Disk::new(dir.path()), |_| Ok::<(), ()>(()));
            let _ = Index::open(dir.path(), &mut |_| {});
            let _ = Log::open(dir.path(), quiet()).map(|log| log.close());
        }
    }
}

#[test]
fn x5_a_file_with_a_second_name_is_not_written_to() {
    for name in [LIVE, "audit-log.checkpoints", "audit-log.lock"] {
        let (dir, log) = log();
        log.close().unwrap();
        let before = dir.file(name);
        fs::hard_link(dir.path().join(name), dir.path().join("second")).unwrap();
        let why = unsafe_or_fine(Log::open(dir.path(), quiet()), name);
        assert_eq!(why, Some(UnsafeFile::Names(2)), "{name}");
        assert_eq!(dir.file(name), before);
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn x5_a_key_that_others_read_and_a_directory_that_others_write_are_refused() {
    let (dir, log) = log();
    log.close().unwrap();
    for bad in [0o644, 0o640, 0o604, 0o660] {
        set_mode(&dir.path().join("audit-log.key"), bad);
        let error = Log::open(dir.path(), quiet()).map(drop).unwrap_err();
        assert!(error.to_string().contains(&format!("(mode 0{bad:o})")), "{error}");
        assert!(error.to_string().contains("audit-log.key"), "{error}");
        assert!(error.help().contains("chmod 600"), "{}", error.help());
    }
    set_mode(&dir.path().join("audit-log.key"), 0o600);
    for bad in [0o777, 0o775, 0o757, 0o1777] {
        set_mode(dir.path(), bad);
        let error = Log::open(dir.path(), quiet()).map(drop).unwrap_err();
        assert!(error.to_string().contains("other users can write to it"), "{error}");
        assert!(error.help().contains("chmod go-w"), "{}", error.help());
    }
    for good in [0o700, 0o755, 0o750] {
        set_mode(dir.path(), good);
        Log::open(dir.path(), quiet()).unwrap().close().unwrap();
    }
}

#[test]
fn x5_new_files_are_for_their_owner_and_old_ones_stay_as_they_are() {
    let (dir, log) = log();
    set_mode(dir.path(), 0o755);
    log.close().unwrap();
    drop(Index::open(dir.path(), &mut |_| {}).unwrap());
    for name in fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()) {
        let expected = if name == "audit-log.pub" { 0o644 } else { 0o600 };
        assert_eq!(mode(&dir.path().join(&name)), expected, "{}", name.display());
    }
    set_mode(&dir.path().join(LIVE), 0o640);
    Log::open(dir.path(), quiet()).unwrap().close().unwrap();
    assert_eq!(mode(&dir.path().join(LIVE)), 0o640);
}
