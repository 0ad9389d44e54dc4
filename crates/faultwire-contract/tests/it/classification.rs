//! What servers send is told apart by shape and meaning.

use std::path::{Path, PathBuf};

use faultwire_contract::{Condition, Failure, builtin, classify};
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    #[serde(alias = "case")]
    name: String,
    reply: String,
    expect: Expect,
}

#[derive(Deserialize)]
struct Expect {
    failure: bool,
    condition: Option<Condition>,
    #[serde(default)]
    or: Vec<Condition>,
}

fn read(path: &Path) -> Vec<Case> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{}: {e}: {line}", path.display())))
        .collect()
}

/// The condition of a reply under a contract that maps every one, `None` for no failure.
fn condition(reply: &str) -> Option<Failure> {
    classify(&builtin("owlclaw").unwrap(), reply.as_bytes())
}

fn check(cases: &[Case]) {
    let mut wrong = String::new();
    for case in cases {
        let found = condition(&case.reply);
        let got = found.as_ref().and_then(|f| f.report.condition);
        let right = match (&case.expect, got) {
            (Expect { failure: false, .. }, got) => got.is_none(),
            (Expect { condition: wanted, or, .. }, got) => {
                got.is_some() && (got == *wanted || or.iter().any(|c| Some(*c) == got))
            }
        };
        if !right {
            let rule = found.map(|f| f.rule);
            let head: String = case.reply.chars().take(300).collect();
            wrong += &format!(
                "{}: expected {:?}, got {got:?} by {rule:?}\n   {head}\n",
                case.name, case.expect.condition
            );
        }
    }
    assert!(wrong.is_empty(), "{} wrong\n{wrong}", wrong.lines().count() / 2);
}

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

#[test]
fn replies_of_servers_that_no_rule_was_written_for() {
    let cases = read(&data("replies.jsonl"));
    assert!(cases.len() > 400);
    check(&cases);
}

#[test]
fn the_corpus_of_real_replies() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    let mut files = 0;
    let mut all = Vec::new();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "jsonl") {
            files += 1;
            let server = path.file_stem().unwrap().to_string_lossy().into_owned();
            all.extend(read(&path).into_iter().map(|mut case| {
                case.name = format!("{server}/{}", case.name);
                case
            }));
        }
    }
    assert!(files >= 8, "{} has {files} files", folder.display());
    check(&all);
}
