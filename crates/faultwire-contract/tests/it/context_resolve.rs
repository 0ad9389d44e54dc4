//! The clauses of Context Resolve v0 that the contract file carries.

use faultwire_contract::{Profile, SchemaOf, Surface, builtin, classify, compat};
use serde_json::{Value, json};

use crate::support::{envelope, envelope_json, fault, keys, text};

const MESSAGES: [(&str, &str); 6] = [
    ("cache_missing", "Cache does not exist"),
    ("cache_invalid", "Cache exists but is invalid"),
    ("invalid_query", "Query is invalid"),
    ("invalid_budget", "Budget is invalid"),
    ("io_error", "I/O error occurred"),
    ("internal_error", "Internal error"),
];

/// The document's schema, as facts.
fn document() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://context.dev/schemas/mcp/error-v0.json",
        "title": "MCP Error Response v0",
        "type": "object",
        "required": ["error"],
        "additionalProperties": false,
        "properties": { "error": {
            "type": "object",
            "required": ["code", "message"],
            "additionalProperties": false,
            "properties": {
                "code": { "type": "string", "enum": MESSAGES.map(|(code, _)| code) },
                "message": { "type": "string", "minLength": 1 },
            },
        } },
    })
}

#[test]
fn c1_two_keys_and_the_documents_schema() {
    let contract = builtin("context-resolve").unwrap();
    for (code, _) in MESSAGES {
        let everything = json!({"code":code,"message":"m","suggestion":"s","details":{"a":1},"cause":"c","tool":"t",
            "data":1,"incident":"i","trace":"t","stack":"s","meta":{"elapsed_ms":1},"session":{"id":"x"}});
        let envelope = envelope_json("context-resolve", &everything.to_string());
        assert_eq!(keys(&envelope), ["error"]);
        assert_eq!(keys(&envelope["error"]), ["code", "message"]);
    }
    assert_eq!(
        contract.schema(SchemaOf::Surface(Surface::Mcp), Profile::default()),
        Some(document())
    );
    let extra = br#"{"error":{"code":"io_error","message":"I/O error occurred","details":{}}}"#;
    assert!(contract.read(Surface::Mcp, Profile::default(), extra).is_err());
}

#[test]
fn c2_six_codes_with_their_canonical_messages_always() {
    let contract = builtin("context-resolve").unwrap();
    let found: Vec<_> =
        contract.codes().iter().map(|c| (c.id.as_str(), c.message.as_str())).collect();
    assert_eq!(found, MESSAGES);
    for (code, message) in MESSAGES {
        for said in
            [json!(null), json!(""), json!("upstream said something"), json!("x".repeat(9999))]
        {
            let envelope =
                envelope("context-resolve", &json!({"code":code,"message":said}).to_string());
            assert_eq!(
                envelope,
                format!(r#"{{"error":{{"code":"{code}","message":"{message}"}}}}"#)
            );
        }
    }
}

#[test]
fn c3_no_diagnostics_whatever_the_cause() {
    let hostile = json!({"code":"cache_invalid","message":"/etc/passwd sha256:abc at x.rs:1:2",
        "cause":{"message":"/var/lib/app/secret"},"stack":"at /srv/x.js:1:2","details":{"path":"/mnt/private"}});
    assert_eq!(
        envelope("context-resolve", &hostile.to_string()),
        r#"{"error":{"code":"cache_invalid","message":"Cache exists but is invalid"}}"#
    );
}

#[test]
fn c4_the_same_bytes_from_every_thread() {
    let json = r#"{"code":"io_error","message":"disk"}"#;
    let first = envelope("context-resolve", json);
    let all: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    (0..200).map(|_| envelope("context-resolve", json)).collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|t| t.join().unwrap()).collect()
    });
    assert_eq!(all.len(), 1600);
    assert!(all.iter().all(|e| *e == first));
}

#[test]
fn c5_the_boundary_between_cache_invalid_and_io_error() {
    let contract = builtin("context-resolve").unwrap();
    assert!(!contract.code("cache_invalid").unwrap().default_retry().is_retryable());
    assert!(contract.code("io_error").unwrap().default_retry().is_retryable());
    let code = |said: &str| {
        let line = json!({"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":said}],"isError":true}});
        classify(&contract, line.to_string().as_bytes()).unwrap().report.code
    };
    for said in [
        "hash mismatch for doc 3",
        "manifest.json is missing",
        "malformed manifest: expected value",
        "document file not found: ENOENT: no such file or directory",
        "missing document a.md",
        "ENOENT: no such file or directory, open '/cache/documents/abc.md'",
        "malformed JSON in manifest",
        "document hash differs",
    ] {
        assert_eq!(code(said), "cache_invalid", "{said}");
    }
    for said in [
        "EACCES: permission denied, open '/x'",
        "Permission denied (os error 13)",
        "ENOSPC: no space left on device",
        "disk read error",
        "EBUSY: resource busy or locked",
    ] {
        assert_eq!(code(said), "io_error", "{said}");
    }
    for said in [
        "ENOENT: no such file or directory, open '/cache'",
        "cache does not exist",
        "path escapes the root",
    ] {
        assert_eq!(code(said), "cache_missing", "{said}");
    }
    assert_eq!(code("budget must be positive"), "invalid_budget");
    assert_eq!(code("something odd"), "internal_error");
}

#[test]
fn c6_an_error_never_carries_success_members() {
    let contract = builtin("context-resolve").unwrap();
    let mixed = br#"{"documents":[],"error":{"code":"internal_error","message":"Internal error"}}"#;
    assert!(contract.read(Surface::Mcp, Profile::default(), mixed).is_err());
    assert!(!contract.wraps_success());
    let fault = fault("context-resolve", r#"{"code":"io_error","data":{"documents":[]}}"#).unwrap();
    assert!(!text(&fault, Surface::Mcp, Profile::default()).contains("documents"));
}

#[test]
fn c7_within_v0_nothing_may_change() {
    let file = include_str!("../../contracts/context-resolve.toml");
    let load = |text: &str| faultwire_contract::Contract::load("v0.toml", text).unwrap();
    let old = load(file);
    let impact = |text: &str| compat::impact(&compat::changes(&old, &load(text)));
    assert_eq!(impact(file), compat::Impact::None);

    let row = "\n[[code]]\nid = \"cache_stale\"\ncategory = \"cache\"\nretry = \"never\"\nstatus = 409\nalert = \"warning\"\nmessage = \"Cache is stale\"\nmeaning = \"m\"\naction = \"a\"\nsince = \"0.1.0\"\n";
    let added = format!("{file}{row}");
    assert_eq!(impact(&added), compat::Impact::Breaking, "an added code");
    let message = file.replace("message = \"Query is invalid\"", "message = \"Bad query\"");
    assert_eq!(impact(&message), compat::Impact::Breaking, "a changed message");
    let retry = file.replace("retry = \"backoff\"", "retry = \"never\"");
    assert_eq!(impact(&retry), compat::Impact::Breaking, "a changed retry class");

    for (from, to, what) in [
        (
            "alert = \"warning\"\nmessage = \"Query",
            "alert = \"critical\"\nmessage = \"Query",
            "a changed alert level",
        ),
        ("action = \"Mend the query.\"", "action = \"Think again.\"", "a changed action"),
        ("frozen = true\n", "", "a thaw"),
    ] {
        assert!(file.contains(from));
        assert_eq!(impact(&file.replacen(from, to, 1)), compat::Impact::Breaking, "{what}");
    }

    let next = added.replace("error-v0.json", "error-v1.json");
    assert_eq!(impact(&next), compat::Impact::Additive, "a new schema id is a new version");
}
