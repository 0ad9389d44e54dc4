//! What compiles, what does not, and what the compiler says then.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn k3_w9_mistakes_do_not_compile() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/compile/right.rs");
    cases.compile_fail("tests/compile/wrong_*.rs");
}

/// A crate of its own, with a contract of its own.
struct Crate(PathBuf);

impl Crate {
    fn new() -> Self {
        let macros = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("rebuilt");
        fs::create_dir_all(root.join("src")).unwrap();
        let faultwire = macros.join("../faultwire").display().to_string();
        let manifest = format!(
            "[package]\nname = \"rebuilt\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
             [workspace]\n\n[dependencies]\nfaultwire = {{ path = {faultwire:?} }}\n"
        );
        fs::write(root.join("Cargo.toml"), manifest).unwrap();
        fs::copy(macros.join("../../Cargo.lock"), root.join("Cargo.lock")).unwrap();
        fs::copy(macros.join("tests/compile/ferry.toml"), root.join("contract.toml")).unwrap();
        let program = "faultwire::contract!(pub mod errors = \"contract.toml\");\n\n\
                       fn main() {\n    println!(\"{}\", errors::Code::Full);\n}\n";
        fs::write(root.join("src/main.rs"), program).unwrap();
        Self(root)
    }

    /// What the compiler says, if it says no.
    fn check(&self) -> Result<(), String> {
        let checked = Command::new(env!("CARGO"))
            .args(["check", "--offline", "--quiet"])
            .current_dir(&self.0)
            // What the mistakes above needed is there already.
            .env("CARGO_TARGET_DIR", self.0.join("../../tests/trybuild"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&checked.stderr).into_owned();
        if checked.status.success() { Ok(()) } else { Err(said) }
    }
}

#[test]
fn a_crate_is_built_again_when_its_contract_changes() {
    let it = Crate::new();
    it.check().unwrap();
    let contract = it.0.join("contract.toml");
    let text = fs::read_to_string(&contract).unwrap();
    // Cargo looks at times, which some file systems keep in whole seconds.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    fs::write(&contract, text.replace("FULL", "CROWDED")).unwrap();
    let said = it.check().unwrap_err();
    assert!(said.contains("Full"), "the code that is gone is named: {said}");
    fs::write(&contract, text).unwrap();
}
