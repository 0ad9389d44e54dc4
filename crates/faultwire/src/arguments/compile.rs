//! From the text of a schema to a validator, within bounds: the text comes from a server that
//! nobody vouches for.

use jsonschema::{PatternOptions, Validator};
use serde_json::{Value, json};

use super::allowance::{Allowance, Share};
use super::cost::Cost;
use super::folding::Declared;
use super::pattern::{self, Patterns};
use super::prepare::{self, MOST_BYTES, prepared};

/// The properties of a longer one are not known either.
const MOST_NAMED: usize = 4 * MOST_BYTES;
/// A text that is to be a pattern itself is looked at up to this length.
const LONGEST_REGEX: usize = 1024;

/// What a pattern for names may take, with some room for how another engine counts.
const NAMES: usize = 256 * 1024;

/// A schema, as far as it can be used.
#[derive(Debug, Default)]
pub(super) struct Compiled {
    /// None where it cannot be checked against: everything passes then.
    pub checked: Option<Checked>,
    /// As it was read, but for what was taken out; none where it is too large.
    pub schema: Option<Value>,
    pub declared: Declared,
    /// Held for what `declared` takes.
    share: Option<Share>,
}

/// A schema that can be checked against.
#[derive(Debug)]
pub(super) struct Checked {
    pub validator: Validator,
    /// Whether a call without arguments fits; most tools without any are called so.
    pub takes_nothing: bool,
    pub cost: Cost,
    _shares: (Share, Share),
}

impl Compiled {
    pub(super) fn new(tool: &str, text: &str, allowance: &Allowance) -> Self {
        let patterns = Patterns::default();
        let mut compiled = Self::default();
        let made = compiled.make(text, &patterns, allowance);
        for pattern in patterns.skipped() {
            tracing::warn!(
                tool,
                ?pattern,
                "the pattern is too large, or needs look-around or back-references; it is not checked"
            );
        }
        if let Err(why) = made {
            tracing::warn!(tool, %why, "the tool's input schema cannot be used; its arguments are not checked");
        }
        compiled
    }

    /// Makes what can be made of it; what was made before something failed stays.
    fn make(
        &mut self,
        text: &str,
        patterns: &Patterns,
        allowance: &Allowance,
    ) -> Result<(), String> {
        if text.len() > MOST_NAMED {
            return Err(format!("it has more than {MOST_NAMED} bytes"));
        }
        let schema: Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
        let declared = Declared::of(&schema);
        let full = || "the schemas of this server take too much memory together".to_owned();
        self.share = Some(allowance.take(declared.bytes()).ok_or_else(full)?);
        self.declared = declared;
        if text.len() > MOST_BYTES {
            return Err(format!("it has more than {MOST_BYTES} bytes"));
        }
        let prepare::Prepared { schema, bytes } = prepared(schema, patterns)?;
        let share = allowance.take(bytes).ok_or_else(full)?;
        let schema = self.schema.insert(schema);
        let cost = Cost::of(schema).ok_or("it has references that are not followed")?;
        if cost.is_hopeless() {
            return Err("checking any arguments would take too long".to_owned());
        }
        let validator = validator(schema, patterns)?;
        let of_patterns = allowance.take(patterns.bytes()).ok_or_else(full)?;
        pattern::begin_check();
        let takes_nothing = !cost.is_too_much("{}") && validator.is_valid(&json!({}));
        let shares = (share, of_patterns);
        self.checked = Some(Checked { validator, takes_nothing, cost, _shares: shares });
        Ok(())
    }
}

/// A validator that never fetches anything, and takes linear time for each pattern.
pub(super) fn validator(schema: &Value, patterns: &Patterns) -> Result<Validator, String> {
    let patterns = patterns.clone();
    jsonschema::options()
        .offline()
        .with_pattern_options(PatternOptions::regex().size_limit(NAMES).dfa_size_limit(NAMES))
        .with_format("regex", |text: &str| text.len() > LONGEST_REGEX || pattern::is_regex(text))
        .with_keyword("pattern", move |_, value, _| Ok(patterns.keyword(value)))
        .build(schema)
        .map_err(|e| e.to_string())
}
