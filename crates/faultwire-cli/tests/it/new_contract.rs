//! `contract new`: the contract that a newcomer starts from.

use serde_json::{Value, json};

use crate::support::{Dir, command, faultwire, run};
use crate::wrap::client::{Client, envelope};

/// A file that was just written, and what was printed.
fn new(dir: &Dir, name: &str) -> (String, String) {
    let file = dir.join(&format!("{name}.toml"));
    let printed = faultwire(&["contract", "new", name, "--output", &file], "").fine();
    (file, printed)
}

#[test]
fn a1_a_new_contract_lints_and_renders_every_code() {
    let dir = Dir::new();
    let (file, printed) = new(&dir, "shop");
    for step in ["contract lint ", "render -c ", "wrap --contract "] {
        assert!(printed.contains(&format!("{step}{file}")), "{printed}");
    }
    assert!(faultwire(&["contract", "lint", &file], "").fine().starts_with("fine"));
    let shown = faultwire(&["contract", "show", &file, "--json"], "").json();
    assert_eq!((&shown["name"], &shown["version"]), (&json!("shop"), &json!("1.0.0")));
    let codes = shown["codes"].as_array().unwrap();
    assert_eq!(codes.len(), 10);
    for code in codes {
        let fault = json!({ "code": code["id"], "incident": "inc_1" }).to_string();
        let rendered = faultwire(&["render", "-c", &file], &fault).json();
        let error = &rendered["error"];
        assert_eq!((&error["code"], &error["message"]), (&code["id"], &code["message"]));
        assert!(!error["next"].as_str().unwrap().is_empty(), "{rendered}");
        let read = faultwire(&["decode", "-c", &file], rendered.to_string()).json();
        assert_eq!(read["code"], code["id"], "{read}");
        let problem = faultwire(&["render", "-c", &file, "--surface", "http"], &fault).json();
        assert_eq!(problem["status"], code["status"], "{problem}");
    }
}

#[test]
fn a2_a_new_contract_maps_every_condition_itself() {
    let text = faultwire(&["contract", "new", "shop", "--output", "-"], "").fine();
    let shown = faultwire(&["contract", "show", "standard", "--json"], "").json();
    for condition in shown["conditions"].as_object().unwrap().keys() {
        assert!(text.contains(&format!("\n{condition} = \"")), "{condition}");
    }
}

#[test]
fn a_new_contract_serves_at_once() {
    let dir = Dir::new();
    let (file, _) = new(&dir, "shop");
    let mut to = Client::demo(&["--contract", &file]);
    for (tool, arguments, code) in [
        ("missing_file", json!({}), "not_found"),
        ("rate_limited", json!({}), "busy"),
        ("crash", json!({}), "unavailable"),
        ("echo", json!({ "txt": "hi" }), "invalid_request"),
        ("ehco", json!({ "text": "hi" }), "invalid_request"),
    ] {
        let told = envelope(&to.call(tool, &arguments));
        assert_eq!(told["error"]["code"], code, "{tool}: {told}");
    }
}

#[test]
fn a_new_contract_overwrites_nothing_unless_told_to() {
    let dir = Dir::new();
    let (file, _) = new(&dir, "shop");
    std::fs::write(&file, "mine").unwrap();
    let again = ["contract", "new", "shop", "--output", &file];
    let told = faultwire(&again, "").refused();
    assert!(told.contains("the file already exists") && told.contains("--force"), "{told}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    let forced = faultwire(&[&again[..], &["--force", "--json"]].concat(), "").json();
    assert_eq!(forced, json!({ "path": file }));
    assert!(std::fs::read_to_string(&file).unwrap().contains("name = \"shop\""));
    // A file of the name, in the current directory.
    let mut here = command(&["contract", "new", "my-shop"]);
    here.current_dir(dir.path());
    assert!(run(here, b"").fine().contains("my-shop.toml"));
    faultwire(&["contract", "lint", &dir.join("my-shop.toml")], "").fine();
}

#[test]
fn a_new_contract_has_a_name_that_loads() {
    let dir = Dir::new();
    for name in ["Shop", "my shop", "a/b", "shöp", "", "standard", "x.toml"] {
        let mut here = command(&["contract", "new", name]);
        here.current_dir(dir.path());
        let told = run(here, b"").refused();
        assert!(told.contains("help:"), "{told}");
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    let mut json = command(&["contract", "new", "Shop", "--json"]);
    json.current_dir(dir.path());
    let told: Value = serde_json::from_str(&run(json, b"").refused()).unwrap();
    assert_eq!(told["error"]["code"], "invalid_arguments", "{told}");
    let nowhere = dir.join("no/such/shop.toml");
    let told = faultwire(&["contract", "new", "shop", "--output", &nowhere], "").refused();
    assert!(told.contains("cannot write the file"), "{told}");
}
