//! The first thing that a newcomer runs.

use serde_json::Value;

use crate::support::{faultwire, run};

#[test]
fn the_demo_shows_both_sides() {
    let shown = faultwire(&["demo", "--json"], "").json();
    let scenes = shown["scenes"].as_array().unwrap();
    let scene = |tool: &str| scenes.iter().find(|s| s["tool"] == tool).unwrap();
    assert_eq!(scene("add")["without"]["saw"], scene("add")["with"]["saw"]);
    assert!(scene("leak")["without"]["saw"].as_str().unwrap().contains("hunter2"));
    assert!(!scene("leak")["with"].to_string().contains("hunter2"));
    assert!(scene("hang")["without"]["waited_ms"].as_u64().unwrap() >= 3000);
    assert_eq!(scene("hang")["with"]["code"], "runtime.timeout");
    assert!(scene("crash")["without"]["saw"].as_str().unwrap().contains("closed"));
    // Everything that failed is in the log, and the log is a whole one.
    let failed: Vec<&Value> = scenes.iter().filter(|s| s["with"]["code"].is_string()).collect();
    assert!(failed.len() >= 7, "{shown}");
    for scene in failed {
        assert!(scene["with"]["logged"].is_string(), "{scene}");
    }
    let log = shown["audit"].as_str().unwrap();
    faultwire(&["audit", "verify", log], "").fine();
    std::fs::remove_dir_all(log).unwrap();
}

#[test]
fn the_demo_fits_on_a_screen() {
    let text = run(crate::support::command(&["demo"]), b"").fine();
    assert!(text.lines().count() <= 40, "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 110), "{text}");
    let log = text.split_whitespace().find(|word| word.contains("faultwire-demo-")).unwrap();
    std::fs::remove_dir_all(log).unwrap();
}
