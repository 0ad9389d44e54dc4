//! What checking against a schema can cost. A few references to each other are enough to make a
//! check of one small value take years, and the schema comes from a server that nobody vouches
//! for.

use std::collections::HashMap;

use serde_json::Value;

/// Schemas that visit more than this for one value are not used.
pub(super) const MOST: u64 = 100_000;

/// Deeper schemas are not read by the parser either.
const DEEPEST: usize = 256;

/// How many subschemas one value can be checked against, references followed. A reference back
/// to where one is counts once: what it leads to is a part of the value.
pub(super) fn of(schema: &Value) -> u64 {
    Walk { root: schema, known: HashMap::new() }.cost(schema, 0)
}

struct Walk<'a> {
    root: &'a Value,
    /// What references lead to; none while it is being counted.
    known: HashMap<&'a str, Option<u64>>,
}

impl<'a> Walk<'a> {
    fn cost(&mut self, schema: &'a Value, depth: usize) -> u64 {
        if depth > DEEPEST {
            return MOST + 1;
        }
        match schema {
            Value::Object(members) => members.iter().fold(1, |sum: u64, (key, value)| {
                sum.saturating_add(self.member(key, value, depth))
            }),
            Value::Array(items) => items
                .iter()
                .fold(0, |sum: u64, item| sum.saturating_add(self.cost(item, depth + 1))),
            _ => 0,
        }
    }

    fn member(&mut self, key: &str, value: &'a Value, depth: usize) -> u64 {
        match (key, value) {
            ("$ref" | "$dynamicRef", Value::String(to)) => self.reference(to, depth),
            // Definitions cost where they are used; the rest is no schema.
            ("$defs" | "definitions" | "enum" | "const" | "default" | "examples", _) => 0,
            _ => self.cost(value, depth + 1),
        }
    }

    fn reference(&mut self, to: &'a str, depth: usize) -> u64 {
        if let Some(known) = self.known.get(to) {
            return known.unwrap_or(1);
        }
        let Some(target) = to.strip_prefix('#').and_then(|at| self.root.pointer(at)) else {
            return 1;
        };
        self.known.insert(to, None);
        let cost = self.cost(target, depth + 1);
        self.known.insert(to, Some(cost));
        cost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn chains_of_references_multiply_and_honest_schemas_do_not() {
        let mut defs = serde_json::Map::new();
        for i in 0..28 {
            let next = json!({ "$ref": format!("#/$defs/d{}", i + 1) });
            defs.insert(format!("d{i}"), json!({ "allOf": [next, next] }));
        }
        defs.insert("d28".to_owned(), json!({ "type": "object" }));
        let bomb = json!({ "$ref": "#/$defs/d0", "$defs": defs });
        assert!(of(&bomb) > MOST);
        let tree = json!({
            "$defs": { "node": { "properties": {
                "left": { "$ref": "#/$defs/node" }, "right": { "$ref": "#/$defs/node" },
            } } },
            "$ref": "#/$defs/node",
        });
        assert!(of(&tree) < 20);
        let wide: serde_json::Map<String, Value> =
            (0..500).map(|i| (format!("p{i}"), json!({ "type": "string" }))).collect();
        assert!(of(&json!({ "type": "object", "properties": wide })) < 2000);
    }
}
