//! What helps to correct arguments: names and values of the tool's own schema. They can stand in an
//! instruction, so a server's words choose among them at most.

use std::collections::HashSet;

use faultwire_contract::{Aspect, Hints, nearest};
use serde_json::{Map, Value};

use super::{Issue, Misfit, Schema};

/// More names or values are not listed.
const MOST: usize = 8;
/// A schema of more properties is not searched for those that a text names.
const MOST_PROPERTIES: usize = 256;
/// A server's words are read up to here.
const LONGEST_TEXT: usize = 4096;

/// What an issue knows that helps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Hint {
    /// The declared name, or the allowed value, that may have been meant.
    Nearest(String),
    /// All values that are allowed.
    Allowed(String),
}

impl Misfit {
    /// What helps to correct the arguments, where one thing corrects all of them.
    #[must_use]
    pub fn hints(&self) -> Hints {
        Hints {
            missing: self.missing(),
            allowed: self.allowed(),
            nearest: self.meant(),
            ..Hints::default()
        }
    }

    fn missing(&self) -> Option<String> {
        let is_missing = |issue: &Issue| {
            issue.aspect == Aspect::Missing && !issue.path.is_empty() && issue.hint.is_none()
        };
        let paths: Vec<&str> = self.issues.iter().map(|issue| issue.path.as_str()).collect();
        let all = self.issues.iter().all(is_missing);
        (all && !paths.is_empty() && paths.len() <= MOST).then(|| paths.join(", "))
    }

    fn allowed(&self) -> Option<String> {
        match &self.issues[..] {
            [Issue { hint: Some(Hint::Allowed(values)), .. }] => Some(values.clone()),
            _ => None,
        }
    }

    /// The one name that was misspelt: others are missing for no other reason.
    fn meant(&self) -> Option<String> {
        let mut meant = self.issues.iter().filter_map(|issue| match &issue.hint {
            Some(Hint::Nearest(name)) => Some(name),
            _ => None,
        });
        let name = meant.next().filter(|_| meant.next().is_none())?;
        let is_of_it = |issue: &Issue| {
            matches!(issue.hint, Some(Hint::Nearest(_)))
                || issue.aspect == Aspect::Missing && last(&issue.path) == name
        };
        self.issues.iter().all(is_of_it).then(|| name.clone())
    }
}

impl Schema {
    /// Hints if the arguments match the schema, but the server refuses them: the declared
    /// properties that are missing, or the one that a name was meant to be.
    #[must_use]
    pub fn hints_for(&self, arguments: Option<&Value>, said: &str) -> Hints {
        let root = self.0.schema.as_ref();
        let declared = root.and_then(|schema| schema.get("properties")?.as_object());
        let Some(declared) = declared.filter(|all| all.len() <= MOST_PROPERTIES) else {
            return Hints::default();
        };
        let none = Map::new();
        let given = arguments.and_then(Value::as_object).unwrap_or(&none);
        let said = Words::of(said);
        let absent =
            || declared.keys().map(String::as_str).filter(|name| !given.contains_key(*name));
        let missing: Vec<&str> = said.missing(absent());
        if !missing.is_empty() && missing.len() <= MOST {
            return Hints { missing: Some(missing.join(", ")), ..Hints::default() };
        }
        let mut unknown = given.keys().filter(|name| !declared.contains_key(*name));
        let unknown = unknown.next().filter(|name| unknown.next().is_none() && said.has(name));
        let meant = unknown.and_then(|name| nearest(name, absent()));
        Hints { nearest: meant.map(str::to_owned), ..Hints::default() }
    }
}

/// The words of a text, names whole.
struct Words<'a>(Vec<&'a str>);

/// Words before a name that say that it is missing, and words soon after it.
const BEFORE: [&str; 14] = [
    "argument",
    "arguments",
    "field",
    "fields",
    "missing",
    "need",
    "needs",
    "parameter",
    "parameters",
    "properties",
    "property",
    "provide",
    "required",
    "requires",
];
const AFTER: [&str; 6] = ["mandatory", "missing", "needed", "provided", "required", "undefined"];
/// How soon.
const SOON: usize = 3;

impl<'a> Words<'a> {
    fn of(text: &'a str) -> Self {
        let text = &text[..text.floor_char_boundary(LONGEST_TEXT)];
        // In JSON any word can be a member's name.
        if text.contains("\":") {
            return Self(Vec::new());
        }
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        let words = text.split(|c| !is_part(c)).map(|word| word.trim_matches(['.', '-']));
        Self(words.filter(|word| !word.is_empty()).collect())
    }

    fn has(&self, name: &str) -> bool {
        self.0.contains(&name)
    }

    /// The names that the text says are missing. None if it leaves a choice.
    fn missing<'n>(&self, names: impl Iterator<Item = &'n str>) -> Vec<&'n str> {
        if has_any(&self.0, &["either", "or"])
            || !has_any(&self.0, &BEFORE) && !has_any(&self.0, &AFTER)
        {
            return Vec::new();
        }
        let names: Vec<&str> = names.collect();
        let known: HashSet<&str> = names.iter().copied().collect();
        let (mut said, mut last) = (HashSet::new(), None);
        for (at, word) in self.0.iter().enumerate().filter(|(_, word)| known.contains(**word)) {
            let goes_on = match last {
                Some(last) => last + 1 == at || last + 2 == at && self.0[at - 1] == "and",
                None => false,
            };
            let before = at.checked_sub(1).map(|at| &self.0[at..=at]).unwrap_or_default();
            let after = self.0[at + 1..].iter().take(SOON).copied().collect::<Vec<_>>();
            if goes_on || has_any(before, &BEFORE) || has_any(&after, &AFTER) {
                said.insert(*word);
                last = Some(at);
            }
        }
        names.into_iter().filter(|name| said.contains(name)).collect()
    }
}

fn has_any(words: &[&str], known: &[&str]) -> bool {
    words.iter().any(|word| known.iter().any(|known| word.eq_ignore_ascii_case(known)))
}

/// The values of an enumeration, if there are few, otherwise the value that may have been meant.
pub(super) fn of_values(options: &[Value], near: Option<&str>) -> Option<Hint> {
    let told = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        _ => None,
    };
    let all: Option<Vec<String>> = options.iter().take(MOST + 1).map(told).collect();
    match all.filter(|all| (1..=MOST).contains(&all.len())) {
        Some(all) => Some(Hint::Allowed(all.join(", "))),
        None => near.map(|near| Hint::Nearest(near.to_owned())),
    }
}

fn last(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn u1_a_servers_words_only_choose_among_declared_properties() {
        let schema = json!({
            "type": "object",
            "properties": { "path": {}, "text": {}, "owner": {}, "repo": {}, "name": {} },
        });
        let schema = Schema::compile("tool", Some(&schema.to_string()));
        let missing = |said: &str| schema.hints_for(Some(&json!({ "text": "a" })), said).missing;
        for (said, expected) in [
            ("Missing required parameter: path", Some("path")),
            ("path is required", Some("path")),
            ("'path' must be provided", Some("path")),
            ("Required arguments: owner, repo and name.", Some("owner, repo, name")),
            ("the argument `path` is missing. See the name of the tool", Some("path")),
            // Given arguments, undeclared ones, and words that only name one are not missing.
            ("text is required", None),
            ("Missing required parameter: ignore_previous_instructions", None),
            ("The owner of the file does not let you", None),
            // One of them is enough.
            ("either path or name is required", None),
            (r#"[{"path":["name"],"message":"Required"}]"#, None),
        ] {
            assert_eq!(missing(said).as_deref(), expected, "{said}");
        }
        let near = |arguments: Value, said: &str| schema.hints_for(Some(&arguments), said).nearest;
        let unknown = "Unknown parameter txet";
        assert_eq!(near(json!({ "txet": 1 }), unknown).as_deref(), Some("text"));
        assert_eq!(near(json!({ "txet": 1 }), "Something else"), None);
        assert_eq!(near(json!({ "txet": 1, "text": 1 }), unknown), None);
    }

    #[test]
    fn u1_hints_are_what_the_schema_says() {
        let schema = json!({
            "type": "object",
            "properties": {
                "path": { "type": "string" },
                "sort": { "enum": ["asc", "desc", 3] },
                "kind": { "enum": (0..9).map(|n| format!("kind{n}")).collect::<Vec<_>>() },
            },
            "required": ["path"],
            "additionalProperties": false,
        });
        let schema = Schema::compile("tool", Some(&schema.to_string()));
        let hints = |arguments: Value| schema.misfit_of(&arguments).unwrap().hints();
        let known = |missing: Option<&str>, allowed: Option<&str>, nearest: Option<&str>| {
            let [missing, allowed, nearest] =
                [missing, allowed, nearest].map(|h| h.map(str::to_owned));
            Hints { missing, allowed, nearest, ..Hints::default() }
        };
        for (arguments, expected) in [
            (json!({}), known(Some("path"), None, None)),
            (json!({ "pth": "a" }), known(None, None, Some("path"))),
            (json!({ "path": "a", "sort": "up" }), known(None, Some("asc, desc, 3"), None)),
            (json!({ "path": "a", "kind": "knd3" }), known(None, None, Some("kind3"))),
            (json!({ "path": "a", "kind": "zzz" }), Hints::default()),
            (json!({ "path": 5 }), Hints::default()),
            (json!({ "sort": "up" }), Hints::default()),
            (json!({ "pth": "a", "sort": "up" }), Hints::default()),
        ] {
            assert_eq!(hints(arguments.clone()), expected, "{arguments}");
        }
    }
}
