//! Two eras on the two sides of a gateway: what one side says, as the other understands it.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use faultwire_contract::Line;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use crate::guard::version::{LEGACY, MODERN};
use crate::handshake::Handshake;
use crate::link::{Link, Phase};
use crate::patched::Patched;
use crate::supervisor::Event;
use crate::wire;

/// Members of an object, as they were written: numbers among them may be longer than ours.
type Members = BTreeMap<String, Box<RawValue>>;

/// What a server speaks, and what it said of itself.
pub(crate) enum Era {
    /// Each request stands for itself.
    Modern,
    /// A handshake comes first, and has been made.
    Legacy { initialized: Value },
}

/// How long a server may be silent to a question of the modern era before it is asked in the
/// legacy one, too: some do not answer at all before the handshake.
const SILENCE: Duration = Duration::from_secs(10);

/// How often to look whether a server is there.
const LOOK: Duration = Duration::from_millis(50);

/// Finds out what a server speaks: it is asked in the modern way, and if it does not like that,
/// greeted in the legacy one. None when it answers neither.
pub(crate) async fn of(link: &Link, patience: Duration) -> Option<Era> {
    let mut discovered = pin!(discover(link, patience));
    let is_modern = tokio::time::timeout(SILENCE.min(patience), discovered.as_mut()).await;
    let is_silent = is_modern.is_err();
    if is_modern.is_ok_and(|discovered| discovered.is_some()) {
        return Some(Era::Modern);
    }
    let greeted = tokio::time::timeout(patience, greet(link, patience));
    let initialized = if is_silent {
        // One that takes long to start answers what it was asked first.
        tokio::select! {
            biased;
            Some(_) = discovered.as_mut() => {
                start_anew(link).await;
                return Some(Era::Modern);
            }
            greeted = greeted => greeted,
        }
    } else {
        greeted.await
    };
    let initialized = initialized.ok().flatten()?;
    let thanks = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{}\"}}\n", wire::INITIALIZED);
    let mut state = link.state();
    state.handshake.agree();
    state.handshake.confirm(thanks.as_bytes());
    drop(state);
    link.tell_server(thanks.as_bytes());
    Some(Era::Legacy { initialized })
}

/// A server that was greeted in the legacy way, and then turned out to be of the modern era, may
/// take that greeting at its word. A process begins once more without it.
async fn start_anew(link: &Link) {
    link.state().handshake = Handshake::default();
    if link.inlet.lock().forget_greeting() {
        return;
    }
    let _ = link.events.send(Event::Refused);
    loop {
        tokio::time::sleep(LOOK).await;
        let state = link.state();
        match state.phase {
            // The new one has answered nothing yet.
            Phase::Up if !state.answered => return,
            Phase::Down { until: None, .. } => return,
            _ => {}
        }
    }
}

/// Greets a server in the legacy way, and again if it had to be started anew.
async fn greet(link: &Link, patience: Duration) -> Option<Value> {
    let hello = json!({
        "protocolVersion": LEGACY[0],
        "capabilities": {},
        "clientInfo": ourselves(),
    });
    for _ in 0..GREETINGS {
        loop {
            match link.state().phase {
                Phase::Down { until: None, .. } => return None,
                Phase::Down { .. } => {}
                Phase::Up | Phase::Opening { .. } => break,
            }
            tokio::time::sleep(LOOK).await;
        }
        let answered = link.ask(wire::INITIALIZE, &hello);
        match tokio::time::timeout(patience, answered).await {
            Ok(Ok(line)) => return result(&line),
            // It ended before it answered.
            Ok(Err(_)) => tokio::time::sleep(LOOK).await,
            Err(_) => return None,
        }
    }
    None
}

/// One that ends at a question of the other era is there again for the first of these.
const GREETINGS: usize = 3;

/// Asks in the modern way.
pub(crate) async fn discover(link: &Link, patience: Duration) -> Option<Value> {
    let params = json!({ "_meta": meta(&json!({}), &ourselves()) });
    let discovered = answer(link, wire::DISCOVER, &params, patience).await?;
    discovered.get("supportedVersions")?.as_array()?;
    Some(discovered)
}

/// The result of a question of our own.
async fn answer(link: &Link, method: &str, params: &Value, patience: Duration) -> Option<Value> {
    let answered = link.ask(method, params);
    let line = tokio::time::timeout(patience, answered).await.ok()?.ok()?;
    result(&line)
}

fn result(line: &[u8]) -> Option<Value> {
    let mut reply: Value = serde_json::from_slice(line).ok()?;
    Some(reply.get_mut("result")?.take()).filter(Value::is_object)
}

fn ourselves() -> Value {
    json!({ "name": "faultwire", "version": env!("CARGO_PKG_VERSION") })
}

/// What every request of the modern era carries.
fn meta(capabilities: &Value, client: &Value) -> Value {
    json!({
        wire::PROTOCOL_VERSION: MODERN[0],
        wire::CLIENT_CAPABILITIES: capabilities,
        wire::CLIENT_INFO: client,
    })
}

/// The modern introduction of a server that was greeted in the legacy way.
pub(crate) fn introduction(initialized: &Value) -> Value {
    let mut result = json!({
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
        "supportedVersions": MODERN,
        "capabilities": carried(initialized.get("capabilities")),
        "_meta": { "io.modelcontextprotocol/serverInfo": initialized.get("serverInfo") },
    });
    if let Some(instructions) = initialized.get("instructions") {
        result["instructions"] = instructions.clone();
    }
    result
}

/// The legacy side of a session with a server of the modern era.
pub(crate) struct Bridge {
    /// What every request is given on the way.
    meta: Mutex<Map<String, Value>>,
    greeting: Value,
}

impl Bridge {
    /// For a client that began with this line.
    pub(crate) fn new(initialize: &Line<'_>, discovered: &Value) -> Self {
        let params: Value = initialize
            .params
            .and_then(|params| serde_json::from_str(params).ok())
            .unwrap_or_default();
        let none = json!({});
        let member = |name: &str| params.get(name).unwrap_or(&none);
        let Value::Object(meta) = meta(member("capabilities"), member("clientInfo")) else {
            unreachable!("an object was written above")
        };
        let asked = member("protocolVersion").as_str().unwrap_or_default();
        let version = LEGACY.iter().find(|known| **known == asked).unwrap_or(&LEGACY[0]);
        Self { meta: Mutex::new(meta), greeting: greeting(discovered, version) }
    }

    /// What a legacy client hears first.
    pub(crate) fn greeting(&self) -> &Value {
        &self.greeting
    }

    /// The answer to a request that a server of the modern era would not understand.
    pub(crate) fn answers(&self, seen: &Line<'_>) -> Option<Value> {
        match seen.method.as_deref()? {
            wire::PING => Some(json!({})),
            "logging/setLevel" => {
                let level = seen.params.and_then(|params| wire::member::<Value>(params, "level"));
                let key = "io.modelcontextprotocol/logLevel".to_owned();
                self.meta().insert(key, level.unwrap_or_default());
                Some(json!({}))
            }
            _ => None,
        }
    }

    /// A request of the client as one of the modern era.
    pub(crate) fn modern(&self, seen: &Line<'_>) -> Option<Vec<u8>> {
        let members = |of: &Members, name: &str| match of.get(name) {
            Some(raw) => serde_json::from_str::<Members>(raw.get()).ok(),
            None => Some(Members::new()),
        };
        let mut message: Members = serde_json::from_str(seen.text).ok()?;
        let mut params = members(&message, "params")?;
        let mut own = members(&params, "_meta")?;
        for (key, value) in &*self.meta() {
            own.insert(key.clone(), to_raw_value(value).ok()?);
        }
        params.insert("_meta".to_owned(), to_raw_value(&own).ok()?);
        message.insert("params".to_owned(), to_raw_value(&params).ok()?);
        let mut line = serde_json::to_vec(&message).ok()?;
        // Between the members, where alone they may stand.
        line.iter_mut().filter(|b| matches!(b, b'\n' | b'\r')).for_each(|b| *b = b' ');
        line.push(b'\n');
        Some(line)
    }

    fn meta(&self) -> std::sync::MutexGuard<'_, Map<String, Value>> {
        self.meta.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a server can do that a client of the other era can ask it for. Each era has its own way to
/// be told of changes, and its own tasks.
fn carried(capabilities: Option<&Value>) -> Value {
    let mut all = capabilities.cloned().unwrap_or_else(|| json!({}));
    if let Some(all) = all.as_object_mut() {
        all.remove("tasks");
        for one in all.values_mut().filter_map(Value::as_object_mut) {
            one.retain(|name, _| !matches!(&**name, "listChanged" | "subscribe"));
        }
    }
    all
}

fn greeting(discovered: &Value, version: &str) -> Value {
    let info = discovered
        .pointer("/_meta/io.modelcontextprotocol~1serverInfo")
        .or_else(|| discovered.get("serverInfo"));
    let mut result = json!({
        "protocolVersion": version,
        "capabilities": carried(discovered.get("capabilities")),
        "serverInfo": info.cloned().unwrap_or_else(ourselves),
    });
    if let Some(instructions) = discovered.get("instructions") {
        result["instructions"] = instructions.clone();
    }
    result
}

/// Whether a method is one that the modern era has no more.
pub(crate) fn is_only_legacy(method: &str) -> bool {
    let gone = ["logging/setLevel", "resources/subscribe", "resources/unsubscribe", wire::PING];
    gone.contains(&method)
}

/// Methods whose results say for how long they hold.
const CACHED: [&str; 5] =
    ["tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read"];

/// Puts into a legacy reply what the modern era wants in a result. The rest keeps its bytes.
pub(crate) fn as_modern(reply: &mut Patched<'_>, result: Option<&RawValue>, method: &str) {
    let Some(result) = result.map(RawValue::get).filter(|raw| raw.starts_with('{')) else {
        return;
    };
    let known: HashMap<Cow<'_, str>, &RawValue> = serde_json::from_str(result).unwrap_or_default();
    let more = [("resultType", r#""complete""#), ("ttlMs", "0"), ("cacheScope", r#""private""#)];
    let more = &more[..if CACHED.contains(&method) { more.len() } else { 1 }];
    let mut members = String::new();
    for (name, value) in more.iter().filter(|(name, _)| !known.contains_key(*name)) {
        members.push_str(&format!("\"{name}\":{value},"));
    }
    if result[1..].trim_start().starts_with('}') {
        members.pop();
    }
    if !members.is_empty() {
        reply.inside(result, members);
    }
}

/// Whether a result asks for more from the client, which only clients of the modern era can give.
pub(crate) fn wants_more(result: Option<&RawValue>) -> bool {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Typed<'a> {
        #[serde(borrow, default)]
        result_type: Option<Cow<'a, str>>,
    }
    let typed = result.and_then(|raw| serde_json::from_str::<Typed<'_>>(raw.get()).ok());
    typed.and_then(|typed| typed.result_type).is_some_and(|kind| kind == "input_required")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn legacy_results_become_modern_ones() {
        let check = |line: &str, method: &str, expected: &str| {
            let reply: Map<String, Value> = serde_json::from_str(line).unwrap();
            assert!(reply.contains_key("result"));
            let at = line.find("\"result\":").unwrap() + 9;
            let raw: &RawValue = serde_json::from_str(&line[at..line.len() - 1]).unwrap();
            let mut modern = Patched::new(line.as_bytes());
            as_modern(&mut modern, Some(raw), method);
            assert_eq!(String::from_utf8(modern.to_vec()).unwrap(), expected);
        };
        check(
            r#"{"id":1,"result":{"content":[]}}"#,
            "tools/call",
            r#"{"id":1,"result":{"resultType":"complete","content":[]}}"#,
        );
        check(
            r#"{"id":1,"result":{ }}"#,
            "logging/setLevel",
            r#"{"id":1,"result":{"resultType":"complete" }}"#,
        );
        check(
            r#"{"id":1,"result":{"tools":[]}}"#,
            "tools/list",
            r#"{"id":1,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[]}}"#,
        );
    }
}
