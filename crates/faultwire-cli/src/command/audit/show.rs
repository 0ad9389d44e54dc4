//! `audit show`: everything that is known about one failure.

use std::io::Read;
use std::path::Path;

use faultwire::audit::{Checkpoints, Disk, Filter, Storage, segment};
use faultwire_contract::{Code, builtin};
use serde_json::Value;

use super::query;
use crate::Done;
use crate::args::audit::ShowArgs;
use crate::edge;
use crate::problem::Problem;
use crate::style::{CODE, DIM, HEAD, paint, plain};

pub fn run(args: &ShowArgs, json: bool) -> Result<Done, Problem> {
    let dir = args.place.log()?;
    let mut records = find(&dir, &args.incident)?;
    records.reverse();
    if records.is_empty() {
        let text = format!("no record of {} in {}\n", plain(&args.incident), dir.display());
        if json {
            edge::print(b"[]\n")?;
        }
        edge::complain(&text);
        return Ok(Done::Findings);
    }
    if json {
        edge::print(format!("{:#}\n", Value::from(records)).as_bytes())?;
        return Ok(Done::Fine);
    }
    let sealed = sealed(&dir);
    let pages: Vec<String> = records.iter().map(|r| page(r, sealed)).collect();
    edge::show(&pages.join("\n"))?;
    Ok(Done::Fine)
}

/// The records of an incident, the newest first.
fn find(dir: &Path, incident: &str) -> Result<Vec<Value>, Problem> {
    let index = query::open(dir)?;
    let by_incident = Filter { incident: Some(incident.to_owned()), ..Filter::default() };
    let by_number = incident.parse().ok().map(|seq| Filter { seq: Some(seq), ..Filter::default() });
    let mut found = Vec::new();
    for filter in [Some(by_incident), by_number].into_iter().flatten() {
        index.find::<Problem>(&filter, None, |line| {
            found.extend(serde_json::from_slice::<Value>(line).ok());
            Ok(())
        })?;
    }
    Ok(found)
}

/// How many records a checkpoint covers.
fn sealed(dir: &Path) -> u64 {
    let mut bytes = Vec::new();
    // A log without checkpoints has nothing signed yet.
    let _ =
        Disk::new(dir).read(segment::CHECKPOINTS).and_then(|mut file| file.read_to_end(&mut bytes));
    Checkpoints::read(bytes, None).map_or(0, |checkpoints| checkpoints.sealed())
}

fn page(record: &Value, sealed: u64) -> String {
    let text = |pointer: &str| record.pointer(pointer).map(shown);
    let title = text("/fault/code").or_else(|| text("/name")).or_else(|| text("/type"));
    let mut out = paint(CODE, &title.unwrap_or_default());
    if let (Some(contract), Some(version)) = (text("/contract"), text("/contract_version")) {
        let category = text("/category").unwrap_or_default();
        let alert = text("/alert").unwrap_or_default();
        out += &paint(DIM, &format!("  {contract} {version}, {category}, alert {alert}"));
    }
    out += "\n\n";
    let mut fact = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|v| !v.is_empty()) {
            out += &format!("  {}  {value}\n", paint(HEAD, &format!("{name:<12}")));
        }
    };
    fact("Incident", text("/fault/incident").or_else(|| text("/incident")));
    fact("Happened", text("/fault/timestamp"));
    fact("Recorded", text("/ts"));
    fact("Client", Some(client(record)));
    fact("Call", Some(call(record)));
    fact("Message", text("/fault/message"));
    fact("Suggestion", text("/fault/suggestion"));
    fact("Retry", retry(record));
    fact("Origin", text("/fault/origin").map(|o| explained(&o, &ORIGINS)));
    fact("Outcome", text("/fault/outcome").map(|o| explained(&o, &OUTCOMES)));
    fact("What to do", row(record).map(|code| code.action));
    fact("Server code", text("/call/upstream_code"));
    fact(
        "Undeclared",
        text("/call/undeclared").map(|_| "the tool's manifest does not list this code".to_owned()),
    );
    fact(
        "Duration",
        text("/call/elapsed_ms").or_else(|| text("/fault/meta/elapsed_ms")).map(|ms| ms + " ms"),
    );
    fact("Arguments", text("/call/arguments"));
    fact("Details", text("/fault/details"));
    fact("Data", text("/fault/data"));
    fact("Cause", text("/private/cause").or_else(|| text("/fault/cause")));
    fact("Full message", text("/private/message"));
    fact("Trace", text("/fault/trace"));
    fact("Facts", text("/facts"));
    fact("Envelope", text("/call/envelope"));
    fact("Record", place(record, sealed));
    if let Some(stack) = record.pointer("/private/stack").or_else(|| record.pointer("/fault/stack"))
    {
        out += &format!("  {}\n", paint(HEAD, "Stack"));
        let lines = stack.as_str().unwrap_or_default().lines();
        lines.for_each(|line| out += &format!("    {}\n", plain(line)));
    }
    out
}

const ORIGINS: [(&str, &str); 4] = [
    ("client", "the request was wrong"),
    ("gateway", "Faultwire itself"),
    ("upstream", "the server, or something behind it"),
    ("policy", "a rule of the operator refused the call"),
];

const OUTCOMES: [(&str, &str); 3] = [
    ("not_sent", "the tool did not receive the call"),
    ("maybe_executed", "the tool may have run"),
    ("executed", "the tool ran"),
];

fn explained(word: &str, meanings: &[(&str, &str)]) -> String {
    let meaning = meanings.iter().find(|(name, _)| *name == word);
    meaning.map_or_else(|| word.to_owned(), |(_, meaning)| format!("{word}: {meaning}"))
}

fn client(record: &Value) -> String {
    let text = |pointer: &str| record.pointer(pointer).map(shown);
    let client = text("/call/client").or_else(|| text("/fault/session/client"));
    let parts = [
        client,
        text("/fault/session/role").map(|role| format!("as {role}")),
        text("/fault/session/id").map(|id| format!("in session {id}")),
        text("/fault/session/phase").map(|phase| format!("in phase {phase}")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(" ")
}

fn call(record: &Value) -> String {
    let text = |pointer: &str| record.pointer(pointer).map(shown);
    let parts = [
        text("/fault/tool"),
        text("/fault/method").map(|method| format!("({method})")),
        text("/call/request").map(|id| format!("request {id}")),
        text("/call/attempt").map(|n| format!("attempt {n}")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(" ")
}

fn retry(record: &Value) -> Option<String> {
    let class = record.pointer("/fault/retry").map(shown)?;
    let after = record.pointer("/fault/retry_after_ms").map(shown);
    Some(after.map_or_else(|| class.clone(), |ms| format!("{class}, in {ms} ms")))
}

/// The code's row, if the contract is built in.
fn row(record: &Value) -> Option<Code> {
    let contract = builtin(record["contract"].as_str()?)?;
    contract.code(record.pointer("/fault/code")?.as_str()?).cloned()
}

fn place(record: &Value, sealed: u64) -> Option<String> {
    let seq = record["seq"].as_u64()?;
    // Whether the record matches what was signed is only known after a full verification.
    let seal = if seq < sealed { "covered by a checkpoint" } else { "not signed yet" };
    Some(format!("{seq} of log {}, {seal}", shown(&record["log"])))
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => plain(text),
        Value::Null => String::new(),
        other => plain(&other.to_string()),
    }
}
