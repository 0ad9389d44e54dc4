//! Real servers and clients from npm and PyPI.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::Dir;

/// Where `scripts/install-parts` puts them.
pub fn parts() -> PathBuf {
    let parts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/parts");
    let sets = ["npm", "python1", "python2", "crashing"];
    for set in sets {
        let done = parts.join(set).join("done");
        assert!(done.exists(), "{} is not there: run scripts/install-parts", done.display());
    }
    parts.canonicalize().unwrap()
}

/// A real server, and calls that work and calls that fail.
pub struct Server {
    pub name: &'static str,
    pub command: Vec<String>,
    pub works: Vec<(&'static str, Value)>,
    pub fails: Vec<(&'static str, Value)>,
    /// Whether it speaks the modern era, too.
    pub modern: bool,
}

impl Server {
    pub fn command(&self) -> Vec<&str> {
        self.command.iter().map(String::as_str).collect()
    }
}

/// All of them, working in a directory of their own.
#[expect(clippy::too_many_lines, reason = "a table")]
pub fn servers(dir: &Dir) -> Vec<Server> {
    let parts = parts();
    let npm = |name: &str| parts.join("npm/node_modules/.bin").join(name).display().to_string();
    let python =
        |set: &str, name: &str| parts.join(set).join("bin").join(name).display().to_string();
    let files = dir.path().join("files").canonicalize().unwrap_or_else(|_| {
        let files = dir.path().join("files");
        fs::create_dir_all(&files).unwrap();
        fs::write(files.join("a.txt"), "hello\n").unwrap();
        files.canonicalize().unwrap()
    });
    let files = files.display().to_string();
    let repository = repository(dir);
    let file = |name: &str| json!({ "path": format!("{files}/{name}") });
    let memory = dir.join("memory.jsonl");
    vec![
        Server {
            name: "filesystem",
            command: vec![npm("mcp-server-filesystem"), files.clone()],
            works: vec![
                ("read_text_file", file("a.txt")),
                ("list_directory", json!({ "path": files })),
                ("read_multiple_files", json!({ "paths": [format!("{files}/a.txt")] })),
            ],
            fails: vec![
                ("read_text_file", file("missing.txt")),
                ("read_text_file", json!({ "path": "/etc/passwd" })),
                ("read_text_file", json!({ "pth": "x" })),
                ("read_file_text", json!({})),
            ],
            modern: false,
        },
        Server {
            name: "everything",
            command: vec![npm("mcp-server-everything")],
            works: vec![
                ("echo", json!({ "message": "The word error is in here" })),
                ("get-sum", json!({ "a": 2, "b": 3 })),
                ("get-structured-content", json!({ "location": "New York" })),
            ],
            fails: vec![
                ("get-sum", json!({ "a": 1, "b": "two" })),
                ("get-structured-content", json!({ "location": "Paris" })),
                ("nosuch", json!({})),
            ],
            modern: false,
        },
        Server {
            name: "memory",
            command: vec![
                "env".to_owned(),
                format!("MEMORY_FILE_PATH={memory}"),
                npm("mcp-server-memory"),
            ],
            works: vec![("read_graph", json!({})), ("search_nodes", json!({ "query": "x" }))],
            fails: vec![("search_nodes", json!({ "query": 5 })), ("nosuch", json!({}))],
            modern: false,
        },
        Server {
            name: "git",
            command: vec![python("python2", "mcp-server-git")],
            works: vec![
                ("git_status", json!({ "repo_path": repository })),
                ("git_log", json!({ "repo_path": repository })),
            ],
            fails: vec![
                ("git_checkout", json!({ "repo_path": repository, "branch_name": "absent" })),
                ("git_status", json!({})),
                ("nosuch", json!({})),
            ],
            modern: true,
        },
        Server {
            name: "time",
            command: vec![
                python("python2", "mcp-server-time"),
                "--local-timezone".to_owned(),
                "UTC".to_owned(),
            ],
            works: vec![(
                "convert_time",
                json!({ "source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo" }),
            )],
            fails: vec![
                ("get_current_time", json!({ "timezone": "Mars/Phobos" })),
                ("get_current_time", json!({ "timezone": 5 })),
            ],
            modern: true,
        },
        Server {
            name: "sqlite",
            command: vec![
                python("python1", "mcp-server-sqlite"),
                "--db-path".to_owned(),
                dir.join("data.db"),
            ],
            works: vec![
                ("list_tables", json!({})),
                ("read_query", json!({ "query": "SELECT 1 AS one" })),
            ],
            fails: vec![
                ("read_query", json!({ "query": "SELECT nothing FROM nowhere" })),
                ("read_query", json!({})),
                ("nosuch", json!({})),
            ],
            modern: false,
        },
    ]
}

fn repository(dir: &Dir) -> String {
    let place = dir.path().join("repository");
    if !place.exists() {
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join("f.txt"), "one\n").unwrap();
        for command in ["init -q -b main", "add f.txt", "commit -q -m first"] {
            let mut git = Command::new("git");
            git.args(command.split(' ')).current_dir(&place);
            for role in ["AUTHOR", "COMMITTER"] {
                git.env(format!("GIT_{role}_NAME"), "Demo")
                    .env(format!("GIT_{role}_EMAIL"), "demo@example.invalid")
                    .env(format!("GIT_{role}_DATE"), "2026-01-05T10:00:00+0000");
            }
            assert!(git.status().unwrap().success(), "git {command}");
        }
    }
    place.display().to_string()
}
