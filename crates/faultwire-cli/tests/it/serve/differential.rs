//! What the guards judged is what the server reads (X1): generated requests go through the gateway
//! as a client that may only call `read_*`; whatever reaches the server is read by Python, Node and
//! Go, and none of them may see a tool, method or id that was not judged.
//!
//! `FAULTWIRE_SEED` repeats a run, `FAULTWIRE_CASES` sets its length (a million takes a while).

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::serve::http::Connection;
use crate::serve::recorder::{QUESTIONS, Recorder};
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
        let name = m["params"].get("name").cloned().unwrap_or_default();
        Some(Value::from(vec![method.into(), name, m["id"].clone()]))
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
        // Half of a surrogate pair has no form that all languages share.
        (Value::String(one), Value::String(other)) => one == other || other.contains('\u{fffd}'),
        _ => one == other,
    }
}

fn is_allowed(message: &Value) -> bool {
    let method = message[0].as_str().unwrap_or_default().trim().to_lowercase().replace('ſ', "s");
    let name = message[1].as_str().unwrap_or_default();
    method != "tools/call" || name.starts_with("read_") && !message[2].is_null()
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
        ("Python", vec!["python3".to_owned(), source("reader.py")]),
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

/// Sends its share of the cases, in one session and without one.
fn drive(recorder: &Recorder, seed: u64, cases: u64) {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let session = recorder.begin();
    let mut connection = Connection::new(&recorder.gateway.address);
    for number in 0..cases {
        let id = seed.wrapping_mul(1_000_003) % 1_000_000_000 + number;
        let body = case(&mut random, id);
        let request = if random.one_in(4) {
            let name = if random.one_in(8) { "delete_all" } else { "read_a" };
            let request = recorder.request(None).header("mcp-protocol-version", "2026-07-28");
            request.header("mcp-method", "tools/call").header("mcp-name", name)
        } else {
            recorder.request(Some(&session))
        };
        connection.send(&request.body(body));
    }
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.next().is_multiple_of(n)
    }

    fn pick<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[usize::try_from(self.next() % all.len() as u64).unwrap()]
    }

    /// A member's name, in one of its spellings.
    fn name(&mut self, name: &str) -> String {
        if !self.one_in(4) {
            return format!("\"{name}\"");
        }
        let at = usize::try_from(self.next()).unwrap_or(0) % name.len();
        let (before, rest) = name.split_at(at);
        let c = rest.chars().next().unwrap();
        format!("\"{before}\\u{:04x}{}\"", c as u32, &rest[c.len_utf8()..])
    }

    /// A name that is not the protocol's, and may be taken for it.
    fn folded(&mut self, name: &str) -> String {
        let folded = match self.next() % 6 {
            0 => name.to_uppercase(),
            1 => name[..1].to_uppercase() + &name[1..],
            2 => name.replacen('s', "\u{17f}", 1),
            3 => name.replacen('s', "\\u017f", 1),
            4 => name.replacen('k', "\u{212a}", 1).to_uppercase(),
            _ => name.replacen('a', "A", 1).replacen('e', "E", 1),
        };
        format!("\"{folded}\"")
    }

    fn blank(&mut self) -> &'static str {
        self.pick(&["", "", "", " ", "\t", "\r", "\n ", " \r\n"])
    }

    fn value(&mut self, depth: u32) -> String {
        match self.next() % if depth == 0 { 6 } else { 9 } {
            0 => self.next().to_string(),
            1 => self.pick(&["1e3", "-0", "0.5", "1E-2", "-7", "9007199254740993"]).to_owned(),
            2 => self.pick(&["true", "false", "null"]).to_owned(),
            3 => "\"caf\u{e9} \u{1f98a}\"".to_owned(),
            4 => r#""\ud83e\udd8a \"quoted\" \\ \n""#.to_owned(),
            5 => self
                .pick(&[r#""{\"method\":\"tools/call\"}""#, "\"a\u{2028}b\"", "\"\""])
                .to_owned(),
            6 => format!("[{},{}]", self.value(depth - 1), self.value(depth - 1)),
            7 => "{}".to_owned(),
            _ => format!("{{\"a\":{},\"Name\":{}}}", self.value(depth - 1), self.value(depth - 1)),
        }
    }

    fn id(&mut self, id: u64) -> String {
        match self.next() % 6 {
            0 => format!("\"{id}\""),
            1 => format!("\"\\u0069-{id}\""),
            2 => format!("-{id}"),
            3 => format!("{id}.5"),
            _ => id.to_string(),
        }
    }
}

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// One body: about half are harmless, the others are tricks.
fn case(random: &mut Random, id: u64) -> Vec<u8> {
    let id = random.id(id);
    let tool = if random.one_in(12) { "delete_all" } else { random.pick(&["read_a", "read_b"]) };
    let name = random.name("name");
    let mut params = vec![format!("{name}:{}\"{tool}\"", random.blank())];
    params.push(format!("{}:{{\"x\":{}}}", random.name("arguments"), random.value(4)));
    params.push(META.to_owned());
    let mut top = vec![
        "\"jsonrpc\":\"2.0\"".to_owned(),
        format!("{}:{id}", random.name("id")),
        format!("{}:{}\"tools/call\"", random.name("method"), random.blank()),
    ];
    let evil = r#"{"name":"delete_all","arguments":{}}"#;
    let whole = |id: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{evil}}}"#)
    };
    let question = random.next() % QUESTIONS;
    let trick = if random.one_in(2) { random.next() % 24 } else { u64::MAX };
    match trick {
        0 => params
            .insert(random.place(params.len()), format!("{}:\"delete_all\"", random.name("name"))),
        1 => params.insert(
            random.place(params.len()),
            format!("{}:\"delete_all\"", random.folded("name")),
        ),
        2 => top.insert(random.place(top.len()), format!("{}:{evil}", random.folded("params"))),
        3 => top.push(format!("{}:{evil}", random.name("params"))),
        4 => top.insert(random.place(top.len()), format!("{}:77", random.folded("id"))),
        5 => top
            .insert(random.place(top.len()), format!("{}:\"tools/call\"", random.folded("method"))),
        6 => params.push(format!("{}:{{\"y\":1}}", random.folded("arguments"))),
        7 => params[1] = format!("\"arguments\":{{\"a\":1,\"a\":{id}}}"),
        8 => {
            top[2] = format!(
                "\"method\":\"{}\"",
                random.pick(&["Tools/Call", "tools/call ", "TOOLS/CALL", "tool\u{17f}/call"])
            );
        }
        9 => params[1] = format!("\"arguments\":\r{}\r", whole("4711")),
        10 => top.push("\"result\":{}".to_owned()),
        11 => top.push("\"x\":NaN".to_owned()),
        12 => top.push("\"x\":1,".to_owned()),
        13 => top.insert(0, "/**/\"y\":1".to_owned()),
        14 => drop(top.remove(1)),
        15 => return format!(r#"["delete_all",{{}}]{}"#, whole("4712")).into_bytes(),
        16 => {
            return format!(
                r#"{{"id":{question},"m\u0065thod":"tools/call","params":{evil},"params":{{}}}}"#
            )
            .into_bytes();
        }
        17 => {
            return format!(r#"{{"jsonrpc":"2.0","id":{question},"result":{{"roots":[]}}}}"#)
                .into_bytes();
        }
        18 => {
            return format!(
                r#"{{"id":{question},"result":{{}},"Method":"tools/call","params":{evil}}}"#
            )
            .into_bytes();
        }
        19 => {
            return format!(
                "[{},{}]",
                whole(&id),
                r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#
            )
            .into_bytes();
        }
        20 => return format!("\u{feff}{}", whole(&id)).into_bytes(),
        21 => {
            return format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":["delete_all"]}}"#
            )
            .into_bytes();
        }
        22 => params.push("\"name\\u0000\":\"delete_all\"".to_owned()),
        23 => {
            params[1] = format!("\"arguments\":{{\"x\":{}1{}}}", "[".repeat(200), "]".repeat(200));
        }
        _ => {}
    }
    let (before, between, after) = (random.blank(), random.blank(), random.blank());
    let params = format!("{{{}}}", params.join(&format!("{between},{before}")));
    if !top.iter().any(|member| member.starts_with("\"params\"")) {
        let member = format!("{}{after}:{params}", random.name("params"));
        top.insert(random.place(top.len()), member);
    }
    let mut body = format!("{before}{{{}}}{after}", top.join(&format!(",{between}"))).into_bytes();
    if random.one_in(40) {
        body.push(0xff);
    }
    body
}

impl Random {
    fn place(&mut self, length: usize) -> usize {
        usize::try_from(self.next() % (length as u64 + 1)).unwrap_or(0)
    }
}
