//! `docs/clauses.md` explains every clause that a test names, and lists the tests of each.

use std::fs;
use std::path::Path;
use std::process::Command;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

const PAGE: &str = "\
### K1

<!-- tests of K1 -->
- `crate a::tests::k1_k2_both`
- `crate::it b::k1_one`
<!-- end -->

### K2

<!-- tests of K2 -->
- `crate a::tests::k1_k2_both`
<!-- end -->
";

// On one line each, since the script would take them for tests of this crate.
const MODULE: &str =
    "mod tests {\n    #[test]\n    #[ignore]\n    fn k1_k2_both() {}\n\n    fn k8_none() {}\n}\n";
const FILE: &str = "#[tokio::test]\nasync fn k1_one() {}\n";

/// What `scripts/clauses --check` says of a project, nothing if all is well.
fn said(root: &Path) -> String {
    let script = Path::new(ROOT).join("scripts/clauses");
    let output =
        Command::new("python3").arg(script).arg("--check").arg(root).output().expect("python3");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said.is_empty(), output.status.success(), "{said}");
    said
}

/// The same of a project with this page and these tests.
fn check(name: &str, page: &str, file: &str, expected: &str) {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("clauses").join(name);
    let files = [
        ("docs/clauses.md", page),
        ("crates/crate/Cargo.toml", "[package]\nname = \"crate\"\n"),
        ("crates/crate/src/lib.rs", "mod a;\n"),
        ("crates/crate/src/a.rs", MODULE),
        ("crates/crate/tests/it/main.rs", "mod b;\n"),
        ("crates/crate/tests/it/b.rs", file),
    ];
    for (path, text) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    assert_eq!(said(&root), expected);
}

#[test]
fn the_page_of_clauses_is_current() {
    assert_eq!(said(Path::new(ROOT)), "");
}

#[test]
fn a_page_of_clauses_that_is_not_current_is_found() {
    let old = "docs/clauses.md is not current: run scripts/clauses\n";
    check("current", PAGE, FILE, "");
    check("added", PAGE, &format!("{FILE}\n#[test]\nfn k2_three() {{}}\n"), old);
    check("removed", PAGE, "", old);
    check("edited", &PAGE.replace("a::tests", "b::tests"), FILE, old);
}

#[test]
fn a_clause_without_an_explanation_or_a_test_is_found() {
    let unknown = "docs/clauses.md does not explain K9, which crate::it b::k9_two names\n";
    check("unknown", PAGE, &format!("{FILE}\n#[test]\nfn k9_two() {{}}\n"), unknown);
    let bare = format!("{PAGE}\n### K3\n\n<!-- tests of K3 -->\n- no test\n<!-- end -->\n");
    check("bare", &bare, FILE, "K3: no test\n");
    let unlisted = "docs/clauses.md: K2 needs a heading and a list\n";
    check("unlisted", &PAGE.replace("tests of K2", "tests of K3"), FILE, unlisted);
}
