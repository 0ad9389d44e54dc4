//! Generated requests that parsers may read differently.

use crate::serve::recorder::QUESTIONS;

pub(super) struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn one_in(&mut self, n: u64) -> bool {
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

    fn place(&mut self, length: usize) -> usize {
        usize::try_from(self.next() % (length as u64 + 1)).unwrap_or(0)
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
pub(super) fn case(random: &mut Random, id: u64) -> Vec<u8> {
    let id = random.id(id);
    let trick = if random.one_in(2) { random.next() % 25 } else { u64::MAX };
    if let Some(body) = whole_body(random, trick, &id) {
        return body.into_bytes();
    }
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
    change_params(random, trick, &mut params);
    change_top(random, trick, &mut top);
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

/// A body of a client that may call everything: what it must not get past are the checks that hold
/// for all clients.
pub(super) fn free_case(random: &mut Random, id: u64) -> Vec<u8> {
    let id = match random.next() % 4 {
        0 => String::new(),
        _ => format!("\"id\":{},", random.id(id)),
    };
    let method =
        random.pick(&["tools/call", "ping", "Tools/Call", "tools/call\u{a0}", "TOOLS/CALL"]);
    let params = match random.next() % 3 {
        0 => r#"["read_a",{"x":1}]"#.to_owned(),
        _ => format!(r#"{{"name":"read_a","arguments":{{"x":{}}},{META}}}"#, random.value(2)),
    };
    format!(r#"{{"jsonrpc":"2.0",{id}"method":"{method}","params":{params}}}"#).into_bytes()
}

const EVIL: &str = r#"{"name":"delete_all","arguments":{}}"#;

fn evil_call(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{EVIL}}}"#)
}

/// The tricks that are a body of their own.
fn whole_body(random: &mut Random, trick: u64, id: &str) -> Option<String> {
    let question = random.next() % QUESTIONS;
    Some(match trick {
        15 => format!(r#"["delete_all",{{}}]{}"#, evil_call("4712")),
        16 => format!(
            r#"{{"id":{question},"m\u0065thod":"tools/call","params":{EVIL},"params":{{}}}}"#
        ),
        17 => format!(r#"{{"jsonrpc":"2.0","id":{question},"result":{{"roots":[]}}}}"#),
        18 => {
            format!(r#"{{"id":{question},"result":{{}},"Method":"tools/call","params":{EVIL}}}"#)
        }
        19 => {
            let cancelled = r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#;
            format!("[{},{cancelled}]", evil_call(id))
        }
        20 => format!("\u{feff}{}", evil_call(id)),
        21 => format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":["delete_all"]}}"#
        ),
        _ => return None,
    })
}

fn change_params(random: &mut Random, trick: u64, params: &mut Vec<String>) {
    let place = random.place(params.len());
    match trick {
        0 => params.insert(place, format!("{}:\"delete_all\"", random.name("name"))),
        1 => params.insert(place, format!("{}:\"delete_all\"", random.folded("name"))),
        6 => params.push(format!("{}:{{\"y\":1}}", random.folded("arguments"))),
        7 => {
            let name = random.name("a");
            let twice = format!("{{\"a\":1,\"b\":{},{name}:\"delete_all\"}}", random.value(2));
            let x = match random.next() % 3 {
                0 => twice,
                1 => format!("[{twice}]"),
                _ => format!("{{\"c\":{twice}}}"),
            };
            params[1] = format!("\"arguments\":{{\"x\":{x}}}");
        }
        9 => params[1] = format!("\"arguments\":{{\"x\":\r{}\r}}", evil_call("4711")),
        22 if random.one_in(2) => {
            r#""arguments":{"x":{"a\u0000b":"delete_all","a":1}}"#.clone_into(&mut params[1]);
        }
        22 => params.insert(place, "\"name\\u0000x\":\"delete_all\"".to_owned()),
        23 => {
            params[1] = format!("\"arguments\":{{\"x\":{}1{}}}", "[".repeat(200), "]".repeat(200));
        }
        24 => {
            params[1] = format!("\"arguments\":{{\"x\":1,{}:\"delete_all\"}}", random.folded("x"));
        }
        _ => {}
    }
}

fn change_top(random: &mut Random, trick: u64, top: &mut Vec<String>) {
    let place = random.place(top.len());
    match trick {
        2 => top.insert(place, format!("{}:{EVIL}", random.folded("params"))),
        3 => top.push(format!("{}:{EVIL}", random.name("params"))),
        4 => top.insert(place, format!("{}:77", random.folded("id"))),
        5 => top.insert(place, format!("{}:\"tools/call\"", random.folded("method"))),
        8 => {
            let methods = ["Tools/Call", "tools/call ", "TOOLS/CALL", "tool\u{17f}/call"];
            top[2] = format!("\"method\":\"{}\"", random.pick(&methods));
        }
        10 => top.push("\"result\":{}".to_owned()),
        11 => top.push("\"x\":NaN".to_owned()),
        12 => top.push("\"x\":1,".to_owned()),
        13 => top.insert(0, "/**/\"y\":1".to_owned()),
        14 => drop(top.remove(1)),
        _ => {}
    }
}
