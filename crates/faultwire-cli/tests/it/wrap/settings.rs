//! Settings, and what happens before anything is served.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Dir, command, faultwire, run};
use crate::wrap::client::{Client, FAULTWIRE};

#[test]
fn the_example_file_has_every_key_and_loads() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/faultwire.toml");
    let text = std::fs::read_to_string(path).unwrap();
    let dir = Dir::new();
    let file = dir.join("all.toml");
    // Every key is shown as a comment with its default; here they all count.
    let live: String = text
        .lines()
        .map(|line| match line.strip_prefix("#: ") {
            Some(setting) => {
                format!("{}\n", setting.replace("/var/log/faultwire", &dir.join("au")))
            }
            None => format!("{line}\n"),
        })
        .collect();
    std::fs::write(&file, &live).unwrap();
    let mut client = Client::wrap(&["--config", &file], &[FAULTWIRE, "demo-server"]);
    client.handshake();
    assert!(client.call("echo", &json!({ "text": "x" }))["result"]["isError"].is_null());
    let source = include_str!("../../../src/config.rs");
    for key in source.lines().filter_map(|l| l.trim().strip_prefix("pub ")?.split_once(": Option<"))
    {
        let shown = key.0.contains(' ') || live.contains(&format!("{} = ", key.0));
        assert!(shown, "the example lacks {}", key.0);
    }
}

#[test]
fn mistakes_in_the_file_name_the_line() {
    let dir = Dir::new();
    let cases = [
        ("contract = \"owlclaw\"\ntimout = \"5s\"\n", ":2", "timout"),
        ("[limits]\n\ndepth = \"deep\"\n", ":3", "depth"),
        ("timeout = \"soon\"\n", ":1", "500ms, 90s"),
        ("[tool.x]\ntimeout = 0\n", ":2", "not a valid time span"),
        ("contract = \"owl\n", ":1", ""),
    ];
    for (text, line, words) in cases {
        let file = dir.join("bad.toml");
        std::fs::write(&file, text).unwrap();
        let told = faultwire(&["wrap", "--config", &file, "--", "true"], "").refused();
        assert!(told.contains(&format!("bad.toml{line}")), "{text}: {told}");
        assert!(told.contains(words), "{text}: {told}");
    }
    let told = faultwire(&["wrap", "--contract", "owlclav", "--", "true"], "").refused();
    assert!(told.contains("did you mean \"owlclaw\"?"), "{told}");
    // K15: whoever reads machines' words hears it, too.
    let envelope = told.lines().last().and_then(|line| serde_json::from_str::<Value>(line).ok());
    assert!(envelope.is_some_and(|e| e["error"]["code"].is_string()), "{told}");
    let told = faultwire(&["wrap", "--tool-timeout", "x", "--", "true"], "").refused();
    assert!(told.contains("NAME=TIME"), "{told}");
    assert!(faultwire(&["wrap"], "").refused().contains("CMD"));
}

#[test]
fn a_named_pipe_is_not_waited_for_and_one_of_the_shell_is_read() {
    let dir = Dir::new();
    let pipe = dir.join("faultwire.toml");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let told = faultwire(&["wrap", "--config", &pipe, "--", "true"], "").refused();
    assert!(told.contains("faultwire.toml: this is a named pipe"), "{told}");
    let mut shell = Command::new("bash");
    let script = "\"$0\" wrap --config <(sleep 0.2; echo 'timout = 5') -- true";
    shell.args(["-c", script, FAULTWIRE]);
    let told = run(shell, b"").refused();
    assert!(told.contains("timout"), "{told}");
}

#[test]
fn a_contract_is_looked_for_beside_the_file_that_names_it() {
    let dir = Dir::new();
    let owlclaw = concat!(env!("CARGO_MANIFEST_DIR"), "/../../contracts/owlclaw.toml");
    std::fs::copy(owlclaw, dir.join("mine.toml")).unwrap();
    let file = dir.join("faultwire.toml");
    std::fs::write(&file, "contract = \"mine.toml\"\ntimeout = 1.5\n").unwrap();
    let mut client = Client::wrap(&["--config", &file], &[FAULTWIRE, "demo-server"]);
    assert_eq!(client.call("leak", &json!({}))["result"]["isError"], true);
}

#[test]
fn a_program_that_cannot_be_started_is_told_why() {
    let dir = Dir::new();
    let (script, orphan) = (dir.join("plain"), dir.join("orphan"));
    std::fs::write(&script, "echo hi\n").unwrap();
    std::fs::write(&orphan, "#!/no/such/interpreter\n").unwrap();
    assert!(Command::new("chmod").args(["+x", &orphan]).status().unwrap().success());
    for (program, help) in [
        (script.as_str(), "chmod +x"),
        (orphan.as_str(), "its first line (#!)"),
        (dir.text(), "this is a directory"),
        ("no-such-program", "on the PATH"),
    ] {
        let log = dir.join("log");
        let args = ["wrap", "--audit", &log, "--", program];
        let told = faultwire(&args, "").refused();
        assert!(told.contains(help), "{program}: {told}");
    }
}

#[test]
fn flags_go_before_the_environment_and_that_before_the_file() {
    let dir = Dir::new();
    let file = dir.join("faultwire.toml");
    std::fs::write(&file, "contract = \"kaiza\"\n").unwrap();
    let shape = |flag: Option<&str>, variable: Option<&str>| {
        let log = dir.join("log");
        let mut args = vec!["wrap", "--log", "off", "--config", &file, "--audit", &log];
        args.extend(flag.into_iter().flat_map(|c| ["--contract", c]));
        args.extend(["--", FAULTWIRE, "demo-server"]);
        let mut command = command(&args);
        if let Some(contract) = variable {
            command.env("FAULTWIRE_CONTRACT", contract);
        }
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
                           "params": { "name": "missing_file", "arguments": {} } });
        let reply: Value =
            serde_json::from_str(&run(command, format!("{call}\n").as_bytes()).fine()).unwrap();
        reply["result"]["_meta"]["dev.faultwire/contract"]["name"].clone()
    };
    assert_eq!(shape(None, None), "kaiza");
    assert_eq!(shape(None, Some("tuitbot")), "tuitbot");
    assert_eq!(shape(Some("workrail"), Some("tuitbot")), "workrail");
}

#[test]
fn k15_a_program_that_cannot_start_says_so_as_an_envelope() {
    let dir = Dir::new();
    let log = dir.join("log");
    let wrap = |log: &str, server: &str| {
        let ran = faultwire(&["wrap", "-c", "kaiza", "--audit", log, "--", server], "");
        let told = ran.refused();
        let last = told.lines().last().unwrap().to_owned();
        let envelope: Value = serde_json::from_str(&last).unwrap_or_else(|e| panic!("{e}: {told}"));
        assert_eq!(envelope["tool_name"], "startup", "{told}");
        (envelope["error_code"].as_str().unwrap().to_owned(), told)
    };
    let (code, told) = wrap(&log, "/no/such/server");
    assert_eq!(code, "BOOTSTRAP_FAILURE", "{told}");
    assert!(told.contains("help:"), "{told}");
    // A log that is not what it was.
    let live = format!("{log}/audit-log.jsonl");
    let text = std::fs::read_to_string(&live).unwrap();
    std::fs::write(&live, text.replace("\"seq\":0", "\"seq\":9")).unwrap();
    let (code, told) = wrap(&log, "true");
    assert_eq!(code, "SELF_AUDIT_FAILURE", "{told}");
    // A directory that is none.
    let (code, told) = wrap("/dev/null/log", "true");
    assert_eq!(code, "BOOTSTRAP_FAILURE", "{told}");
}

#[test]
fn servers_of_one_name_have_logs_of_their_own() {
    let home = Dir::new();
    let start = || {
        let mut command = command(&["wrap", "--log", "off", "--", FAULTWIRE, "demo-server"]);
        command.env("XDG_STATE_HOME", home.path());
        let mut client = Client::start(command, Dir::new());
        client.handshake();
        client.call("missing_file", &json!({}));
        client
    };
    let (first, second) = (start(), start());
    let logs = home.path().join("faultwire/audit");
    for name in ["faultwire", "faultwire-2"] {
        assert!(logs.join(name).join("audit-log.jsonl").exists(), "{name}");
    }
    drop((first, second));
    let list = |args: &[&str]| {
        let mut command = command(args);
        command.env("XDG_STATE_HOME", home.path());
        run(command, b"")
    };
    // Which one is meant must be said, and then it can be.
    let told = list(&["audit", "tail"]).refused();
    assert!(told.contains("faultwire-2"), "{told}");
    let shown = list(&["audit", "tail", logs.join("faultwire-2").to_str().unwrap()]).fine();
    assert!(shown.contains("missing_file"), "{shown}");
    std::fs::remove_dir_all(logs.join("faultwire-2")).unwrap();
    assert!(list(&["audit", "tail"]).fine().contains("missing_file"));
}

#[test]
fn what_to_paste_runs_the_same_command() {
    let dir = Dir::new();
    let args = |client| {
        let rest = ["-c", "kaiza", "--timeout", "5s", "--", FAULTWIRE, "demo-server"];
        ["wrap", "--print-config", client].into_iter().chain(rest).collect::<Vec<_>>()
    };
    for (client, pointer) in [
        ("claude", "/mcpServers/faultwire"),
        ("cursor", "/mcpServers/faultwire"),
        ("vscode", "/servers/faultwire"),
    ] {
        let settings = faultwire(&args(client), "").json();
        let entry = settings.pointer(pointer).unwrap_or_else(|| panic!("{settings}"));
        let words = entry["args"].as_array().unwrap().iter().map(|w| w.as_str().unwrap());
        let mut pasted = Command::new(entry["command"].as_str().unwrap());
        pasted.args(words).env("XDG_STATE_HOME", dir.path());
        let mut client = Client::start(pasted, Dir::new());
        client.handshake();
        let reply = client.call("crash", &json!({}));
        let name = &reply["result"]["_meta"]["dev.faultwire/contract"]["name"];
        assert_eq!(name, "kaiza", "{settings}");
    }
    let codex = faultwire(&args("codex"), "").fine();
    assert!(codex.starts_with("[mcp_servers.\"faultwire\"]\ncommand = \"/"), "{codex}");
    assert!(codex.contains("args = [\"wrap\",\"--contract\",\"kaiza\","), "{codex}");
    // A client starts it from elsewhere, and what cannot work is not printed.
    let own =
        faultwire(&["wrap", "--print-config", "codex", "--", "./own.sh", "a\u{7f}b"], "").fine();
    let here = std::env::current_dir().unwrap().join("own.sh");
    assert!(own.contains(&here.display().to_string()) && own.contains("a\\u007fb"), "{own}");
    faultwire(&["wrap", "--print-config", "claude", "-c", "no-such", "--", "x"], "").refused();
}

#[test]
fn nothing_of_our_own_is_on_stdout_and_stderr_of_the_server_passes() {
    let dir = Dir::new();
    let log = dir.join("log");
    let script = "echo 'from the server' >&2; cat >/dev/null";
    let ran = faultwire(&["wrap", "--audit", &log, "--", "sh", "-c", script], "");
    assert_eq!((ran.code, ran.out.as_str()), (0, ""), "{}", ran.err);
    assert!(ran.err.contains("from the server\n"), "{}", ran.err);
}

/// The self-audit is part of every start. A test cannot promise milliseconds; this one notices
/// when somebody makes a start read the whole log.
#[test]
fn k15_a_long_log_does_not_make_the_start_long() {
    let dir = Dir::new();
    let log = dir.join("log");
    let lines: String = (0..20_000)
        .map(|i| format!("{{\"fault\":{{\"code\":\"runtime.timeout\",\"tool\":\"t{i}\"}}}}\n"))
        .collect();
    let filled = faultwire(
        &["audit", "append", &log, "--in-flight", "256", "--segment-bytes", "65536"],
        lines,
    );
    assert_eq!(filled.code, 0, "{}", filled.err);
    let since = Instant::now();
    faultwire(&["wrap", "--audit", &log, "--", "cat"], "").fine();
    assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
}
