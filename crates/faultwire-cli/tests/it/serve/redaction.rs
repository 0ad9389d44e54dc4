//! What a client of `serve` sees of paths and addresses: those that it named itself (U2).

use serde_json::{Value, json};

use crate::serve::gateway::Gateway;
use crate::support::Dir;
use crate::wrap::client::envelope;
use crate::wrap::redaction::{SERVER, WORDS, settings};

fn message(gateway: &Gateway, session: &str, id: u64, arguments: &Value) -> String {
    let error = envelope(&gateway.call(session, id, "open", arguments))["error"].take();
    error["message"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn u2_only_what_the_client_named_stays() {
    let dir = Dir::new();
    let config = settings(&dir, "contract = \"standard\"\n");
    let gateway = Gateway::before(&["--config", &config], &["python3", "-c", SERVER, WORDS]);
    let session = gateway.begin();
    let tail =
        "[redacted:path], [redacted:path], [redacted:address], password=[redacted][redacted:frame]";
    let masked = "cannot open [redacted:path] for jane@example.com: see [redacted:path], ";
    assert_eq!(message(&gateway, &session, 1, &json!({})), format!("{masked}{tail}"));
    let named = json!({ "list": [{ "dir": "file:///srv/notes" }] });
    let named = message(&gateway, &session, 2, &named);
    assert_eq!(
        named,
        format!("{}{tail}", masked.replacen("[redacted:path]", "/srv/notes/a.md", 1))
    );
    let given = json!({ "text": "{\"db\":\"10.0.0.7\",\"key\":\"\\/home\\/jane\\/.ssh\\/id\"}" });
    let given = message(&gateway, &session, 3, &given);
    assert!(given.contains("/home/jane/.ssh/id, 10.0.0.7:5432, password=[redacted]"), "{given}");
    // What was said in one call is no word of another.
    assert_eq!(message(&gateway, &session, 4, &json!({})), format!("{masked}{tail}"));
    let secret = message(&gateway, &session, 5, &json!({ "text": "password=hunter2x" }));
    assert!(!secret.contains("hunter2x"), "{secret}");
}

#[test]
fn u2_the_settings_may_show_everything_but_credentials() {
    let dir = Dir::new();
    let kept = "contract = \"standard\"\n[redact]\npaths = \"keep\"\naddresses = \"keep\"\n\
                frames = \"keep\"\n";
    let config = settings(&dir, kept);
    let gateway = Gateway::before(&["--config", &config], &["python3", "-c", SERVER, WORDS]);
    let session = gateway.begin();
    let shown =
        WORDS.replace("hunter2x", "[redacted]").replace("/home/jane/.ssh/id", "[redacted:path]");
    assert_eq!(message(&gateway, &session, 1, &json!({})), shown);
}
