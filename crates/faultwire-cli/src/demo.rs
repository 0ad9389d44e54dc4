//! `demo`: calls the bundled server without Faultwire and with it, side by side.

mod screen;
mod session;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use faultwire_contract::{Contract, DEFAULT, Surface};
use serde::Serialize;
use serde_json::{Value, json};

use crate::problem::Problem;
use crate::{Done, edge, resolve};
use screen::Screen;
use session::{DemoSession, Heard};

/// A client without a deadline would wait for ever; this one waits long enough to show it.
const PATIENCE: Duration = Duration::from_secs(3);

/// Calls that show one thing each.
const SCENES: [Scene; 9] = [
    Scene::new("add", r#"{"a":1,"b":2}"#, "a success", Point::Next),
    Scene::new("ecko", r#"{"text":"hi"}"#, "an unknown tool", Point::Next),
    Scene::new("echo", r#"{"txt":"hi"}"#, "a misspelt argument", Point::Next),
    Scene::new("missing_file", "{}", "a missing file", Point::Words),
    Scene::new("leak", "{}", "a leaked password", Point::Words),
    Scene::new("soft_failure", "{}", "a false success", Point::Words),
    Scene::new("rate_limited", "{}", "too many requests", Point::Next),
    Scene::new("crash", "{}", "a crash", Point::Next),
    Scene::new("hang", "{}", "no answer", Point::Next),
];

struct Scene {
    tool: &'static str,
    arguments: &'static str,
    shows: &'static str,
    point: Point,
}

/// Which part of an answer to show on a terminal that has no space for both.
#[derive(PartialEq, Eq)]
enum Point {
    /// The server's words.
    Words,
    /// What to do now.
    Next,
}

impl Scene {
    const fn new(
        tool: &'static str,
        arguments: &'static str,
        shows: &'static str,
        point: Point,
    ) -> Self {
        Self { tool, arguments, shows, point }
    }
}

/// The outcome of a scene on one side.
#[derive(Serialize)]
struct Side {
    saw: String,
    waited_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logged: Option<String>,
    #[serde(skip)]
    good: bool,
}

pub fn run(json: bool) -> Result<Done, Problem> {
    let contract = resolve::contract(DEFAULT)?;
    // A random name, so that no other user can have created it beforehand.
    let log = std::env::temp_dir().join(format!("faultwire-demo-{:08x}", edge::random() >> 32));
    let program = edge::program().display().to_string();
    let server = [program.as_str(), "demo-server"];
    let place = log.display().to_string();
    let wrap =
        [&program, "wrap", "--log", "off", "--audit", &place, "--tool-timeout", "hang=1s", "--"];
    let wrapped: Vec<&str> = wrap.into_iter().chain(server).collect();
    let mut with = DemoSession::start(&wrapped)?;
    let screen = Screen::of(edge::terminal());
    if !json {
        edge::show(&screen.heading(&contract))?;
    }
    let (mut scenes, mut holds) = (Vec::new(), true);
    for scene in &SCENES {
        // Without Faultwire, the server may not survive its scene.
        let mut alone = DemoSession::start(&server)?;
        let without = without(&mut alone, scene);
        let with = with_it(&mut with, scene, &contract, &log);
        holds &= with.good && with.code.is_some() == with.logged.is_some();
        if json {
            scenes.push(json!({ "tool": scene.tool, "shows": scene.shows, "without": without, "with": with }));
        } else {
            edge::show(&screen.row(scene, &without, &with))?;
        }
    }
    drop(with);
    if json {
        edge::print(format!("{:#}\n", json!({ "audit": place, "scenes": scenes })).as_bytes())?;
    } else {
        edge::show(&screen.closing(&place, holds))?;
    }
    Ok(if holds { Done::Fine } else { Done::Findings })
}

fn without(session: &mut DemoSession, scene: &Scene) -> Side {
    let (heard, waited) = session.call(scene.tool, scene.arguments, PATIENCE);
    let (saw, good) = match heard {
        Heard::Reply(reply) => (words_of(&reply), scene.tool == "add"),
        Heard::NoJson(line) => (format!("not JSON: {line}"), false),
        Heard::Nothing => ("no answer, ever".to_owned(), false),
        Heard::Closed => ("connection closed".to_owned(), false),
    };
    Side { good, ..Side::of(saw, waited) }
}

impl Side {
    /// Without a code.
    fn of(saw: String, waited: Duration) -> Self {
        let waited_ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
        Self { saw, waited_ms, code: None, retry: None, next: None, logged: None, good: true }
    }
}

fn with_it(session: &mut DemoSession, scene: &Scene, contract: &Arc<Contract>, log: &Path) -> Side {
    let (heard, waited) = session.call(scene.tool, scene.arguments, PATIENCE);
    let reply = match heard {
        Heard::Reply(reply) => reply,
        Heard::NoJson(_) | Heard::Nothing | Heard::Closed => Value::Null,
    };
    let text = words_of(&reply);
    let read = contract.read_any(Surface::Mcp, text.as_bytes()).ok();
    let Some((fault, _)) = read else {
        let good = reply["result"].is_object();
        return Side { good, ..Side::of(text, waited) };
    };
    let class = fault.retry.unwrap_or(faultwire_contract::RetryClass::Never);
    let retry = match (class.is_retryable(), fault.retry_after_ms) {
        (false, _) => "no".to_owned(),
        (true, Some(after)) => format!("after {} s", after.div_ceil(1000)),
        (true, None) => "later".to_owned(),
    };
    let incident = fault.incident.unwrap_or_default();
    Side {
        code: Some(fault.code),
        retry: Some(retry),
        next: fault.next,
        logged: is_logged(log, &incident).then_some(incident),
        ..Side::of(fault.message.unwrap_or_default(), waited)
    }
}

/// What a client shows of a reply.
fn words_of(reply: &Value) -> String {
    if let Some(error) = reply.get("error") {
        return format!("JSON-RPC error {}: {}", error["code"], error["message"]);
    }
    reply["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

/// Whether the log has the incident, now that the client has its envelope.
fn is_logged(log: &Path, incident: &str) -> bool {
    let text = std::fs::read_to_string(log.join("audit-log.jsonl")).unwrap_or_default();
    text.contains(&format!("\"incident\":\"{incident}\""))
}
