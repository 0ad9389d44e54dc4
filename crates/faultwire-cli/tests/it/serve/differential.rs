//! What the guards judged is what the server reads (X1): generated requests go through the gateway
//! as a client that may only call `read_*`; whatever reaches the server is read by Python, Node and
//! Go, and none of them may see a method, tool, id or arguments that were not judged.
//!
//! `FAULTWIRE_SEED` repeats a run, `FAULTWIRE_CASES` sets its length (a million takes a while).

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::serve::cases::{Random, case, free_case};
use crate::serve::http::Connection;
use crate::serve::recorder::{FREE, LIMITED, Recorder};
use crate::support::Dir;

const CASES: u64 = 20_000;
const THREADS: u64 = 8;

#[test]
fn x1_every_parser_reads_what_the_guards_judged() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let cases = number("FAULTWIRE_CASES").unwrap_or(CASES);
    let seed = number("FAULTWIRE_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("FAULTWIRE_SEED={seed}");
    // A set of open questions may not hold up the calls of a session.
    let recorder = Recorder::new("[limits]\nin_flight = 4096\n[serve]\nsessions = 64\n");
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let recorder = &recorder;
            scope.spawn(move || drive(recorder, seed.wrapping_add(thread), cases / THREADS));
        }
    });
    let lines = std::fs::read(recorder.file()).unwrap();
    let lines: Vec<&[u8]> =
        lines.split_inclusive(|b| *b == b'\n').filter(|l| is_of_case(l)).collect();
    let share = lines.len() as u64 * 100 / cases;
    println!("{} of {cases} cases reached the server", lines.len());
    assert!(share >= 30, "only {share} % of the cases pass, so they show little; seed {seed}");
    let judged: Vec<Vec<Value>> = lines.iter().map(|line| judged(line)).collect();
    let mut unjudged = Vec::new();
    for (reader, seen) in readers(&lines) {
        assert_eq!(seen.len(), lines.len(), "{reader}");
        for ((line, judged), seen) in lines.iter().zip(&judged).zip(&seen) {
            let seen = seen.as_array().unwrap();
            let fine = seen
                .iter()
                .all(|message| judged.iter().any(|j| same(j, message)) && is_allowed(message));
            if !fine {
                unjudged
                    .push(format!("{reader} sees {seen:?} in {}", String::from_utf8_lossy(line)));
            }
        }
    }
    assert!(
        unjudged.is_empty(),
        "seed {seed}, {}: {}",
        unjudged.len(),
        unjudged[..unjudged.len().min(5)].join("\n")
    );
}

/// Not the greeting, nor what the gateway asks itself.
fn is_of_case(line: &[u8]) -> bool {
    let text = String::from_utf8_lossy(line);
    !text.contains("\"hello\"")
        && !text.contains("\"faultwire-")
        && !text.contains("notifications/initialized")
}

/// What the guards judged: the line as one strict parser reads it.
fn judged(line: &[u8]) -> Vec<Value> {
    let value: Value = serde_json::from_slice(line).unwrap_or_default();
    let all = match value {
        Value::Array(all) => all,
        one => vec![one],
    };
    let view = |m: &Value| {
        let method = m["method"].as_str()?;
        let param = |name: &str| m["params"].get(name).cloned().unwrap_or_default();
        Some(Value::from(vec![method.into(), param("name"), m["id"].clone(), param("arguments")]))
    };
    all.iter().filter_map(view).collect()
}

/// Numbers are compared as doubles: that is what JavaScript has.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let has = |(name, value): (&String, &Value)| {
                other.get(name).is_some_and(|other| same(value, other))
            };
            one.len() == other.len() && one.iter().all(has)
        }
        // Half of a surrogate pair has no form that all languages share.
        (Value::String(one), Value::String(other)) => one == other || other.contains('\u{fffd}'),
        _ => one == other,
    }
}

fn is_allowed(message: &Value) -> bool {
    let method = message[0].as_str().unwrap_or_default();
    let name = message[1].as_str().unwrap_or_default();
    let is_call = method.trim().to_lowercase().replace('ſ', "s") == "tools/call";
    let is_judged = method == "tools/call" && name.starts_with("read_") && !message[2].is_null();
    !is_call || is_judged
}

/// What each reader sees in each line.
fn readers(lines: &[&[u8]]) -> Vec<(&'static str, Vec<Value>)> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/serve/readers");
    let source = |name: &str| sources.join(name).display().to_string();
    let dir = Dir::new();
    let go = dir.join("reader");
    let built = Command::new("go")
        .args(["build", "-o", &go, &source("reader.go")])
        .env("GO111MODULE", "off")
        .output();
    let built = built.expect("go is needed: apt-get install golang-go");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let commands = [
        ("Python", vec!["python3".to_owned(), source("reader.py"), "last".to_owned()]),
        ("first member", vec!["python3".to_owned(), source("reader.py"), "first".to_owned()]),
        ("C", vec!["python3".to_owned(), source("reader.py"), "c".to_owned()]),
        ("Node", vec!["node".to_owned(), source("reader.js")]),
        ("Go", vec![go]),
    ];
    let mut all = Vec::new();
    for (name, command) in commands {
        let mut child = Command::new(&command[0])
            .args(&command[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        let mut stdin = child.stdin.take().unwrap();
        let input = lines.concat();
        let writer = std::thread::spawn(move || stdin.write_all(&input).unwrap());
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        assert!(output.status.success(), "{name}");
        let text = String::from_utf8(output.stdout).unwrap();
        all.push((name, text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()));
    }
    all
}

/// Sends its share of the cases, in one session and without one; some as a client that may call
/// everything.
fn drive(recorder: &Recorder, seed: u64, cases: u64) {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let session = recorder.begin(LIMITED);
    let free = recorder.begin(FREE);
    let mut connection = Connection::new(&recorder.gateway.address);
    for number in 0..cases {
        let id = seed.wrapping_mul(1_000_003) % 1_000_000_000 + number;
        if random.one_in(8) {
            let request = recorder.request(FREE, Some(&free));
            connection.send(&request.body(free_case(&mut random, id)));
            continue;
        }
        let body = case(&mut random, id);
        let request = if random.one_in(4) {
            let name = if random.one_in(8) { "delete_all" } else { "read_a" };
            let request =
                recorder.request(LIMITED, None).header("mcp-protocol-version", "2026-07-28");
            request.header("mcp-method", "tools/call").header("mcp-name", name)
        } else {
            recorder.request(LIMITED, Some(&session))
        };
        connection.send(&request.body(body));
    }
}
