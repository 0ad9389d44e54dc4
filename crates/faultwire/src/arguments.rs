//! Arguments against the tool's own schema, before the call is sent (W4).

mod allowance;
mod compile;
mod cost;
mod ecma;
mod folding;
mod hint;
mod pattern;
mod prepare;

pub use allowance::Allowance;

use compile::{Checked, Compiled, Side};
use std::sync::atomic::{AtomicU64, Ordering};

use faultwire_contract::{Aspect, Redactor, nearest};
use hint::Hint;
use jsonschema::Validator;
use jsonschema::error::{ValidationError, ValidationErrorKind};
use pattern::Patterns;
use serde_json::{Value, json};

/// Only the first issues are reported: a caller fixes these first.
const MOST_ISSUES: usize = 16;
/// The validator's text is reported up to this length.
const LONGEST_REASON: usize = 256;

/// A tool's input schema, compiled.
#[derive(Debug)]
pub struct Schema(Compiled);

/// Why arguments may have to be refused.
#[derive(Clone, Debug)]
pub enum Objection {
    /// A member that some parsers take for a declared property. It is refused even where schemas
    /// are not enforced.
    Folded(Misfit),
    /// The arguments do not match the schema.
    Misfit(Misfit),
}

/// One thing that is wrong with the arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// Where, with dots: `edits.0.oldText`.
    pub path: String,
    /// What is wrong, and what may have been meant.
    pub message: String,
    aspect: Aspect,
    hint: Option<Hint>,
}

/// Everything that is wrong with the arguments of one call.
#[derive(Clone, Debug)]
pub struct Misfit {
    /// Each thing, the first one first.
    pub issues: Vec<Issue>,
}

impl Schema {
    /// Compiles the text of a tool's schema. Without one, and with one that makes no sense,
    /// everything passes.
    #[must_use]
    pub fn compile(tool: &str, text: Option<&str>) -> Self {
        Self::compile_within(tool, text, &Allowance::default())
    }

    /// The same for a server whose schemas share an allowance. Schemas beyond the allowance are not
    /// checked, with one warning.
    #[must_use]
    pub fn compile_within(tool: &str, text: Option<&str>, allowance: &Allowance) -> Self {
        let compiled = |text| Compiled::new(Side::Input, tool, text, allowance);
        Self(text.map(compiled).unwrap_or_default())
    }

    /// The schema of a tool's results.
    pub(crate) fn of_output(tool: &str, text: Option<&str>, allowance: &Allowance) -> Self {
        let compiled = |text| Compiled::new(Side::Output, tool, text, allowance);
        Self(text.map(compiled).unwrap_or_default())
    }

    /// Whether anything can be checked against it.
    pub(crate) fn is_usable(&self) -> bool {
        self.0.checked.is_some()
    }

    /// Whether a check of this text could take too long.
    pub(crate) fn is_too_much(&self, text: &str) -> bool {
        self.0.checked.as_ref().is_some_and(|checked| checked.cost.is_too_much(text))
    }

    /// Everything that is wrong with a value; none if a check could take too long.
    pub(crate) fn issues_in(&self, value: &Value) -> Option<Vec<Issue>> {
        let Some(checked) = &self.0.checked else { return Some(Vec::new()) };
        let fits = checked.cost.visits_of(value) <= cost::MOST;
        fits.then(|| self.judged(checked, value).map(|misfit| misfit.issues).unwrap_or_default())
    }

    /// Whether a check of arguments of this length is always fast.
    #[must_use]
    pub fn is_quick(&self, length: usize) -> bool {
        self.0.checked.as_ref().is_none_or(|checked| checked.cost.is_quick(length))
    }

    /// What is wrong with arguments in their JSON text. None if they match.
    #[must_use]
    pub fn misfit(&self, arguments: Option<&str>) -> Option<Misfit> {
        let checked = self.0.checked.as_ref()?;
        let arguments = arguments.unwrap_or("{}");
        if checked.takes_nothing && arguments == "{}" {
            return None;
        }
        if checked.cost.is_too_much(arguments) {
            return unchecked();
        }
        match serde_json::from_str(arguments) {
            Ok(arguments) => self.judged(checked, &arguments),
            Err(e) => Some(unreadable(&e)),
        }
    }

    /// Why the arguments are refused: a member that may be read as another one, or, if the schema
    /// is enforced, a mismatch.
    #[must_use]
    pub fn objection(&self, arguments: Option<&str>, counts: bool) -> Option<Objection> {
        let arguments = arguments.unwrap_or("{}");
        let checked = self.0.checked.as_ref().filter(|_| counts);
        if arguments == "{}" && checked.is_none_or(|checked| checked.takes_nothing) {
            return None;
        }
        if checked.is_none() && self.0.declared.is_empty() {
            return None;
        }
        let too_much = checked.is_some_and(|checked| checked.cost.is_too_much(arguments));
        let value = match serde_json::from_str(arguments) {
            Ok(value) => value,
            Err(e) => return checked.map(|_| Objection::Misfit(unreadable(&e))),
        };
        if let Some(issue) = self.0.declared.folded(self.0.schema.as_ref(), &value) {
            return Some(Objection::Folded(Misfit { issues: vec![issue] }));
        }
        let misfit = if too_much { unchecked() } else { self.judged(checked?, &value) };
        misfit.map(Objection::Misfit)
    }

    /// The same of arguments that were read already.
    #[must_use]
    pub fn misfit_of(&self, arguments: &Value) -> Option<Misfit> {
        let checked = self.0.checked.as_ref()?;
        let visits = checked.cost.visits_of(arguments);
        if visits > cost::MOST { unchecked() } else { self.judged(checked, arguments) }
    }

    fn judged(&self, checked: &Checked, arguments: &Value) -> Option<Misfit> {
        let (validator, schema) = (&checked.validator, self.0.schema.as_ref()?);
        pattern::begin_check();
        // Nearly all arguments match, and checking only that takes half as long.
        if validator.is_valid(arguments) {
            if pattern::is_exhausted() {
                warn_sparsely("matching the patterns of a schema takes too long; some are skipped");
            }
            return None;
        }
        let issues = if checked.cost.visits_of(arguments) > cost::MOST_FOR_LIST {
            first_issue(validator, schema, arguments)
        } else {
            issues(validator, schema, arguments)
        };
        (!issues.is_empty()).then_some(Misfit { issues })
    }
}

fn unreadable(error: &serde_json::Error) -> Misfit {
    let message = format!("Cannot be read: {error}");
    let aspect = Aspect::Format;
    Misfit { issues: vec![Issue { path: String::new(), message, aspect, hint: None }] }
}

fn unchecked() -> Option<Misfit> {
    warn_sparsely("checking the arguments takes too long; they are not checked");
    None
}

/// A client can cause these without end: they are written at powers of two (X4).
fn warn_sparsely(what: &'static str) {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed) + 1;
    if count.is_power_of_two() {
        tracing::warn!(count, "{what}");
    }
}

impl Issue {
    /// Something that is wrong with a value, which no schema can tell.
    #[must_use]
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into(), aspect: Aspect::Value, hint: None }
    }

    /// The same as this finer case.
    pub(crate) fn of_aspect(self, aspect: Aspect) -> Self {
        Self { aspect, ..self }
    }

    /// With the name or the value that may have been meant.
    fn meaning(self, near: Option<&str>) -> Self {
        Self { hint: near.map(|near| Hint::Nearest(near.to_owned())), ..self }
    }
}

impl Misfit {
    /// A handler's error about arguments that match the schema, but not its Rust type. Serde writes
    /// the name of a member in backticks after "field".
    #[must_use]
    pub fn told_by_handler(words: &str) -> Self {
        let said = words.strip_prefix("failed to deserialize parameters: ").unwrap_or(words);
        let named = said.split_once("field `").and_then(|(_, rest)| rest.split_once('`'));
        let path = named.map_or("", |(name, _)| name);
        Self { issues: vec![Issue::new(path, said)] }
    }

    /// The finer case, from the first issue.
    #[must_use]
    pub fn aspect(&self) -> Option<Aspect> {
        self.issues.first().map(|issue| issue.aspect)
    }

    /// One sentence for all issues. Names are not followed by a colon, because text after `token:`
    /// would be redacted as a secret.
    #[must_use]
    pub fn message(&self, tool: &str) -> String {
        let parts = self.issues.iter().take(3).map(|issue| match issue.path.as_str() {
            "" => issue.message.clone(),
            path => format!("{path} ({})", issue.message),
        });
        let parts = parts.collect::<Vec<_>>().join(", ");
        let more = self.issues.len().saturating_sub(3);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        format!("Invalid arguments for tool {tool}, namely {parts}{more}")
    }

    /// `{"validationIssues":[{path, message}]}`.
    #[must_use]
    pub fn details(&self) -> Value {
        let issue = |i: &Issue| json!({ "path": i.path, "message": i.message });
        json!({ "validationIssues": self.issues.iter().map(issue).collect::<Vec<_>>() })
    }

    /// The same with other facts of the failure (U4).
    #[must_use]
    pub fn details_with(&self, known: Option<Value>) -> Value {
        match (known, self.details()) {
            (Some(Value::Object(mut known)), Value::Object(own)) => {
                for (name, value) in own {
                    known.entry(name).or_insert(value);
                }
                Value::Object(known)
            }
            (Some(known), Value::Object(mut own)) => {
                own.insert("data".to_owned(), known);
                Value::Object(own)
            }
            (_, own) => own,
        }
    }
}

/// Checks arguments against a schema.
///
/// ```
/// use serde_json::json;
///
/// let schema = json!({
///     "type": "object",
///     "properties": { "path": { "type": "string" } },
///     "required": ["path"],
///     "additionalProperties": false,
/// });
/// let issues = faultwire::arguments::check(&schema, &json!({ "pth": "a.txt" })).unwrap();
/// assert_eq!(issues[0].path, "pth");
/// assert_eq!(issues[0].message, "Unknown property; did you mean \"path\"?");
/// assert_eq!(issues[1].path, "path");
/// assert_eq!(issues[1].message, "Required");
/// ```
pub fn check(schema: &Value, arguments: &Value) -> Result<Vec<Issue>, String> {
    let validator = compile::validator(schema, &Patterns::default())?;
    pattern::begin_check();
    Ok(issues(&validator, schema, arguments))
}

fn issues(validator: &Validator, schema: &Value, arguments: &Value) -> Vec<Issue> {
    let errors = validator.iter_errors(arguments).take(MOST_ISSUES);
    errors.flat_map(|error| of(&error, schema)).take(MOST_ISSUES).collect()
}

/// The first one only, which needs no memory for the others.
fn first_issue(validator: &Validator, schema: &Value, arguments: &Value) -> Vec<Issue> {
    validator.validate(arguments).err().map(|error| of(&error, schema)).unwrap_or_default()
}

fn of(error: &ValidationError<'_>, schema: &Value) -> Vec<Issue> {
    let place = dotted(error.instance_path().as_str());
    let at = |aspect, path: String, message: String| Issue { path, message, aspect, hint: None };
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            let given = misspelt(name, error, schema);
            let near = given.map(|near| format!("; {near:?} was given, did you mean {name:?}?"));
            let message = format!("Required{}", near.unwrap_or_default());
            let issue = at(Aspect::Missing, below(&place, name), message);
            vec![issue.meaning(given.map(|_| name))]
        }
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            let known = properties(schema, error.schema_path().as_str());
            let unknown = |name: &String| {
                let near = nearest(name, known.iter().map(String::as_str));
                let message = format!("Unknown property{}", meant(near));
                at(Aspect::Value, below(&place, name), message).meaning(near)
            };
            unexpected.iter().take(MOST_ISSUES).map(unknown).collect()
        }
        ValidationErrorKind::Enum { options } => {
            let words: Vec<&str> =
                options.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let given = error.instance().as_str().unwrap_or_default();
            let near = nearest(given, words.iter().copied());
            let options = options.as_array().map_or(&[][..], Vec::as_slice);
            let message = format!("The value is not one of {}{}", listed(options), meant(near));
            let hint = hint::of_values(options, near);
            vec![Issue { hint, ..at(Aspect::Value, place, message) }]
        }
        ValidationErrorKind::AnyOf { .. } | ValidationErrorKind::OneOfNotValid { .. } => {
            let branches = schema.pointer(error.schema_path().as_str());
            let mismatch = wanted_types(branches, error.instance());
            let aspect = if mismatch.is_some() { Aspect::Type } else { Aspect::Value };
            vec![at(aspect, place, mismatch.unwrap_or_else(|| first_line(error)))]
        }
        ValidationErrorKind::Type { .. } => {
            vec![at(Aspect::Type, place, first_line(error))]
        }
        ValidationErrorKind::Format { .. } | ValidationErrorKind::Custom { .. } => {
            vec![at(Aspect::Format, place, first_line(error))]
        }
        _ => vec![at(Aspect::Value, place, first_line(error))],
    }
}

/// The argument that was probably meant as the missing property. If other properties are forbidden,
/// it has its own issue.
fn misspelt<'e>(name: &str, error: &'e ValidationError<'_>, schema: &Value) -> Option<&'e str> {
    let keyword = error.schema_path().as_str();
    let parent = keyword.rsplit_once('/').map_or("", |(parent, _)| parent);
    let forbids = |key| schema.pointer(&format!("{parent}/{key}")) == Some(&Value::Bool(false));
    if forbids("additionalProperties") || forbids("unevaluatedProperties") {
        return None;
    }
    let known = properties(schema, keyword);
    let given = error.instance().as_object()?.keys();
    nearest(name, given.filter(|given| !known.contains(given)).map(String::as_str))
}

/// Values that may be chosen.
fn listed(options: &[Value]) -> String {
    const MOST: usize = 20;
    let (mut parts, mut length) = (Vec::new(), 0);
    for option in options.iter().take(MOST).map(Value::to_string) {
        length += option.len();
        if length > 512 && !parts.is_empty() {
            break;
        }
        parts.push(option);
    }
    let shown = parts.join(", ");
    match options.len() - parts.len() {
        0 => shown,
        more => format!("{shown} and {more} others"),
    }
}

/// The issue of a choice between types, if the value has none of them.
fn wanted_types(branches: Option<&Value>, given: &Value) -> Option<String> {
    let type_of = |branch: &Value| Some(branch.get("type")?.as_str()?.to_owned());
    let wanted: Vec<String> = branches?.as_array()?.iter().map(type_of).collect::<Option<_>>()?;
    let is = match given {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let fits = |wanted: &String| wanted == is || (is == "number" && wanted == "integer");
    let types = wanted.join(" or ");
    (!wanted.iter().any(fits)).then(|| format!("The value is not of type {types}"))
}

/// The validator's own words. A value that it quotes is the caller's, and may be long.
fn first_line(error: &ValidationError<'_>) -> String {
    let text = error.masked_with("The value").to_string();
    let text = text.lines().next().unwrap_or_default();
    if text.len() <= LONGEST_REASON {
        return text.to_owned();
    }
    // The schema's text may contain a secret, and cutting would leave half of it (X6).
    let safe = Redactor::default().redact_credentials(text).into_owned();
    safe[..safe.floor_char_boundary(LONGEST_REASON)].to_owned()
}

fn meant(near: Option<&str>) -> String {
    near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default()
}

/// The properties beside the violated keyword.
fn properties(schema: &Value, keyword: &str) -> Vec<String> {
    let parent = keyword.rsplit_once('/').map_or("", |(parent, _)| parent);
    let listed = schema.pointer(&format!("{parent}/properties")).and_then(Value::as_object);
    listed.map(|p| p.keys().cloned().collect()).unwrap_or_default()
}

/// `/edits/0/oldText` as `edits.0.oldText`.
fn dotted(pointer: &str) -> String {
    let parts = pointer.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~"));
    parts.collect::<Vec<_>>().join(".")
}

fn below(place: &str, name: &str) -> String {
    if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") }
}
