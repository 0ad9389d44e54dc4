//! The tools, a row each.

use serde_json::{Value, json};

use super::{Call, Desk, Next, tricks};
use std::sync::Arc;

/// One tool.
pub(super) struct DemoTool {
    pub name: &'static str,
    about: &'static str,
    /// Its arguments, as `name:type`; those with `!` are required.
    takes: &'static [&'static str],
    /// Its structured content, if it declares any, in the same form.
    gives: &'static [&'static str],
    hints: &'static [&'static str],
    pub act: Act,
}

/// What a tool does.
#[derive(Clone, Copy)]
pub(super) enum Act {
    /// Answers with a result.
    Answer(fn(&Value) -> Value),
    /// Answers with a JSON-RPC error.
    Refuse(fn() -> Value),
    /// Misbehaves in a way that no SDK allows.
    Trick(fn(&Arc<Desk>, &Call) -> Next),
}

pub(super) fn find(name: &str) -> Option<&'static DemoTool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

pub(super) fn list() -> Vec<Value> {
    TOOLS.iter().map(DemoTool::described).collect()
}

impl DemoTool {
    fn described(&self) -> Value {
        let hints: serde_json::Map<String, Value> =
            self.hints.iter().map(|hint| ((*hint).to_owned(), true.into())).collect();
        let mut described = json!({
            "name": self.name,
            "description": self.about,
            "inputSchema": schema(self.takes),
            "annotations": hints,
        });
        if !self.gives.is_empty() {
            described["outputSchema"] = schema(self.gives);
        }
        described
    }
}

/// The schema of an object with these members.
fn schema(members: &[&str]) -> Value {
    let named = |member: &&str| {
        let (name, of) = member.trim_end_matches('!').split_once(':').unwrap_or((member, "string"));
        (name.to_owned(), json!({ "type": of }))
    };
    let properties: serde_json::Map<String, Value> = members.iter().map(named).collect();
    let needed: Vec<String> =
        members.iter().filter(|m| m.ends_with('!')).map(|m| named(m).0).collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": needed,
        "additionalProperties": false,
    })
}

const fn tool(name: &'static str, about: &'static str, act: Act) -> DemoTool {
    DemoTool { name, about, takes: &[], gives: &[], hints: &[], act }
}

impl DemoTool {
    const fn takes(self, takes: &'static [&'static str]) -> Self {
        Self { takes, ..self }
    }

    const fn gives(self, gives: &'static [&'static str]) -> Self {
        Self { gives, ..self }
    }

    const fn hints(self, hints: &'static [&'static str]) -> Self {
        Self { hints, ..self }
    }
}

const READ_ONLY: &[&str] = &["readOnlyHint"];

const TOOLS: &[DemoTool] = &[
    // Tools that work.
    tool("echo", "Echoes a text", Act::Answer(echo)).takes(&["text:string!"]).hints(READ_ONLY),
    tool("add", "Adds two numbers", Act::Answer(add))
        .takes(&["a:number!", "b:number!"])
        .hints(READ_ONLY),
    tool("big", "Answers with this many KiB", Act::Answer(big)).takes(&["kib:integer!"]),
    tool("slow", "Answers after this many ms", Act::Trick(tricks::slow)).takes(&["ms:integer!"]),
    tool("steps", "Reports progress, every this many ms", Act::Trick(tricks::steps))
        .takes(&["count:integer!", "ms:integer!"]),
    tool(
        "ask",
        "Asks the client something, and answers with what it said",
        Act::Trick(tricks::ask),
    ),
    // Tools that report a failure.
    tool("missing_file", "Fails because a file does not exist", Act::Answer(missing_file)),
    tool("leak", "Fails with a password and a stack trace in its text", Act::Answer(leak)),
    tool("rate_limited", "Fails because of too many calls", Act::Answer(rate_limited))
        .hints(READ_ONLY),
    tool("soft_failure", "Fails, but reports a success", Act::Answer(soft_failure)),
    tool("wrong_output", "Returns what its outputSchema does not allow", Act::Answer(wrong_output))
        .gives(&["count:integer!"]),
    tool("is_error_as_text", "Writes isError as a text", Act::Answer(is_error_as_text)),
    tool("rpc_error", "Fails with a JSON-RPC error", Act::Refuse(rpc_error)),
    tool(
        "error_as_text",
        "Fails with an error that is a text",
        Act::Refuse(|| "out of cheese".into()),
    ),
    tool(
        "error_without_message",
        "Fails with an error that has no message",
        Act::Refuse(|| json!({ "code": -32000 })),
    ),
    tool("flaky", "Cannot reach its database the first two times", Act::Trick(tricks::flaky))
        .hints(READ_ONLY),
    // Tools that end the server or never answer.
    tool("crash", "Ends in the middle of the call", Act::Trick(|_, _| Next::Exit(101))),
    tool("exit_zero", "Ends with status 0", Act::Trick(|_, _| Next::Exit(0))),
    tool("crash_after", "Answers, then ends", Act::Trick(tricks::crash_after)),
    tool("half", "Ends in the middle of its answer", Act::Trick(tricks::half)),
    tool("last_words", "Ends after an answer without a line end", Act::Trick(tricks::last_words)),
    tool("orphan", "Ends, and leaves a process behind", Act::Trick(tricks::orphan)),
    tool("hang", "Never answers", Act::Trick(|_, _| Next::GoOn)),
    tool("deaf", "Never reads again", Act::Trick(|_, _| Next::Deaf)),
    tool(
        "late",
        "Answers after this many ms, even if the call was cancelled",
        Act::Trick(tricks::slow),
    )
    .takes(&["ms:integer!"]),
    // Tools with malformed answers.
    tool("noise", "Prints to stdout, then answers", Act::Trick(tricks::noise)),
    tool("malformed", "Answers with invalid JSON", Act::Trick(tricks::malformed)),
    tool("truncated", "Answers with the beginning of an answer", Act::Trick(tricks::truncated)),
    tool("not_utf8", "Answers with bytes that are not UTF-8", Act::Trick(tricks::not_utf8)),
    tool("nul", "Answers with a NUL in it", Act::Trick(tricks::nul)),
    tool("nul_around", "Answers with NULs before it", Act::Trick(tricks::nul_around)),
    tool("bom", "Answers after a byte order mark", Act::Trick(tricks::bom)),
    tool("crlf", "Ends its line as on Windows", Act::Trick(tricks::crlf)),
    tool("pretty", "Answers over several lines", Act::Trick(tricks::pretty)),
    tool(
        "unknown_id",
        "Answers with an id that matches no request",
        Act::Trick(tricks::unknown_id),
    ),
    tool("null_id", "Answers with the id null", Act::Trick(tricks::null_id)),
    tool("no_id", "Answers without an id", Act::Trick(tricks::no_id)),
    tool("text_id", "Answers with the id as a text", Act::Trick(tricks::text_id)),
    tool("twice", "Answers twice", Act::Trick(tricks::twice)),
    tool("both", "Answers with a result and an error", Act::Trick(tricks::both)),
    tool("neither", "Answers with neither a result nor an error", Act::Trick(tricks::neither)),
    tool(
        "result_as_text",
        "Answers with a result that is not an object",
        Act::Trick(tricks::result_as_text),
    ),
    tool("endless", "Answers with this many MiB on one line", Act::Trick(tricks::endless))
        .takes(&["mib:integer!"]),
    tool("deep", "Answers with this many levels of nesting", Act::Trick(tricks::deep))
        .takes(&["levels:integer!"]),
    tool("batch", "Answers with a list of answers", Act::Trick(tricks::batch)),
];

pub(super) fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

fn failing(words: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": words }], "isError": true })
}

fn echo(arguments: &Value) -> Value {
    text(arguments["text"].as_str().unwrap_or_default())
}

fn add(arguments: &Value) -> Value {
    let number = |name: &str| arguments[name].as_f64().unwrap_or_default();
    text(&format!("{}", number("a") + number("b")))
}

fn big(arguments: &Value) -> Value {
    let kib = usize::try_from(arguments["kib"].as_u64().unwrap_or(1)).unwrap_or(1);
    text(&"x".repeat(kib * 1024))
}

fn missing_file(_: &Value) -> Value {
    failing("ENOENT: no such file or directory, open '/srv/data/report.txt'")
}

fn leak(_: &Value) -> Value {
    failing(
        "Traceback (most recent call last):\n  File \"/srv/app/db.py\", line 42, in connect\n    \
         raise OperationalError(dsn)\nOperationalError: could not connect to \
         postgres://admin:hunter2@10.0.0.7:5432/prod (password=hunter2)",
    )
}

fn rate_limited(_: &Value) -> Value {
    failing("429 Too Many Requests: retry in 2s")
}

fn soft_failure(_: &Value) -> Value {
    text(r#"{"ok":false,"error":"quota for this month is used up"}"#)
}

fn wrong_output(_: &Value) -> Value {
    let structured = json!({ "count": "three" });
    let text = structured.to_string();
    json!({ "content": [{ "type": "text", "text": text }], "structuredContent": structured })
}

fn is_error_as_text(_: &Value) -> Value {
    json!({ "content": [{ "type": "text", "text": "disk full" }], "isError": "true" })
}

fn rpc_error() -> Value {
    json!({ "code": -32603, "message": "database connection refused" })
}
