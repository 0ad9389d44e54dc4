//! Context Resolve: each code by a real condition, and the same bytes whatever the threads.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::examples::{Example, hash, text};
use crate::support::Dir;

/// A cache with these documents.
fn cache(root: &Path, name: &str, documents: &[(&str, &str)]) {
    let dir = root.join(name);
    fs::create_dir_all(&dir).unwrap();
    let mut entries = Vec::new();
    for (path, text) in documents {
        fs::write(dir.join(path), text).unwrap();
        entries.push(json!({ "path": path, "sha256": hash(text) }));
    }
    fs::write(dir.join("manifest.json"), json!({ "documents": entries }).to_string()).unwrap();
}

fn question(cache: &str, query: &str, budget: i64) -> Value {
    json!({ "cache": cache, "query": query, "budget": budget })
}

#[tokio::test]
async fn c4_c5_each_code_has_its_real_condition_and_always_the_same_bytes() {
    let dir = Dir::new();
    let root = dir.path().join("root");
    let documents = [("a.md", "ferry and harbour"), ("b.md", "ferry ferry"), ("c.md", "a bridge")];
    cache(&root, "good", &documents);
    cache(&root, "changed", &documents);
    fs::write(root.join("changed/b.md"), "something else").unwrap();
    cache(&root, "gone", &documents);
    fs::remove_file(root.join("gone/c.md")).unwrap();
    cache(&root, "bare", &[]);
    fs::remove_file(root.join("bare/manifest.json")).unwrap();
    cache(&root, "torn", &[]);
    fs::write(root.join("torn/manifest.json"), "{\"documents\":[").unwrap();
    cache(&root, "looping", &documents);
    fs::remove_file(root.join("looping/a.md")).unwrap();
    std::os::unix::fs::symlink("a.md", root.join("looping/a.md")).unwrap();
    std::os::unix::fs::symlink("round", root.join("round")).unwrap();
    for (name, path) in [("beneath", "a.md/x"), ("above", "../good/a.md")] {
        cache(&root, name, &documents);
        let entry = json!({ "path": path, "sha256": hash("ferry and harbour") });
        let manifest = json!({ "documents": [entry] }).to_string();
        fs::write(root.join(name).join("manifest.json"), manifest).unwrap();
    }
    fs::create_dir_all(dir.path().join("outside")).unwrap();
    std::os::unix::fs::symlink(dir.path().join("outside"), root.join("escapes")).unwrap();
    let rows = [
        (question("good", "ferry", 1000), None),
        (question("good", "nothing fits", 1000), None),
        (question("nowhere", "ferry", 1000), Some(("cache_missing", "Cache does not exist"))),
        (question("../outside", "ferry", 1000), Some(("cache_missing", "Cache does not exist"))),
        (question("escapes", "ferry", 1000), Some(("cache_missing", "Cache does not exist"))),
        (question("changed", "ferry", 9), Some(("cache_invalid", "Cache exists but is invalid"))),
        (question("gone", "ferry", 1000), Some(("cache_invalid", "Cache exists but is invalid"))),
        (question("bare", "ferry", 1000), Some(("cache_invalid", "Cache exists but is invalid"))),
        (question("torn", "ferry", 1000), Some(("cache_invalid", "Cache exists but is invalid"))),
        (question("looping", "ferry", 1000), Some(("io_error", "I/O error occurred"))),
        (question("round", "ferry", 1000), Some(("io_error", "I/O error occurred"))),
        (question("good/a.md", "ferry", 1), Some(("cache_missing", "Cache does not exist"))),
        (question("good/a.md/x", "ferry", 1), Some(("cache_missing", "Cache does not exist"))),
        (question("beneath", "ferry", 9), Some(("cache_invalid", "Cache exists but is invalid"))),
        (question("above", "ferry", 9), Some(("cache_invalid", "Cache exists but is invalid"))),
        (question("good", " ", 1000), Some(("invalid_query", "Query is invalid"))),
        (json!({ "cache": "good", "budget": 7 }), Some(("invalid_query", "Query is invalid"))),
        (question("good", "ferry", 0), Some(("invalid_budget", "Budget is invalid"))),
        (question("good", "ferry", -1), Some(("invalid_budget", "Budget is invalid"))),
        (question("good", "ferry", 3), Some(("invalid_budget", "Budget is invalid"))),
    ];
    let mut seen: Vec<Vec<String>> = Vec::new();
    for threads in ["1", "2", "7"] {
        let (place, audit) = (root.display().to_string(), dir.path().join(threads));
        let arguments = [&place, &audit.display().to_string(), threads];
        let example = Example::start("context-resolve", &arguments).await;
        let mut told = Vec::new();
        for (question, expected) in &rows {
            let result = example.call("resolve", question.clone()).await;
            assert_eq!(result.is_error == Some(true), expected.is_some(), "{question}");
            if let Some((code, message)) = expected {
                let envelope = json!({ "error": { "code": code, "message": message } });
                assert_eq!(text(&result), envelope.to_string(), "{question}");
            }
            told.push(text(&result).to_owned());
        }
        seen.push(told);
    }
    // A server that was told to work without threads breaks its own rules.
    let (place, audit) = (root.display().to_string(), dir.path().join("idle"));
    let arguments = [&place, &*audit.display().to_string(), "0"];
    let idle = Example::start("context-resolve", &arguments).await;
    let result = idle.call("resolve", question("good", "ferry", 1000)).await;
    let envelope = json!({ "error": { "code": "internal_error", "message": "Internal error" } });
    assert_eq!(text(&result), envelope.to_string());
    assert_eq!(
        seen[0][0],
        r#"{"documents":[{"path":"b.md","text":"ferry ferry"},{"path":"a.md","text":"ferry and harbour"}]}"#
    );
    assert!(seen.windows(2).all(|pair| pair[0] == pair[1]), "{seen:?}");
}

#[tokio::test]
async fn c2_what_cannot_be_recorded_is_told_as_the_contract_has_it() {
    let dir = Dir::new();
    let (root, audit) = (dir.path().join("root"), dir.path().join("audit"));
    cache(&root, "good", &[("a.md", "ferry")]);
    let arguments = [&*root.display().to_string(), &*audit.display().to_string()];
    let example = Example::start("context-resolve", &arguments).await;
    // Somebody puts the log aside while it is written to.
    fs::rename(&audit, dir.path().join("aside")).unwrap();
    let result = example.call("resolve", question("nowhere", "ferry", 9)).await;
    let told: Value = serde_json::from_str(text(&result)).unwrap();
    let expected = faultwire::context_resolve::contract()
        .code_for(faultwire::contract::Condition::AuditFailed, None);
    assert_eq!(told["error"]["code"], expected.id);
}
