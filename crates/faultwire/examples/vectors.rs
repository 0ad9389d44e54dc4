//! Runs operations of the engine that are read from stdin, one JSON object a line, and prints one
//! line each. `scripts/vectors` runs the same operations in other languages and compares the bytes.

use std::error::Error;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use faultwire::audit::Log;
use faultwire::contract::Contract;
use faultwire::json::{self, Request, Target, View};
use serde::Deserialize;
use serde_json::{Value, json};

/// What is to be done.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Operation {
    op: String,
    contract: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    report: Value,
    #[serde(default)]
    call: Value,
    surface: Option<String>,
    profile: Option<String>,
    #[serde(default)]
    keep: Vec<String>,
    #[serde(default)]
    now_ms: i64,
    #[serde(default)]
    random: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("name a directory for the log")?;
    let log = json::open_log(&folder, "{}")?;
    let mut out = BufWriter::new(io::stdout().lock());
    for line in io::stdin().lines() {
        let operation: Operation = serde_json::from_str(&line?)?;
        let said = match run(&operation, &log) {
            Ok(said) => json!({ "ok": said }),
            Err(error) => json!({ "error": error.to_json() }),
        };
        writeln!(out, "{said}")?;
    }
    out.flush()?;
    Ok(())
}

fn run(given: &Operation, log: &Log) -> Result<String, json::Error> {
    let contract: Arc<Contract> = json::builtin(&given.contract)?;
    let stamp = json!({ "now_ms": given.now_ms, "random": given.random }).to_string();
    let stamp = json::stamp(&contract, Some(&stamp))?;
    let view = given.surface.as_deref().map(View::named).transpose()?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let fault = || json::fault(&contract, given.report.to_string(), &stamp);
    match &*given.op {
        "render" => {
            let profile = given.profile.clone();
            let view = view.unwrap_or_default();
            json::render(&fault()?, &Target { view, profile, ..Target::default() }).map(text)
        }
        "entry" => Ok(json::entry(log, &fault()?, &given.call.to_string())?.as_str().to_owned()),
        "decode" => {
            let profile = given.profile.as_deref();
            json::text_of(&json::read(&contract, given.text.as_bytes(), view, profile)?)
        }
        "classify" => {
            let request = match &given.call {
                Value::Null => Request::default(),
                call => Request::read(&call.to_string())?,
            };
            let line = given.text.as_bytes();
            json::classify(&contract, Some(line), usize::MAX, &request, false).map(text)
        }
        "retry" => {
            let context = json::retry_context(&given.call.to_string())?;
            json::retry(&contract, given.text.as_bytes(), view, &context, &stamp).map(text)
        }
        _ => {
            let keep = given.keep.iter().map(String::as_str);
            json::redact(&given.text, keep, Some(&contract))
        }
    }
}
