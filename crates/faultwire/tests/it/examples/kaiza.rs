//! KAIZA: each code that a governed workspace can answer, by what really happens in it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use faultwire::contract::{Profile, Report, Surface};
use faultwire::kaiza::{Code, Failure};
use serde_json::{Value, json};

use crate::examples::{Example, hash, program, text};
use crate::support::Dir;

/// The fields of an envelope, which the contract's own tests hold to the document.
fn fields() -> Vec<String> {
    let fault = Failure::tool_failure(Code::InternalError, Report::default()).into_fault();
    let envelope = fault.envelope(Surface::Mcp, Profile::default());
    let envelope: Value = serde_json::from_slice(&envelope).unwrap();
    envelope.as_object().unwrap().keys().cloned().collect()
}

/// A workspace with a server in it.
struct Kaiza {
    example: Example,
    dir: Dir,
    seen: BTreeSet<String>,
}

impl Kaiza {
    async fn start() -> Self {
        let dir = Dir::new();
        for path in ["work/docs/plans", "work/docs/reports", "work/src", "outside"] {
            fs::create_dir_all(dir.path().join(path)).unwrap();
        }
        let example =
            Example::start("kaiza", &arguments(dir.path()).each_ref().map(|a| &**a)).await;
        Self { example, dir, seen: BTreeSet::new() }
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    /// A plan in the workspace, by its hash.
    fn plan(&self, name: &str, text: &str) -> String {
        fs::write(self.root().join("docs/plans").join(name), text).unwrap();
        hash(text)
    }

    async fn fine(&self, tool: &'static str, arguments: Value) -> Value {
        let result = self.example.call(tool, arguments).await;
        assert_ne!(result.is_error, Some(true), "{}", text(&result));
        serde_json::from_str(text(&result)).unwrap_or_default()
    }

    async fn fails(&mut self, tool: &'static str, arguments: Value, code: &str) -> Value {
        let result = self.example.call(tool, arguments).await;
        let told: Value = serde_json::from_str(text(&result)).unwrap();
        assert_eq!(told["error_code"], code, "{told}");
        let told_fields: Vec<&String> = told.as_object().unwrap().keys().collect();
        assert_eq!(told_fields, fields().iter().collect::<Vec<_>>(), "K1");
        assert_eq!(told_fields.len(), 11, "K1");
        assert_eq!(told["tool_name"], tool);
        self.seen.insert(code.to_owned());
        // K10: it is in the log before it is told.
        let log = fs::read_to_string(self.dir.path().join("audit/audit-log.jsonl"));
        let recorded = log.is_ok_and(|log| log.lines().last().unwrap().contains(code));
        assert!(recorded || code.starts_with("AUDIT"), "{code}");
        told
    }

    async fn write_fails(&mut self, path: &str, content: &str, plan: &str, code: &str) -> Value {
        let arguments = json!({ "path": path, "content": content, "plan_hash": plan });
        self.fails("write_file", arguments, code).await
    }

    /// Begins a session anew, in a role.
    async fn begin(&self, role: &str) {
        self.fine("end_session", json!({})).await;
        self.fine("begin_session", json!({ "role": role })).await;
    }
}

fn arguments(dir: &Path) -> [String; 2] {
    ["work", "audit"].map(|name| dir.join(name).display().to_string())
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one row a condition, in the order of a working day")]
async fn k1_k9_k12_each_code_of_the_domain_is_answered_when_it_is_so() {
    let mut it = Kaiza::start().await;
    let root = it.root();
    let good = it.plan("good.json", r#"{"status":"APPROVED","scope":["src"]}"#);
    let draft = it.plan("draft.json", r#"{"status":"DRAFT","scope":["src"]}"#);
    let torn = it.plan("torn.json", r#"{"status":"APPROVED""#);

    let early = it.fails("read_file", json!({ "path": "a" }), "SESSION_NOT_INITIALIZED").await;
    assert!(early["session_id"].is_null() && early["workspace_root"].is_null(), "{early}");
    it.fails("begin_session", json!({}), "MISSING_REQUIRED_FIELD").await;
    it.fails("begin_session", json!({ "role": "ADMIN" }), "INVALID_INPUT_VALUE").await;
    fs::rename(&root, it.dir.path().join("aside")).unwrap();
    let role = json!({ "role": "WINDSURF" });
    it.fails("begin_session", role.clone(), "SESSION_INITIALIZATION_FAILED").await;
    fs::rename(it.dir.path().join("aside"), &root).unwrap();
    let begun = it.fine("begin_session", role).await;
    it.fails("begin_session", json!({ "role": "ANTIGRAVITY" }), "ROLE_MISMATCH").await;

    // What is asked.
    it.fails("read_file", json!({ "path": 7 }), "INVALID_INPUT_TYPE").await;
    it.write_fails("src/a", "", "abc", "INVALID_INPUT_FORMAT").await;
    it.fails("write_file", json!({ "path": "src/a", "content": "" }), "MISSING_REQUIRED_FIELD")
        .await;

    // Where it leads.
    symlink("../outside", root.join("out")).unwrap();
    symlink("/etc/hostname", root.join("name")).unwrap();
    symlink("nowhere", root.join("src/dangling")).unwrap();
    for (path, code) in [
        ("", "INVALID_PATH"),
        ("a\0b", "INVALID_PATH"),
        (".", "INVALID_PATH"),
        ("src/dangling", "INVALID_PATH"),
        ("src/dangling/", "INVALID_PATH"),
        ("src/dangling/.", "INVALID_PATH"),
        ("../outside/a", "PATH_TRAVERSAL_BLOCKED"),
        ("src/../../outside/a", "PATH_TRAVERSAL_BLOCKED"),
        ("/etc/passwd", "OUTSIDE_WORKSPACE"),
        ("out/a", "OUTSIDE_WORKSPACE"),
        ("out", "OUTSIDE_WORKSPACE"),
        ("name", "OUTSIDE_WORKSPACE"),
        ("none/a", "PATH_NOT_FOUND"),
    ] {
        it.fails("read_file", json!({ "path": path }), code).await;
        it.write_fails(path, "x", &good, code).await;
    }
    assert_eq!(fs::read_dir(it.dir.path().join("outside")).unwrap().count(), 0);
    it.fails("read_file", json!({ "path": "src/none" }), "FILE_NOT_FOUND").await;
    it.fails("read_file", json!({ "path": "src" }), "FILE_READ_FAILED").await;
    // What is no plain file is not waited for, nor read without an end.
    let made = Command::new("mkfifo").arg(root.join("src/pipe")).status().unwrap();
    assert!(made.success());
    fs::File::create(root.join("src/huge")).unwrap().set_len(1 << 32).unwrap();
    for path in ["src/pipe", "src/huge", "src/../pipe"] {
        let code = if path.contains("..") { "PATH_TRAVERSAL_BLOCKED" } else { "FILE_READ_FAILED" };
        it.fails("read_file", json!({ "path": path }), code).await;
        it.write_fails(path, "x", &good, code).await;
    }
    // Another process is writing, and does not end: the call is given up.
    let lock = fs::File::create(it.dir.path().join("audit/workspace.lock")).unwrap();
    lock.lock().unwrap();
    it.write_fails("src/late.txt", "x", &good, "UNKNOWN_TOOL_FAILURE").await;
    drop(lock);

    // What a plan allows.
    it.write_fails("src/a.txt", "one\n", &"0".repeat(64), "PLAN_NOT_FOUND").await;
    it.write_fails("src/a.txt", "one\n", &draft, "PLAN_NOT_APPROVED").await;
    it.write_fails("src/a.txt", "one\n", &torn, "PLAN_ENFORCEMENT_FAILED").await;
    let arguments =
        json!({ "path": "docs/a", "content": "", "plan_hash": good, "phase_id": "PHASE_5A" });
    let told = it.fails("write_file", arguments, "PLAN_SCOPE_VIOLATION").await;
    assert_eq!((&told["plan_hash"], &told["phase_id"]), (&json!(good), &json!("PHASE_5A")));
    assert_eq!(told["session_id"], begun["session_id"]);
    assert_eq!(told["role"], "WINDSURF");
    assert_eq!(told["workspace_root"], root.canonicalize().unwrap().display().to_string());
    it.write_fails("docs/plans/mine.json", "{}", &good, "UNAUTHORIZED_ACTION").await;

    // What is there.
    let one = json!({ "path": "src/a.txt", "content": "one\n", "plan_hash": good });
    let written = it.fine("write_file", one.clone()).await;
    assert_eq!(written["sha256"], hash("one\n"));
    it.fails("write_file", one, "FILE_ALREADY_EXISTS").await;
    let patch = |hash: &str, patch: &str| json!({ "path": "src/a.txt", "patch": patch, "plan_hash": good, "previous_hash": hash });
    let to_two = "--- a\n+++ b\n@@ -1 +1 @@\n-one\n+two\n";
    it.fails("apply_patch", patch(&hash("else"), to_two), "HASH_MISMATCH").await;
    it.fails("apply_patch", patch(&hash("one\n"), "@@ nonsense"), "PATCH_INVALID").await;
    let wrong = to_two.replace("-one", "-three");
    it.fails("apply_patch", patch(&hash("one\n"), &wrong), "PATCH_APPLY_FAILED").await;
    it.fine("apply_patch", patch(&hash("one\n"), to_two)).await;
    let read = it.fine("read_file", json!({ "path": "src/a.txt" })).await;
    assert_eq!(read["text"], "two\n");
    let sealed = root.join("src/a.txt");
    fs::set_permissions(&sealed, fs::Permissions::from_mode(0o444)).unwrap();
    let again = to_two.replace("two", "six").replace("one", "two");
    it.fails("apply_patch", patch(&hash("two\n"), &again), "INSUFFICIENT_PERMISSIONS").await;
    fs::create_dir_all(root.join("src/dir")).unwrap();
    it.write_fails("src/dir", "x", &good, "FILE_WRITE_FAILED").await;
    symlink("/dev/full", root.join("src/full")).unwrap();
    it.write_fails("src/full", "x", &good, "OUTSIDE_WORKSPACE").await;
    it.write_fails(&format!("src/{}", "n".repeat(300)), "x", &good, "INVALID_PATH").await;

    // Links laid where a file might be written on its way are not followed, and nothing that is no
    // text is lost.
    fs::write(root.join("src/bin.dat"), b"\xff\xfe precious").unwrap();
    it.write_fails("src/bin.dat", "gone", &good, "FILE_ALREADY_EXISTS").await;
    symlink("../../outside/owned", root.join("src/b.kaiza-new")).unwrap();
    it.fine("write_file", json!({ "path": "src/b.txt", "content": "b", "plan_hash": good })).await;
    assert_eq!(fs::read_dir(it.dir.path().join("outside")).unwrap().count(), 0);

    // What breaks a rule locks the session, but for reading and reports.
    for (path, content, code) in [
        ("src/key", "-----BEGIN PRIVATE KEY-----", "POLICY_VIOLATION"),
        ("src/a.rs", "fn main() { unsafe { } }", "RUST_POLICY_VIOLATION"),
        ("src/a.json", "{", "PREFLIGHT_FAILED"),
    ] {
        it.begin("WINDSURF").await;
        it.write_fails(path, content, &good, code).await;
        assert!(!root.join(path).exists());
        it.write_fails("src/b", "fine", &good, "SESSION_LOCKED").await;
        it.fine("read_file", json!({ "path": "src/a.txt" })).await;
        let report = format!("docs/reports/{code}.md");
        it.fine("write_file", json!({ "path": report, "content": "It went wrong" })).await;
    }
    it.begin("ANTIGRAVITY").await;
    it.write_fails("src/c", "mine", &good, "UNAUTHORIZED_ACTION").await;
    it.fine("write_file", json!({ "path": "docs/plans/next.json", "content": "{}" })).await;

    // What holds the log together.
    let log = it.fine("read_audit_log", json!({ "last": 1 })).await;
    assert_eq!(log["fault"]["code"], "UNAUTHORIZED_ACTION");

    // What nobody expects: something stands where the lock should.
    let lock = it.dir.path().join("audit/workspace.lock");
    fs::remove_file(&lock).unwrap();
    fs::create_dir(&lock).unwrap();
    let written = json!({ "path": "docs/plans/later.json", "content": "{}" });
    it.fails("write_file", written, "INTERNAL_ERROR").await;
    let path = it.dir.path().join("audit/audit-log.jsonl");
    let honest = fs::read_to_string(&path).unwrap();
    fs::write(&path, honest.replacen("ROLE_MISMATCH", "ROLE_MISMATCX", 1)).unwrap();
    let told = it.fails("read_audit_log", json!({ "last": 1 }), "INVARIANT_VIOLATION").await;
    assert_eq!(told["invariant_id"], "AUDIT_LOG_INTACT");
    fs::rename(it.dir.path().join("audit"), it.dir.path().join("aside")).unwrap();
    it.begin("WINDSURF").await;
    it.fails("read_file", json!({ "path": "src/none" }), "AUDIT_LOG_FAILED").await;

    // All 35 but those of the start, which is below.
    let all = Code::ALL.iter().map(|code| code.id());
    let unseen: Vec<_> = all.filter(|code| !it.seen.contains(*code)).collect();
    let start = ["BOOTSTRAP_FAILURE", "SELF_AUDIT_FAILURE", "AUDIT_LOCK_FAILED"];
    assert_eq!(unseen, start);
}

/// Starts it where it cannot.
fn refused(dir: &Path) -> Value {
    let Output { status, stderr, .. } =
        Command::new(program("kaiza")).args(arguments(dir)).output().unwrap();
    assert_eq!(status.code(), Some(1));
    let told: Value = serde_json::from_slice(&stderr).unwrap();
    assert_eq!(told["tool_name"], "startup");
    assert!(told["session_id"].is_null());
    told["error_code"].clone()
}

#[tokio::test]
async fn of_two_that_write_at_once_one_is_told_so() {
    let it = Kaiza::start().await;
    it.begin("ANTIGRAVITY").await;
    for round in 0..50 {
        let write = |content: &str| {
            let path = format!("docs/{round}.md");
            it.example.call("write_file", json!({ "path": path, "content": content }))
        };
        let (one, other) = tokio::join!(write("one"), write("other"));
        let failed = [&one, &other].map(|result| result.is_error == Some(true));
        assert!(failed[0] != failed[1], "{round}: {} {}", text(&one), text(&other));
    }
}

#[tokio::test]
async fn k6_k15_it_audits_itself_before_it_serves() {
    let it = Kaiza::start().await;
    assert_eq!(refused(it.dir.path()), "AUDIT_LOCK_FAILED", "it is served already");
    let bare = Dir::new();
    assert_eq!(refused(bare.path()), "BOOTSTRAP_FAILURE", "there is no workspace");
    assert!(!bare.path().join("audit").exists(), "nothing was made");
    fs::write(bare.path().join("work"), "").unwrap();
    assert_eq!(refused(bare.path()), "BOOTSTRAP_FAILURE", "that is no directory");
    fs::remove_file(bare.path().join("work")).unwrap();
    let inside = Dir::new();
    fs::create_dir_all(inside.path().join("work")).unwrap();
    let root = inside.path().join("work");
    symlink("work", inside.path().join("link")).unwrap();
    for audit in ["work/audit", "link/audit"] {
        let audit = inside.path().join(audit);
        let output = Command::new(program("kaiza")).args([&root, &audit]).output().unwrap();
        assert!(String::from_utf8(output.stderr).unwrap().contains("BOOTSTRAP_FAILURE"));
        assert_eq!(fs::read_dir(&audit).unwrap().count(), 0, "no key was put there");
    }
    fs::create_dir_all(bare.path().join("work")).unwrap();
    fs::create_dir_all(bare.path().join("audit")).unwrap();
    fs::write(bare.path().join("audit/audit-log.jsonl"), "no log of ours\n").unwrap();
    assert_eq!(refused(bare.path()), "SELF_AUDIT_FAILURE", "there is another log");
}
