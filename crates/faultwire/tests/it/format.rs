//! The format, byte by byte, as docs/audit-format.md describes it.

use std::sync::Arc;

use faultwire::audit::{
    Call, Checkpoint, Digest, Entry, Frontier, Hash, Head, Key, LONGEST_LINE, Log, PublicKey,
};
use faultwire::contract::{
    BUILTINS, Condition, Contract, Fault, Meta, Profile, Report, Session, Stamp, Surface, builtin,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{Dir, entry, quiet};

const LIVE: &str = "audit-log.jsonl";

fn recorded(contract: &Arc<Contract>, report: Report, call: &Call) -> Value {
    let fault = Fault::new(contract, report, &Stamp::default()).unwrap();
    let entry = Entry::fault(&fault, call);
    serde_json::from_str(&format!("{{{}", entry.as_str())).unwrap()
}

#[test]
fn a_line_is_what_the_docs_say() {
    let dir = Dir::new();
    let log = Log::open(dir.path(), quiet()).unwrap();
    log.append(entry("inc_1")).unwrap();
    log.close().unwrap();
    let text = String::from_utf8(dir.file(LIVE)).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let id = log.id();
    let zeros = "0".repeat(64);
    assert_eq!(
        lines[0],
        format!(
            r#"{{"v":1,"seq":0,"ts":"2026-01-19T15:32:10.123Z","log":"{id}","prev":"{zeros}","synced":0,"type":"segment","segment":1,"before":null}}"#
        )
    );
    let prev = Hash::line(lines[0].as_bytes());
    assert_eq!(
        lines[1],
        format!(
            r#"{{"v":1,"seq":1,"ts":"2026-01-19T15:32:10.123Z","log":"{id}","prev":"{prev}","synced":1,"type":"fault","contract":"owlclaw","contract_version":"1.0.0","category":"runtime","alert":"warning","fault":{{"code":"runtime.timeout","condition":"timeout","message":"The call timed out","tool":"search","origin":"upstream","outcome":"maybe_executed","retry":"backoff","incident":"inc_1","timestamp":"1970-01-01T00:00:00.000Z"}}}}"#
        )
    );
}

/// What K10 lists, under the names of the one JSON form.
#[test]
fn k10_a_record_holds_what_the_failure_was() {
    let kaiza = builtin("kaiza").unwrap();
    let report = Report {
        tool: Some("write_file".to_owned()),
        invariant: Some("MANDATORY_DIAGNOSTICS".to_owned()),
        cause: Some(json!({ "message": "EACCES", "code": "EACCES", "name": "Error" })),
        session: Session {
            plan_hash: Some("abc".to_owned()),
            phase: Some("p1".to_owned()),
            ..Session::default()
        },
        timestamp: Some("2026-01-19T15:32:10.123Z".to_owned()),
        ..Report::new("PLAN_SCOPE_VIOLATION")
    };
    let record = recorded(&kaiza, report, &Call::default());
    let fault = &record["fault"];
    assert_eq!(fault["tool"], "write_file");
    assert_eq!(fault["code"], "PLAN_SCOPE_VIOLATION");
    assert_eq!(fault["invariant"], "MANDATORY_DIAGNOSTICS");
    assert_eq!(fault["session"], json!({ "phase": "p1", "plan_hash": "abc" }));
    assert_eq!(fault["timestamp"], "2026-01-19T15:32:10.123Z");
    assert_eq!(fault["cause"]["message"], "EACCES");
}

#[test]
fn a6_origin_and_outcome_are_always_there() {
    for built_in in &BUILTINS {
        let contract = builtin(built_in.name).unwrap();
        for code in contract.codes() {
            let record = recorded(&contract, Report::new(&code.id), &Call::default());
            assert!(record["fault"]["origin"].is_string(), "{record}");
            assert!(record["fault"]["outcome"].is_string(), "{record}");
            assert_eq!(record["category"], code.category);
            assert_eq!(record["alert"], code.alert);
        }
    }
}

#[test]
fn the_call_is_told_and_its_arguments_never() {
    let dir = Dir::new();
    let log = Log::open(dir.path(), quiet()).unwrap();
    let arguments = json!({ "path": "/home/jane/secret-plan.md", "n": 1 });
    let again: Value =
        serde_json::from_str(r#"{"n":1,"path":"/home/jane/secret-plan.md"}"#).unwrap();
    assert_eq!(log.fingerprint(&arguments), log.fingerprint(&again), "order does not matter");
    assert_ne!(log.fingerprint(&arguments), log.fingerprint(&json!({ "n": 1 })));
    let other = Dir::new();
    let elsewhere = Log::open(other.path(), quiet()).unwrap();
    assert_ne!(log.fingerprint(&arguments), elsewhere.fingerprint(&arguments), "it is keyed");
    let call = Call {
        request: Some(json!(17)),
        client: Some("desktop".to_owned()),
        arguments: Some(log.fingerprint(&arguments)),
        upstream_code: Some(json!("ENOENT")),
        elapsed_ms: Some(12),
        attempt: Some(2),
        envelope: None,
        undeclared: true,
        peer: None,
        refusals: None,
    };
    let fault = crate::support::fault("inc_1");
    let answer = log.answer(fault, &call, Surface::Mcp, Profile::default());
    let record = &dir.records()[1];
    let told = &record["call"];
    assert_eq!(told["request"], 17);
    assert_eq!(told["client"], "desktop");
    assert_eq!(told["undeclared"], true);
    assert_eq!(told["upstream_code"], "ENOENT");
    assert_eq!((&told["elapsed_ms"], &told["attempt"]), (&json!(12), &json!(2)));
    let hash = told["arguments"].as_str().unwrap();
    assert!(hash.starts_with("hmac-sha256:") && hash.len() == 12 + 64, "{hash}");
    assert_eq!(told["envelope"], serde_json::to_value(Digest::of(&answer.envelope)).unwrap());
    assert!(!record.to_string().contains("secret-plan"), "{record}");
}

#[test]
fn the_private_side_is_kept_without_credentials() {
    let contract = builtin("context-resolve").unwrap();
    let report = Report {
        message: Some(
            "open /srv/cache/a.json failed, token=ghp_abcdefghijklmnopqrstuvwxyz0123456789"
                .to_owned(),
        ),
        cause: Some(json!({ "message": "EACCES /srv/cache/a.json", "password": "hunter2" })),
        stack: Some("at read (/srv/app/index.js:10:5)".to_owned()),
        ..Report::new("io_error")
    };
    let record = recorded(&contract, report, &Call::default());
    let private = &record["private"];
    assert_eq!(private["message"], "open /srv/cache/a.json failed, token=[redacted]");
    assert_eq!(
        private["cause"],
        json!({ "message": "EACCES /srv/cache/a.json", "password": "[redacted]" })
    );
    assert_eq!(private["stack"], "at read (/srv/app/index.js:10:5)");
    assert_eq!(
        record["fault"]["message"], "I/O error occurred",
        "the client's side stays canonical"
    );
    let plain = recorded(&contract, Report::new("io_error"), &Call::default());
    assert!(plain.get("private").is_none() && plain.get("call").is_none(), "{plain}");
}

#[test]
fn events_hold_no_credentials_either() {
    let facts =
        json!({ "password": "hunter2", "said": "token=ghp_abcdefghijklmnopqrstuvwxyz0123456789" });
    let contract = builtin("owlclaw").unwrap();
    let entry = Entry::event("late_reply", Some("inc_1"), &facts, contract.redactor());
    assert!(!entry.as_str().contains("hunter2") && !entry.as_str().contains("ghp_"), "{entry:?}");
    assert!(entry.as_str().contains("late_reply") && entry.as_str().contains("inc_1"));
}

#[test]
fn what_comes_from_outside_is_bounded_and_safe() {
    let contract = builtin("owlclaw").unwrap();
    let huge = "x".repeat(10_000_000);
    let report = Report {
        message: Some(huge.clone()),
        stack: Some(huge.clone()),
        ..Report::new("runtime.timeout")
    };
    let call = Call {
        request: Some(json!(huge)),
        client: Some(format!("token=ghp_abcdefghijklmnopqrstuvwxyz0123456789 {huge}")),
        upstream_code: Some(json!({ "deep": [[[[huge]]]] })),
        ..Call::default()
    };
    let fault = Fault::new(&contract, report, &Stamp::default()).unwrap();
    let entry = Entry::fault(&fault, &call);
    assert!(entry.as_str().len() < 64 * 1024, "{}", entry.as_str().len());
    assert!(!entry.as_str().contains("ghp_"));
}

#[test]
fn a_record_too_long_for_a_line_is_shortened_and_kept() {
    // A contract that allows more than a line holds.
    let text = include_str!("../../../faultwire-contract/tests/data/harbour.toml");
    let larger = |line: &str| match line.split(" = ").next() {
        Some(key @ ("details_bytes" | "envelope_bytes")) => format!("{key} = 8000000\n"),
        _ => format!("{line}\n"),
    };
    let text: String = text.lines().map(larger).collect();
    let contract = match Contract::load("large.toml", &text) {
        Ok(contract) => Arc::new(contract),
        Err(mistakes) => panic!("{mistakes}"),
    };
    let code = &contract.codes()[0].id;
    let details: Vec<Value> = (0..300_000).map(|i| json!(format!("item {i}"))).collect();
    let report = Report {
        details: Some(details.into()),
        incident: Some("inc_big".to_owned()),
        ..Report::new(code)
    };
    let fault = Fault::new(&contract, report, &Stamp::default()).unwrap();
    let entry = Entry::fault(&fault, &Call::default());
    assert!(entry.as_str().len() < LONGEST_LINE - 512, "{}", entry.as_str().len());
    assert!(entry.as_str().contains("inc_big"));
    let dir = Dir::new();
    let log = Log::open(dir.path(), quiet()).unwrap();
    log.append(entry).unwrap();
    log.close().unwrap();
    dir.verify().unwrap();
}

#[test]
fn integers_beyond_2_53_are_strings() {
    let contract = builtin("owlclaw").unwrap();
    let numbers = json!([
        1,
        -1,
        9_007_199_254_740_992_u64,
        9_007_199_254_740_993_u64,
        u64::MAX,
        i64::MIN,
        0.5,
        1e300
    ]);
    let report = Report {
        details: Some(json!({ "numbers": numbers })),
        meta: Meta { elapsed_ms: Some(u64::MAX), ..Meta::default() },
        ..Report::new("runtime.timeout")
    };
    let record =
        recorded(&contract, report, &Call { request: Some(json!(u64::MAX)), ..Call::default() });
    assert_eq!(
        record["fault"]["details"]["numbers"],
        json!([
            1,
            -1,
            9_007_199_254_740_992_u64,
            "9007199254740993",
            "18446744073709551615",
            "-9223372036854775808",
            0.5,
            1e300
        ])
    );
    assert_eq!(record["call"]["request"], "18446744073709551615");
    assert_eq!(record["fault"]["meta"]["elapsed_ms"], "18446744073709551615");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the text contains, a record is one line that reads back.
    #[test]
    fn one_record_is_one_line(texts in proptest::collection::vec(".{0,80}|[\\x00-\\x1f\u{2028}\u{2029}\u{85}\u{feff}\"\\\\]{0,20}", 1..6)) {
        let dir = Dir::new();
        let log = Log::open(dir.path(), quiet()).unwrap();
        for text in &texts {
            let contract = builtin("owlclaw").unwrap();
            let report = Report {
                message: Some(text.clone()),
                tool: Some(text.clone()),
                details: Some(json!({ text.as_str(): text })),
                condition: Some(Condition::ToolError),
                ..Report::new("runtime.timeout")
            };
            let fault = Fault::new(&contract, report, &Stamp::default()).unwrap();
            log.append(Entry::fault(&fault, &Call { request: Some(json!(text)), ..Call::default() })).unwrap();
            log.append(Entry::event(text, Some(text), &json!({ "text": text }), contract.redactor())).unwrap();
        }
        log.close().unwrap();
        prop_assert_eq!(dir.file(LIVE).split(|b| *b == b'\n').count(), 2 + 2 * texts.len());
        prop_assert!(dir.verify().is_ok());
        for line in dir.file(LIVE).split(|b| *b == b'\n').filter(|l| !l.is_empty()) {
            prop_assert!(serde_json::from_slice::<Value>(line).is_ok());
        }
    }

    /// Our edge of the tree has the root that an independent implementation computes (RFC 6962).
    #[test]
    fn the_root_is_the_one_of_rfc_6962(leaves in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..8), 0..70)) {
        let mut ours = Frontier::default();
        let mut theirs = ct_merkle::mem_backed_tree::MemoryBackedTree::<sha2::Sha256, Vec<u8>>::new();
        for leaf in leaves {
            ours.push(Hash::line(&leaf));
            theirs.push(leaf);
            let root = theirs.root();
            prop_assert_eq!(&ours.root().0[..], &root.as_bytes()[..]);
            let resumed = Frontier::resume(ours.size(), ours.peaks().to_vec()).unwrap();
            prop_assert_eq!(resumed.root(), ours.root());
        }
    }

    #[test]
    fn a_head_reads_back(seq: u64, synced: u64, hash: [u8; 32]) {
        let log = "0123456789abcdef0123456789abcdef";
        let ts = "2026-01-19T15:32:10.123Z";
        let head = Head { seq, ts, log, prev: Hash(hash), synced, kind: "x" };
        let mut line = Vec::new();
        head.write(&mut line);
        line.extend_from_slice(b"\"type\":\"x\"}");
        let (read, body) = Head::read(&line).unwrap();
        prop_assert_eq!(read, head);
        prop_assert_eq!(body, b"\"type\":\"x\"}");
    }
}

/// Another implementation of signed notes reads ours, and we read its.
#[test]
fn checkpoints_are_signed_notes_that_others_read() {
    use signed_note::{Note, StandardSigner, StandardVerifier, VerifierList};

    let key = Key::generate("faultwire.audit/0123").unwrap();
    let checkpoint = Checkpoint { log: "0123".to_owned(), size: 42, root: Hash::of(b"x") };
    let note = checkpoint.sign(&key);
    let one = note.strip_suffix('\n').unwrap();
    let theirs = Note::from_bytes(one.as_bytes()).unwrap();
    let verifier = StandardVerifier::new(&key.public().to_string()).unwrap();
    let (verified, unverified) =
        theirs.verify(&VerifierList::new(vec![Box::new(verifier)])).unwrap();
    assert_eq!((verified.len(), unverified.len()), (1, 0));

    let signer = StandardSigner::new(&key.to_line()).unwrap();
    let mut again = Note::new(theirs.text(), &[]).unwrap();
    again.add_sigs(&[&signer]).unwrap();
    assert_eq!(again.to_bytes(), one.as_bytes(), "Ed25519 signs alike everywhere");
    let text = String::from_utf8(again.to_bytes()).unwrap();
    assert_eq!(Checkpoint::read(&text, Some(key.public())).unwrap(), checkpoint);
}

#[test]
fn keys_that_are_none_are_refused() {
    let key = Key::generate("name").unwrap();
    let (private, public) = (key.to_line(), key.public().to_string());
    assert_eq!(Key::parse(&format!(" {private}\n")).unwrap().public(), key.public());
    for bad in [
        "",
        "x",
        &public,
        &private.replace("name", "nome"),
        &private[..private.len() - 4],
        "PRIVATE+KEY+a+b+c",
    ] {
        assert!(Key::parse(bad).is_err(), "{bad}");
    }
    for bad in [
        "",
        "x",
        &private,
        &public.replace("name", "nome"),
        &public[..public.len() - 4],
        "a b+00000000+AQ==",
    ] {
        assert!(PublicKey::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn x5_a_tree_that_could_not_grow_is_not_taken_up() {
    let peaks = |size: u64| vec![Hash::ZERO; size.count_ones() as usize];
    assert_eq!(Frontier::resume(u64::MAX, peaks(u64::MAX)), None);
    let mut largest = Frontier::resume(u64::MAX - 1, peaks(u64::MAX - 1)).unwrap();
    largest.push(Hash::ZERO);
    assert_eq!(largest.size(), u64::MAX);
}

#[test]
fn x5_a_note_with_control_characters_is_not_read() {
    let key = Key::generate("faultwire.audit/0123").unwrap();
    let checkpoint = Checkpoint { log: "0123".to_owned(), size: 42, root: Hash::of(b"x") };
    let note = checkpoint.sign(&key);
    let note = note.strip_suffix('\n').unwrap();
    assert_eq!(Checkpoint::read(note, None).as_ref(), Ok(&checkpoint));
    for control in ["\0", "\r", "\u{1b}", "\u{85}"] {
        let signer = note.replace("\u{2014} ", &format!("\u{2014} {control}"));
        assert!(Checkpoint::read(&signer, None).is_err(), "{signer:?}");
        let log = note.replacen("0123", &format!("01{control}23"), 1);
        assert!(Checkpoint::read(&log, None).is_err(), "{log:?}");
    }
}
