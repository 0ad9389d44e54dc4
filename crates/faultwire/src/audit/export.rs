//! Records in the words of others: OCSF (API Activity) and ECS, as JSON.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// Whose words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Open Cybersecurity Schema Framework.
    Ocsf,
    /// Elastic Common Schema.
    Ecs,
}

const OCSF_VERSION: &str = "1.6.0";
const ECS_VERSION: &str = "8.17.0";

/// A record of a failure in that dialect; none for records that are not about a failure. `raw`
/// is the line it was read from.
#[must_use]
pub fn export(record: &Value, raw: &str, dialect: Dialect) -> Option<Value> {
    if record["type"] != "fault" {
        return None;
    }
    let mapped = match dialect {
        Dialect::Ocsf => ocsf(&Source(record)),
        Dialect::Ecs => ecs(&Source(record), raw),
    };
    Some(without_nulls(mapped))
}

struct Source<'a>(&'a Value);

impl Source<'_> {
    fn at(&self, pointer: &str) -> Value {
        self.0.pointer(pointer).cloned().unwrap_or(Value::Null)
    }

    fn first(&self, pointers: &[&str]) -> Value {
        let found = pointers.iter().find_map(|pointer| self.0.pointer(pointer));
        found.cloned().unwrap_or(Value::Null)
    }

    /// When it happened: the fault's own moment, or when it was written down.
    fn moment(&self) -> Value {
        self.first(&["/fault/timestamp", "/ts"])
    }

    fn client(&self) -> Value {
        self.first(&["/call/client", "/fault/session/client"])
    }

    /// The operation: the tool, or the method if there is no tool.
    fn operation(&self) -> Value {
        self.first(&["/fault/tool", "/fault/method"])
    }

    fn elapsed_ms(&self) -> Value {
        self.first(&["/call/elapsed_ms", "/fault/meta/elapsed_ms"])
    }

    fn uid(&self) -> String {
        format!("{}/{}", text(&self.at("/log")), self.at("/seq"))
    }
}

fn ocsf(source: &Source<'_>) -> Value {
    const CLASS: u64 = 6003;
    const OTHER: u64 = 99;
    let (severity_id, severity) = severity(&text(&source.at("/alert")));
    let client = source.client();
    json!({
        "category_uid": 6,
        "category_name": "Application Activity",
        "class_uid": CLASS,
        "class_name": "API Activity",
        "activity_id": OTHER,
        "activity_name": "Tool call",
        "type_uid": CLASS * 100 + OTHER,
        "time": millis(&source.moment()),
        "severity_id": severity_id,
        "severity": severity,
        "status_id": 2,
        "status": "Failure",
        "status_code": source.at("/fault/code"),
        "status_detail": source.at("/fault/condition"),
        "message": source.at("/fault/message"),
        "duration": source.elapsed_ms().as_u64(),
        "actor": {
            "app_name": client,
            "session": { "uid": source.at("/fault/session/id") },
        },
        "src_endpoint": { "name": if client.is_null() { json!("unknown") } else { client } },
        "api": {
            "operation": if source.operation().is_null() { json!("unknown") } else { source.operation() },
            "request": { "uid": string(&source.at("/call/request")) },
            "response": {
                "error": source.at("/fault/code"),
                "error_message": source.at("/fault/message"),
            },
        },
        "metadata": {
            "version": OCSF_VERSION,
            "product": {
                "name": "Faultwire",
                "vendor_name": "Faultwire",
                "version": env!("CARGO_PKG_VERSION"),
            },
            "uid": source.uid(),
            "sequence": source.at("/seq"),
            "log_name": source.at("/log"),
            "logged_time": millis(&source.at("/ts")),
            "original_time": source.moment(),
            "correlation_uid": source.at("/fault/incident"),
        },
        "unmapped": unmapped(source),
    })
}

fn ecs(source: &Source<'_>, raw: &str) -> Value {
    let denied = source.at("/fault/origin") == "policy";
    let nanos = source.elapsed_ms().as_u64().map(|ms| ms.saturating_mul(1_000_000));
    json!({
        "@timestamp": source.moment(),
        "ecs": { "version": ECS_VERSION },
        "message": source.at("/fault/message"),
        "event": {
            "kind": "event",
            "category": ["api"],
            "type": [if denied { "denied" } else { "access" }],
            "outcome": "failure",
            "action": source.operation(),
            "code": source.at("/fault/code"),
            "id": source.uid(),
            "sequence": source.at("/seq"),
            "created": source.at("/ts"),
            "duration": nanos,
            "severity": severity(&text(&source.at("/alert"))).0,
            "module": "faultwire",
            "dataset": "faultwire.audit",
            "provider": "faultwire",
            "original": raw,
        },
        "error": {
            "code": source.at("/fault/code"),
            "id": source.at("/fault/incident"),
            "message": source.at("/fault/message"),
            "type": source.at("/category"),
            "stack_trace": source.first(&["/private/stack", "/fault/stack"]),
        },
        "log": { "level": source.at("/alert") },
        "trace": { "id": source.at("/fault/trace") },
        "user_agent": { "name": source.client() },
        "faultwire": unmapped(source),
    })
}

/// What the other schema has no place for, under our own names.
fn unmapped(source: &Source<'_>) -> Value {
    json!({
        "contract": source.at("/contract"),
        "contract_version": source.at("/contract_version"),
        "category": source.at("/category"),
        "alert": source.at("/alert"),
        "origin": source.at("/fault/origin"),
        "outcome": source.at("/fault/outcome"),
        "retry": source.at("/fault/retry"),
        "retry_after_ms": source.at("/fault/retry_after_ms"),
        "upstream_code": string(&source.at("/call/upstream_code")),
        "arguments": source.at("/call/arguments"),
        "envelope": source.at("/call/envelope"),
        "attempt": source.at("/call/attempt"),
        "prev": source.at("/prev"),
    })
}

/// The levels that contracts usually have, as OCSF numbers them.
fn severity(alert: &str) -> (u64, &'static str) {
    match alert {
        "critical" => (5, "Critical"),
        "error" | "high" => (4, "High"),
        "warning" => (3, "Medium"),
        "notice" | "low" => (2, "Low"),
        "info" | "none" => (1, "Informational"),
        _ => (0, "Unknown"),
    }
}

fn millis(moment: &Value) -> Value {
    let parsed = moment.as_str().and_then(|text| text.parse::<Timestamp>().ok());
    parsed.map_or(Value::Null, |moment| moment.as_millisecond().into())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Ids must be strings in the exported format.
fn string(value: &Value) -> Value {
    match value {
        Value::Null => Value::Null,
        Value::String(s) => s.as_str().into(),
        other => other.to_string().into(),
    }
}

/// Removes unknown values, and objects that are empty without them.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.into_iter().map(|(key, value)| (key, without_nulls(value)));
            let something =
                |value: &Value| !(value.is_null() || *value == Value::Object(Map::new()));
            kept.filter(|(_, value)| something(value)).collect()
        }
        other => other,
    }
}
