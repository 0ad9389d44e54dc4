//! Misbehaviour that no SDK allows.

use std::io::{self, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::tools::text;
use super::{Call, Desk, Next, error};

/// The answer that would have been right.
fn right(call: &Call) -> Value {
    call.answered(text("done"))
}

fn number(call: &Call, name: &str) -> u64 {
    call.arguments[name].as_u64().unwrap_or_default()
}

pub(super) fn slow(desk: &Arc<Desk>, call: &Call) -> Next {
    let (desk, call) = (Arc::clone(desk), call.clone());

    thread::spawn(move || {
        let call = &call;
        thread::sleep(Duration::from_millis(number(call, "ms")));
        desk.say(&right(call));
    });
    Next::GoOn
}

pub(super) fn steps(desk: &Arc<Desk>, call: &Call) -> Next {
    let (desk, call) = (Arc::clone(desk), call.clone());

    thread::spawn(move || {
        let call = &call;
        let count = number(call, "count");
        for step in 1..=count {
            thread::sleep(Duration::from_millis(number(call, "ms")));
            let params = json!({
                "progressToken": call.meta["progressToken"], "progress": step, "total": count,
            });
            desk.say(&json!({
                "jsonrpc": "2.0", "method": "notifications/progress", "params": params,
            }));
        }
        desk.say(&right(call));
    });
    Next::GoOn
}

pub(super) fn ask(desk: &Arc<Desk>, call: &Call) -> Next {
    let (desk, call) = (Arc::clone(desk), call.clone());

    thread::spawn(move || {
        let call = &call;
        let id = format!("ask-{}", call.id);
        let params = json!({
            "message": "Go on?", "requestedSchema": { "type": "object", "properties": {} },
        });
        desk.say(&json!({
            "jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params,
        }));
        let answer = desk.answer_to(&id);
        let said = answer["result"]["action"].as_str().unwrap_or("nothing");
        desk.say(&call.answered(text(said)));
    });
    Next::GoOn
}

pub(super) fn flaky(desk: &Arc<Desk>, call: &Call) -> Next {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    if CALLS.fetch_add(1, Ordering::Relaxed) % 3 < 2 {
        desk.say(&error(&call.id, -32000, "connect ECONNREFUSED: the database is not reachable"));
    } else {
        desk.say(&right(call));
    }
    Next::GoOn
}

pub(super) fn crash_after(desk: &Arc<Desk>, call: &Call) -> Next {
    desk.say(&right(call));
    Next::Exit(101)
}

pub(super) fn half(desk: &Arc<Desk>, call: &Call) -> Next {
    let line = right(call).to_string();
    desk.write(&line.as_bytes()[..line.len() / 2]);
    Next::Exit(0)
}

pub(super) fn last_words(desk: &Arc<Desk>, call: &Call) -> Next {
    desk.write(right(call).to_string().as_bytes());
    Next::Exit(0)
}

/// The process that is left behind keeps stdout open.
pub(super) fn orphan(_: &Arc<Desk>, _: &Call) -> Next {
    let started = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn();
    Next::Exit(if started.is_ok() { 101 } else { 102 })
}

pub(super) fn noise(desk: &Arc<Desk>, call: &Call) -> Next {
    desk.write(b"DEBUG connected to database\n");
    desk.say(&right(call));
    Next::GoOn
}

pub(super) fn malformed(desk: &Arc<Desk>, call: &Call) -> Next {
    let line = right(call).to_string().replace("\"result\":", "\"result\"::");
    desk.write(format!("{line}\n").as_bytes());
    Next::GoOn
}

pub(super) fn truncated(desk: &Arc<Desk>, call: &Call) -> Next {
    let line = right(call).to_string();
    desk.write(format!("{}\n", &line[..line.len() - 6]).as_bytes());
    Next::GoOn
}

/// The right answer with other bytes in the place of its text.
fn garbled(desk: &Desk, call: &Call, bytes: &[u8]) -> Next {
    let line = right(call).to_string();
    let (before, after) = line.split_once("done").unwrap_or((&line, ""));
    desk.write(&[before.as_bytes(), bytes, after.as_bytes(), b"\n"].concat());
    Next::GoOn
}

pub(super) fn not_utf8(desk: &Arc<Desk>, call: &Call) -> Next {
    garbled(desk, call, b"caf\xe9")
}

pub(super) fn nul(desk: &Arc<Desk>, call: &Call) -> Next {
    garbled(desk, call, b"do\0ne")
}

fn around(desk: &Desk, before: &str, call: &Call, after: &str) -> Next {
    desk.write(format!("{before}{}{after}", right(call)).as_bytes());
    Next::GoOn
}

pub(super) fn nul_around(desk: &Arc<Desk>, call: &Call) -> Next {
    around(desk, "\0\0", call, "\n")
}

pub(super) fn bom(desk: &Arc<Desk>, call: &Call) -> Next {
    around(desk, "\u{feff}", call, "\n")
}

pub(super) fn crlf(desk: &Arc<Desk>, call: &Call) -> Next {
    around(desk, "", call, "\r\n")
}

pub(super) fn pretty(desk: &Arc<Desk>, call: &Call) -> Next {
    desk.write(format!("{:#}\n", right(call)).as_bytes());
    Next::GoOn
}

/// The right answer with another id.
fn under(desk: &Desk, id: Value, call: &Call) -> Next {
    desk.say(&right(&Call { id, ..call.clone() }));
    Next::GoOn
}

pub(super) fn unknown_id(desk: &Arc<Desk>, call: &Call) -> Next {
    under(desk, json!(987_654_321), call)
}

pub(super) fn null_id(desk: &Arc<Desk>, call: &Call) -> Next {
    under(desk, Value::Null, call)
}

pub(super) fn no_id(desk: &Arc<Desk>, call: &Call) -> Next {
    let mut answer = right(call);
    if let Some(members) = answer.as_object_mut() {
        members.remove("id");
    }
    desk.say(&answer);
    Next::GoOn
}

pub(super) fn text_id(desk: &Arc<Desk>, call: &Call) -> Next {
    let id = call.id.to_string();
    under(desk, id.trim_matches('"').into(), call)
}

pub(super) fn twice(desk: &Arc<Desk>, call: &Call) -> Next {
    desk.say(&right(call));
    desk.say(&right(call));
    Next::GoOn
}

pub(super) fn both(desk: &Arc<Desk>, call: &Call) -> Next {
    let mut answer = right(call);
    answer["error"] = json!({ "code": -32000, "message": "and yet" });
    desk.say(&answer);
    Next::GoOn
}

pub(super) fn neither(desk: &Arc<Desk>, call: &Call) -> Next {
    desk.say(&json!({ "jsonrpc": "2.0", "id": call.id }));
    Next::GoOn
}

pub(super) fn result_as_text(desk: &Arc<Desk>, call: &Call) -> Next {
    desk.say(&json!({ "jsonrpc": "2.0", "id": call.id, "result": "done" }));
    Next::GoOn
}

/// The id comes last, as the TypeScript SDK writes it.
pub(super) fn endless(_: &Arc<Desk>, call: &Call) -> Next {
    let mut out = io::stdout().lock();
    let mut write = |bytes: &[u8]| out.write_all(bytes).is_ok();
    write(br#"{"result":{"content":[{"type":"text","text":""#);
    let chunk = vec![b'x'; 1024 * 1024];
    for _ in 0..number(call, "mib") {
        if !write(&chunk) {
            return Next::Exit(1);
        }
    }
    write(format!("\"}}]}},\"jsonrpc\":\"2.0\",\"id\":{}}}\n", call.id).as_bytes());
    let _ = out.flush();
    Next::GoOn
}

pub(super) fn deep(desk: &Arc<Desk>, call: &Call) -> Next {
    let levels = usize::try_from(number(call, "levels")).unwrap_or_default();
    let (open, close) = ("[".repeat(levels), "]".repeat(levels));
    let result = format!(r#"{{"content":[],"structuredContent":{{"a":{open}{close}}}}}"#);
    desk.write(
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{result}}}\n", call.id).as_bytes(),
    );
    Next::GoOn
}

pub(super) fn batch(desk: &Arc<Desk>, call: &Call) -> Next {
    desk.say(&json!([right(call)]));
    Next::GoOn
}
