//! JSON Schema (2020-12) of an envelope, made from its template.

use serde_json::{Map, Value, json};

use crate::condition::Condition;
use crate::contract::{Contract, Profile, Surface};
use crate::envelope::{CONTRACT_META, ENVELOPE_META};
use crate::origin::{Origin, Outcome};
use crate::retry::RetryClass;
use crate::template::slot::{Kind, Slot};
use crate::template::{Member, Node};
use crate::tool_failure::TOOL_FAILURE_META;
use crate::tool_failure_policy::FailureClass;

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// What a schema is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaOf {
    /// The envelope of a surface.
    Surface(Surface),
    /// The whole MCP result.
    CallToolResult,
    /// The success envelope.
    Success,
}

impl Contract {
    /// The schema; `None` for the success envelope of a contract that leaves successes alone.
    #[must_use]
    pub fn schema(&self, of: SchemaOf, profile: Profile) -> Option<Value> {
        let (id, title, body) = match of {
            SchemaOf::Surface(surface) => {
                let spec = self.spec(surface);
                let body = self.node(&spec.templates[profile.0].root);
                (spec.schema_id.clone(), spec.schema_title.clone(), body)
            }
            SchemaOf::CallToolResult => (None, None, self.result(profile)),
            SchemaOf::Success => {
                (None, None, self.node(&self.success.as_ref()?.get(profile.0)?.root))
            }
        };
        let mut schema = Map::new();
        schema.insert("$schema".to_owned(), DIALECT.into());
        if let Some(id) = id {
            schema.insert("$id".to_owned(), id.into());
        }
        let title = title.unwrap_or_else(|| format!("{} {}", self.title, self.version));
        schema.insert("title".to_owned(), title.into());
        if let Value::Object(body) = body {
            schema.extend(body);
        }
        Some(Value::Object(schema))
    }

    fn node(&self, node: &Node) -> Value {
        match node {
            Node::Literal(value) => json!({ "const": value }),
            Node::Slot(slot) => self.slot(*slot),
            Node::List(items) => {
                let items: Vec<Value> = items.iter().map(|n| self.node(n)).collect();
                json!({
                    "type": "array",
                    "minItems": items.len(),
                    "maxItems": items.len(),
                    "prefixItems": items,
                })
            }
            Node::Object(members) => self.object(members),
        }
    }

    fn object(&self, members: &[Member]) -> Value {
        let required: Vec<&str> =
            members.iter().filter(|m| !m.optional).map(|m| m.key.as_str()).collect();
        let property = |member: &Member| {
            let schema = match (&member.node, member.optional) {
                (Node::Slot(slot), true) => self.value(slot.kind()),
                (node, _) => self.node(node),
            };
            (member.key.clone(), schema)
        };
        let properties: Map<String, Value> = members.iter().map(property).collect();
        json!({
            "type": "object",
            "required": required,
            "additionalProperties": false,
            "properties": properties,
        })
    }

    /// A slot that is always written: `null` if a fault has no value and there is no default.
    fn slot(&self, slot: Slot) -> Value {
        let value = self.value(slot.kind());
        if slot.is_always() || self.defaults.contains_key(slot.name()) {
            return value;
        }
        nullable(value)
    }

    fn value(&self, kind: Kind) -> Value {
        let names = |names: Vec<&str>| json!({ "type": "string", "enum": names });
        match kind {
            Kind::Code => names(self.codes.iter().map(|c| c.id.as_str()).collect()),
            Kind::Category => names(self.categories.iter().map(String::as_str).collect()),
            Kind::RetryClass => {
                let listed =
                    |class: &RetryClass| self.codes.iter().any(|c| c.retry.contains(class));
                let classes = RetryClass::ALL.into_iter().filter(listed);
                names(classes.map(|class| self.retry.kind(class)).collect())
            }
            Kind::Alert => names(self.levels.iter().map(|l| l.name.as_str()).collect()),
            Kind::Origin => names(Origin::ALL.iter().map(|o| o.name()).collect()),
            Kind::Outcome => names(Outcome::ALL.iter().map(|o| o.name()).collect()),
            Kind::Condition => names(Condition::ALL.iter().map(|c| c.name()).collect()),
            Kind::Words => json!({ "type": "string", "minLength": 1 }),
            Kind::Text => json!({ "type": "string" }),
            Kind::Timestamp => json!({
                "type": "string",
                "pattern": r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$",
            }),
            Kind::Status => json!({ "type": "integer", "minimum": 400, "maximum": 599 }),
            Kind::Count => json!({ "type": "integer", "minimum": 0 }),
            Kind::Flag => json!({ "type": "boolean" }),
            Kind::Cause => json!({ "type": ["string", "object"] }),
            Kind::Reset => json!({ "type": ["string", "number"] }),
            Kind::Json => json!({}),
        }
    }

    fn result(&self, profile: Profile) -> Value {
        let envelope = self.node(&self.mcp.templates[profile.0].root);
        let mut meta =
            json!({ CONTRACT_META: { "type": "object" }, ENVELOPE_META: envelope.clone() });
        let mut required = vec![CONTRACT_META];
        if self.tool_failure.is_some() {
            meta[TOOL_FAILURE_META] = self.tool_failure_schema();
            required.push(TOOL_FAILURE_META);
        }
        let text = json!({
            "type": "object",
            "required": ["type", "text"],
            "properties": { "type": { "const": "text" }, "text": { "type": "string" } },
        });
        json!({
            "type": "object",
            "required": ["content", "isError"],
            "properties": {
                "resultType": { "const": "complete" },
                "content": { "type": "array", "minItems": 1, "maxItems": 1, "items": text },
                "structuredContent": envelope,
                "isError": { "const": true },
                "_meta": { "type": "object", "required": required, "properties": meta },
            },
            "additionalProperties": false,
        })
    }

    fn tool_failure_schema(&self) -> Value {
        json!({
            "type": "object",
            "required": ["class", "code", "retryable", "correlationId"],
            "properties": {
                "class": { "type": "string", "enum": FailureClass::ALL.map(FailureClass::name) },
                "code": self.value(Kind::Code),
                "retryable": { "type": "boolean" },
                "retryNotBefore": { "type": "integer" },
                "correlationId": { "type": "string", "minLength": 1 },
                "agentGuidance": { "type": "string", "minLength": 1 },
            },
            "additionalProperties": false,
        })
    }
}

fn nullable(mut schema: Value) -> Value {
    let Some(object) = schema.as_object_mut() else {
        return schema;
    };
    match object.get_mut("type") {
        Some(Value::String(one)) => {
            let both = json!([one, "null"]);
            object.insert("type".to_owned(), both);
        }
        Some(Value::Array(types)) => types.push("null".into()),
        _ => {}
    }
    if let Some(Value::Array(values)) = object.get_mut("enum") {
        values.push(Value::Null);
    }
    schema
}
