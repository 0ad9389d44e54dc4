//! What users read: every page of `--help`, and what usual mistakes print.

use std::fmt::Write;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use crate::help::COMMANDS;
use crate::support::{Dir, run};

/// The command in a directory and an environment of its own, so that its output is always the same.
fn command(args: &[&str], dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_faultwire"));
    command.args(args).current_dir(dir).env_clear();
    command.env("NO_COLOR", "1").env("XDG_STATE_HOME", dir.join("state"));
    command
}

#[test]
fn help() {
    let dir = Dir::new();
    let mut pages = String::new();
    for path in [&[][..]].into_iter().chain(COMMANDS.iter().copied()) {
        let page = run(command(&[path, &["--help"]].concat(), dir.path()), b"").fine();
        writeln!(pages, "$ faultwire {}\n{page}", [path, &["--help"]].concat().join(" ")).unwrap();
    }
    insta::assert_snapshot!(pages);
}

/// Runs each command line and collects what it prints to stderr, with its exit code.
fn mistakes(dir: &Dir, lines: &[&str]) -> String {
    let mut all = String::new();
    for line in lines {
        let args: Vec<&str> = line.split(' ').collect();
        let ran = run(command(&args, dir.path()), b"{}");
        // Log lines have a time and envelopes a random id; other tests read them.
        let text: String = ran.err.lines().filter(|l| !l.starts_with(['{', '2'])).fold(
            String::new(),
            |mut text, line| {
                text += line.replace(dir.text(), "DIR").trim_end();
                text + "\n"
            },
        );
        writeln!(all, "$ faultwire {line}  # {}\n{text}", ran.code).unwrap();
    }
    all
}

#[test]
fn mistakes_on_the_command_line() {
    let dir = Dir::new();
    std::fs::write(dir.join("file"), "").unwrap();
    std::fs::write(dir.join("text.toml"), "no contract\n").unwrap();
    std::fs::create_dir(dir.join("empty")).unwrap();
    let lines = [
        "rendr",
        "render --surface smtp",
        "explain rate_limitd",
        "explain xyzzy",
        "explain xyzzy -c kaiza",
        "render -c standrd",
        "render -c xyzzy",
        "render -c missing.toml",
        "render -c empty/",
        "render -c text.toml",
        "render",
        "render -c tuitbot --profile apo",
        "decode",
        "retry --attempt 0",
        "redact --keep tokens",
        "contract new My-Shop",
        "contract new kaiza",
        "contract new shop --output file",
        "contract new shop --output no/such/shop.toml",
        "contract schema kaiza --surface success",
        "audit tail",
        "audit tail no-such",
        "audit verify empty",
        "audit verify file",
        "audit verify empty --key nothing",
        "audit query empty --since yesterday",
        "audit append file/below",
        "wrap",
        "wrap --timeout soon -- true",
        "wrap --tool-timeout search -- true",
        "wrap --name ../x -- true",
        "wrap --config missing.toml -- true",
        "wrap --audit file/below -- true",
        "wrap -- no-such-program",
        "wrap -- ./file",
        "wrap -- ./empty",
        "serve --upstream ftp://x",
        "serve --upstream nowhere",
        "serve --otlp ftp://x",
        "serve --host 0.0.0.0",
        "serve --host here",
        "serve --port 70000",
        "serve --name a/b",
    ];
    insta::assert_snapshot!(mistakes(&dir, &lines));
}

#[test]
fn mistakes_in_settings() {
    let dir = Dir::new();
    let mut all = String::new();
    for text in [
        "timout = \"5s\"\n",
        "timeout = \"soon\"\n",
        "timeout = true\n",
        "contract = \"standrd\"\n",
        "profile = \"api\"\n",
        "contract = \"kaiza\n",
        "arguments = \"sometimes\"\n",
        "log = \"loud\"\n",
        "linger = true\nbusy_poll = true\n",
        "contract = \"kaiza\"\n[redact]\npaths = \"keep\"\n",
        "[limits]\ndepth = \"deep\"\n",
        "[serve]\nport = 70000\n",
        "[serve]\nconnections = 0\n",
        "[serve]\notlp = \"ftp://x\"\n",
        "[serve]\ntrusted_proxies = [\"10.0.0.0/99\"]\n",
        "[[client]]\nrole = \"a\"\n",
        "[[client]]\nname = \"a\"\n[[client]]\nname = \"a\"\n",
        "[[client]]\nname = \"a\"\ntoken_env = \"NOT_SET\"\n",
        "[[client]]\nname = \"a\"\ntoken_file = \"missing\"\n",
        "[[client]]\nname = \"a\"\ntoken_file = \"blank\"\n",
        "[[client]]\nname = \"a\"\ntoken_env = \"A\"\ntoken_file = \"b\"\n",
        "[[client]]\nname = \"a\"\ntools = [\"!x\"]\n",
        "[[client]]\nname = \"a\"\ntools = [\"a b\"]\n",
        "[[client]]\nname = \"a\"\ntools = [\"\"]\n",
        "[[client]]\nname = \"a\"\ntools = [\"[abc\"]\n",
        "[[client]]\nname = \"a\"\nrate = \"often\"\n",
        "[[client]]\nname = \"a\"\nrate = \"0/s\"\n",
        "[[client]]\nname = \"a\"\nbudget = \"5/s\"\n",
        "[[mount]]\nname = \"a\"\n",
        "[[mount]]\nname = \"a b\"\ncommand = [\"x\"]\n",
        "[[mount]]\nname = \"a\"\nurl = \"ftp://x\"\n",
        "[[mount]]\nname = \"a\"\ncommand = [\"x\"]\n[[mount]]\nname = \"a\"\ncommand = [\"x\"]\n",
    ] {
        std::fs::write(dir.join("blank"), " \n").unwrap();
        std::fs::write(dir.join("faultwire.toml"), text).unwrap();
        let shown = mistakes(&dir, &["serve --port 0 --config faultwire.toml"]);
        let shown = shown.split_once('\n').unwrap().1;
        write!(all, "{text}{shown}").unwrap();
    }
    insta::assert_snapshot!(all);
}

#[test]
fn a_port_in_use() {
    let dir = Dir::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let said = mistakes(&dir, &[&format!("serve --port {port}")]).replace(&port, "PORT");
    insta::assert_snapshot!(said);
}
