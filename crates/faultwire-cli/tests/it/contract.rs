//! `contract` and `explain`.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::{BUILTINS, HARBOUR, faultwire};

fn folder() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn file(name: &str, text: &str) -> String {
    let path = folder().join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn list_names_every_built_in_contract() {
    let table = faultwire(&["contract", "list"], "").fine();
    for name in BUILTINS {
        assert!(table.lines().any(|line| line.starts_with(name)), "{table}");
    }
    let list = faultwire(&["contract", "list", "--json"], "").json();
    assert_eq!(list.as_array().unwrap().len(), 6);
}

#[test]
fn show_prints_every_fact() {
    let shown = faultwire(&["contract", "show", "workrail", "--json"], "").json();
    assert_eq!((&shown["name"], &shown["version"]), (&json!("workrail"), &json!("1.0.0")));
    let code = |id: &str| {
        let codes = shown["codes"].as_array().unwrap();
        codes.iter().find(|c| c["id"] == id).unwrap().clone()
    };
    assert_eq!(
        code("TIMEOUT")["retry"],
        json!(["immediate", "never", "after"]),
        "the default first"
    );
    assert_eq!(code("NOT_FOUND")["retry"], "never");
    assert_eq!(code("NOT_FOUND")["status"], 404);
    for key in
        ["id", "category", "retry", "status", "alert", "message", "action", "meaning", "since"]
    {
        assert!(code("NOT_FOUND").get(key).is_some(), "{key}");
    }
    assert_eq!(shown["conditions"].as_object().unwrap().len(), 29);
    let kaiza = faultwire(&["contract", "show", "kaiza", "--json"], "").json();
    assert_eq!(kaiza["conditions"]["invalid_arguments.missing"], "MISSING_REQUIRED_FIELD");
    let owlclaw = faultwire(&["contract", "show", "owlclaw", "--json"], "").json();
    assert_eq!(owlclaw["codes"][0]["status"], json!([400, 426]));
    assert_eq!(shown["tool_failure"]["class"]["runtime"], "reliability");
    assert!(shown["tool_failure"]["maybe_executed"].is_string());
    let forbids = faultwire(&["contract", "show", "context-resolve", "--json"], "").json();
    assert_eq!(forbids["tool_failure"], Value::Null);
    let page = faultwire(&["contract", "show", HARBOUR], "").fine();
    assert!(page.contains("CLASS") && page.contains("governance"), "{page}");
    assert!(
        page.contains("H-200") && page.contains("after|backoff") && page.contains("unknown_tool")
    );
}

#[test]
fn lint_finds_mistakes_and_says_where() {
    let all = [&["contract", "lint"], &BUILTINS[..], &[HARBOUR]].concat();
    assert!(faultwire(&all, "").fine().starts_with("fine"));
    let text = std::fs::read_to_string(HARBOUR).unwrap();
    let broken = file(
        "broken.toml",
        &text.replace("status = 413", "status = 99").replace("timeout = \"H-300\"\n", ""),
    );
    let ran = faultwire(&["contract", "lint", &broken], "");
    assert_eq!(ran.code, 1);
    assert!(
        ran.out.contains("which is not 4xx or 5xx")
            && ran.out.contains("no \"timeout\"")
            && ran.out.contains("2 findings"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("broken.toml:"), "{}", ran.out);
    let ran = faultwire(&["contract", "lint", &broken, "--json"], "");
    let findings: Vec<Value> = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(findings.len(), 2);
    assert!(findings.iter().all(|f| f["line"].is_u64() && f["help"].is_string()));
    // A broken contract is bad input to every other command.
    let err = faultwire(&["render", "-c", &broken], "{}").refused();
    assert!(err.contains("broken.toml:") && err.contains("help:"), "{err}");
}

#[test]
fn contracts_that_are_not_there() {
    assert!(
        faultwire(&["contract", "show", "owlclw"], "")
            .refused()
            .contains("did you mean \"owlclaw\"?")
    );
    assert!(faultwire(&["contract", "show", "zzz"], "").refused().contains("kaiza, tuitbot"));
    assert!(
        faultwire(&["contract", "lint", "./missing.toml"], "").refused().contains("No such file")
    );
    assert!(
        faultwire(&["contract", "show", folder().to_str().unwrap()], "")
            .refused()
            .contains("directory")
    );
    let binary = folder().join("binary.toml");
    std::fs::write(&binary, b"[contract]\nname = \"\xff\"").unwrap();
    let err = faultwire(&["contract", "lint", binary.to_str().unwrap()], "").refused();
    assert!(err.contains("binary.toml:2: the file is not valid UTF-8"), "{err}");
}

#[test]
fn diff_says_breaking_additive_or_none() {
    let text = std::fs::read_to_string(HARBOUR).unwrap();
    let diff = |name: &str, edit: &dyn Fn(&str) -> String| {
        let new = file(name, &edit(&text));
        faultwire(&["contract", "diff", HARBOUR, &new], "")
    };
    let none = diff("same.toml", &str::to_owned);
    assert_eq!((none.code, none.out.as_str()), (0, "none\n"));
    let additive = diff("additive.toml", &|t| t.replace("No entry", "Entry forbidden"));
    assert_eq!(additive.code, 0);
    assert!(additive.out.starts_with("additive\n"), "{}", additive.out);
    let breaking = diff("breaking.toml", &|t| t.replace("status = 413", "status = 400"));
    assert_eq!(breaking.code, 1);
    assert!(
        breaking.out.starts_with("breaking\n") && breaking.out.contains("status of \"H-301\""),
        "{}",
        breaking.out
    );
    let json =
        faultwire(&["contract", "diff", "context-resolve", "context-resolve", "--json"], "").json();
    assert_eq!(json, json!({"impact": "none", "changes": []}));
}

#[test]
fn c7_an_addition_to_a_frozen_contract_is_refused() {
    let text = include_str!("../../../../contracts/context-resolve.toml");
    let row = text.split("[[code]]").nth(1).unwrap().replace("cache_missing", "cache_stale");
    let new = file("v0.toml", &format!("{text}\n[[code]]{}", row.split("[[").next().unwrap()));
    let ran = faultwire(&["contract", "diff", "context-resolve", &new], "");
    assert_eq!(ran.code, 1);
    assert!(ran.out.contains("frozen"), "{}", ran.out);
}

#[test]
fn schemas_validate_what_render_prints() {
    for contract in BUILTINS {
        for surface in ["mcp", "http", "result"] {
            let schema =
                faultwire(&["contract", "schema", contract, "--surface", surface], "").json();
            let shown = faultwire(&["contract", "show", contract, "--json"], "").json();
            let fault = json!({"code": shown["codes"][0]["id"], "details": {"a": 1}}).to_string();
            let envelope =
                faultwire(&["render", "-c", contract, "--surface", surface], fault).json();
            assert!(jsonschema::draft202012::is_valid(&schema, &envelope), "{contract} {surface}");
        }
    }
    faultwire(
        &["contract", "schema", "tuitbot", "--surface", "success", "--profile", "workflow"],
        "",
    )
    .json();
    assert!(
        faultwire(&["contract", "schema", "kaiza", "--surface", "success"], "")
            .refused()
            .contains("no envelope for successes")
    );
    assert!(
        faultwire(&["contract", "schema", "tuitbot", "--profile", "nope"], "")
            .refused()
            .contains("api, workflow")
    );
}

#[test]
fn k11_explain_prints_a_page() {
    let page = faultwire(&["explain", "governance.rate_limited"], "").fine();
    for part in [
        "Rate limit exceeded",
        "429",
        "warning",
        "Wait for retry_after",
        "\"retryable\": true",
        "Over HTTP",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let page = faultwire(&["explain", "session_locked"], "").fine();
    assert!(
        page.contains("SESSION_LOCKED") && page.contains("docs/reports/") && page.contains("never")
    );
    // A code of two contracts is explained twice.
    let page = faultwire(&["explain", "INTERNAL_ERROR"], "").fine();
    assert!(page.contains("kaiza") && page.contains("workrail"));
    let page = faultwire(&["explain", "TIMEOUT", "-c", "workrail"], "").fine();
    assert!(page.contains("immediately, unless the envelope says otherwise\n"), "{page}");
    let json = faultwire(&["explain", "TIMEOUT", "-c", "workrail", "--json"], "").json();
    assert_eq!(json["example"]["retry"]["kind"], "retryable_immediate");
    assert!(
        faultwire(&["explain", "SESION_LOCKED"], "")
            .refused()
            .contains("did you mean \"SESSION_LOCKED\"?")
    );
    let own = faultwire(&["explain", "H-201", "-c", HARBOUR], "").fine();
    assert!(own.contains("Retired in 2.1.0; use H-200 instead."));
}
