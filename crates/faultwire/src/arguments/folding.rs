//! Members that a lenient parser may take for a declared property: another case, full-width
//! letters, characters that are not displayed. A guard judges one member and the server reads
//! the other, so such arguments are refused whether or not the schema is enforced.

use std::collections::{BTreeSet, HashMap, HashSet};

use faultwire_contract::fold;
use serde_json::{Map, Value};

use super::{Issue, below};

/// The most steps to find out what an object declares. Beyond that, everything that the schema
/// declares anywhere counts as declared in each object.
const MOST_STEPS: usize = 20_000;

/// Keywords whose schemas apply to the same value.
const IN_PLACE: [&str; 8] =
    ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"];
/// Keywords whose schemas apply to members or items.
const ANY_PART: [&str; 7] = [
    "additionalProperties",
    "unevaluatedProperties",
    "patternProperties",
    "items",
    "additionalItems",
    "unevaluatedItems",
    "contains",
];
/// Those whose schemas have names.
const MAPS: [&str; 2] = ["dependentSchemas", "patternProperties"];
/// References whose targets are not resolved.
const UNKNOWN: [&str; 2] = ["$dynamicRef", "$recursiveRef"];

/// Every property that a schema declares, wherever it does.
#[derive(Debug, Default)]
pub(super) struct Declared {
    /// There are mostly few: searching a sorted set is faster than hashing a name.
    exact: BTreeSet<Box<str>>,
    /// The declared names by their folded form; no name where several fold to the same.
    folded: HashMap<Box<str>, Option<Box<str>>>,
    is_ambiguous: bool,
}

impl Declared {
    /// Collects the properties of a schema.
    pub(super) fn of(schema: &Value) -> Self {
        let mut declared = Self::default();
        declared.collect(schema);
        declared
    }

    fn collect(&mut self, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.collect(item)),
            Value::Object(members) => {
                if let Some(Value::Object(properties)) = members.get("properties") {
                    properties.keys().for_each(|name| self.declare(name));
                }
                members.values().for_each(|member| self.collect(member));
            }
            _ => {}
        }
    }

    fn declare(&mut self, name: &str) {
        if !self.exact.insert(name.into()) {
            return;
        }
        let known = self.folded.entry(fold(name).into()).or_insert_with(|| Some(name.into()));
        if known.as_deref() != Some(name) {
            *known = None;
            self.is_ambiguous = true;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.exact.is_empty()
    }

    /// Its approximate size in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.exact.iter().map(|name| 3 * name.len() + 128).sum()
    }

    /// The first member that folds to a declared property of its object without being one.
    pub(super) fn folded(&self, schema: Option<&Value>, arguments: &Value) -> Option<Issue> {
        if self.is_empty() || !self.is_suspicious(arguments) {
            return None;
        }
        let mut walk = Walk { declared: self, root: schema, steps: 0 };
        let scope = Scope { schemas: schema.into_iter().collect(), is_lost: schema.is_none() };
        walk.value(&scope, arguments, "")
    }

    /// Whether any member could be confused with another. A declared name cannot, unless another
    /// declared name folds to the same.
    fn is_suspicious(&self, value: &Value) -> bool {
        match value {
            Value::Array(items) => items.iter().any(|item| self.is_suspicious(item)),
            Value::Object(members) => members.iter().any(|(name, member)| {
                let is_fine = if self.exact.contains(name.as_str()) {
                    !self.is_ambiguous
                } else {
                    !self.folded.contains_key(&*fold(name))
                };
                !is_fine || self.is_suspicious(member)
            }),
            _ => false,
        }
    }
}

/// The schemas that look at one value.
struct Scope<'a> {
    schemas: Vec<&'a Value>,
    /// Whether there may be others.
    is_lost: bool,
}

struct Walk<'a> {
    declared: &'a Declared,
    root: Option<&'a Value>,
    steps: usize,
}

impl<'a> Walk<'a> {
    fn value(&mut self, scope: &Scope<'a>, value: &Value, place: &str) -> Option<Issue> {
        match value {
            Value::Object(members) => {
                let scope = self.spread(scope);
                self.object(&scope, members, place)
            }
            Value::Array(items) => {
                let scope = self.spread(scope);
                items.iter().enumerate().find_map(|(at, item)| {
                    let part = self.item(&scope, at);
                    self.value(&part, item, &below(place, &at.to_string()))
                })
            }
            _ => None,
        }
    }

    fn object(
        &mut self,
        scope: &Scope<'a>,
        members: &Map<String, Value>,
        place: &str,
    ) -> Option<Issue> {
        let properties =
            || scope.schemas.iter().filter_map(|schema| schema.get("properties")?.as_object());
        for (name, member) in members {
            let is_declared = properties().any(|listed| listed.contains_key(name));
            if !is_declared && let Some(meant) = self.meant(scope, name) {
                let message =
                    format!("May be read as the declared property {meant:?}; use that name");
                return Some(Issue::new(below(place, name), message).meaning(Some(&meant)));
            }
            let part = self.member(scope, name);
            let found = self.value(&part, member, &below(place, name));
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// The declared property of the object that a name folds to.
    fn meant(&mut self, scope: &Scope<'a>, name: &str) -> Option<String> {
        let folded = fold(name);
        // Most names fold to nothing that is declared anywhere.
        let known = self.declared.folded.get(&*folded)?;
        if scope.is_lost && !self.declared.exact.contains(name) {
            return Some(known.as_deref().unwrap_or(&folded).to_owned());
        }
        let properties =
            scope.schemas.iter().filter_map(|schema| schema.get("properties")?.as_object());
        for listed in properties {
            if let Some(known) = known {
                if listed.contains_key(&**known) {
                    return Some(known.to_string());
                }
                continue;
            }
            self.steps += listed.len();
            if let Some(same) = listed.keys().find(|listed| fold(listed) == folded) {
                return Some(same.clone());
            }
        }
        None
    }

    /// Those schemas, and all that look at the same value with them.
    fn spread(&mut self, scope: &Scope<'a>) -> Scope<'a> {
        let (mut seen, mut is_lost) = (HashSet::new(), scope.is_lost);
        let mut open = scope.schemas.clone();
        let mut schemas = Vec::new();
        while let Some(schema) = open.pop() {
            self.steps += 1;
            if self.steps > MOST_STEPS {
                is_lost = true;
                break;
            }
            let Value::Object(keywords) = schema else { continue };
            if !seen.insert(std::ptr::from_ref(schema)) {
                continue;
            }
            schemas.push(schema);
            for (name, value) in keywords {
                match name.as_str() {
                    "$ref" => match self.target(value) {
                        Some(target) => open.push(target),
                        None => is_lost = true,
                    },
                    name if UNKNOWN.contains(&name) => is_lost = true,
                    name if IN_PLACE.contains(&name) => open.extend(each(name, value)),
                    _ => {}
                }
            }
        }
        Scope { schemas, is_lost }
    }

    fn target(&self, to: &Value) -> Option<&'a Value> {
        let pointer = to.as_str()?.strip_prefix('#').filter(|p| !p.contains('%'))?;
        self.root?.pointer(pointer)
    }

    /// The schemas for one member of an object.
    fn member(&mut self, scope: &Scope<'a>, name: &str) -> Scope<'a> {
        let mut schemas = Vec::new();
        for schema in &scope.schemas {
            let listed = schema.get("properties").and_then(|listed| listed.get(name));
            match listed {
                Some(listed) => schemas.push(listed),
                None => schemas.extend(parts(schema)),
            }
            let named = schema.get("patternProperties").filter(|_| listed.is_some());
            schemas.extend(named.into_iter().flat_map(|named| each("patternProperties", named)));
        }
        self.steps += schemas.len();
        Scope { schemas, is_lost: scope.is_lost }
    }

    /// The schemas for one item of an array.
    fn item(&mut self, scope: &Scope<'a>, at: usize) -> Scope<'a> {
        let mut schemas = Vec::new();
        for schema in &scope.schemas {
            schemas.extend(schema.get("prefixItems").and_then(|listed| listed.get(at)));
            schemas.extend(parts(schema));
        }
        self.steps += schemas.len();
        Scope { schemas, is_lost: scope.is_lost }
    }
}

fn parts(schema: &Value) -> impl Iterator<Item = &Value> {
    ANY_PART
        .iter()
        .filter_map(|name| Some((*name, schema.get(*name)?)))
        .flat_map(|(n, v)| each(n, v))
}

/// The schemas of a keyword: one, or each of a list or of a map.
fn each<'v>(keyword: &str, value: &'v Value) -> Box<dyn Iterator<Item = &'v Value> + 'v> {
    match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(named) if MAPS.contains(&keyword) => Box::new(named.values()),
        single => Box::new(std::iter::once(single)),
    }
}
