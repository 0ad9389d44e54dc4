//! What checking against a schema can cost. A few references are enough to make a check of one
//! small value take years, and the schema comes from a server that nobody vouches for.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

/// More visits than this are not made for one call.
pub(super) const MOST: u64 = 1_000_000;
/// More than this, and only the first issue is told: a list of all takes much more memory.
pub(super) const MOST_FOR_LIST: u64 = 20_000;

/// Schemas are followed so far: what is counted is counted on the stack.
const DEEPEST: usize = 600;

/// The depths for which a schema's cost is known.
const DEPTHS: [usize; 5] = [4, 8, 16, 32, 128];

/// How often one part of the arguments can be visited, by how deep they are.
#[derive(Debug)]
pub(super) struct Cost([u64; DEPTHS.len()]);

impl Cost {
    /// The cost of a schema. None if it has references that are not followed here: then it could
    /// be anything.
    pub(super) fn of(schema: &Value) -> Option<Self> {
        let mut costs = [0; DEPTHS.len()];
        for (cost, depth) in costs.iter_mut().zip(DEPTHS) {
            let mut walk =
                Walk { root: schema, known: HashMap::new(), open: HashSet::new(), lost: false };
            *cost = walk.visits(schema, depth);
            if walk.lost {
                return None;
            }
        }
        Some(Self(costs))
    }

    /// How many visits a check of these arguments can take.
    pub(super) fn visits(&self, arguments: &str) -> u64 {
        let parts = arguments.bytes().filter(|b| matches!(b, b',' | b'[' | b'{')).count() + 1;
        let mut nesting = faultwire_contract::nesting::Nesting::default();
        let mut depth = 0;
        for byte in arguments.bytes() {
            nesting.read(byte);
            depth = depth.max(nesting.depth());
        }
        self.of_size(depth, parts)
    }

    /// The same of arguments that were read already.
    pub(super) fn visits_of(&self, arguments: &Value) -> u64 {
        let (depth, parts) = size(arguments);
        self.of_size(depth, parts + 1)
    }

    fn of_size(&self, depth: usize, parts: usize) -> u64 {
        let at = DEPTHS.iter().position(|known| depth <= *known).unwrap_or(DEPTHS.len() - 1);
        self.0[at].saturating_mul(parts as u64)
    }
}

/// How deep a value is, and of how many parts. What was read is never deeper than the stack takes.
fn size(value: &Value) -> (usize, usize) {
    let add = |(depth, parts): (usize, usize), part: &Value| {
        let (below, more) = size(part);
        (depth.max(below + 1), parts + more)
    };
    match value {
        Value::Array(items) => items.iter().fold((1, 1), add),
        Value::Object(members) => members.values().fold((1, 1), add),
        _ => (0, 1),
    }
}

struct Walk<'a> {
    root: &'a Value,
    known: HashMap<(*const Value, usize), u64>,
    /// What is being counted: to come back to it at the same depth never ends.
    open: HashSet<(*const Value, usize)>,
    /// There is a reference that leads we do not know where.
    lost: bool,
}

/// Keywords whose schemas look at the same value.
const IN_PLACE: [&str; 8] =
    ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"];
/// Keywords whose schemas look at any part of the value.
const ANY_PART: [&str; 7] = [
    "additionalProperties",
    "unevaluatedProperties",
    "additionalItems",
    "unevaluatedItems",
    "items",
    "contains",
    "propertyNames",
];
/// References of other forms, and what they need.
const UNKNOWN: [&str; 6] = [
    "$dynamicRef",
    "$recursiveRef",
    "$anchor",
    "$dynamicAnchor",
    "$recursiveAnchor",
    "dependencies",
];

impl<'a> Walk<'a> {
    /// How often one part of a value can be visited, the value being so deep.
    fn visits(&mut self, schema: &'a Value, depth: usize) -> u64 {
        let Value::Object(members) = schema else { return 1 };
        let key = (std::ptr::from_ref(schema), depth);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        if self.open.len() > DEEPEST {
            self.lost = true;
            return 0;
        }
        if !self.open.insert(key) {
            return MOST;
        }
        let mut visits = 1u64;
        for (name, value) in members {
            visits = visits.saturating_add(self.keyword(schema, name, value, depth));
        }
        self.open.remove(&key);
        self.known.insert(key, visits);
        visits
    }

    fn keyword(&mut self, schema: &'a Value, name: &str, value: &'a Value, depth: usize) -> u64 {
        let below = depth.checked_sub(1);
        match name {
            "$ref" => self.reference(value, depth),
            "$id" | "id" if !std::ptr::eq(schema, self.root) && value.is_string() => {
                self.lost = true;
                0
            }
            name if UNKNOWN.contains(&name) => {
                self.lost = true;
                0
            }
            name if IN_PLACE.contains(&name) => self.all(value, depth),
            "patternProperties" => below.map_or(0, |depth| self.all(value, depth)),
            // Each of these looks at a part of its own.
            "properties" | "prefixItems" => below.map_or(0, |depth| self.greatest(value, depth)),
            "items" if value.is_array() => below.map_or(0, |depth| self.greatest(value, depth)),
            name if ANY_PART.contains(&name) => below.map_or(0, |depth| self.visits(value, depth)),
            _ => 0,
        }
    }

    fn all(&mut self, value: &'a Value, depth: usize) -> u64 {
        let mut sum = 0u64;
        for schema in schemas(value) {
            sum = sum.saturating_add(self.visits(schema, depth));
        }
        sum
    }

    fn greatest(&mut self, value: &'a Value, depth: usize) -> u64 {
        schemas(value).map(|schema| self.visits(schema, depth)).max().unwrap_or(0)
    }

    fn reference(&mut self, to: &'a Value, depth: usize) -> u64 {
        let pointer = to.as_str().and_then(|to| to.strip_prefix('#')).filter(|p| !p.contains('%'));
        if let Some(target) = pointer.and_then(|pointer| self.root.pointer(pointer)) {
            return self.visits(target, depth);
        }
        self.lost = true;
        0
    }
}

/// A schema, a list of them, or a map of them.
fn schemas(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    const SCHEMA: [&str; 6] = ["type", "$ref", "properties", "allOf", "anyOf", "items"];
    match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(members) if !SCHEMA.iter().any(|k| members.contains_key(*k)) => {
            // A map, or a schema that says little: counting both is on the safe side.
            Box::new(members.values().chain(std::iter::once(value)))
        }
        single => Box::new(std::iter::once(single)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn deep(levels: usize) -> String {
        format!("{}1{}", "{\"c\":".repeat(levels), "}".repeat(levels))
    }

    fn is_fine(schema: &Value, arguments: &str) -> bool {
        Cost::of(schema).is_some_and(|cost| cost.visits(arguments) <= MOST)
    }

    #[test]
    fn chains_of_references_multiply() {
        let mut defs = serde_json::Map::new();
        for i in 0..28 {
            let next = json!({ "$ref": format!("#/$defs/d{}", i + 1) });
            defs.insert(format!("d{i}"), json!({ "allOf": [next, next] }));
        }
        defs.insert("d28".to_owned(), json!({ "type": "object" }));
        assert!(!is_fine(&json!({ "$ref": "#/$defs/d0", "$defs": defs }), "{}"));
    }

    #[test]
    fn recursion_counts_by_the_depth_of_the_arguments() {
        let twice = [json!({ "$ref": "#" }), json!({ "$ref": "#" })];
        for keyword in ["allOf", "anyOf"] {
            let schema = json!({ "properties": { "c": { keyword: twice } } });
            assert!(is_fine(&schema, &deep(3)), "{keyword}");
            assert!(!is_fine(&schema, &deep(30)), "{keyword}");
        }
        let thrice = json!({
            "properties": { "c": { "$ref": "#" } },
            "patternProperties": { "^c": { "$ref": "#" } },
            "additionalProperties": { "$ref": "#" },
        });
        assert!(!is_fine(&thrice, &deep(30)));
        assert!(!is_fine(&json!({ "allOf": [{ "$ref": "#" }] }), "{}"));
    }

    #[test]
    fn references_of_other_forms_are_not_trusted() {
        for to in ["#anchor", "#/%24defs/x", "other.json", "urn:x"] {
            assert!(Cost::of(&json!({ "$ref": to })).is_none(), "{to}");
        }
        assert!(Cost::of(&json!({ "$dynamicRef": "#/x" })).is_none());
        assert!(Cost::of(&json!({ "properties": { "a": { "$id": "x" } } })).is_none());
    }

    #[test]
    fn honest_schemas_are_cheap() {
        let tree = json!({
            "$defs": { "node": { "type": "object", "properties": {
                "left": { "$ref": "#/$defs/node" }, "right": { "$ref": "#/$defs/node" },
            } } },
            "$ref": "#/$defs/node",
        });
        assert!(is_fine(&tree, &deep(100)));
        let wide: serde_json::Map<String, Value> =
            (0..500).map(|i| (format!("p{i}"), json!({ "type": "string" }))).collect();
        let schema = json!({ "$id": "root", "type": "object", "properties": wide });
        assert!(is_fine(&schema, "{\"p1\":\"x\"}"));
        let union: Vec<Value> = (0..20)
            .map(|i| json!({ "type": "object", "properties": { "kind": { "const": i } } }))
            .collect();
        let items = json!({ "type": "object", "properties": { "all": { "type": "array", "items": { "anyOf": union } } } });
        let many = format!("{{\"all\":[{}]}}", vec!["{\"kind\":3}"; 1000].join(","));
        assert!(is_fine(&items, &many));
    }
}
