//! The words of JSON-RPC and MCP: what we write, and what can still be read of a broken line.

use std::fmt::Display;

use faultwire_contract::peek;
use hyper::header::HeaderName;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

pub(crate) const INITIALIZE: &str = "initialize";
pub(crate) const LISTEN: &str = "subscriptions/listen";
pub(crate) const DISCOVER: &str = "server/discover";
pub(crate) const PING: &str = "ping";
/// What a user may have to think about.
pub(crate) const SAMPLE: &str = "sampling/createMessage";
pub(crate) const ROOTS: &str = "roots/list";
/// The member of an error's data that has addresses to open.
pub(crate) const ELICITATIONS: &str = "elicitations";
pub(crate) const ELICIT: &str = "elicitation/create";
pub(crate) const TOOLS_CALL: &str = "tools/call";
pub(crate) const TOOLS_LIST: &str = "tools/list";
pub(crate) const INITIALIZED: &str = "notifications/initialized";
pub(crate) const CANCELLED: &str = "notifications/cancelled";
pub(crate) const PROGRESS: &str = "notifications/progress";
pub(crate) const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
/// The member of `_meta` that only requests of the modern era have.
pub(crate) const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(crate) const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub(crate) const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";

/// The headers of MCP over HTTP.
pub(crate) static SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub(crate) static VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(crate) static TRACE: HeaderName = HeaderName::from_static("traceparent");

/// The request could not be read.
pub(crate) const PARSE_ERROR: i64 = -32700;
/// Not a valid request.
pub(crate) const INVALID_REQUEST: i64 = -32600;
pub(crate) const UNKNOWN_METHOD: i64 = -32601;
pub(crate) const INVALID_PARAMS: i64 = -32602;
const INTERNAL: i64 = -32603;

/// What the protocol does with an error beside telling it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// Nothing.
    Failure,
    /// Its data has a form that the protocol fixes and clients go on with: versions to choose
    /// from, capabilities to declare, headers to fix. It is a failure, and keeps that form.
    Negotiation,
    /// It asks the user to open an address, and is no failure at all in the legacy era.
    Elicitation,
}

impl Flow {
    pub(crate) fn of(number: Option<i64>) -> Self {
        match number {
            Some(-32022..=-32020) => Self::Negotiation,
            Some(-32042) => Self::Elicitation,
            _ => Self::Failure,
        }
    }
}

/// Whether an error that says so really has addresses for the user to open.
pub(crate) fn asks_for_urls(line: &[u8]) -> bool {
    let reply: Option<Value> = serde_json::from_slice(line).ok();
    let asked = reply.as_ref().map(|reply| &reply["error"]["data"][ELICITATIONS]);
    let has_url = |asked: &Value| asked["url"].is_string();
    asked.and_then(Value::as_array).is_some_and(|all| !all.is_empty() && all.iter().all(has_url))
}

/// A number of the legacy era as the modern one has it, which keeps what lies between -32099 and
/// -32020 to itself, and has no number of its own for what is not found.
pub(crate) fn modern_number(number: i64) -> i64 {
    match number {
        -32002 => INVALID_PARAMS,
        -32022..=-32020 => number,
        -32099..=-32020 => INTERNAL,
        _ => number,
    }
}

/// `{"jsonrpc":"2.0","id":…,"result":…}` and a line end.
pub(crate) fn result(id: &str, write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut line = Vec::with_capacity(2048);
    line.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    line.extend_from_slice(id.as_bytes());
    line.extend_from_slice(br#","result":"#);
    write(&mut line);
    line.extend_from_slice(b"}\n");
    line
}

/// A JSON-RPC error and a line end. The id of a request that could not be read is left out, as MCP
/// wants it: official clients take no `null`.
pub(crate) fn error(id: Option<&str>, number: i64, message: &str, data: &[u8]) -> Vec<u8> {
    let mut line = Vec::with_capacity(data.len() + message.len() + 80);
    line.extend_from_slice(br#"{"jsonrpc":"2.0""#);
    if let Some(id) = id {
        line.extend_from_slice(br#","id":"#);
        line.extend_from_slice(id.as_bytes());
    }
    let head = format!(r#","error":{{"code":{number},"message":{},"data":"#, Value::from(message));
    line.extend_from_slice(head.as_bytes());
    line.extend_from_slice(data);
    line.extend_from_slice(b"}}\n");
    line
}

/// A reply with this error, unchanged.
pub(crate) fn error_reply(id: &str, error: &Value) -> Vec<u8> {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}\n").into_bytes()
}

/// Whether it is `00-TRACE-PARENT-FLAGS`, as the trace context has it.
pub(crate) fn is_traceparent(text: &str) -> bool {
    let mut parts = text.trim().split('-');
    let mut hex = |length: usize| {
        let part = parts.next().filter(|part| part.len() == length)?;
        part.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')).then_some(part)
    };
    let is_one = |part: &str| part.bytes().any(|b| b != b'0');
    let (version, trace, parent, flags) = (hex(2), hex(32), hex(16), hex(2));
    let whole = version != Some("00") || parts.next().is_none();
    whole
        && version.is_some_and(|version| version != "ff")
        && trace.is_some_and(is_one)
        && parent.is_some_and(is_one)
        && flags.is_some()
}

/// Whose a message is, of those who listen to a shared server.
pub(crate) fn subscription(params: Option<&str>) -> Option<&RawValue> {
    let meta: &RawValue = member(params?, "_meta")?;
    member(meta.get(), "io.modelcontextprotocol/subscriptionId")
}

/// An envelope with members beside its own. One that is no object becomes a member itself.
pub(crate) fn merged(envelope: &[u8], beside: &Value) -> Vec<u8> {
    let envelope: Value = serde_json::from_slice(envelope).unwrap_or_default();
    let mut all = match envelope {
        Value::Object(members) => members,
        other => serde_json::Map::from_iter([("envelope".to_owned(), other)]),
    };
    for (name, value) in beside.as_object().into_iter().flatten() {
        all.entry(name).or_insert_with(|| value.clone());
    }
    Value::Object(all).to_string().into_bytes()
}

/// The same progress under another token.
pub(crate) fn progress_under(line: &[u8], token: &str) -> Vec<u8> {
    let Ok(mut message) = serde_json::from_slice::<Value>(line) else { return line.to_vec() };
    if let Some(place) = message.pointer_mut("/params/progressToken") {
        *place = serde_json::from_str(token).unwrap_or_default();
    }
    format!("{message}\n").into_bytes()
}

/// Cancels a request.
pub(crate) fn cancelled(id: &str, reason: &str) -> Vec<u8> {
    let reason = Value::from(reason);
    format!(
        r#"{{"jsonrpc":"2.0","method":"{CANCELLED}","params":{{"requestId":{id},"reason":{reason}}}}}{}"#,
        '\n'
    )
    .into_bytes()
}

/// Tells the client that the tools are others now.
pub(crate) fn tools_changed() -> Vec<u8> {
    let line = json!({ "jsonrpc": "2.0", "method": TOOLS_CHANGED });
    format!("{line}\n").into_bytes()
}

/// A request of our own. The id is written already.
pub(crate) fn request(id: &str, method: &str, params: impl Display) -> Vec<u8> {
    let method = Value::from(method);
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":{method},\"params\":{params}}}\n")
        .into_bytes()
}

/// Asks for a page of the tool list.
pub(crate) fn list_tools(id: &str, cursor: Option<&str>, meta: Option<&Value>) -> Vec<u8> {
    let mut params = serde_json::Map::new();
    if let Some(cursor) = cursor {
        params.insert("cursor".to_owned(), cursor.into());
    }
    if let Some(meta) = meta {
        params.insert("_meta".to_owned(), meta.clone());
    }
    let id: Value = serde_json::from_str(id).unwrap_or_default();
    let line = json!({ "jsonrpc": "2.0", "id": id, "method": TOOLS_LIST, "params": params });
    format!("{line}\n").into_bytes()
}

/// The members of params that can be read on their own.
pub(crate) fn member<'a, T: Deserialize<'a>>(params: &'a str, name: &str) -> Option<T> {
    let members: std::collections::HashMap<std::borrow::Cow<'a, str>, &'a RawValue> =
        serde_json::from_str(params).ok()?;
    serde_json::from_str(members.get(name)?.get()).ok()
}

/// The number that an id means, for servers that send it back in another form.
pub(crate) fn number(id: &str) -> Option<Number> {
    let bare = id.strip_prefix('"').and_then(|id| id.strip_suffix('"')).unwrap_or(id);
    if let Ok(whole) = bare.parse() {
        return Some(Number::Whole(whole));
    }
    let float = bare.parse::<f64>().ok().filter(|n| n.is_finite())?;
    // Beyond that a double stands for several integers.
    let is_whole = float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0;
    let whole = is_whole.then(|| format!("{float:.0}").parse().ok()).flatten();
    Some(whole.map_or(Number::Other(float), Number::Whole))
}

/// A number as exact as it was written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Whole(i128),
    Other(f64),
}

/// Whether an id is written in a way that has others: with escapes, or as no plain integer.
pub(crate) fn is_odd(id: &str) -> bool {
    match id.strip_prefix('"') {
        Some(text) => text.contains('\\'),
        None => !id.bytes().all(|b| b.is_ascii_digit()) && !is_plain_negative(id),
    }
}

fn is_plain_negative(id: &str) -> bool {
    let digits = id.strip_prefix('-').unwrap_or_default();
    !digits.starts_with('0') && !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

/// Whether two ids are the same text, or the same number, in whichever spelling.
pub(crate) fn same(one: &str, other: &str) -> bool {
    let text = |id: &str| id.starts_with('"').then(|| serde_json::from_str::<String>(id).ok());
    match (text(one), text(other)) {
        (Some(one), Some(other)) => one.is_some() && one == other,
        (None, None) => number(one).is_some() && number(one) == number(other),
        _ => false,
    }
}

/// The id in a line that is no message: seen before the line broke off, or at the very end of
/// what is there.
///
/// ```
/// use faultwire_gateway::salvage_id;
///
/// assert_eq!(salvage_id(br#"{"jsonrpc":"2.0","id":7,"result":{"conte"#).as_deref(), Some("7"));
/// assert_eq!(salvage_id(br#"xxxx"}]},"jsonrpc":"2.0","id":"a"}"#).as_deref(), Some("\"a\""));
/// assert_eq!(salvage_id(b"listening on port 80"), None);
/// ```
#[must_use]
pub fn salvage_id(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_matches(['\0', '\u{feff}', ' ', '\t', '\r', '\n']);
    let seen = peek(text.as_bytes()).id.map(str::to_owned);
    seen.or_else(|| last_id(text)).filter(|id| is_id(id) && id.len() <= 256)
}

/// Whether it is a text or a number that every parser can hold, as ids are.
pub(crate) fn is_id(raw: &str) -> bool {
    match raw.as_bytes().first() {
        Some(b'"') => !raw.contains('\\') || serde_json::from_str::<String>(raw).is_ok(),
        Some(b'-' | b'0'..=b'9') => !is_odd(raw) || number(raw).is_some(),
        _ => false,
    }
}

/// `"id": …}` where the line ends.
fn last_id(text: &str) -> Option<String> {
    let inside = text.strip_suffix('}')?.trim_end();
    let at = inside.rfind("\"id\"")?;
    let id = inside[at + 4..].trim_start().strip_prefix(':')?.trim();
    let scalar: Value = serde_json::from_str(id).ok()?;
    (scalar.is_string() || scalar.is_number()).then(|| id.to_owned())
}
