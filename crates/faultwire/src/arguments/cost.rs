//! What checking against a schema can cost. A few references are enough to make a check of one
//! small value take years, and the server that sends the schema is not trusted.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::pattern;

/// The most visits for one call.
pub(super) const MOST: u64 = 1_000_000;
/// Above this cost, only the first issue is reported, because a list of all needs much more memory.
pub(super) const MOST_FOR_LIST: u64 = 20_000;

/// Up to this cost, a check is fast.
const QUICK: u64 = 200_000;

/// Schemas are followed to this depth, because counting uses the stack.
const DEEPEST: usize = 600;
/// So much is counted for one depth; a schema that needs more is not checked at that depth.
const MOST_COUNTED: usize = 20_000;
/// This many bytes of text cost as much as one visit.
const TEXT_PER_VISIT: usize = 16;
/// How many visits a pattern for names costs for this much text, if it is small and if it is large:
/// the engine may have to follow all of its states at each byte.
const SMALL_NAME: (usize, u64) = (2 * 1024, 50);
const LARGE_NAME: u64 = 1000;

/// The depths for which a schema's cost is known.
const DEPTHS: [usize; 5] = [4, 8, 16, 32, 128];

/// How often one part of the arguments can be visited, by how deep they are.
#[derive(Debug)]
pub(super) struct Cost([Visits; DEPTHS.len()]);

/// Visits of one part of a value.
#[derive(Clone, Copy, Debug, Default)]
struct Visits {
    /// Of the part itself.
    parts: u64,
    /// Those that read its whole text.
    texts: u64,
}

impl Visits {
    const TOO_MANY: Self = Self { parts: u64::MAX, texts: u64::MAX };

    fn parts(parts: usize) -> Self {
        Self { parts: parts as u64, texts: 0 }
    }

    fn texts(texts: u64) -> Self {
        Self { parts: 0, texts }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            parts: self.parts.saturating_add(other.parts),
            texts: self.texts.saturating_add(other.texts),
        }
    }

    fn max(self, other: Self) -> Self {
        Self { parts: self.parts.max(other.parts), texts: self.texts.max(other.texts) }
    }

    fn times(self, factor: u64) -> Self {
        Self { parts: self.parts.saturating_mul(factor), texts: self.texts.saturating_mul(factor) }
    }
}

impl Cost {
    /// The cost of a schema. None if it has references that are not followed here: then it could
    /// be anything.
    pub(super) fn of(schema: &Value) -> Option<Self> {
        let mut costs = [Visits::TOO_MANY; DEPTHS.len()];
        for (cost, depth) in costs.iter_mut().zip(DEPTHS) {
            let mut walk =
                Walk { root: schema, known: HashMap::new(), open: HashSet::new(), lost: false };
            let visits = walk.visits(schema, depth);
            if walk.lost {
                return None;
            }
            if walk.known.len() >= MOST_COUNTED {
                break;
            }
            *cost = visits;
        }
        Some(Self(costs))
    }

    /// Whether a check of these arguments can exceed the visits for one call.
    pub(super) fn is_too_much(&self, arguments: &str) -> bool {
        !self.is_quick(arguments.len()) && self.visits(arguments) > MOST
    }

    /// How many visits a check of these arguments can take.
    fn visits(&self, arguments: &str) -> u64 {
        let parts = arguments.bytes().filter(|b| matches!(b, b',' | b'[' | b'{')).count() + 1;
        let mut nesting = faultwire_contract::nesting::Nesting::default();
        let mut depth = 0;
        for byte in arguments.bytes() {
            nesting.read(byte);
            depth = depth.max(nesting.depth());
        }
        self.of_size(depth, parts, arguments.len())
    }

    /// Whether not even the smallest arguments can be checked.
    pub(super) fn is_hopeless(&self) -> bool {
        self.of_size(0, 1, 0) > MOST
    }

    /// Whether a check of arguments of this length is always fast.
    pub(super) fn is_quick(&self, length: usize) -> bool {
        // A part has at least two bytes, and so does a level.
        self.of_size(length / 2, length / 2 + 1, length) <= QUICK
    }

    /// The same of arguments that were read already.
    pub(super) fn visits_of(&self, arguments: &Value) -> u64 {
        let size = Size::of(arguments);
        self.of_size(size.depth, size.parts + 1, size.bytes)
    }

    fn of_size(&self, depth: usize, parts: usize, bytes: usize) -> u64 {
        let at = DEPTHS.iter().position(|known| depth <= *known).unwrap_or(DEPTHS.len() - 1);
        let visits = self.0[at];
        let of_text = visits.texts.saturating_mul((bytes / TEXT_PER_VISIT) as u64);
        visits.parts.saturating_mul(parts as u64).saturating_add(of_text)
    }
}

/// The size of a value. The parser limits its depth to what the stack allows.
#[derive(Clone, Copy)]
struct Size {
    depth: usize,
    parts: usize,
    bytes: usize,
}

impl Size {
    fn of(value: &Value) -> Self {
        let one = Self { depth: 0, parts: 1, bytes: 8 };
        let add = |all: Self, part: &Value, name: usize| {
            let part = Self::of(part);
            Self {
                depth: all.depth.max(part.depth + 1),
                parts: all.parts + part.parts,
                bytes: all.bytes + part.bytes + name,
            }
        };
        let open = Self { depth: 1, ..one };
        match value {
            Value::Array(items) => items.iter().fold(open, |all, item| add(all, item, 0)),
            Value::Object(members) => {
                members.iter().fold(open, |all, (name, part)| add(all, part, name.len()))
            }
            Value::String(text) => Self { bytes: text.len(), ..one },
            _ => one,
        }
    }
}

struct Walk<'a> {
    root: &'a Value,
    known: HashMap<(*const Value, usize), Visits>,
    /// The schemas being counted: returning to one at the same depth would never end.
    open: HashSet<(*const Value, usize)>,
    /// There is a reference that leads we do not know where.
    lost: bool,
}

/// Keywords whose schemas apply to the same value.
const IN_PLACE: [&str; 8] =
    ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"];
/// Keywords whose schemas apply to parts of the value.
const ANY_PART: [&str; 7] = [
    "additionalProperties",
    "unevaluatedProperties",
    "additionalItems",
    "unevaluatedItems",
    "items",
    "contains",
    "propertyNames",
];
/// Keywords that read the whole text.
const READS_TEXT: [&str; 6] =
    ["minLength", "maxLength", "format", "pattern", "contentMediaType", "contentEncoding"];
/// Keywords for parts that no other keyword evaluated.
const UNEVALUATED: [&str; 2] = ["unevaluatedProperties", "unevaluatedItems"];
const UNEVALUATED_FACTOR: u64 = 4;
/// Looking up a name costs less than a visit.
const ENTRIES_PER_VISIT: usize = 4;
/// References of other forms, and keywords for them.
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
    fn visits(&mut self, schema: &'a Value, depth: usize) -> Visits {
        let Value::Object(members) = schema else { return Visits::parts(1) };
        let key = (std::ptr::from_ref(schema), depth);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        if self.known.len() >= MOST_COUNTED {
            return Visits::TOO_MANY;
        }
        if self.open.len() > DEEPEST {
            self.lost = true;
            return Visits::default();
        }
        if !self.open.insert(key) {
            return Visits { parts: MOST + 1, texts: 0 };
        }
        let mut visits = Visits::parts(1);
        for (name, value) in members {
            visits = visits.plus(self.keyword(schema, name, value, depth));
        }
        // To find what was not evaluated, everything at the same place is evaluated again.
        if UNEVALUATED.iter().any(|name| members.contains_key(*name)) {
            visits = visits.times(UNEVALUATED_FACTOR);
        }
        self.open.remove(&key);
        self.known.insert(key, visits);
        visits
    }

    fn keyword(&mut self, schema: &'a Value, name: &str, value: &'a Value, depth: usize) -> Visits {
        let below = depth.checked_sub(1);
        match name {
            "$ref" => self.reference(value, depth),
            "$id" | "id" if !std::ptr::eq(schema, self.root) && value.is_string() => {
                self.lost = true;
                Visits::default()
            }
            name if UNKNOWN.contains(&name) => {
                self.lost = true;
                Visits::default()
            }
            name if IN_PLACE.contains(&name) => self.all(value, depth),
            "patternProperties" => {
                let of_parts = below.map_or(Visits::default(), |depth| self.all(value, depth));
                of_parts.plus(names(value))
            }
            // Each of these evaluates a different part.
            "properties" | "prefixItems" => self.own_part(value, below).plus(entries(value)),
            "items" if value.is_array() => self.own_part(value, below).plus(entries(value)),
            name if ANY_PART.contains(&name) => {
                below.map_or(Visits::default(), |depth| self.visits(value, depth))
            }
            // Each array is compared with itself, with all that is in it.
            "uniqueItems" => Visits { parts: 8 * (depth as u64 + 1), texts: depth as u64 + 1 },
            "enum" | "const" | "required" | "dependentRequired" | "type" => {
                Visits::parts(Size::of(value).parts)
            }
            // The division is exact, with numbers of a thousand digits if need be.
            "multipleOf" => Visits::parts(8),
            name if READS_TEXT.contains(&name) => Visits::texts(1),
            _ => Visits::default(),
        }
    }

    fn all(&mut self, value: &'a Value, depth: usize) -> Visits {
        let mut sum = Visits::default();
        for schema in schemas(value) {
            sum = sum.plus(self.visits(schema, depth));
        }
        sum
    }

    fn own_part(&mut self, value: &'a Value, below: Option<usize>) -> Visits {
        let Some(depth) = below else { return Visits::default() };
        let mut greatest = Visits::default();
        for schema in schemas(value) {
            greatest = greatest.max(self.visits(schema, depth));
        }
        greatest
    }

    fn reference(&mut self, to: &'a Value, depth: usize) -> Visits {
        let pointer = to.as_str().and_then(|to| to.strip_prefix('#')).filter(|p| !p.contains('%'));
        if let Some(target) = pointer.and_then(|pointer| self.root.pointer(pointer)) {
            return self.visits(target, depth);
        }
        self.lost = true;
        Visits::default()
    }
}

/// Keywords with a lookup for each value, even if it has few members.
fn entries(value: &Value) -> Visits {
    let entries = value.as_object().map(Map::len).or(value.as_array().map(Vec::len));
    Visits::parts(entries.unwrap_or(0) / ENTRIES_PER_VISIT)
}

/// What patterns for names take.
fn names(value: &Value) -> Visits {
    let of_one = |name: &String| {
        let (small, cheap) = SMALL_NAME;
        if pattern::is_small(name, small) { cheap } else { LARGE_NAME }
    };
    Visits::texts(value.as_object().into_iter().flat_map(Map::keys).map(of_one).sum())
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
        let mut defs = Map::new();
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
        let wide: Map<String, Value> =
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
