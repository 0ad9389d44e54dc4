//! Running the binary.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

/// What a run gave.
pub struct Ran {
    pub out: String,
    pub err: String,
    pub code: i32,
}

pub fn faultwire(args: &[&str], input: impl AsRef<[u8]>) -> Ran {
    run(command(args), input.as_ref())
}

/// The contract of tests that name none: they were written in its words.
pub const CONTRACT: &str = "owlclaw";

pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_faultwire"));
    command
        .args(args)
        .env_remove("FAULTWIRE_CONTRACT")
        .env_remove("FAULTWIRE_AUDIT")
        .env_remove("DEBUG_STACK")
        .env("NO_COLOR", "1");
    // What a file says goes after the environment, and a code is explained in every contract that
    // has it.
    if !args.contains(&"--config") && args.first() != Some(&"explain") {
        command.env("FAULTWIRE_CONTRACT", CONTRACT);
    }
    command
}

pub fn run(mut command: Command, input: &[u8]) -> Ran {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    // The child may stop reading early: that is its own business.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Ran {
        out: String::from_utf8(stdout).unwrap(),
        err: String::from_utf8(stderr).unwrap(),
        code: status.code().expect("ended by itself"),
    }
}

impl Ran {
    /// It went well, and stderr is empty.
    pub fn fine(self) -> String {
        assert_eq!((self.code, self.err.as_str()), (0, ""), "{}", self.out);
        self.out
    }

    /// The same, as JSON.
    pub fn json(self) -> Value {
        let out = self.fine();
        serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}"))
    }

    /// Bad input: exit code 2, nothing on stdout, and a complaint.
    pub fn refused(self) -> String {
        assert_eq!((self.code, self.out.as_str()), (2, ""), "{}", self.err);
        assert!(!self.err.is_empty() && !self.err.contains("panicked"), "{}", self.err);
        self.err
    }
}

/// The built-in contracts' names.
pub const BUILTINS: [&str; 6] =
    ["standard", "kaiza", "tuitbot", "workrail", "context-resolve", "owlclaw"];

/// The sixth contract's file.
pub const HARBOUR: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../faultwire-contract/tests/data/harbour.toml");

/// A directory of its own, gone when the test is.
pub struct Dir(PathBuf);

impl Dir {
    pub fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("faultwire-cli-{}-{n}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn text(&self) -> &str {
        self.0.to_str().unwrap()
    }

    pub fn join(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
