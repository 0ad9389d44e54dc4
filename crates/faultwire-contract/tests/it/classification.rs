//! What servers send is told apart by shape and meaning.

use std::path::{Path, PathBuf};

use faultwire_contract::{Condition, Failure, builtin, classify};
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
struct Case {
    #[serde(alias = "case")]
    name: String,
    reply: String,
    expect: Expect,
}

#[derive(Deserialize)]
struct Expect {
    failure: bool,
    condition: Option<Condition>,
    #[serde(default)]
    or: Vec<Condition>,
}

fn read(path: &Path) -> Vec<Case> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.lines()
        .map(|line| {
            serde_json::from_str(line).unwrap_or_else(|e| panic!("{}: {e}: {line}", path.display()))
        })
        .collect()
}

/// The condition of a reply under a contract that maps every one, `None` for no failure.
fn condition(reply: &str) -> Option<Failure> {
    classify(&builtin("owlclaw").unwrap(), reply.as_bytes())
}

fn check(cases: &[Case]) {
    let mut wrong = String::new();
    for case in cases {
        let found = condition(&case.reply);
        let got = found.as_ref().and_then(|f| f.report.condition);
        let right = match (&case.expect, got) {
            (Expect { failure: false, .. }, got) => got.is_none(),
            (Expect { condition: wanted, or, .. }, got) => {
                got.is_some() && (got == *wanted || or.iter().any(|c| Some(*c) == got))
            }
        };
        if !right {
            let rule = found.map(|f| f.rule);
            let head: String = case.reply.chars().take(300).collect();
            wrong += &format!(
                "{}: expected {:?}, got {got:?} by {rule:?}\n   {head}\n",
                case.name, case.expect.condition
            );
        }
    }
    assert!(wrong.is_empty(), "{} wrong\n{wrong}", wrong.lines().count() / 2);
}

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

#[test]
fn replies_of_servers_that_no_rule_was_written_for() {
    let cases = read(&data("replies.jsonl"));
    assert!(cases.len() > 400);
    check(&cases);
}

#[test]
fn the_corpus_of_real_replies() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    let mut files = 0;
    let mut all = Vec::new();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "jsonl") {
            files += 1;
            let server = path.file_stem().unwrap().to_string_lossy().into_owned();
            all.extend(read(&path).into_iter().map(|mut case| {
                case.name = format!("{server}/{}", case.name);
                case
            }));
        }
    }
    assert!(files >= 8, "{} has {files} files", folder.display());
    check(&all);
}

#[test]
fn lines_that_are_no_message() {
    for line in [
        "",
        " ",
        "nonsense",
        "{",
        "[",
        "42",
        "null",
        "\"text\"",
        "{}",
        "{\"jsonrpc\":\"2.0\"}",
        "[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}]",
        r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":"text"}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":null}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}} x"#,
    ] {
        let failure = condition(line).unwrap_or_else(|| panic!("{line}"));
        assert_eq!(failure.report.condition, Some(Condition::UpstreamProtocol), "{line}");
    }
    let bytes = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"x\":\"\xff\xfe\"}}";
    let failure = classify(&builtin("kaiza").unwrap(), bytes).unwrap();
    assert_eq!(failure.report.condition, Some(Condition::UpstreamProtocol));
}

#[test]
fn odd_forms_of_the_same_thing() {
    let is = |line: &str| condition(line).and_then(|f| f.report.condition);
    assert_eq!(
        is(r#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"isError":"true"}}"#),
        Some(Condition::ToolError)
    );
    assert_eq!(
        is(r#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"isError":1}}"#),
        Some(Condition::ToolError)
    );
    assert_eq!(is(r#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"isError":"false"}}"#), None);
    assert_eq!(is(r#"{"jsonrpc":"2.0","id":1,"error":"boom"}"#), Some(Condition::RpcError));
    assert_eq!(is(r#"{"jsonrpc":"2.0","id":1,"error":{"code":"X"}}"#), Some(Condition::RpcError));
    assert_eq!(is(r#"{"jsonrpc":"2.0","id":1,"error":null,"result":{}}"#), None);
    assert_eq!(
        is(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error"}}"#),
        None
    );
    assert_eq!(
        is(
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"\ud800 Error: x"}],"isError":true}}"#
        ),
        Some(Condition::ToolError)
    );
}

/// K13: an envelope that lost its `isError` is a failure still.
#[test]
fn an_envelope_without_is_error() {
    for contract in crate::support::every_contract() {
        for code in contract.codes() {
            let report = faultwire_contract::Report::new(&code.id);
            let fault =
                faultwire_contract::Fault::new(&contract, report, &crate::support::STAMP).unwrap();
            for profile in contract.all_profiles() {
                let envelope =
                    crate::support::text(&fault, faultwire_contract::Surface::Mcp, profile);
                let line = serde_json::json!({"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":envelope}]}});
                let failure = classify(&contract, line.to_string().as_bytes())
                    .unwrap_or_else(|| panic!("{line}"));
                assert_eq!(
                    (failure.rule.as_str(), failure.report.code),
                    ("envelope", code.id.clone())
                );
            }
        }
    }
}

fn tool_error(said: &str) -> String {
    serde_json::json!({"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":said}],"isError":true}}).to_string()
}

#[test]
fn u1_numbers_and_words_out_of_their_context_decide_nothing() {
    for (said, decided) in [
        ("Order 402 not found", Condition::NotFound),
        ("Failed to insert row 429 of 500", Condition::ToolError),
        ("Found issue #429: could not compile", Condition::ToolError),
        ("Process 4012 matched 401 rows before failing", Condition::ToolError),
        ("line 503: syntax error", Condition::InvalidArguments),
        ("column \"timeout\" does not exist", Condition::NotFound),
    ] {
        let found = condition(&tool_error(said)).unwrap().report.condition;
        assert_eq!(found, Some(decided), "{said}");
    }
    for (said, wanted) in [
        ("HTTP 429", Condition::RateLimited),
        ("status code: 503", Condition::UpstreamUnreachable),
        ("got 401", Condition::Unauthorized),
        ("Request failed with status code 403", Condition::PermissionDenied),
        ("API error (504)", Condition::Timeout),
    ] {
        assert_eq!(condition(&tool_error(said)).unwrap().report.condition, Some(wanted), "{said}");
    }
}

#[test]
fn the_words_of_a_failure_are_its_own() {
    let kaiza = builtin("kaiza").unwrap();
    let report = |line: &str| classify(&kaiza, line.as_bytes()).unwrap().report;
    let soft = report(
        r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"ok"}],"structuredContent":{"success":false,"error":"disk full"}}}"#,
    );
    assert_eq!(soft.message.as_deref(), Some("disk full"));
    let coded = report(&tool_error(r#"{"error_code":"INTERNAL_ERROR"}"#));
    assert_eq!((coded.code.as_str(), coded.message), ("INTERNAL_ERROR", None));
    assert_eq!(report(&tool_error("PATH_NOT_FOUND")).code, "PATH_NOT_FOUND");
    assert_eq!(report(&tool_error("[PLAN_NOT_FOUND] no plan")).code, "PLAN_NOT_FOUND");
    assert_eq!(report(&tool_error("INVALID_PATH: no")).code, "INVALID_PATH");
}

#[test]
fn t1_k6_one_mistake_in_an_envelope_loses_no_other_fact() {
    let report = |contract: &str, said: serde_json::Value| {
        let contract = builtin(contract).unwrap();
        let failure = classify(&contract, tool_error(&said.to_string()).as_bytes()).unwrap();
        assert!(failure.envelope.is_none(), "{said}");
        failure.report
    };
    // It may be retried, whatever the server says of that.
    let thread = report(
        "tuitbot",
        json!({ "success": false, "data": { "posted": [1, 2] },
                "error": { "code": "thread_partial_failure", "message": "m", "retryable": false },
                "meta": { "tool_version": "1", "elapsed_ms": 3 } }),
    );
    assert_eq!(thread.data, Some(json!({ "posted": [1, 2] })));
    assert_eq!((thread.message.as_deref(), thread.meta.elapsed_ms), (Some("m"), Some(3)));
    let invariant = report(
        "kaiza",
        json!({ "error_code": "INVARIANT_VIOLATION", "human_message": "m", "invariant_id": "I1",
                "phase_id": "P", "plan_hash": "h", "cause": 5, "odd": true }),
    );
    assert_eq!(invariant.invariant.as_deref(), Some("I1"));
    assert_eq!(invariant.session.plan_hash.as_deref(), Some("h"));
    assert_eq!(invariant.cause, None, "a number is none");
    let token = report(
        "workrail",
        json!({ "code": "TOKEN_BAD_SIGNATURE", "message": "m", "suggestion": "s",
                "retry": { "kind": "no such kind" }, "details": { "tokenErrorCode": "X" } }),
    );
    assert_eq!(token.details, Some(json!({ "tokenErrorCode": "X" })));
    assert_eq!(token.suggestion.as_deref(), Some("s"));
    let limited = report(
        "owlclaw",
        json!({ "error": { "code": "governance.rate_limited", "message": "m", "category": "odd",
                "retryable": true, "incident_id": "inc_7", "retry_after": 3 } }),
    );
    assert_eq!((limited.incident.as_deref(), limited.retry_after_ms), (Some("inc_7"), Some(3000)));
}

#[test]
fn k13_a_failure_without_content_is_one() {
    for result in [
        r#"{"ok":false,"error":"boom"}"#,
        r#"{"ok":false,"error":"boom","a\u0062c":null}"#,
        r#"{"structuredContent":{"ok":false,"error":"boom"}}"#,
        r#"{"content":[],"structuredContent":{"ok":false,"error":"boom"}}"#,
    ] {
        let line = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
        let failure = condition(&line).unwrap_or_else(|| panic!("{result}"));
        assert_eq!(failure.report.message.as_deref(), Some("boom"), "{result}");
    }
    for result in [
        "{}",
        r#"{"structuredContent":{"ok":true}}"#,
        r#"{"task":{"taskId":"1","status":"failed"}}"#,
        r#"{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create"}}}"#,
    ] {
        let line = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
        assert!(condition(&line).is_none(), "{result}");
    }
}

#[test]
fn c5_t3_what_is_not_there_and_what_the_system_refuses() {
    for (contract, said, code) in [
        (
            "context-resolve",
            "ENOENT: no such file or directory, open '/cache/documents/a.md'",
            "cache_invalid",
        ),
        (
            "context-resolve",
            "ENOENT: no such file, open '/Users/bob/Documents/proj/.context'",
            "cache_missing",
        ),
        (
            "context-resolve",
            "ENOENT: no such file or directory, stat '/srv/docs/cache'",
            "cache_missing",
        ),
        ("context-resolve", "cache path is not accessible", "cache_missing"),
        ("context-resolve", "Failed to parse manifest: EACCES: permission denied", "io_error"),
        ("context-resolve", "query is malformed", "invalid_query"),
        (
            "context-resolve",
            r"ENOENT: no such file, open 'C:\\cache\\documents\\a'",
            "cache_invalid",
        ),
        (
            "context-resolve",
            "Malformed manifest: unexpected token; file locked by schema",
            "cache_invalid",
        ),
        ("tuitbot", "failed to post: DNS record not found", "x_network_error"),
        ("tuitbot", "Tweet not found", "not_found"),
        ("tuitbot", "user 123 does not exist", "not_found"),
        ("tuitbot", "No LLM provider configured", "llm_not_configured"),
        ("tuitbot", "JSON serialization failed", "serialization_error"),
    ] {
        let contract = builtin(contract).unwrap();
        let failure = classify(&contract, tool_error(said).as_bytes()).unwrap();
        assert_eq!(failure.report.code, code, "{said}");
    }
}

#[test]
fn titles_and_empty_results_are_documents() {
    for text in [
        "Error handling in Rust: a guide\nBy Jane",
        "Failed to build trust: a history\nChapter 1",
        "Could not find any results for 'x'",
    ] {
        let line = serde_json::json!({"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":text}]}});
        assert!(condition(&line.to_string()).is_none(), "{text}");
    }
}

#[test]
fn a_delay_that_the_failure_names_is_kept_where_the_code_takes_one() {
    let delay = |line: &str| condition(line).unwrap().report.retry_after_ms;
    let tool = |text: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"type":"text","text":"{text}"}}],"isError":true}}}}"#
        )
    };
    assert_eq!(delay(&tool("upstream 503, retry in 5s")), Some(5000));
    assert_eq!(delay(&tool("429 Too Many Requests. Retry-After: 12")), Some(12_000));
    assert_eq!(delay(&tool("rate limited, try again in 2 minutes")), Some(120_000));
    assert_eq!(
        delay(
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"rate limited","data":{"retryAfterMs":5000}}}"#
        ),
        Some(5000)
    );
    assert_eq!(delay(&tool("forbidden, retry in 5s")), None, "the code is never retried");
    assert_eq!(delay(&tool("HTTP 503, gave up (retry 3 of 5)")), None, "that is no time");
}

#[test]
fn depth_and_size_do_no_harm() {
    let contract = builtin("kaiza").unwrap();
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"x":{}1{}}}}}"#,
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    let _ = classify(&contract, deep.as_bytes());
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":1,"message":"m","data":{}1{}}}}}"#,
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    let failure = classify(&contract, deep.as_bytes()).unwrap();
    assert_eq!(failure.report.message.as_deref(), Some("m"), "deep data does not hide the message");
    let huge = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"type":"text","text":"{}"}}],"isError":true}}}}"#,
        "x".repeat(5_000_000)
    );
    assert!(classify(&contract, huge.as_bytes()).is_some());
}

/// Parsers' hard cases, where the test data is at hand: a line is a message or it is not, and
/// nothing panics.
#[test]
fn hostile_json() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/vectors/json/jsontestsuite/test_parsing");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        eprintln!("not run: {} is not there", folder.display());
        return;
    };
    let contract = builtin("kaiza").unwrap();
    for entry in entries {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        let alone = classify(&contract, &bytes).unwrap();
        assert_eq!(alone.report.condition, Some(Condition::UpstreamProtocol), "{}", path.display());
        let mut line = br#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"x":"#.to_vec();
        line.extend_from_slice(&bytes);
        line.extend_from_slice(b"}}");
        let inside = classify(&contract, &line);
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with("y_") {
            assert!(inside.is_none(), "{name}");
        }
    }
}

/// The code that each contract gives to each captured reply.
#[test]
fn the_codes_of_the_corpus() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "jsonl"));
    files.sort();
    let mut shown = String::new();
    for path in files {
        let server = path.file_stem().unwrap().to_string_lossy().into_owned();
        for case in read(&path).iter().filter(|case| case.expect.failure) {
            let codes = faultwire_contract::BUILTINS.iter().map(|builtin| {
                classify(&builtin.contract(), case.reply.as_bytes()).unwrap().report.code
            });
            shown += &format!("{server}/{}: {}\n", case.name, codes.collect::<Vec<_>>().join(" "));
        }
    }
    insta::assert_snapshot!("codes_of_the_corpus", shown);
}
