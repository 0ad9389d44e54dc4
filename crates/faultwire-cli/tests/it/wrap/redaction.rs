//! What a client of `wrap` sees of paths, addresses, frames and personal data (U2).

use std::fs::File;

use serde_json::json;

use crate::support::{Dir, command, faultwire};
use crate::wrap::client::{Client, envelope};

/// A server with one tool, which fails with the words that the server was started with.
pub const SERVER: &str = r#"
import sys, json
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    r = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    if m["method"] == "tools/list": r = {"tools": [{"name": "open", "inputSchema": {"type": "object"}}]}
    if m["method"] == "tools/call": r = {"isError": True, "content": [{"type": "text", "text": sys.argv[1]}]}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
"#;

pub const WORDS: &str = "cannot open /srv/notes/a.md for jane@example.com: see /srv/log/x.log, \
    /home/jane/notes/b.md, /home/jane/.ssh/id, 10.0.0.7:5432, password=hunter2x\n    \
    at parse (/srv/app/index.js:10:5)";

/// A file of settings.
pub fn settings(dir: &Dir, text: &str) -> String {
    let file = dir.join("faultwire.toml");
    std::fs::write(&file, text).unwrap();
    file
}

/// What the client is told when it sent this path.
fn told(config: &str, path: &str) -> String {
    let mut client = Client::wrap(&["--config", config], &["python3", "-c", SERVER, WORDS]);
    client.handshake();
    let error = envelope(&client.call("open", &json!({ "path": path })))["error"].take();
    error["message"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn u2_paths_and_addresses_stay_but_for_hidden_directories_of_a_home() {
    let dir = Dir::new();
    let config = settings(&dir, "contract = \"standard\"\n");
    assert_eq!(
        told(&config, "a.md"),
        "cannot open /srv/notes/a.md for jane@example.com: see /srv/log/x.log, \
         /home/jane/notes/b.md, [redacted:path], 10.0.0.7:5432, password=[redacted][redacted:frame]"
    );
    assert!(told(&config, "/home/jane/.ssh").contains("/home/jane/.ssh/id"));
}

#[test]
fn u2_the_settings_say_what_is_masked() {
    let dir = Dir::new();
    let masked = "contract = \"standard\"\n[redact]\npaths = \"mask\"\naddresses = \"mask\"\n\
                  frames = \"keep\"\npersonal = \"mask\"\n";
    assert_eq!(
        told(&settings(&dir, masked), "/srv/notes"),
        "cannot open /srv/notes/a.md for [redacted:personal]: see [redacted:path], \
         [redacted:path], [redacted:path], [redacted:address], password=[redacted]\n    \
         at parse ([redacted:path]:10:5)"
    );
}

#[test]
fn u2_a_contracts_masks_are_a_floor() {
    let dir = Dir::new();
    let told = told(&settings(&dir, "contract = \"owlclaw\"\n"), "/srv/notes");
    assert!(told.starts_with("cannot open /srv/notes/a.md for jane@example.com: see [redac"));
    assert!(!told.contains("10.0.0.7") && !told.contains("index.js"), "{told}");
    for (command, kind) in [("wrap", "paths"), ("serve", "addresses"), ("wrap", "frames")] {
        let text = format!("contract = \"owlclaw\"\n\n[redact]\n{kind} = \"keep\"\n");
        let config = settings(&dir, &text);
        let refused = faultwire(&[command, "--config", &config, "--", "true"], "").refused();
        let what =
            format!("faultwire.toml:4: {kind} = \"keep\" is not allowed: contract owlclaw masks");
        assert!(refused.contains(&what), "{refused}");
    }
    let config = settings(&dir, "[redact]\npaths = \"hide\"\n");
    let refused = faultwire(&["wrap", "--config", &config, "--", "true"], "").refused();
    assert!(refused.contains("faultwire.toml:2"), "{refused}");
    assert!(refused.contains("`keep` or `mask`"), "{refused}");
}

#[test]
fn u2_the_record_and_the_log_shorten_home_directories() {
    let audit = Dir::new();
    let home = audit.text().to_owned();
    let root = format!("[session]\nworkspace_root = \"{home}/w\"\n");
    let config = settings(&audit, &format!("contract = \"standard\"\n{root}"));
    let log = audit.join("log");
    let mut start = command(&["wrap", "--config", &config, "--log", "info", "--audit", &log, "--"]);
    let stderr = File::create(audit.join("stderr")).unwrap();
    start.args(["python3", "-c", SERVER, WORDS]).env("HOME", &home).stderr(stderr);
    let mut client = Client::start(start, audit);
    client.handshake();
    let reply = client.call("open", &json!({ "path": "/home/jane/.ssh/id" }));
    let message = envelope(&reply)["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("/home/jane/notes/b.md, /home/jane/.ssh/id"), "verbatim: {message}");
    let records = client.records();
    let record = records.iter().find(|r| r["type"] == "fault").expect("a record").to_string();
    assert!(record.contains("~/notes/b.md, ~/.ssh/id") && record.contains("\"~/w\""), "{record}");
    assert!(!record.contains("jane/") && !record.contains("hunter2x"), "{record}");
    let told = std::fs::read_to_string(client.audit.join("stderr")).unwrap();
    assert!(told.contains("audit=~/log") && !told.contains(&home), "{told}");
}
