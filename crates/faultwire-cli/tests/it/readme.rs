//! Every command in the documents is run, and its output is what they show.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::support::Dir;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The commands of the `console` blocks, each with the output that is shown below it.
fn commands(text: &str) -> Vec<(String, Vec<String>)> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        match (line, inside) {
            ("```console", _) => inside = true,
            ("```", _) => inside = false,
            (line, true) => match line.strip_prefix("$ ") {
                Some(command) => found.push((command.to_owned(), Vec::new())),
                None => {
                    found.last_mut().expect("a command before its output").1.push(line.to_owned());
                }
            },
            _ => {}
        }
    }
    found
}

/// `…` stands for any number of lines.
fn matches(shown: &[String], printed: &[&str]) -> bool {
    match (shown, printed) {
        ([], rest) => rest.is_empty(),
        ([first, shown @ ..], _) if first == "…" => {
            (0..=printed.len()).any(|skip| matches(shown, &printed[skip..]))
        }
        ([first, shown @ ..], [line, printed @ ..]) => first == line && matches(shown, printed),
        (_, []) => false,
    }
}

/// A command that goes on until the document is over.
struct Running {
    process: Child,
    /// What it keeps is not the user's.
    _state: Dir,
}

impl Running {
    fn start(line: &str, shown: &[String], path: &str) -> Self {
        let state = Dir::new();
        let mut process = Command::new("sh")
            .args(["-c", &format!("exec {line}")])
            .current_dir(root())
            .env("PATH", path)
            .env("XDG_STATE_HOME", state.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let printed: Vec<String> = lines.take(shown.len()).map_while(Result::ok).collect();
        let running = Self { process, _state: state };
        assert_eq!(printed, shown, "{line}");
        running
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let pid = self.process.id().to_string();
        let _ = Command::new("kill").arg(&pid).status();
        let _ = self.process.wait();
    }
}

/// The program that `cargo run --example` would build, which is there when all tests are.
fn built(command: &str) -> String {
    let Some(example) = command.strip_prefix("cargo run -q -p faultwire --example ") else {
        return command.to_owned();
    };
    let (name, rest) = example.split_once(' ').expect("features after the name");
    let (_, arguments) = rest.split_once(" -- ").expect("arguments after the features");
    format!("{name} {arguments}")
}

fn check(document: &str) -> usize {
    let text = std::fs::read_to_string(root().join(document)).unwrap();
    let commands = commands(&text);
    let binary = Path::new(env!("CARGO_BIN_EXE_faultwire"));
    let beside = binary.parent().unwrap().display();
    let path = format!("{beside}:{beside}/examples:{}", env!("PATH"));
    // Commands that go on, for those below them.
    let mut running = Vec::new();
    for (command, shown) in &commands {
        if let Some(script) = ["scripts/test", "scripts/soak-audit", "scripts/fuzz", "cargo bench"]
            .iter()
            .find(|s| command.starts_with(**s))
        {
            // This test is part of the first, and the others take minutes.
            assert!(*script == "cargo bench" || root().join(script).exists(), "{script}");
            continue;
        }
        let line = built(&command.replace("cargo run --release --", "faultwire"));
        let goes_on = line.starts_with("faultwire serve") || line.starts_with("owlclaw ");
        if goes_on && !line.contains("--help") {
            running.push(Running::start(&line, shown, &path));
            continue;
        }
        let output = Command::new("sh")
            .args(["-c", &line])
            .current_dir(root())
            .env("PATH", &path)
            .output()
            .unwrap();
        let printed =
            String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        let lines: Vec<&str> = printed.lines().collect();
        let fits = shown.is_empty() && output.status.success() || matches(shown, &lines);
        assert!(fits, "{document}: `{command}` printed\n{printed}");
    }
    commands.len()
}

#[test]
fn the_readme_is_true() {
    assert!(check("README.md") >= 8);
}

#[test]
fn the_recipes_are_true() {
    assert!(check("CONTRIBUTING.md") >= 1);
}

/// The examples that `--help` shows and that need no file work as they stand.
#[test]
fn the_examples_of_help_are_true() {
    let folder = root().join("crates/faultwire-cli/help");
    // Some of them write where they are.
    let scratch = Dir::new();
    let binary = Path::new(env!("CARGO_BIN_EXE_faultwire"));
    let path = format!("{}:{}", binary.parent().unwrap().display(), env!("PATH"));
    let mut ran = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let whole =
            |line: &&str| line.starts_with("echo ") || line.starts_with("faultwire explain ");
        for line in text.lines().map(str::trim).filter(whole) {
            // Behind two blanks stands what the example is for.
            let line = line.split("  ").next().unwrap_or(line);
            let mut shell = Command::new("sh");
            shell.args(["-c", line]).env("PATH", &path).current_dir(scratch.path());
            let output = shell.output().unwrap();
            assert!(output.status.success() && !output.stdout.is_empty(), "{line}: {output:?}");
            ran += 1;
        }
    }
    assert!(ran >= 8, "{ran}");
}
