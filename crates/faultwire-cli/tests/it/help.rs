//! What the program says of itself.

use std::process::{Command, Stdio};

use crate::support::{command, faultwire, run};

pub const COMMANDS: [&[&str]; 23] = [
    &["wrap"],
    &["demo"],
    &["demo-server"],
    &["contract", "new"],
    &["contract", "list"],
    &["contract", "show"],
    &["contract", "lint"],
    &["contract", "diff"],
    &["contract", "schema"],
    &["explain"],
    &["render"],
    &["decode"],
    &["classify"],
    &["redact"],
    &["retry"],
    &["alerts", "replay"],
    &["audit", "verify"],
    &["audit", "tail"],
    &["audit", "query"],
    &["audit", "show"],
    &["audit", "export"],
    &["audit", "append"],
    &["completions"],
];

#[test]
fn every_command_has_help() {
    let top = faultwire(&["--help"], "").fine();
    for command in COMMANDS {
        assert!(top.contains(command[0]), "{command:?}");
        let help = faultwire(&[command, &["--help"]].concat(), "").fine();
        assert!(help.contains("Usage: faultwire"), "{help}");
        let teaches = help.contains("Example") || command == ["contract", "list"];
        assert!(teaches, "{command:?} shows no example");
    }
    assert!(top.contains("Exit codes: 0 success, 1 findings, 2 usage error or bad input."));
    assert_eq!(
        faultwire(&["--version"], "").fine().trim(),
        concat!("faultwire ", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn mistyped_commands_are_usage_errors() {
    assert!(faultwire(&["rendr"], "").refused().contains("similar"));
    assert!(faultwire(&["render", "--surface", "smtp"], "").refused().contains("possible values"));
    assert_eq!(faultwire(&[], "").code, 2);
}

#[test]
fn completions_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(faultwire(&["completions", shell], "").fine().contains("faultwire"), "{shell}");
    }
}

#[test]
fn colour_only_on_a_terminal() {
    let mut command = command(&["explain", "SESSION_LOCKED"]);
    command.env_remove("NO_COLOR");
    assert!(!run(command, b"").fine().contains('\u{1b}'));
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_faultwire"))
        .args(["contract", "show", "kaiza", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.stderr.is_empty() && output.status.success(), "{output:?}");
}
