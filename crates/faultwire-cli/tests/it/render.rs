//! `render`, `decode` and `redact`.

use serde_json::{Value, json};

use crate::support::{BUILTINS, HARBOUR, command, faultwire, run};

#[test]
fn exact_bytes_and_one_newline() {
    let out = faultwire(
        &["render", "--contract", "context-resolve"],
        r#"{"code":"cache_invalid","message":"boom /etc/passwd"}"#,
    );
    assert_eq!(
        out.fine(),
        "{\"error\":{\"code\":\"cache_invalid\",\"message\":\"Cache exists but is invalid\"}}\n"
    );
    let pure =
        r#"{"code":"runtime.timeout","incident":"inc_1","timestamp":"2026-01-19T15:32:10.123Z"}"#;
    let first = faultwire(&["render", "-c", "owlclaw", "--surface", "http"], pure).fine();
    for _ in 0..3 {
        assert_eq!(
            faultwire(&["render", "-c", "owlclaw", "--surface", "http"], pure).fine(),
            first
        );
    }
}

#[test]
fn incident_and_timestamp_are_made_when_needed() {
    let made = faultwire(&["render", "-c", "owlclaw"], r#"{"code":"runtime.timeout"}"#).json();
    let incident = made["error"]["incident_id"].as_str().unwrap();
    assert!(
        incident.starts_with("inc_20") && incident.len() == "inc_20260119_0000000000000007".len(),
        "{incident}"
    );
    let made = faultwire(&["render", "-c", "kaiza"], r#"{"code":"INTERNAL_ERROR"}"#).json();
    let timestamp = made["timestamp"].as_str().unwrap();
    assert!(timestamp.len() == 24 && timestamp.ends_with('Z'), "{timestamp}");
}

#[test]
fn k2_the_switch_is_read_from_the_environment() {
    let fault = br#"{"code":"INTERNAL_ERROR","stack":"at main"}"#;
    let with = |value: Option<&str>| {
        let mut command = command(&["render", "-c", "kaiza"]);
        value.map(|v| command.env("DEBUG_STACK", v));
        run(command, fault).json().get("stack_trace").cloned()
    };
    assert_eq!(with(Some("true")), Some(json!("at main")));
    for off in [None, Some("1"), Some("TRUE"), Some("false"), Some("")] {
        assert_eq!(with(off), None, "{off:?}");
    }
}

#[test]
fn every_code_goes_through_render_and_decode() {
    let mut trips = 0;
    for contract in BUILTINS.into_iter().chain([HARBOUR]) {
        let shown = faultwire(&["contract", "show", contract, "--json"], "").json();
        let profiles = shown["profiles"].as_array().unwrap();
        for (i, code) in shown["codes"].as_array().unwrap().iter().enumerate() {
            let profile = profiles[i % profiles.len()].as_str().unwrap();
            let surface = ["mcp", "http", "result"][i % 3];
            let options = ["-c", contract, "--surface", surface, "--profile", profile];
            let fault = json!({"code": code["id"], "incident": "inc_1", "timestamp": "2026-01-19T15:32:10.123Z"}).to_string();
            let envelope = faultwire(&[&["render"], &options[..]].concat(), &fault).fine();
            let read = faultwire(&[&["decode"], &options[..]].concat(), &envelope).json();
            assert_eq!(read["code"], code["id"]);
            let again = faultwire(&[&["render"], &options[..]].concat(), read.to_string()).fine();
            let stable = |text: &str| {
                text.replace(|c: char| c.is_ascii_digit(), "0")
                    .replace(|c: char| ('a'..='f').contains(&c), "0")
            };
            // A surface that shows no incident or timestamp has them made anew.
            assert_eq!(stable(&again), stable(&envelope));
            trips += 1;
        }
    }
    assert!(trips >= 90, "{trips}");
}

#[test]
fn refusals_say_what_where_and_what_to_do() {
    let render = |input: &str| faultwire(&["render", "-c", "workrail"], input).refused();
    for (input, says) in [
        ("", "not a valid fault"),
        ("{}", "missing field `code`"),
        ("[]", "not a valid fault"),
        ("{\"code\":\"NOT_FOUND\"", "EOF"),
        ("{\"code\":\"NOT_FOUND\"} x", "trailing characters"),
        (r#"{"code":"NOT_FUND"}"#, "did you mean \"NOT_FOUND\"?"),
        (r#"{"code":"NOT_FOUND","retryable":true}"#, "unknown field `retryable`"),
        (r#"{"code":"NOT_FOUND","retry":"after"}"#, "its row lists never"),
        (r#"{"code":"NOT_FOUND","retry_after_ms":5}"#, "cannot have retry_after_ms"),
        (r#"{"code":"NOT_FOUND","details":NaN}"#, "expected value"),
        (r#"{"code":"NOT_FOUND","details":1e999}"#, "number out of range"),
        (r#"{"code":"NOT_FOUND","code":"NOT_FOUND"}"#, "duplicate field"),
        (r#"{"code":"NOT_FOUND","timestamp":"now"}"#, "ISO 8601"),
        (r#"{"code":"NOT_FOUND","status":200}"#, "its row lists 404"),
    ] {
        let err = render(input);
        assert!(
            err.contains(says) && err.contains("stdin") && err.contains("help:"),
            "{input}: {err}"
        );
    }
    let deep = format!(
        r#"{{"code":"NOT_FOUND","details":{}1{}}}"#,
        "[".repeat(50_000),
        "]".repeat(50_000)
    );
    assert!(render(&deep).contains("recursion limit"));
    assert!(render("\u{feff}{\"code\":\"NOT_FOUND\"}").contains("byte order mark"));
    let binary = run(command(&["render"]), b"{\"code\":\"\xff\xfe\"}").refused();
    assert!(binary.contains("stdin"), "{binary}");
}

#[test]
fn with_json_our_own_errors_are_envelopes() {
    let err = faultwire(&["render", "--json"], "nonsense").refused();
    let envelope: Value = serde_json::from_str(&err).unwrap();
    assert_eq!(envelope["error"]["retryable"], false);
    let message = envelope["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("not a valid fault") && message.contains("only \"code\" is required"),
        "{message}"
    );
    let err = faultwire(&["render", "--json", "-c", "workrail"], "nonsense").refused();
    assert_eq!(serde_json::from_str::<Value>(&err).unwrap()["code"], "VALIDATION_ERROR");
    let err = faultwire(&["--json", "render", "--nope"], "").refused();
    assert!(
        serde_json::from_str::<Value>(&err).unwrap()["error"]["message"]
            .as_str()
            .unwrap()
            .contains("--nope")
    );
}

#[test]
fn the_contract_may_come_from_the_environment() {
    let mut command = command(&["render"]);
    command.env("FAULTWIRE_CONTRACT", "context-resolve");
    assert_eq!(
        run(command, br#"{"code":"io_error"}"#).json()["error"]["message"],
        "I/O error occurred"
    );
}

#[test]
fn what_is_no_envelope_is_refused() {
    let decode =
        |contract: &str, input: &str| faultwire(&["decode", "-c", contract], input).refused();
    assert!(
        decode("context-resolve", r#"{"error":{"code":"io_error","message":"m","more":1}}"#)
            .contains("unknown member \"more\"")
    );
    assert!(
        decode("context-resolve", r#"{"error":{"code":"io_error"}}"#)
            .contains("no member \"message\"")
    );
    assert!(decode("owlclaw", "").contains("not an envelope of owlclaw (mcp)"));
    let lying = r#"{"success":false,"data":null,"error":{"code":"db_error","message":"m","retryable":false}}"#;
    assert!(decode("tuitbot", lying).contains("contradicts"));
}

#[test]
fn redact_text_in_text_out() {
    let redact = |text: &str| faultwire(&["redact"], text).fine();
    assert_eq!(redact("login failed: password=hunter2\n"), "login failed: password=[redacted]\n");
    assert_eq!(redact("the author's monkey, v1.2.3"), "the author's monkey, v1.2.3");
    assert_eq!(redact(""), "");
    let text = "/srv/a/b 10.0.0.7 jane@example.com password=x1 ~/.ssh/id";
    for (keep, safe) in [
        (
            "",
            "[redacted:path] [redacted:address] [redacted:personal] password=[redacted] [redacted:path]",
        ),
        (
            "paths",
            "/srv/a/b [redacted:address] [redacted:personal] password=[redacted] [redacted:path]",
        ),
        (
            "addresses,personal",
            "[redacted:path] 10.0.0.7 jane@example.com password=[redacted] [redacted:path]",
        ),
    ] {
        let args = ["redact", "--keep", keep];
        let args = if keep.is_empty() { &args[..1] } else { &args };
        assert_eq!(faultwire(args, text).fine(), safe);
    }
    let wrong = faultwire(&["redact", "--keep", "tokens"], "x").refused();
    assert!(wrong.contains("expected one of paths, addresses, frames, personal"), "{wrong}");
    let own = faultwire(&["redact", "-c", HARBOUR], "moor at berth-1234").fine();
    assert_eq!(own, "moor at [redacted]");
    let rules = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("own-rules.toml");
    let own = "[[redact]]\nname='badge'\nkind='credential'\nkeywords=['badge-']\npattern='badge-[0-9]+'\n";
    std::fs::write(&rules, own).unwrap();
    let rules = rules.to_str().unwrap();
    assert_eq!(faultwire(&["redact", "--rules", rules], "badge-77").fine(), "[redacted]");
    let wrong = faultwire(&["redact", "--rules", HARBOUR], "x").refused();
    assert!(wrong.contains("unknown key \"contract\""), "{wrong}");
    let binary = run(command(&["redact"]), b"a\xff\x00b password=x1").fine();
    assert_eq!(binary, "a\u{fffd}b password=[redacted]");
}
