//! `faultwire audit`, as it is used.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{BUILTINS, Dir, Ran, command, faultwire, run};

/// A log with a few failures of different kinds.
fn log() -> Dir {
    let dir = Dir::new();
    let faults = [
        json!({"fault":{"code":"runtime.timeout","tool":"search","incident":"inc_1","message":"slow","trace":"4bf92f3577b34da6a3ce929d0e0e4736"},"call":{"request":1,"client":"desktop","elapsed_ms":60000}}),
        json!({"fault":{"code":"governance.rate_limited","condition":"rate_limited","tool":"search","incident":"inc_2","retry_after_ms":2000},"call":{"request":"two","client":"laptop","arguments":{"q":"secret words"}}}),
        json!({"fault":{"code":"auth.forbidden","condition":"forbidden","tool":"delete","incident":"inc_3","session":{"client":"desktop","role":"guest"}}}),
        json!({"code":"runtime.timeout","tool":"fetch","incident":"inc_4","message":"GET /home/jane/x failed","details":{"a":[1,2]}}),
    ];
    let lines = faults.map(|fault| fault.to_string()).join("\n");
    faultwire(&["audit", "append", dir.text()], lines).fine();
    dir
}

fn query(dir: &Dir, args: &[&str]) -> Vec<String> {
    let out = faultwire(&[&["audit", "query", dir.text(), "--json"], args].concat(), "").fine();
    let incident = |line: &str| {
        let record: Value = serde_json::from_str(line).unwrap();
        record["fault"]["incident"].as_str().unwrap().to_owned()
    };
    out.lines().map(incident).collect()
}

/// A reader shows nothing of a log that does not hold.
fn refused_as_broken(dir: &Dir, args: &[&str]) {
    let ran = faultwire(&[&["audit"], args, &[dir.text()]].concat(), "");
    assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{args:?}: {}", ran.err);
    assert!(ran.err.contains("run `faultwire audit verify`"), "{args:?}: {}", ran.err);
}

fn found(ran: Ran) -> String {
    assert_eq!((ran.code, ran.err.as_str()), (1, ""), "{}", ran.out);
    ran.out
}

#[test]
fn append_answers_in_every_contract_once_it_is_recorded() {
    for contract in BUILTINS {
        let dir = Dir::new();
        let codes = faultwire(&["contract", "show", contract, "--json"], "").json();
        let code = codes["codes"][0]["id"].as_str().unwrap();
        let out = faultwire(
            &["audit", "append", "--audit", dir.text(), "-c", contract],
            json!({ "code": code, "message": "password=hunter2" }).to_string(),
        );
        let answer = out.json();
        assert_eq!(answer["seq"], 1);
        assert!(answer["envelope"].to_string().contains(code), "{answer}");
        let text = fs::read_to_string(dir.join("audit-log.jsonl")).unwrap();
        assert!(!text.contains("hunter2") && text.contains(code), "{text}");
    }
}

#[test]
fn append_refuses_bad_lines_by_number_and_keeps_the_good_ones() {
    for (bad, says) in [
        ("{\"code\":\"no.such\"}", "line 2: owlclaw has no code \"no.such\""),
        ("{\"code\":\"runtime.timeot\"}", "did you mean \"runtime.timeout\"?"),
        ("not json", "line 2: expected"),
        ("[]", "line 2: invalid type"),
        ("{\"fault\":{\"code\":\"runtime.timeout\"},\"cal\":{}}", "line 2: unknown field `cal`"),
        ("{\"code\":\"runtime.timeout\",\"colour\":1}", "line 2: unknown field `colour`"),
        (
            "{\"fault\":{\"code\":\"runtime.timeout\"},\"call\":{\"client\":7}}",
            "line 2: invalid type",
        ),
    ] {
        let dir = Dir::new();
        let good = "{\"code\":\"runtime.timeout\"}";
        let lines = format!("{good}\n{bad}\n{good}\n");
        let ran = faultwire(&["audit", "append", dir.text()], lines);
        assert_eq!(ran.code, 2, "{bad}");
        assert!(ran.err.contains(says) && ran.err.contains("help: "), "{bad}: {}", ran.err);
        let answers: Vec<Value> =
            ran.out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        assert_eq!((&answers[0]["seq"], &answers[2]["seq"]), (&json!(1), &json!(2)), "{}", ran.out);
        assert!(answers[1]["error"].is_string() && answers[1]["seq"].is_null(), "{}", ran.out);
        faultwire(&["audit", "verify", dir.text()], "").fine();
    }
}

#[test]
fn verify_tells_people_and_programs() {
    let dir = log();
    let said = faultwire(&["audit", "verify", dir.text()], "").fine();
    assert!(said.contains("verified 5 records in one segment"), "{said}");
    assert!(
        said.contains("1 checkpoint covers 5 of the records, signed by faultwire.audit/"),
        "{said}"
    );
    assert!(said.contains("with --key to find forgeries"), "{said}");
    let page = faultwire(&["audit", "verify", dir.text(), "--json"], "").json();
    assert_eq!(
        (&page["ok"], &page["records"], &page["sealed"]),
        (&json!(true), &json!(5), &json!(5))
    );

    let public = fs::read_to_string(dir.join("audit-log.pub")).unwrap();
    for key in [dir.join("audit-log.pub").as_str(), public.trim()] {
        let said = faultwire(&["audit", "verify", dir.text(), "--key", key], "").fine();
        assert!(!said.contains("--key"), "{said}");
    }
    let other = log();
    let with = ["audit", "verify", dir.text(), "--key", &other.join("audit-log.pub")];
    assert!(found(faultwire(&with, "")).contains("signed with another key"));
    let with = ["audit", "verify", dir.text(), "--key", &dir.join("audit-log.key")];
    assert!(faultwire(&with, "").refused().contains("never share audit-log.key"));
    let with = ["audit", "verify", dir.text(), "--key", "nothing"];
    assert!(faultwire(&with, "").refused().contains("neither a public key nor a readable file"));
}

#[test]
fn a_log_that_was_wiped_is_no_crash() {
    let dir = log();
    let file = dir.join("audit-log.jsonl");
    fs::write(&file, "").unwrap();
    let cut = "the log has 0 records, but a signed checkpoint covers 5: it was cut";
    let said = found(faultwire(&["audit", "verify", dir.text()], ""));
    assert!(said.contains(cut), "{said}");
    fs::remove_file(&file).unwrap();
    let said = found(faultwire(&["audit", "verify", dir.text()], ""));
    assert!(said.contains(cut), "{said}");
}

#[test]
fn a_record_that_was_signed_anew_vouches_for_none_before_it() {
    let dir = log();
    let file = dir.join("audit-log.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    // The last line is the one that the signature fits no more.
    fs::write(&file, text.replace("inc_4", "inc_9")).unwrap();
    let said = found(faultwire(&["audit", "verify", dir.text()], ""));
    assert!(said.contains("are not those that were signed"), "{said}");
    assert!(!said.contains("records are valid"), "{said}");
}

#[test]
fn verify_names_the_first_bad_line() {
    let dir = log();
    let file = dir.join("audit-log.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("inc_2", "inc_9")).unwrap();
    let said = found(faultwire(&["audit", "verify", dir.text()], ""));
    let place = format!("bad: {file}:3: the record was changed");
    assert!(said.starts_with(&place) && said.contains("the first 2 records are valid"), "{said}");
    let ran = faultwire(&["audit", "verify", dir.text(), "--json"], "");
    let page: Value = serde_json::from_str(&found(ran)).unwrap();
    assert_eq!((&page["ok"], &page["line"], &page["good"]), (&json!(false), &json!(3), &json!(2)));
    // A line whose own "prev" was changed is told from one whose successor's was.
    let hash = text.lines().nth(3).unwrap().split("\"prev\":\"").nth(1).unwrap()[..64].to_owned();
    fs::write(&file, text.replace(&hash, &"0".repeat(64))).unwrap();
    let said = found(faultwire(&["audit", "verify", dir.text()], ""));
    assert!(said.contains(&format!("{file}:4: its \"prev\" does not match")), "{said}");

    fs::write(&file, text.replacen("{\"v\":1,\"seq\":2", "{\"v\":2,\"seq\":2", 1)).unwrap();
    let said = found(faultwire(&["audit", "verify", dir.text()], ""));
    assert!(said.contains(":3: a record of version 2, but this program reads version 1"), "{said}");
    fs::write(&file, text.trim_end()).unwrap();
    let said = found(faultwire(&["audit", "verify", dir.text()], ""));
    assert!(said.contains(":5: the line is cut off"), "it was signed: {said}");
    fs::remove_file(dir.join("audit-log.checkpoints")).unwrap();
    let said = found(faultwire(&["audit", "verify", dir.text()], ""));
    assert!(said.contains(":5: the last line is incomplete"), "as after a crash: {said}");
    assert!(said.contains("it repairs this automatically"), "{said}");
    faultwire(&["audit", "append", dir.text()], "");
    faultwire(&["audit", "verify", dir.text()], "").fine();
}

/// A reader that was written from docs/audit-format.md alone, in another language, comes to the
/// same verdict about a log and about everything that is done to it here.
#[test]
fn an_independent_reader_agrees() {
    let dir = Dir::new();
    let fault = |i: usize| format!("{{\"code\":\"runtime.timeout\",\"incident\":\"inc_{i}\"}}\n");
    let args = [
        "audit",
        "append",
        dir.text(),
        "--segment-bytes",
        "2000",
        "--in-flight",
        "1",
        "--checkpoint-every",
        "3",
    ];
    faultwire(&args, (0..12).map(fault).collect::<String>()).fine();
    let agreed = |what: &str| {
        let reader = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reader.py");
        let theirs = Command::new("python3").args([reader, dir.text()]).output();
        let theirs = theirs.expect("this test needs python3");
        let ours = faultwire(&["audit", "verify", dir.text(), "--json"], "");
        let (said, ours_said) = (String::from_utf8_lossy(&theirs.stdout), &ours.out);
        assert_eq!(theirs.status.code(), Some(ours.code), "{what}: {said} {ours_said}");
        ours.code == 0
    };
    assert!(agreed("untouched"));
    for name in ["audit-log.000001.jsonl", "audit-log.jsonl", "audit-log.checkpoints"] {
        let file = dir.join(name);
        let whole = fs::read(&file).unwrap();
        let lines: Vec<&[u8]> = whole.split_inclusive(|b| *b == b'\n').collect();
        let flipped = |at: usize| {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 7);
            bytes
        };
        let doubled = [&lines[..], &lines[lines.len() - 1..]].concat().concat();
        let cases = [
            ("first line gone", lines[1..].concat()),
            ("last line gone", lines[..lines.len() - 1].concat()),
            ("doubled", doubled),
            ("a blank line", [&whole[..], b"\n\n"].concat()),
            ("cut", whole[..whole.len() - 9].to_vec()),
            ("empty", Vec::new()),
            ("flipped early", flipped(3)),
            ("flipped late", flipped(whole.len() - 5)),
            ("no UTF-8", [&whole[..whole.len() - 9], b"\xff", &whole[whole.len() - 9..]].concat()),
        ];
        for (what, bytes) in cases {
            fs::write(&file, bytes).unwrap();
            assert!(!agreed(&format!("{name}, {what}")), "{name}, {what}");
        }
        fs::remove_file(&file).unwrap();
        assert!(!agreed(&format!("{name} gone")));
        fs::write(&file, &whole).unwrap();
    }
    assert!(agreed("all is back"));
    fs::copy(dir.join("audit-log.000001.jsonl"), dir.join("audit-log.000009.jsonl")).unwrap();
    assert!(!agreed("a segment too many"));
}

#[test]
fn reading_commands_without_a_log_say_so() {
    let dir = Dir::new();
    for args in [&["verify"][..], &["tail"], &["query"], &["show", "inc_1"], &["export"]] {
        for (place, says) in
            [(dir.text(), "no audit log in this directory"), ("/no/such", "No such file")]
        {
            let said = faultwire(&[&["audit"], args, &[place]].concat(), "").refused();
            assert!(said.contains(says) && said.contains("FAULTWIRE_AUDIT"), "{args:?}: {said}");
        }
    }
}

#[test]
fn the_directory_comes_from_the_environment_too() {
    let dir = log();
    let mut by_variable = command(&["audit", "verify"]);
    by_variable.env("FAULTWIRE_AUDIT", dir.path());
    assert!(run(by_variable, b"").fine().contains("5 records"));
    let state = Dir::new();
    let mut by_home = command(&["audit", "append"]);
    by_home.env("XDG_STATE_HOME", state.path());
    run(by_home, b"{\"code\":\"runtime.timeout\"}").fine();
    assert!(Path::new(&state.join("faultwire/audit/append/audit-log.jsonl")).exists());
    let read = |args: &[&str]| {
        let mut reading = command(&[&["audit", "tail"], args].concat());
        reading.env("XDG_STATE_HOME", state.path());
        run(reading, b"")
    };
    assert!(read(&[]).fine().contains("runtime.timeout"), "the only one");
    faultwire(&["audit", "append", &state.join("faultwire/audit/other")], "").fine();
    let told = read(&[]).refused();
    assert!(
        told.contains("the directory has 2 logs") && told.contains("name one: append, other"),
        "{told}"
    );
    assert!(read(&["append"]).fine().contains("runtime.timeout"), "by its name");
}

#[test]
fn query_finds_by_every_fact() {
    let dir = log();
    assert_eq!(query(&dir, &[]), ["inc_4", "inc_3", "inc_2", "inc_1"]);
    assert_eq!(query(&dir, &["--limit", "2"]), ["inc_4", "inc_3"]);
    assert_eq!(query(&dir, &["--limit", "0"]).len(), 4);
    assert_eq!(query(&dir, &["--code", "runtime.timeout"]), ["inc_4", "inc_1"]);
    assert_eq!(query(&dir, &["--code", "*.rate_limited"]), ["inc_2"]);
    assert_eq!(query(&dir, &["--code", "runtime.time?ut"]), [""; 0]);
    assert_eq!(query(&dir, &["--tool", "search", "--client", "laptop"]), ["inc_2"]);
    assert_eq!(query(&dir, &["--client", "desktop"]), ["inc_3", "inc_1"]);
    assert_eq!(query(&dir, &["--origin", "policy"]), ["inc_3", "inc_2"]);
    assert_eq!(query(&dir, &["--outcome", "not_sent"]), ["inc_3", "inc_2"]);
    assert_eq!(query(&dir, &["--incident", "inc_3"]), ["inc_3"]);
    assert_eq!(query(&dir, &["--since", "1h"]).len(), 4);
    assert_eq!(query(&dir, &["--until", "1h"]), [""; 0]);
    assert_eq!(query(&dir, &["--since", "2020-01-01", "--until", "2999-01-01T00:00:00Z"]).len(), 4);
    assert_eq!(query(&dir, &["--since", "2999-01-01"]), [""; 0]);
    for bad in ["yesterday", "1w", "", "é", "99999999999h"] {
        let said = faultwire(&["audit", "query", dir.text(), "--since", bad], "").refused();
        assert!(said.contains("2026-01-19"), "{bad}: {said}");
    }
    assert!(
        faultwire(&["audit", "query", dir.text(), "--origin", "moon"], "")
            .refused()
            .contains("upstream")
    );
}

#[test]
fn query_prints_tables_and_csv() {
    let dir = log();
    let table = faultwire(&["audit", "query", dir.text(), "--tool", "search"], "").fine();
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].starts_with("TIME ") && lines[0].ends_with("INCIDENT"), "{table}");
    assert!(lines[1].contains("governance.rate_limited  search  laptop"), "{table}");
    assert_eq!(lines[3], "2 in all");
    let table = faultwire(&["audit", "query", dir.text(), "--limit", "1"], "").fine();
    assert!(table.ends_with("the newest 1 of 4; --limit 0 shows all\n"), "{table}");
    let none = faultwire(&["audit", "query", dir.text(), "--tool", "none"], "").fine();
    assert_eq!(none, "no matching failures\n");
    let csv = faultwire(&["audit", "query", dir.text(), "--csv", "--code", "runtime.*"], "").fine();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines[0], "seq,time,contract,code,tool,client,origin,outcome,incident,message");
    assert!(lines[2].starts_with("1,20") && lines[2].ends_with(",inc_1,slow"), "{csv}");
}

#[test]
fn the_index_is_derived_and_never_trusted() {
    let dir = log();
    let index = dir.join("audit-index.sqlite");
    assert_eq!(query(&dir, &[]).len(), 4);
    assert!(Path::new(&index).exists());
    let more = r#"{"code":"runtime.timeout","incident":"inc_5"}"#;
    faultwire(&["audit", "append", dir.text()], more).fine();
    assert_eq!(query(&dir, &[])[0], "inc_5", "it grows with the log");
    fs::remove_file(&index).unwrap();
    assert_eq!(query(&dir, &[]).len(), 5, "it may be deleted");
    for broken in [&b"this is no database"[..], b"", b"SQLite format 3\0 and then nothing of use"] {
        fs::write(&index, broken).unwrap();
        assert_eq!(query(&dir, &[]).len(), 5, "it may be broken");
    }
    // Another log in its place is not what was signed.
    let other = Dir::new();
    let faults =
        (0..3).map(|i| format!("{{\"code\":\"auth.forbidden\",\"incident\":\"inc_other_{i}\"}}\n"));
    faultwire(&["audit", "append", other.text()], faults.collect::<String>()).fine();
    let own = fs::read(dir.join("audit-log.jsonl")).unwrap();
    fs::copy(other.join("audit-log.jsonl"), dir.join("audit-log.jsonl")).unwrap();
    for command in ["query", "tail", "export"] {
        refused_as_broken(&dir, &[command]);
    }
    // With all of its files the index does not fit, and is built anew.
    for name in ["audit-log.checkpoints", "audit-log.pub"] {
        fs::copy(other.join(name), dir.join(name)).unwrap();
    }
    assert_eq!(query(&dir, &[]), ["inc_other_2", "inc_other_1", "inc_other_0"]);
    assert_ne!(own, fs::read(dir.join("audit-log.jsonl")).unwrap());
    // A full segment that was changed, or taken away, is noticed.
    let rotated = Dir::new();
    let faults =
        (0..20).map(|i| format!("{{\"code\":\"auth.forbidden\",\"incident\":\"inc_{i}\"}}\n"));
    let args = ["audit", "append", rotated.text(), "--segment-bytes", "2000"];
    faultwire(&args, faults.collect::<String>()).fine();
    faultwire(&args, r#"{"code":"auth.forbidden","incident":"inc_20"}"#).fine();
    assert_eq!(query(&rotated, &["--incident", "inc_1"]).len(), 1);
    let first = rotated.join("audit-log.000001.jsonl");
    let text = fs::read_to_string(&first).unwrap();
    fs::write(&first, text.replace("\"inc_1\"", "\"inc_x\"")).unwrap();
    refused_as_broken(&rotated, &["query", "--incident", "inc_x"]);
    refused_as_broken(&rotated, &["show", "inc_x"]);
    fs::write(&first, &text).unwrap();
    let all = query(&rotated, &["--limit", "0"]).len();
    fs::remove_file(&first).unwrap();
    assert!((1..all).contains(&query(&rotated, &["--limit", "0"]).len()));
    // Where nothing can be written it is held in memory.
    fs::remove_file(&index).unwrap();
    fs::create_dir(&index).unwrap();
    assert_eq!(query(&dir, &["--limit", "1"]), ["inc_other_2"]);
}

#[test]
fn the_index_follows_rotation() {
    let dir = Dir::new();
    for round in 0..4 {
        let faults = (0..7)
            .map(|i| format!("{{\"code\":\"auth.forbidden\",\"incident\":\"inc_{round}_{i}\"}}\n"));
        let args = ["audit", "append", dir.text(), "--segment-bytes", "1500"];
        faultwire(&args, faults.collect::<String>()).fine();
        let found = query(&dir, &["--limit", "0"]);
        assert_eq!(found.len(), 7 * (round + 1));
        assert_eq!(found[0], format!("inc_{round}_6"));
    }
    assert!(Path::new(&dir.join("audit-log.000003.jsonl")).exists());
}

#[test]
fn show_tells_the_whole_story() {
    let dir = log();
    let page = faultwire(&["audit", "show", "inc_2", dir.text()], "").fine();
    for part in [
        "governance.rate_limited  owlclaw 1.0.0, governance, alert warning",
        "Client        laptop",
        "Call          search request two",
        "Retry         backoff, in 2000 ms",
        "Origin        policy: a rule of the operator refused the call",
        "Outcome       not_sent: the tool did not receive the call",
        "What to do    Wait for retry_after, then send the same call again.",
        "Arguments     hmac-sha256:",
        ", covered by a checkpoint",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("secret words"), "{page}");
    let page = faultwire(&["audit", "show", "inc_4", dir.text()], "").fine();
    assert!(page.contains("Full message  GET ~/x failed"), "{page}");
    assert!(page.contains("Message       GET [redacted:path] failed"), "{page}");
    let records = faultwire(&["audit", "show", "inc_1", dir.text(), "--json"], "").json();
    assert_eq!(records[0]["fault"]["incident"], "inc_1");
    assert!(faultwire(&["audit", "show", "2", dir.text()], "").fine().contains("inc_2"));
    let none = faultwire(&["audit", "show", "inc_none", dir.text()], "");
    assert_eq!(none.code, 1);
    assert!(none.err.contains("no record of inc_none"), "{}", none.err);
}

#[test]
fn nothing_in_a_record_steers_the_terminal() {
    let dir = Dir::new();
    let tool = "x\u{1b}[31m\u{202e}\u{9b}";
    let fault = json!({ "code": "runtime.timeout", "incident": "inc_1", "tool": tool });
    faultwire(&["audit", "append", dir.text()], fault.to_string()).fine();
    for args in [&["tail"][..], &["query"], &["show", "inc_1"]] {
        let said = faultwire(&[&["audit"], args, &[dir.text()]].concat(), "").fine();
        let steers = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!said.contains(steers), "{args:?}: {said:?}");
    }
}

#[test]
fn export_speaks_ocsf_and_ecs() {
    let dir = log();
    let out = faultwire(&["audit", "export", dir.text()], "").fine();
    let events: Vec<Value> = out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(events.len(), 4, "failures only");
    for event in &events {
        // What the class requires.
        for required in
            ["activity_id", "category_uid", "class_uid", "severity_id", "type_uid", "time"]
        {
            assert!(event[required].is_u64(), "{required}: {event}");
        }
        assert!(
            event["metadata"]["version"].is_string() && event["metadata"]["product"].is_object()
        );
        assert!(event["api"]["operation"].is_string() && event["src_endpoint"].is_object());
    }
    let limited = &events[1];
    assert_eq!((&limited["class_uid"], &limited["type_uid"]), (&json!(6003), &json!(600_399)));
    assert_eq!((&limited["status_id"], &limited["severity_id"]), (&json!(2), &json!(3)));
    assert_eq!(limited["status_code"], "governance.rate_limited");
    assert_eq!(limited["api"]["request"]["uid"], "two");
    assert_eq!(limited["metadata"]["correlation_uid"], "inc_2");
    assert_eq!(limited["actor"]["app_name"], "laptop");

    let out = faultwire(&["audit", "export", dir.text(), "--format", "ecs"], "").fine();
    let events: Vec<Value> = out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let (slow, forbidden) = (&events[0], &events[2]);
    assert_eq!(slow["error"]["code"], "runtime.timeout");
    assert_eq!(slow["error"]["id"], "inc_1");
    assert_eq!(slow["event"]["duration"], 60_000_000_000_u64);
    assert_eq!(slow["event"]["outcome"], "failure");
    assert_eq!(slow["trace"]["id"], "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!(forbidden["event"]["type"], json!(["denied"]));
    let original: Value =
        serde_json::from_str(slow["event"]["original"].as_str().unwrap()).unwrap();
    assert_eq!(original["seq"], 1);
    assert_eq!(faultwire(&["audit", "export", dir.text(), "--since", "2999-01-01"], "").fine(), "");
}

#[test]
fn tail_shows_the_newest_across_segments() {
    let dir = Dir::new();
    let faults =
        (0..12).map(|i| format!("{{\"code\":\"auth.forbidden\",\"incident\":\"inc_{i}\"}}\n"));
    let args = ["audit", "append", dir.text(), "--segment-bytes", "1500", "--in-flight", "1"];
    faultwire(&args, faults.collect::<String>()).fine();
    let all = faultwire(&["audit", "tail", dir.text(), "-n", "1000", "--json"], "").fine();
    let whole = [
        "000001.jsonl",
        "000002.jsonl",
        "000003.jsonl",
        "000004.jsonl",
        "000005.jsonl",
        "000006.jsonl",
        "jsonl",
    ]
    .map(|end| fs::read_to_string(dir.join(&format!("audit-log.{end}"))).unwrap_or_default());
    assert_eq!(all, whole.concat());
    let few = faultwire(&["audit", "tail", dir.text(), "-n", "5", "--json"], "").fine();
    assert!(all.ends_with(&few) && few.lines().count() == 5, "{few}");
    let people = faultwire(&["audit", "tail", dir.text(), "-n", "1"], "").fine();
    assert!(people.contains("auth.forbidden") && people.contains("inc_11"), "{people}");
    assert_eq!(faultwire(&["audit", "tail", dir.text(), "-n", "0"], "").fine(), "");
}

/// Ended by its own pid when the test is over.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn tail_follows_a_writer_through_rotations() {
    let dir = Dir::new();
    let mut writer = command(&["audit", "append", dir.text(), "--segment-bytes", "1500"]);
    let piped = writer.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut writer = Running(piped.spawn().unwrap());
    let mut stdin = writer.0.stdin.take().unwrap();
    let mut answers = BufReader::new(writer.0.stdout.take().unwrap()).lines();
    let mut append = |i: usize| {
        writeln!(stdin, "{{\"code\":\"auth.forbidden\",\"incident\":\"inc_{i}\"}}").unwrap();
        answers.next().unwrap().unwrap();
    };
    append(0);
    let mut tail = command(&["audit", "tail", dir.text(), "-n", "1000", "-f", "--json"]);
    let mut tail = Running(tail.stdout(Stdio::piped()).spawn().unwrap());
    let mut seen = BufReader::new(tail.0.stdout.take().unwrap()).lines();
    for i in 1..40 {
        append(i);
    }
    let mut next = 0;
    while next < 40 {
        let line: Value = serde_json::from_str(&seen.next().unwrap().unwrap()).unwrap();
        if line["type"] == "fault" {
            assert_eq!(line["fault"]["incident"], format!("inc_{next}"), "none missed, none twice");
            next += 1;
        }
    }
    // A log that is being written can be read and checked.
    assert_eq!(query(&dir, &["--limit", "0"]).len(), 40);
    let page = faultwire(&["audit", "verify", dir.text(), "--json"], "").json();
    assert_eq!(page["ok"], true);
    // And it has one writer.
    let second = faultwire(&["audit", "append", dir.text()], "").refused();
    let holder = format!("the log is in use by process {} (faultwire audit append)", writer.0.id());
    assert!(second.contains(&holder), "{second}");
}

#[test]
fn k15_a_log_that_cannot_be_opened_is_an_envelope_and_no_success() {
    let dir = log();
    fs::write(dir.join("audit-log.jsonl"), "").unwrap();
    let args = ["audit", "append", dir.text(), "-c", "kaiza", "--json"];
    let envelope: Value = serde_json::from_str(&faultwire(&args, "").refused()).unwrap();
    assert_eq!(envelope["error_code"], "SELF_AUDIT_FAILURE");
    assert_eq!(envelope["tool_name"], "startup");
    let args = ["audit", "append", "/proc/nowhere", "-c", "kaiza", "--json"];
    let envelope: Value = serde_json::from_str(&faultwire(&args, "").refused()).unwrap();
    assert_eq!(envelope["error_code"], "BOOTSTRAP_FAILURE");
    let said = faultwire(&["audit", "append", dir.text()], "").refused();
    assert!(
        said.contains("it was cut")
            && said.contains("help: keep a copy of the directory as evidence"),
        "{said}"
    );
}

/// A log of the older format, as JavaScript wrote it.
fn legacy(lines: &[Value]) -> String {
    use faultwire::audit::Hash;
    let mut prev = "GENESIS".to_owned();
    let mut text = String::new();
    for line in lines {
        let mut line = line.clone();
        line["prevHash"] = prev.into();
        let hash = Hash::of(line.to_string().as_bytes()).to_string();
        line["hash"] = hash.as_str().into();
        text += &format!("{line}\n");
        prev = hash;
    }
    text
}

#[test]
fn verify_reads_the_older_format() {
    let entry = |i: u32| {
        json!({ "timestamp": "2026-01-19T15:32:10.123Z", "sessionId": format!("s{i}"), "type": "TOOL_ERROR",
            "tool": "write_file", "diagnostic": { "error_code": "FILE_NOT_FOUND", "n": 1.50, "text": "ü\n\"" } })
    };
    let text = legacy(&[entry(0), entry(1), entry(2)]);
    let dir = Dir::new();
    let file = dir.join("audit-log.jsonl");
    fs::write(&file, &text).unwrap();
    for named in [dir.text(), &file] {
        let said = faultwire(&["audit", "verify", named], "").fine();
        assert!(said.contains("verified 3 records of the older format"), "{said}");
    }
    let page = faultwire(&["audit", "verify", dir.text(), "--json"], "").json();
    assert_eq!((&page["format"], &page["records"]), (&json!("legacy"), &json!(3)));
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    for (tampered, says) in [
        (text.replacen("\"s1\"", "\"s9\"", 1), ":2: its hash is "),
        ([lines[0], lines[2]].concat(), ":2: its prevHash is "),
        ([lines[1], lines[2]].concat(), ":1: its prevHash is "),
        ([lines[0], lines[1], lines[1]].concat(), ":3: its prevHash is "),
        ([lines[0], "{\"hash\":\"x\"}\n"].concat(), ":2: the string \"prevHash\" is missing"),
        ([lines[0], "\n"].concat(), ":2: not a JSON object"),
        (text[..text.len() - 20].to_owned(), ":3: the line is incomplete"),
    ] {
        fs::write(&file, tampered).unwrap();
        let said = found(faultwire(&["audit", "verify", dir.text()], ""));
        assert!(said.contains(says), "{said}");
    }
    // It is never written to.
    fs::write(&file, &text).unwrap();
    assert!(faultwire(&["audit", "append", dir.text()], "").refused().contains("older format"));
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
}

#[test]
fn what_is_refused_is_not_repeated_aloud() {
    let dir = log();
    let key = fs::read_to_string(dir.join("audit-log.key")).unwrap();
    let said = faultwire(&["audit", "verify", dir.text(), "--key", &key], "").refused();
    assert!(said.contains("this is the secret signing key") && !said.contains("PRIVATE"), "{said}");
    let bad = r#"{"code":"runtime.timeout","status":"password=hunter2zz"}"#;
    let ran = faultwire(&["audit", "append", dir.text()], bad);
    assert!(
        ran.code == 2 && !ran.err.contains("hunter2zz") && !ran.out.contains("hunter2zz"),
        "{}",
        ran.err
    );
}

#[test]
fn files_that_are_no_log_are_refused_by_name() {
    let dir = log();
    for (name, bytes) in
        [("copy.jsonl", &b"{\"v\":1}\n"[..]), ("empty.jsonl", b""), ("notes.txt", b"hello\n")]
    {
        fs::write(dir.join(name), bytes).unwrap();
        let said = faultwire(&["audit", "verify", &dir.join(name)], "").refused();
        assert!(said.contains(name) && said.contains("does not begin with a record"), "{said}");
    }
    let own = dir.join("audit-log.jsonl");
    assert!(faultwire(&["audit", "verify", &own], "").fine().contains("5 records"));
    // What would be read for ever.
    fs::remove_file(dir.join("audit-log.pub")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", dir.join("audit-log.pub")).unwrap();
    let said = faultwire(&["audit", "verify", dir.text()], "").refused();
    assert!(said.contains("audit-log.pub: this is a symbolic link"), "{said}");
    let said = faultwire(&["audit", "verify", dir.text(), "--key", "/dev/zero"], "").refused();
    assert!(said.contains("neither a public key nor a readable file"), "{said}");
}

#[test]
fn a_missing_segment_is_noted_and_the_rest_is_shown() {
    let dir = Dir::new();
    let faults =
        (0..20).map(|i| format!("{{\"code\":\"auth.forbidden\",\"incident\":\"inc_{i}\"}}\n"));
    let args = ["audit", "append", dir.text(), "--segment-bytes", "1500", "--in-flight", "1"];
    faultwire(&args, faults.collect::<String>()).fine();
    fs::remove_file(dir.join("audit-log.000003.jsonl")).unwrap();
    for command in ["tail", "export", "query"] {
        let ran = faultwire(&["audit", command, dir.text()], "");
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(ran.err.contains("note: segment 3 is missing"), "{command}: {}", ran.err);
        assert!(ran.out.contains("inc_19"), "{command}: {}", ran.out);
    }
    let said = found(faultwire(&["audit", "verify", dir.text()], ""));
    assert!(said.contains("segment 3 is missing") && said.contains("--archived"), "{said}");
}

#[test]
fn a_log_that_is_written_and_rotated_meanwhile_holds() {
    let dir = Dir::new();
    let mut writer =
        command(&["audit", "append", dir.text(), "--segment-bytes", "2000", "--in-flight", "1"]);
    let piped = writer.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut writer = Running(piped.spawn().unwrap());
    let mut stdin = writer.0.stdin.take().unwrap();
    let feeder = thread::spawn(move || {
        while stdin.write_all(b"{\"code\":\"auth.forbidden\"}\n").is_ok() {
            thread::sleep(Duration::from_millis(3));
        }
    });
    while !Path::new(&dir.join("audit-log.000005.jsonl")).exists() {
        thread::sleep(Duration::from_millis(5));
    }
    for _ in 0..8 {
        let page = faultwire(&["audit", "verify", dir.text(), "--json"], "").json();
        assert_eq!(page["ok"], true, "{page}");
    }
    drop(writer);
    feeder.join().unwrap();
}

#[test]
fn x5_segments_that_are_added_are_found_and_never_shown_while_a_writer_runs() {
    let dir = log();
    let mut writer = command(&["audit", "append", dir.text()]);
    let mut writer = Running(writer.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap());
    let mut stdin = writer.0.stdin.take().unwrap();
    stdin.write_all(b"{\"code\":\"auth.forbidden\",\"incident\":\"inc_live\"}\n").unwrap();
    let mut answer = String::new();
    BufReader::new(writer.0.stdout.take().unwrap()).read_line(&mut answer).unwrap();
    let key = dir.join("audit-log.pub");
    faultwire(&["audit", "verify", dir.text(), "--key", &key], "").fine();
    let live = fs::read_to_string(dir.join("audit-log.jsonl")).unwrap();
    for number in ["000000", "000001", "000002", "000099"] {
        let planted = dir.join(&format!("audit-log.{number}.jsonl"));
        fs::write(&planted, live.replace("inc_1", "inc_forged")).unwrap();
        for keyed in [&["--key", key.as_str()][..], &[]] {
            let args = [&["audit", "verify", dir.text()], keyed].concat();
            let said = found(faultwire(&args, ""));
            assert!(said.contains(number), "{said}");
        }
        for args in [&["query"][..], &["export"], &["tail"], &["show", "inc_2"]] {
            let ran = faultwire(&[&["audit"], args, &[dir.text()]].concat(), "");
            assert!(!ran.out.contains("inc_forged"), "{number} {args:?}: {}", ran.out);
        }
        fs::remove_file(planted).unwrap();
    }
    faultwire(&["audit", "verify", dir.text()], "").fine();
}

#[test]
fn x5_the_older_format_in_the_place_of_a_signed_log_does_not_hold() {
    let lines = legacy(&[json!({ "timestamp": "2026-01-19T15:32:10.123Z", "type": "TOOL_ERROR" })]);
    let dir = log();
    let file = dir.join("audit-log.jsonl");
    fs::write(&file, &lines).unwrap();
    let beside = ["checkpoints", "key", "lock", "pub"];
    for left in beside {
        for named in [dir.text(), &file] {
            let said = found(faultwire(&["audit", "verify", named], ""));
            assert!(said.contains("the log was replaced"), "{left}: {said}");
        }
        let page = faultwire(&["audit", "verify", dir.text(), "--json"], "");
        assert!(page.code == 1 && page.out.contains("\"ok\": false"), "{left}: {}", page.out);
        fs::remove_file(dir.join(&format!("audit-log.{left}"))).unwrap();
    }
    faultwire(&["audit", "verify", dir.text()], "").fine();
    fs::write(dir.join("audit-log.000001.jsonl"), &lines).unwrap();
    found(faultwire(&["audit", "verify", dir.text()], ""));
}

#[test]
fn x5_csv_has_no_formulas() {
    let dir = Dir::new();
    let fault = json!({ "code": "runtime.timeout", "tool": "=cmd|'/C calc'!A0",
        "incident": "\t@SUM(1)", "message": "-2+3" });
    faultwire(&["audit", "append", dir.text()], fault.to_string()).fine();
    let csv = faultwire(&["audit", "query", dir.text(), "--csv"], "").fine();
    let row = csv.lines().nth(1).unwrap();
    for cell in row.split(',') {
        let cell = cell.trim_start_matches('"');
        assert!(!cell.trim_start().starts_with(['=', '+', '-', '@']), "{csv}");
    }
    assert!(row.contains("'=cmd") && row.contains("'-2+3"), "{csv}");
}

#[test]
fn x5_hostile_directories_hold_no_command_up() {
    for (what, number) in
        [("pipe", "000001"), ("directory", "000001"), ("empty", "000099"), ("long", "000001")]
    {
        let dir = log();
        let path = dir.join(&format!("audit-log.{number}.jsonl"));
        match what {
            "pipe" => assert!(Command::new("mkfifo").arg(&path).status().unwrap().success()),
            "directory" => fs::create_dir(&path).unwrap(),
            "empty" => fs::write(&path, b"").unwrap(),
            _ => fs::write(&path, vec![b'x'; 3 * 1024 * 1024]).unwrap(),
        }
        let verified = faultwire(&["audit", "verify", dir.text()], "");
        assert_eq!(verified.code, 1, "{what}: {}{}", verified.out, verified.err);
        for args in [&["query"][..], &["export"], &["tail"], &["show", "inc_2"]] {
            let ran = faultwire(&[&["audit"], args, &[dir.text()]].concat(), "");
            assert!(ran.code == 0 && ran.out.contains("inc_2"), "{what} {args:?}: {}", ran.err);
        }
    }
}
