//! Compiles the text of a schema to a validator, within bounds, because the server that sends it is
//! not trusted.

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

/// The size limit of a pattern for names, with a margin because another engine counts differently.
const NAMES: usize = 256 * 1024;

/// Which of a tool's schemas it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Of its arguments.
    Input,
    /// Of its results.
    Output,
}

/// A schema, as far as it can be used.
#[derive(Debug, Default)]
pub(super) struct Compiled {
    /// None if it cannot be used: then everything passes.
    pub checked: Option<Checked>,
    /// The schema without the parts that were removed; none if it is too large.
    pub schema: Option<Value>,
    pub declared: Declared,
    /// The share of `declared`.
    share: Option<Share>,
}

/// A schema that can be checked against.
#[derive(Debug)]
pub(super) struct Checked {
    pub validator: Validator,
    /// Whether a call without arguments matches; most tools without arguments are called in this
    /// way.
    pub takes_nothing: bool,
    pub cost: Cost,
    _shares: (Share, Share),
}

impl Compiled {
    pub(super) fn new(side: Side, tool: &str, text: &str, allowance: &Allowance) -> Self {
        let patterns = Patterns::default();
        let mut compiled = Self::default();
        let made = compiled.make(side, text, &patterns, allowance);
        for pattern in patterns.skipped() {
            tracing::warn!(
                tool,
                ?pattern,
                "skipping a pattern that is too large or uses look-around or back-references"
            );
        }
        match (made, side) {
            (Ok(()), _) => {}
            (Err(why), Side::Input) => {
                tracing::warn!(tool, %why, "cannot use the tool's inputSchema; its arguments are not checked");
            }
            (Err(why), Side::Output) => {
                tracing::warn!(tool, %why, "cannot use the tool's outputSchema; its results are not checked");
            }
        }
        compiled
    }

    /// Compiles as much as possible; what was compiled before an error is kept.
    fn make(
        &mut self,
        side: Side,
        text: &str,
        patterns: &Patterns,
        allowance: &Allowance,
    ) -> Result<(), String> {
        if text.len() > MOST_NAMED {
            return Err(format!("the schema is longer than {MOST_NAMED} bytes"));
        }
        let schema: Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
        let full = || "the schemas of this server use too much memory in total".to_owned();
        match side {
            Side::Input => {
                let declared = Declared::of(&schema);
                self.share = Some(allowance.take(declared.bytes()).ok_or_else(full)?);
                self.declared = declared;
            }
            // The protocol has objects there; `false` would be against every result.
            Side::Output if !schema.is_object() => {
                return Err("the schema is not an object".to_owned());
            }
            Side::Output => {}
        }
        if text.len() > MOST_BYTES {
            return Err(format!("the schema is longer than {MOST_BYTES} bytes"));
        }
        let prepare::Prepared { schema, bytes } = prepared(schema, patterns)?;
        let share = allowance.take(bytes).ok_or_else(full)?;
        let schema = self.schema.insert(schema);
        let cost = Cost::of(schema).ok_or("the schema has references that are not supported")?;
        if cost.is_hopeless() {
            return Err("checking against the schema would take too long".to_owned());
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

/// A validator that never fetches anything and matches each pattern in linear time.
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
