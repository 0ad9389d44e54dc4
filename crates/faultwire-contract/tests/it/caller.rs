//! Nothing is hidden from a client that it said itself, and credentials are hidden always (U2).

use faultwire_contract::{BUILTINS, Caller, Contract, Fault, Masks, Report, Stamp, builtin};
use proptest::prelude::*;
use serde_json::{Value, json};

const NOTHING: &str = "null";

/// What a client that sent these params gets to see of a text, under the standard contract.
fn seen(masks: Masks, params: &str, text: &str) -> String {
    let contract = builtin("standard").unwrap();
    let caller = Caller::new(masks).sent_raw(params);
    let safe = contract.redact_for(text, &caller).into_owned();
    assert_eq!(contract.redact_for(&safe, &caller), safe, "not the same again, from {text:?}");
    safe
}

/// A client elsewhere sent this as an argument.
fn remote(argument: &str, text: &str) -> String {
    let params = json!({ "name": "t", "arguments": { "deep": [{ "x": argument }] } });
    seen(Masks::REMOTE, &params.to_string(), text)
}

#[track_caller]
fn stays(argument: &str, text: &str) {
    assert_eq!(remote(argument, text), text, "with {argument:?}");
    assert_ne!(seen(Masks::REMOTE, NOTHING, text), text, "this proves nothing: {text:?}");
}

#[track_caller]
fn goes(argument: &str, text: &str) {
    assert!(remote(argument, text).contains("[redacted"), "with {argument:?}: {text:?} stays");
}

#[test]
fn u2_a_path_that_the_client_sent_stays() {
    stays("/srv/notes/a.md", "ENOENT: no such file or directory, open '/srv/notes/a.md'");
    stays("/srv/notes/a.md", "Cannot read /srv/notes/a.md.");
    stays("/srv/notes/a.md", "open /srv/notes/a.md: permission denied");
    stays("/srv/notes/a.md", "/srv/notes/a.md(12): syntax error");
    stays("/srv/notes/a.md", "no parent: /srv/notes");
    stays("/srv/my notes/a b.md", "cannot open \"/srv/my notes/a b.md\" now");
    stays("please read /srv/notes/a.md, then stop", "cannot open /srv/notes/a.md");
    stays("~/notes/a.md", "cannot open ~/notes/a.md");
    stays(r"C:\Users\jane\notes.txt", r"cannot open C:\Users\jane\notes.txt");
    stays(r"C:\Users\jane\notes.txt", r#"{"path":"C:\\Users\\jane\\notes.txt"}"#);
    stays("/srv/notes/ä.md", "cannot open /srv/notes/ä.md");
}

#[test]
fn u2_what_the_client_sent_with_escapes_stays() {
    stays("file:///srv/my%20notes/a.md", "cannot open '/srv/my notes/a.md'");
    stays("/srv/my notes/a.md", "cannot open file:///srv/my%20notes/a.md");
    stays(r#"{"path":"\/srv\/notes\/a.md"}"#, "cannot open /srv/notes/a.md");
    stays("/srv/notes/a.md", r#"{"error":"cannot open \/srv\/notes\/a.md"}"#);
    let raw = r#"{"arguments":{"path":"\/srv\u002fnotes\/a.md"}}"#;
    let text = "cannot open /srv/notes/a.md";
    assert_eq!(seen(Masks::REMOTE, raw, text), text);
}

#[test]
fn u2_paths_under_a_directory_that_the_client_named_stay() {
    stays("/srv/notes", "cannot open /srv/notes/2026/a.md");
    stays("/srv/notes/", "cannot open '/srv/notes/my file.md'");
    stays("/srv/./x/../notes", "cannot open /srv/notes/a.md");
    stays("file:///srv/notes", "cannot open /srv/notes/a.md");
    stays("file:///C:/notes", r"cannot open C:\notes\a.md");
    stays("~/notes", "cannot open ~/notes/a.md");
    goes("/srv/notes", "cannot open /srv/notes/../keys/id.pem");
    goes("/srv/notes", "cannot open /srv/notes-private/a.md");
    goes("/srv/notes/a.md", "cannot open /srv/notes/a.md.bak");
    goes("/srv/notes/a.md", "cannot open /srv/notes/b.md");
    goes("/", "cannot open /etc/shadow");
    goes("notes", "cannot open /srv/notes/a.md");
    goes(r"C:\", r"cannot open C:\keys\id.pem");
}

#[test]
fn u2_addresses_that_the_client_gave_stay() {
    stays("http://10.0.0.7:8080/x", "connect ECONNREFUSED 10.0.0.7:8080");
    stays("10.0.0.7", "connect ECONNREFUSED 10.0.0.7:5432");
    stays("DB.internal", "getaddrinfo ENOTFOUND db.internal");
    stays("http://localhost:3000/health", "GET http://localhost:3000/health failed");
    stays("[fe80::1]:80", "cannot reach fe80::1");
    goes("10.0.0.70", "connect ECONNREFUSED 10.0.0.7");
    goes("110.0.0.7", "connect ECONNREFUSED 10.0.0.7");
    goes("my-db.internal", "getaddrinfo ENOTFOUND db.internal");
    goes("db.internal", "getaddrinfo ENOTFOUND db.internal.corp");
}

#[test]
fn u2_other_text_of_the_arguments_stays() {
    let frame = "    at parse (/srv/app/index.js:10:5)";
    let text = format!("cannot explain this trace:\n{frame}");
    stays(&format!("Error: x\n{frame}"), &text);
    let params = json!({ "arguments": { "to": "jane@example.com" } }).to_string();
    let text = "no account for jane@example.com, ask ops@example.com";
    let safe = seen(Masks::ALL, &params, text);
    assert_eq!(safe, "no account for jane@example.com, ask [redacted:personal]");
}

#[test]
fn u2_json_pointers_stay() {
    let arguments = json!({ "data": { "items": [{ "id": 1 }] }, "a/b": { "c": 1 } });
    let params = json!({ "name": "t", "arguments": arguments }).to_string();
    for text in [
        "/data/items/0/name is required",
        "must have \"/data/items/0/id\"",
        "/data/items: too few",
        "/arguments/data/items/0/name is required",
        "bad '/a~1b/c'",
    ] {
        assert_eq!(seen(Masks::REMOTE, &params, text), text);
    }
    assert_eq!(seen(Masks::REMOTE, &params, "see /data/keys/id.pem"), "see [redacted:path]");
    // Without the call, an index among names tells.
    for text in ["/items/0/name is required", "'/items/12' must be a string"] {
        assert_eq!(seen(Masks::REMOTE, NOTHING, text), text);
    }
    for text in ["cannot open /proc/1/environ", "cannot open '/home/7/x'"] {
        assert!(seen(Masks::REMOTE, NOTHING, text).contains("[redacted:path]"), "{text}");
    }
}

#[test]
fn u2_a_credential_goes_although_the_client_sent_it() {
    for (argument, text, secret) in [
        ("ghp_abcdefghijklmnopqrstuvwxyz0123456789", "bad token {}", "ghp_abc"),
        ("postgres://app:hunter2x@10.0.0.7/x", "cannot connect to {}", "hunter2x"),
        ("password=hunter2x", "login failed: {}", "hunter2x"),
    ] {
        let text = text.replace("{}", argument);
        let safe = remote(argument, &text);
        assert!(!safe.contains(secret), "{safe}");
    }
}

#[test]
fn u2_a_local_client_sees_paths_but_for_hidden_directories_of_a_home() {
    let local = |text: &str| seen(Masks::LOCAL, NOTHING, text);
    for text in [
        "ENOENT: no such file or directory, open '/home/jane/notes/a.md'",
        "connect ECONNREFUSED 127.0.0.1:5432",
        "cannot open /home/jane/project/.git/config",
        "cannot open /srv/.hidden/x",
        r"cannot open C:\Users\jane\notes.txt",
        "mail jane@example.com",
        "https://example.com/home/x/.well-known/y",
        "/home/jane ends with a dot. /root too.",
    ] {
        assert_eq!(local(text), text);
    }
    for (text, safe) in [
        ("cannot open /home/jane/.ssh/id_ed25519: denied", "cannot open [redacted:path]: denied"),
        ("cannot open '/Users/jane/.aws/my file'", "cannot open '[redacted:path]'"),
        ("cannot open /root/.npm/_logs/x.log", "cannot open [redacted:path]"),
        ("~/.config/gh/hosts.yml is broken", "[redacted:path] is broken"),
        ("see $HOME/.netrc", "see [redacted:path]"),
        ("see file:///home/jane/.ssh/id", "see file://[redacted:path]"),
        (r#"{"p":"\/home\/jane\/.ssh\/id"}"#, r#"{"p":"[redacted:path]"}"#),
        (r"see C:\Users\jane\.ssh\id.", r"see [redacted:path]"),
        (r#""C:\\Users\\jane\\AppData\\Local\\x y""#, r#""[redacted:path]""#),
        (r"see %APPDATA%\npm\x", "see [redacted:path]"),
        ("see %2Fhome%2Fjane%2F.ssh%2Fid", "see [redacted:path]"),
    ] {
        assert_eq!(local(text), safe);
    }
    let params = r#"{"arguments":{"path":"/home/jane/.ssh/config"}}"#;
    let text = "cannot open /home/jane/.ssh/config";
    assert_eq!(seen(Masks::LOCAL, params, text), text);
    let frame = "Error: x\n    at parse (/srv/app/index.js:10:5)";
    assert!(local(frame).contains("[redacted:frame]"), "{}", local(frame));
}

#[test]
fn u2_a_setting_decides_for_each_kind() {
    let text = "/srv/a/b 10.0.0.7 jane@example.com";
    for (masks, safe) in [
        (Masks::NONE, "/srv/a/b 10.0.0.7 jane@example.com"),
        (Masks::PATHS, "[redacted:path] 10.0.0.7 jane@example.com"),
        (Masks::ADDRESSES, "/srv/a/b [redacted:address] jane@example.com"),
        (Masks::PERSONAL, "/srv/a/b 10.0.0.7 [redacted:personal]"),
        (Masks::ALL, "[redacted:path] [redacted:address] [redacted:personal]"),
    ] {
        assert_eq!(seen(masks, NOTHING, text), safe);
    }
}

#[test]
fn u2_what_a_contract_masks_is_masked_whatever_the_setting_is() {
    let text = "cannot open /srv/a/b at 10.0.0.7";
    for contract in BUILTINS.iter().map(faultwire_contract::Builtin::contract) {
        let floor = if contract.name == "standard" { Masks::NONE } else { Masks::REMOTE };
        assert_eq!(contract.text.masks, floor, "{}", contract.name);
        let safe = contract.redact_for(text, &Caller::new(Masks::NONE)).into_owned();
        assert_eq!(safe == text, floor == Masks::NONE, "{}: {safe}", contract.name);
        let sent = Caller::new(Masks::NONE).sent_raw(r#"{"a":"/srv/a/b","b":"10.0.0.7"}"#);
        assert_eq!(contract.redact_for(text, &sent), text, "{}", contract.name);
    }
}

/// The public side of a failure that says the same everywhere.
fn fault(contract: &std::sync::Arc<Contract>, caller: &Caller<'_>, text: &str) -> Value {
    let said = || Some(text.to_owned());
    let report = Report {
        message: said(),
        suggestion: said(),
        next: said(),
        details: Some(json!({ "at": [text] })),
        cause: Some(json!({ "message": text, "code": null, "name": "E" })),
        ..Report::new("not_found")
    };
    let fault = Fault::for_caller(contract, report, &Stamp::default(), caller).unwrap();
    serde_json::to_value(fault.public()).unwrap()
}

#[test]
fn u2_every_text_of_a_fault_knows_the_caller() {
    let contract = builtin("standard").unwrap();
    let arguments = json!({ "path": "/srv/notes" });
    let caller = Caller::new(Masks::REMOTE).sent(&arguments);
    let told = fault(&contract, &caller, "/srv/notes/a.md, not /srv/keys/b.pem");
    for text in [
        &told["message"],
        &told["suggestion"],
        &told["next"],
        &told["details"]["at"][0],
        &told["cause"]["message"],
    ] {
        assert_eq!(text, "/srv/notes/a.md, not [redacted:path]", "{told}");
    }
}

#[test]
fn u2_what_one_client_said_is_hidden_from_the_next() {
    let contract = builtin("standard").unwrap();
    let text = "cannot open /srv/only-one/knows.md";
    let sent = Caller::new(Masks::REMOTE).sent_raw(r#"{"a":"/srv/only-one"}"#);
    for _ in 0..3 {
        assert_eq!(contract.redact_for(text, &sent), text);
        let other = Caller::new(Masks::REMOTE).sent_raw(r#"{"a":"/srv/another"}"#);
        assert_eq!(contract.redact_for(text, &other), "cannot open [redacted:path]");
        assert_eq!(contract.redactor().redact(text), "cannot open [redacted:path]");
        assert_eq!(contract.redact_for(text, &Caller::new(Masks::LOCAL)), text);
    }
}

#[test]
fn u2_x6_a_path_at_the_bound_is_whole_or_gone() {
    let contract = builtin("standard").unwrap();
    let params = r#"{"a":"/srv/notes"}"#;
    for lead in (3900..4200).step_by(3) {
        let text =
            format!("{} /srv/mine/id_{}", &"so it goes ".repeat(400)[..lead], "b".repeat(99));
        let caller = Caller::new(Masks::REMOTE).sent_raw(params);
        let told = fault(&contract, &caller, &text);
        assert!(!told["message"].as_str().unwrap().contains("/srv/m"), "{told}");
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "how long it takes is the point")]
fn u2_many_findings_and_long_arguments_take_linear_time() {
    let paths: Vec<String> = (0..8000).map(|i| format!("/srv/x{i}/y{i}/z")).collect();
    let text = paths.join(" ");
    let arguments = json!({ "content": "/srv/a/b ".repeat(200_000), "paths": paths });
    let params = arguments.to_string();
    let begun = std::time::Instant::now();
    seen(Masks::REMOTE, &params, &text);
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
}

proptest! {
    #[test]
    fn u2_redacting_for_a_caller_twice_is_redacting_once(
        words in prop::collection::vec("[/~.a-c:\\\\0-9 '\"]{1,12}|/srv/[ab]|10\\.0\\.0\\.[12]|/home/a/\\.ssh/b", 1..8),
        said in "[/~.a-c:\\\\0-9]{1,12}|/srv/a|10\\.0\\.0\\.1",
    ) {
        let text = words.join(" ");
        for masks in [Masks::LOCAL, Masks::REMOTE, Masks::ALL] {
            seen(masks, &json!({ "x": said }).to_string(), &text);
        }
    }
}
