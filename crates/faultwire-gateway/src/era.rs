//! Two eras on the two sides of a gateway: what one side says, as the other understands it.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use faultwire_contract::Line;
use parking_lot::{Mutex, MutexGuard};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use crate::guard::version::{LEGACY, MODERN};
use crate::rewrite::Rewrite;
use crate::wire;

/// Members of an object, as they were written: numbers among them may be longer than ours.
type Members = BTreeMap<String, Box<RawValue>>;

/// What the gateway says of itself as a client.
pub(crate) fn ourselves() -> Value {
    json!({ "name": "faultwire", "version": env!("CARGO_PKG_VERSION") })
}

/// What every request of the modern era carries.
pub(crate) fn meta(capabilities: &Value, client: &Value) -> Value {
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

    pub(crate) fn meta(&self) -> MutexGuard<'_, Map<String, Value>> {
        self.meta.lock()
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
pub(crate) fn as_modern(reply: &mut Rewrite<'_>, result: Option<&RawValue>, method: &str) {
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
            let mut modern = Rewrite::new(line.as_bytes());
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
