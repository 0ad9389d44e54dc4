//! Opening a log: what is repaired, what is refused, and what each refusal says.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use faultwire::audit::{AuditFailed, Hash, Key, Log, OpenError, Options};
use faultwire::contract::{Fault, Profile, Report, Stamp, Surface, builtin};

use crate::support::{Dir, entry, incidents, quiet};

const LIVE: &str = "audit-log.jsonl";

/// A closed log with some records.
fn log_of(records: usize, options: &Options) -> Dir {
    let dir = Dir::new();
    let log = Log::open(dir.path(), options.clone()).unwrap();
    for i in 0..records {
        log.append(entry(&format!("inc_{i}"))).unwrap();
    }
    log.close().unwrap();
    dir
}

/// A log whose writer was killed: nothing is signed.
fn crashed_log_of(records: usize) -> Dir {
    let dir = log_of(records, &quiet());
    fs::remove_file(dir.path().join("audit-log.checkpoints")).unwrap();
    dir
}

/// Everything in the directory but the lock.
fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(dir).unwrap().map(|e| e.unwrap());
    let files =
        entries.map(|e| (e.file_name().into_string().unwrap(), fs::read(e.path()).unwrap()));
    files.filter(|(name, _)| name != "audit-log.lock").collect()
}

/// Opening fails, changes nothing, and the complaint is both specific and helpful.
fn refused(dir: &Dir, says: &str) -> OpenError {
    let before = contents(dir.path());
    let error = Log::open(dir.path(), quiet()).map(drop).unwrap_err();
    assert!(error.to_string().contains(says), "{error}");
    assert!(!error.help().is_empty());
    assert_eq!(before, contents(dir.path()), "a refusal changes nothing");
    error
}

#[test]
fn a_torn_tail_is_moved_aside_and_the_chain_goes_on() {
    let dir = crashed_log_of(3);
    let whole = dir.file(LIVE);
    for cut in 1..400 {
        dir.write(LIVE, &whole[..whole.len() - cut]);
        let log = Log::open(dir.path(), quiet()).unwrap();
        log.append(entry("inc_next")).unwrap();
        log.close().unwrap();
        dir.verify().unwrap();
        let there = dir.records();
        let torn = &there.iter().find(|r| r["type"] == "recovery").unwrap()["torn"];
        let kept = dir.file(torn["moved_to"].as_str().unwrap());
        assert!(whole.ends_with(&[&kept[..], &whole[whole.len() - cut..]].concat()));
        assert_eq!(torn["bytes"], kept.len());
        assert_eq!(torn["sha256"], Hash::of(&kept).to_string());
        assert_eq!(incidents(&there).len(), 3, "two whole ones and the next");
        fs::remove_dir_all(dir.path()).unwrap();
        fs::create_dir(dir.path()).unwrap();
    }
}

#[test]
fn a_log_cut_below_its_last_checkpoint_is_refused() {
    let dir = log_of(5, &quiet());
    let text = String::from_utf8(dir.file(LIVE)).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    for keep in 0..6 {
        dir.write(LIVE, lines[..keep].concat().as_bytes());
        let error = refused(&dir, "a signed checkpoint covers 6: it was cut");
        assert!(matches!(error, OpenError::Shrunk { sealed: 6, have, .. } if have == keep as u64));
    }
    fs::remove_file(dir.path().join(LIVE)).unwrap();
    refused(&dir, "the log has 0 records");
    let help = refused(&dir, "cut").help();
    assert!(help.contains("backup") && help.contains("move the directory away"), "{help}");
}

#[test]
fn a_record_that_was_durable_and_is_damaged_is_no_crash() {
    let dir = crashed_log_of(5);
    let text = String::from_utf8(dir.file(LIVE)).unwrap();
    dir.write(LIVE, text.replacen("inc_1", "inc_9", 1).as_bytes());
    let error = refused(&dir, ":3: its \"prev\" does not match");
    assert!(matches!(error, OpenError::Damaged { line: 3, .. }), "{error:?}");
    dir.write(LIVE, text.replacen("\"seq\":2", "\"seq\":7", 1).as_bytes());
    refused(&dir, ":3: expected record 2, found record 7");
    dir.write(LIVE, text.replacen("{\"v\":1,\"seq\":2", "garbage", 1).as_bytes());
    refused(&dir, ":3: not a record");
}

#[test]
fn a_forked_log_is_never_sealed() {
    // Another history of the same length, as whoever has no key could make it.
    let (dir, other) = (log_of(4, &quiet()), log_of(4, &quiet()));
    dir.write(LIVE, &other.file(LIVE));
    let error = refused(&dir, "records are not those that were signed");
    assert!(matches!(error, OpenError::Forked { size: 5, .. }));
}

#[test]
fn a_segment_without_its_checkpoint_is_refused() {
    let options = Options { segment_bytes: 1500, ..quiet() };
    let dir = log_of(6, &options);
    fs::remove_file(dir.path().join("audit-log.checkpoints")).unwrap();
    assert!(matches!(refused(&dir, "no checkpoint covers"), OpenError::Unsealed { .. }));
}

#[test]
fn other_formats_are_refused_and_left_alone() {
    let dir = Dir::new();
    dir.write(LIVE, b"{\"timestamp\":\"2026-01-01\",\"prevHash\":\"GENESIS\",\"hash\":\"00\"}\n");
    assert!(matches!(refused(&dir, "line 1 is not an audit record"), OpenError::Foreign(_)));
    dir.write(LIVE, b"my notes\n");
    refused(&dir, "line 1 is not an audit record");
    dir.write(LIVE, b"\n");
    refused(&dir, "line 1 is not an audit record");
    dir.write(LIVE, b"{\"v\":2,\"seq\":0,\"new\":\"things\"}\n");
    refused(&dir, "a record of version 2, but this program reads version 1; use a newer one");
}

#[test]
fn a_second_writer_learns_who_the_first_is() {
    let dir = Dir::new();
    let options = Options { holder: "process 7 (faultwire wrap)".to_owned(), ..quiet() };
    let first = Log::open(dir.path(), options).unwrap();
    let error = Log::open(dir.path(), quiet()).map(drop).unwrap_err();
    let said = error.to_string();
    assert!(
        said.contains("the log is in use by process 7 (faultwire wrap) since 2026-01-19T"),
        "{said}"
    );
    drop(first);
    Log::open(dir.path(), quiet()).unwrap();
}

#[test]
fn directories_that_cannot_be_used_get_a_clear_error() {
    let dir = Dir::new();
    dir.write("file", b"");
    let long = "x".repeat(300);
    for (path, says) in [
        (dir.path().join("file"), "cannot create it: "),
        (dir.path().join("file/below"), "cannot create it: "),
        (dir.path().join(long), "cannot create it: "),
        (Path::new("/proc/faultwire").to_owned(), "cannot create it: "),
        (Path::new("/proc/self").to_owned(), "cannot lock it: "),
    ] {
        let error = Log::open(&path, quiet()).map(drop).unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
        assert!(error.to_string().contains(&*path.to_string_lossy()), "{error}");
    }
}

#[test]
fn the_key_is_made_once_for_the_owner_alone() {
    let dir = log_of(1, &quiet());
    let mode = fs::metadata(dir.path().join("audit-log.key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let key = Key::parse(&String::from_utf8(dir.file("audit-log.key")).unwrap()).unwrap();
    assert_eq!(dir.file("audit-log.pub"), format!("{}\n", key.public()).into_bytes());
    assert!(!format!("{key:?}").contains("PRIVATE"));
    dir.write("audit-log.key", b"PRIVATE+KEY+x+00000000+AAAA\n");
    assert!(matches!(refused(&dir, "not a signing key"), OpenError::Key { .. }));
    fs::remove_file(dir.path().join("audit-log.key")).unwrap();
    assert!(matches!(refused(&dir, "is missing"), OpenError::NoKey(_)));
}

#[test]
fn a_key_that_is_given_is_used_and_another_is_refused() {
    let key = Arc::new(Key::generate("example.org/audit").unwrap());
    let dir = log_of(2, &Options { key: Some(Arc::clone(&key)), ..quiet() });
    assert!(!dir.path().join("audit-log.key").exists());
    assert_eq!(dir.verify().unwrap().key, Some(key.public().to_string()));
    let other = Some(Arc::new(Key::generate("example.org/audit").unwrap()));
    let error = Log::open(dir.path(), Options { key: other, ..quiet() }).map(drop).unwrap_err();
    assert!(error.to_string().contains("signed with another key"), "{error}");
}

#[test]
fn k15_a_log_that_does_not_hold_is_a_failed_self_audit() {
    let dir = log_of(3, &quiet());
    dir.write(LIVE, b"");
    let (kaiza, stamp) = (builtin("kaiza").unwrap(), Stamp::default());
    let startup = |error: OpenError| {
        let fault = error.fault(&kaiza, &stamp).unwrap();
        let envelope = fault.envelope(Surface::Mcp, Profile::default());
        let json: serde_json::Value = serde_json::from_slice(&envelope).unwrap();
        assert_eq!(json["tool_name"], "startup");
        assert!(!json["human_message"].as_str().unwrap().is_empty());
        json["error_code"].as_str().unwrap().to_owned()
    };
    assert_eq!(startup(refused(&dir, "cut")), "SELF_AUDIT_FAILURE");
    let nowhere = Log::open("/proc/faultwire", quiet()).map(drop).unwrap_err();
    assert_eq!(startup(nowhere), "BOOTSTRAP_FAILURE");
}

#[test]
fn a_first_line_that_is_damaged_is_no_crash() {
    let dir = crashed_log_of(5);
    let text = String::from_utf8(dir.file(LIVE)).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    dir.write(LIVE, lines[1..].concat().as_bytes());
    assert!(matches!(refused(&dir, ":1: "), OpenError::Damaged { line: 1, .. }));
    dir.write(LIVE, text.replacen("\"seq\":0", "\"seq\":x", 1).as_bytes());
    assert!(matches!(refused(&dir, ":1: "), OpenError::Damaged { line: 1, .. }));
    dir.write(LIVE, text.replacen("\"before\":null", "\"before\":nul", 1).as_bytes());
    assert!(matches!(refused(&dir, ":1: "), OpenError::Damaged { line: 1, .. }));
    // Alone, it is what a crash leaves of a log that was just begun.
    dir.write(LIVE, &lines[0].as_bytes()[..70]);
    let log = Log::open(dir.path(), quiet()).unwrap();
    log.append(entry("inc_1")).unwrap();
    log.close().unwrap();
    dir.verify().unwrap();
}

#[test]
fn a_closed_log_can_be_opened_while_clones_of_it_live() {
    let dir = Dir::new();
    let log = Log::open(dir.path(), quiet()).unwrap();
    let clone = log.clone();
    log.close().unwrap();
    Log::open(dir.path(), quiet()).unwrap().close().unwrap();
    assert!(clone.append(entry("inc_1")).is_err());
}

#[test]
fn a_crash_between_two_segments_is_seen_and_repaired() {
    let dir = log_of(8, &Options { segment_bytes: 1500, ..quiet() });
    // The live one became a full one, and the next was not begun.
    let number = dir.verify().unwrap().segments;
    let full = dir.path().join(format!("audit-log.{number:06}.jsonl"));
    fs::rename(dir.path().join(LIVE), full).unwrap();
    for live in [None, Some(&b""[..])] {
        if let Some(bytes) = live {
            dir.write(LIVE, bytes);
        }
        let said = dir.verify().unwrap_err().to_string();
        assert!(said.contains("the live segment is missing, as after a crash"), "{said}");
        faultwire::audit::Index::open(dir.path(), &mut |_| {}).unwrap();
    }
    Log::open(dir.path(), quiet()).unwrap().close().unwrap();
    assert_eq!(dir.verify().unwrap().segments, number + 1);
}

#[test]
fn k10_a_locked_log_has_a_code_of_its_own() {
    let dir = Dir::new();
    let first = Log::open(dir.path(), quiet()).unwrap();
    let locked = AuditFailed::from(Log::open(dir.path(), quiet()).map(drop).unwrap_err());
    let elsewhere = AuditFailed::from(Log::open("/proc/nowhere", quiet()).map(drop).unwrap_err());
    let kaiza = builtin("kaiza").unwrap();
    let fault = Fault::new(&kaiza, Report::new("FILE_NOT_FOUND"), &Stamp::default()).unwrap();
    let code = |failed: &AuditFailed| {
        failed.instead_of(&fault, &Stamp::default()).unwrap().code().id.clone()
    };
    assert_eq!(code(&locked), "AUDIT_LOCK_FAILED");
    assert_eq!(code(&elsewhere), "AUDIT_LOG_FAILED");
    drop(first);
}
