//! What breaks whom: one edit at a time.

use faultwire_contract::Contract;
use faultwire_contract::compat::{Impact, changes, impact};

const FILE: &str = include_str!("../data/harbour.toml");

fn load(text: &str) -> Contract {
    Contract::load("harbour.toml", text).unwrap_or_else(|e| panic!("{e}"))
}

/// The impact of replacing one text by another, and the first reason.
fn check(from: &str, to: &str, wanted: Impact, reason: &str) {
    assert!(FILE.contains(from), "{from}");
    let found = changes(&load(FILE), &load(&FILE.replacen(from, to, 1)));
    assert_eq!(impact(&found), wanted, "{from} → {to}: {found:#?}");
    assert!(found.iter().any(|c| c.what.contains(reason)), "{reason}: {found:#?}");
}

fn row(id: &str) -> String {
    let start = FILE.find(&format!("[[code]]\nid = \"{id}\"")).unwrap();
    let end = FILE[start + 1..].find("\n[[").unwrap() + start + 1;
    FILE[start..end].to_owned()
}

#[test]
fn nothing_changed() {
    assert_eq!(changes(&load(FILE), &load(FILE)), []);
    assert_eq!(impact(&[]), Impact::None);
}

#[test]
fn codes() {
    use Impact::{Additive, Breaking, None};
    let h301 = row("H-301");
    let removed =
        FILE.replace(&h301, "").replace(", oversize = \"H-301\"", "").replace(", \"H-301\"]", "]");
    let found = changes(&load(FILE), &load(&removed));
    assert!(
        found.iter().any(|c| c.impact == Breaking && c.what.contains("\"H-301\" was removed")),
        "{found:#?}"
    );

    let fresh = format!("{}\n{h301}", h301.replace("H-301", "H-302"));
    check(&h301, &fresh, Breaking, "is not listed in the [[release]]");
    let noted = FILE.replacen(&h301, &fresh, 1).replace("\"H-301\"]", "\"H-301\", \"H-302\"]");
    assert_eq!(impact(&changes(&load(FILE), &load(&noted))), Additive);

    check(
        "retry = \"backoff\"\nstatus = 504",
        "retry = \"never\"\nstatus = 504",
        Breaking,
        "retry of \"H-300\"",
    );
    check("status = 413", "status = 400", Breaking, "status of \"H-301\"");
    check("status = [403, 401]", "status = [401, 403]", Breaking, "status of \"H-103\"");
    check(
        "category = \"sea\"\nretry = \"backoff\"",
        "category = \"port\"\nretry = \"backoff\"",
        Breaking,
        "category of \"H-300\"",
    );
    check("keeps_data = true", "", Breaking, "keeps_data");
    check(
        "message = \"No entry\"",
        "message = \"Entry forbidden\"",
        Additive,
        "message of \"H-103\"",
    );
    check(
        "alert = \"log\"\nmessage = \"Cargo",
        "alert = \"horn\"\nmessage = \"Cargo",
        Additive,
        "alert of \"H-301\"",
    );
    check("after_ms = 3000", "after_ms = 4000", Additive, "after_ms");
    check("action = \"Call again.\"", "action = \"Call louder.\"", None, "action of \"H-300\"");
    check(
        "retired = { since = \"2.1.0\", successor = \"H-200\" }",
        "",
        Breaking,
        "must not be reused",
    );
    let retired = FILE.replace(", oversize = \"H-301\"", ", oversize = \"H-900\"").replace(
        "keeps_data = true",
        "keeps_data = true\nretired = { since = \"2.1.0\", successor = \"H-900\" }",
    );
    let found = changes(&load(FILE), &load(&retired));
    assert_eq!(impact(&found), Additive, "its condition follows to the successor: {found:#?}");
}

#[test]
fn conditions() {
    check(
        "timeout = \"H-300\"",
        "timeout = \"H-900\"",
        Impact::Breaking,
        "timeout changed its code",
    );
}

#[test]
fn envelopes() {
    use Impact::Breaking;
    check(
        "\"long\": \"$message\"",
        "\"long\": \"$message\", \"more\": \"$details?\"",
        Breaking,
        "\"more\" was added",
    );
    check(", \"long\": \"$message\"", "", Breaking, "\"long\" was removed");
    check("\"short\": \"$title\"", "\"short\": \"$action\"", Breaking, "the shape changed");
    check(
        "\"wait_ms\": \"$retry.after_ms?\"",
        "\"wait_ms\": \"$retry.after_ms\"",
        Breaking,
        "is required now",
    );
    check(
        "\"text\": \"$message\",\n  \"again\": \"$retry.kind\"",
        "\"again\": \"$retry.kind\",\n  \"text\": \"$message\"",
        Breaking,
        "order",
    );
    check("}, \"$details\"]", "}]", Breaking, "the shape changed");
    check(
        "[surface.http]",
        "[surface.http]\ncontent_type = \"application/x-hafen\"",
        Breaking,
        "content type",
    );
}

#[test]
fn versions() {
    check("name = \"harbour\"", "name = \"haven\"", Impact::Breaking, "the name changed");
    check("after_ms = 3000", "after_ms = 4000", Impact::Additive, "version is still 2.1.0");
}

/// What a client relies on beside codes and shapes.
#[test]
fn settings() {
    use Impact::{Additive, Breaking};
    check("never = \"no\"", "never = \"not\"", Breaking, "the word for \"never\"");
    check(", missing = \"H-102\"", "", Breaking, "invalid_arguments.missing changed its code");
    check("outcome = \"not_sent\"\n", "", Breaking, "outcome of \"H-200\"");
    check("[text]\n", "[text]\nmessage = \"canonical\"\n", Breaking, "text.message");
    check("[text]\n", "[text]\nmasks = [\"paths\"]\n", Breaking, "text.masks");
    check("[\"brief\", \"full\"]", "[\"full\", \"brief\"]", Breaking, "the default profile");
    check("tool = \"unknown\"", "tool = \"none\"", Breaking, "the default of $tool");
    check("fallback = \"H-900\"", "fallback = \"H-300\"", Breaking, "the fallback");
    check("more_than = 2", "more_than = 3", Additive, "paging of \"lamp\"");
    check("(?i)\\bfog\\b", "(?i)\\bmist\\b", Additive, "classification rules");
    check("version = \"2.1.0\"\ntitle", "version = \"2.0.9\"\ntitle", Breaking, "went back");
}

/// Clients go by the class of a failure before they look at its code.
#[test]
fn s5_the_classes_of_tool_failures() {
    use Impact::{Additive, Breaking, None};
    check("port = \"governance\"", "port = \"capability\"", Breaking, "the class of \"port\"");
    let table = &FILE[FILE.find("[tool_failure.class]").unwrap()..];
    check(table, "", Breaking, "[tool_failure] was removed");
    let added = changes(&load(&FILE.replacen(table, "", 1)), &load(FILE));
    assert_eq!(impact(&added), Additive, "{added:#?}");
    assert!(added.iter().any(|c| c.what == "[tool_failure] was added"), "{added:#?}");
    let warning = "[tool_failure]\nmaybe_executed = \"Look first.\"\n[tool_failure.class]";
    check("[tool_failure.class]", warning, None, "maybe_executed of [tool_failure]");
    let frozen = |text: &str| load(&text.replacen("fallback =", "frozen = true\nfallback =", 1));
    let added = changes(&frozen(&FILE.replacen(table, "", 1)), &frozen(FILE));
    assert_eq!(impact(&added), Breaking, "a frozen contract: {added:#?}");
}
