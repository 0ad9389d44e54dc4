//! Prepares a schema for the validator: bounded in size, and without patterns for names that cannot
//! be matched in linear time.

use serde_json::{Map, Value};

use super::pattern::{self, Patterns};

/// A longer schema is not used.
pub(super) const MOST_BYTES: usize = 256 * 1024;
/// Nor one of more values than this.
const MOST_VALUES: usize = 10_000;
/// The size limit of a compiled pattern for names, and their number.
const MOST_COMPILED: usize = 16 * 1024;
const MOST_NAME_PATTERNS: usize = 32;
const MOST_ESCAPES: usize = 16;
/// The approximate size of one compiled value of a schema.
const BYTES_PER_VALUE: usize = 1024;

/// Values that are data, and no schemas.
const DATA: [&str; 4] = ["const", "enum", "default", "examples"];
/// Maps from names to schemas.
const MAPS: [&str; 5] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

/// A schema that may be compiled.
pub(super) struct Prepared {
    pub schema: Value,
    /// The approximate size of the compiled schema, without its patterns.
    pub bytes: usize,
}

/// Checks the size of a schema, and removes what would take too long.
pub(super) fn prepared(mut schema: Value, patterns: &Patterns) -> Result<Prepared, String> {
    let values = values(&schema, MOST_VALUES);
    if values >= MOST_VALUES {
        return Err(format!("the schema has more than {MOST_VALUES} values"));
    }
    let mut names = Names { patterns, seen: 0, lost: false };
    names.schema(&mut schema);
    if names.lost {
        // What a name's pattern would have allowed must not be refused for want of it.
        allow_unevaluated(&mut schema);
    }
    Ok(Prepared { schema, bytes: values * BYTES_PER_VALUE })
}

/// How many values there are, counted up to a limit.
fn values(value: &Value, most: usize) -> usize {
    let add = |sum: usize, part: &Value| {
        if sum >= most { sum } else { sum + values(part, most - sum) }
    };
    match value {
        Value::Array(items) => items.iter().fold(1, add),
        Value::Object(members) => members.values().fold(1, add),
        _ => 1,
    }
}

/// Goes through the patterns of names.
struct Names<'a> {
    patterns: &'a Patterns,
    seen: usize,
    lost: bool,
}

impl Names<'_> {
    fn schema(&mut self, schema: &mut Value) {
        match schema {
            Value::Array(items) => items.iter_mut().for_each(|item| self.schema(item)),
            Value::Object(members) => {
                for (name, value) in members.iter_mut() {
                    match value {
                        Value::Object(map) if MAPS.contains(&name.as_str()) => {
                            map.values_mut().for_each(|schema| self.schema(schema));
                        }
                        _ if DATA.contains(&name.as_str()) => {}
                        value => self.schema(value),
                    }
                }
                if members.contains_key("patternProperties") {
                    self.named(members);
                }
            }
            _ => {}
        }
    }

    fn named(&mut self, members: &mut Map<String, Value>) {
        let Some(Value::Object(named)) = members.get_mut("patternProperties") else { return };
        let before = named.len();
        let all = std::mem::take(named);
        for (name, schema) in all {
            self.seen += 1;
            // The validator translates each escape in a separate pass.
            let is_short = name.matches('\\').count() <= MOST_ESCAPES;
            if self.seen <= MOST_NAME_PATTERNS
                && is_short
                && pattern::is_small(&name, MOST_COMPILED)
            {
                named.insert(name, schema);
            } else {
                self.patterns.skip(&name);
            }
        }
        if named.len() < before {
            self.lost = true;
            members.shift_remove("additionalProperties");
        }
    }
}

fn allow_unevaluated(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(allow_unevaluated),
        Value::Object(members) => {
            members.shift_remove("unevaluatedProperties");
            members.values_mut().for_each(allow_unevaluated);
        }
        _ => {}
    }
}
