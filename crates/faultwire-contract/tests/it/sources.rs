//! Invariants of the source itself: facts about codes stand in contract files and nowhere else.

use std::fs;
use std::path::{Path, PathBuf};

use faultwire_contract::{BUILTINS, Condition};

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// The lines of code of all crates, without comments.
fn code_lines() -> Vec<(PathBuf, usize, String)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        rust_files(&entry.unwrap().path().join("src"), &mut files);
    }
    // Tests may name what they test.
    files.retain(|file| !file.ends_with("tests.rs") && !file.iter().any(|part| part == "tests"));
    assert!(files.len() > 30);
    let mut lines = Vec::new();
    for file in files {
        for (i, line) in fs::read_to_string(&file).unwrap().lines().enumerate() {
            if !line.trim_start().starts_with("//") {
                lines.push((file.clone(), i + 1, line.to_owned()));
            }
        }
    }
    lines
}

#[test]
fn no_code_name_stands_in_rust() {
    let lines = code_lines();
    // A code may have the name of its condition, and conditions are named in Rust.
    let is_condition = |id: &str| Condition::ALL.iter().any(|c| c.name() == id);
    for builtin in &BUILTINS {
        for code in builtin.contract().codes().iter().filter(|code| !is_condition(&code.id)) {
            let quoted = format!("\"{}\"", code.id);
            let found = lines.iter().find(|(_, _, line)| line.contains(&quoted));
            assert!(found.is_none(), "{found:?}");
        }
    }
}

#[test]
fn no_contract_name_stands_in_rust_but_in_the_list() {
    for (file, number, line) in code_lines() {
        let in_list = file.ends_with("faultwire-contract/src/builtin.rs")
            || file.ends_with("faultwire/src/builtin.rs");
        let names = BUILTINS.iter().any(|b| line.contains(b.name));
        assert!(!names || in_list, "{}:{number}: {line}", file.display());
    }
}

#[test]
fn the_files_and_functions_that_architecture_names_exist() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let mut named = 0;
    for word in text.split(['`', ' ', '\n', '|', '(', ')']).filter(|w| w.contains('/')) {
        let is_path = ["crates/", "contracts/", "corpus/", "docs/", "scripts/"]
            .iter()
            .any(|p| word.starts_with(p));
        if is_path && !word.contains(['*', '<', '…']) {
            named += 1;
            let (file, function) = word.split_once('#').map_or((word, None), |(f, n)| (f, Some(n)));
            assert!(root().join(file).exists(), "ARCHITECTURE.md names {file}");
            if let Some(name) = function {
                let source = fs::read_to_string(root().join(file)).unwrap();
                let is_there = [format!("fn {name}("), format!("fn {name}<")];
                let is_there = is_there.iter().any(|function| source.contains(function));
                assert!(is_there, "ARCHITECTURE.md names {name} in {file}");
            }
        }
    }
    assert!(named > 10);
}

#[test]
fn every_clause_of_the_contracts_is_named_by_a_test() {
    let mut files = Vec::new();
    for of in ["faultwire-contract", "faultwire", "faultwire-cli"] {
        rust_files(&root().join("crates").join(of).join("tests"), &mut files);
    }
    let tests: String = files.iter().map(|f| fs::read_to_string(f).unwrap()).collect();
    let clauses = [
        ("k", vec![1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15]),
        ("t", vec![1, 2, 3, 4, 5, 7]),
        ("w", vec![1, 2, 3, 4, 5, 6, 7, 8]),
        ("c", (1..=7).collect()),
        ("o", (1..=9).collect()),
        ("a", (1..=8).collect()),
        ("s", (1..=5).collect()),
    ];
    for (letter, numbers) in clauses {
        for number in numbers {
            assert!(
                tests.contains(&format!("fn {letter}{number}_"))
                    || tests
                        .lines()
                        .any(|l| l.contains("fn ") && l.contains(&format!("_{letter}{number}_"))),
                "no test names {letter}{number}"
            );
        }
    }
}
