//! The first thing that a newcomer runs.

use std::process::Command;

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
    assert_eq!(scene("hang")["with"]["code"], "timeout");
    assert!(scene("crash")["without"]["saw"].as_str().unwrap().contains("closed"));
    assert_eq!(scene("missing_file")["with"]["code"], "not_found");
    let path = "/srv/data/report.txt";
    assert!(scene("missing_file")["with"]["saw"].as_str().unwrap().contains(path));
    let next = "Call echo if you meant that, or choose a tool from tools/list.";
    assert_eq!(scene("ecko")["with"]["next"], next);
    assert_eq!(scene("rate_limited")["with"]["next"], "Wait 2 seconds, then call again.");
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

/// Runs a command on a terminal of so many columns and lines.
const TERMINAL: &str = r"
import fcntl, os, pty, struct, sys, termios
columns, lines, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack('HHHH', lines, columns, 0, 0))
    os.execv(command[0], command)
while True:
    try:
        sys.stdout.buffer.write(os.read(terminal, 65536))
    except OSError:
        break
";

#[test]
fn the_demo_fits_on_a_terminal_of_any_size() {
    for (columns, lines) in [(80, 24), (140, 50)] {
        let (size, program) =
            ([columns, lines].map(|n| n.to_string()), env!("CARGO_BIN_EXE_faultwire"));
        let mut command = Command::new("python3");
        command.args(["-c", TERMINAL, &size[0], &size[1], program, "demo"]);
        command.env("TERM", "xterm").env_remove("NO_COLOR");
        let painted = run(command, b"").fine();
        assert!(painted.contains('\u{1b}'), "no colour: {painted}");
        let text = anstream::adapter::strip_str(&painted).to_string();
        assert!(text.lines().count() < lines, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= columns), "{text}");
        for word in [
            "hunter2",
            "timeout, retry later, 1.",
            "rate_limited, retry after 2 s",
            "Wait 2 seconds, then call again.",
            "Call echo if you meant that",
            "Use text if you meant that",
            "/srv/data/report.txt'",
            "faultwire wrap -- CMD",
        ] {
            assert!(text.contains(word), "{word}: {text}");
        }
        let log = text.split_whitespace().find(|word| word.contains("faultwire-demo-")).unwrap();
        std::fs::remove_dir_all(log).unwrap();
    }
}

#[test]
fn the_demo_claims_nothing_that_it_has_not_seen() {
    let mut nowhere = crate::support::command(&["demo"]);
    nowhere.env("TMPDIR", "/proc");
    let told = run(nowhere, b"").refused();
    assert!(told.contains("/proc/faultwire-demo-"), "{told}");
    // What is set for other servers is not for these.
    let mut set = crate::support::command(&["demo", "--json"]);
    set.env("FAULTWIRE_CONTRACT", "kaiza").env("FAULTWIRE_ARGUMENTS", "off");
    let shown: Value = serde_json::from_str(&run(set, b"").fine()).unwrap();
    assert_eq!(shown["scenes"][2]["with"]["code"], "invalid_arguments", "{shown}");
    std::fs::remove_dir_all(shown["audit"].as_str().unwrap()).unwrap();
}

#[test]
fn the_demo_fits_on_a_screen() {
    let text = run(crate::support::command(&["demo"]), b"").fine();
    assert!(text.lines().count() <= 40, "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 110), "{text}");
    let log = text.split_whitespace().find(|word| word.contains("faultwire-demo-")).unwrap();
    std::fs::remove_dir_all(log).unwrap();
}
