//! From the text of a schema to a validator, within bounds: the text comes from a server that
//! nobody vouches for.

use jsonschema::{PatternOptions, Validator};
use serde_json::{Value, json};

use super::allowance::{Allowance, Share};
use super::cost::{self, Cost};
use super::pattern::{self, Patterns};
use super::prepare::{self, MOST_BYTES, prepared};

/// A text that is to be a pattern itself is looked at up to this length.
const LONGEST_REGEX: usize = 1024;

/// What is known of a schema.
#[derive(Debug)]
pub(super) enum Kind {
    /// The tool has none, or one that cannot be used: everything passes.
    Open,
    /// Ready.
    Compiled(Box<Compiled>),
}

/// A schema that can be checked against.
#[derive(Debug)]
pub(super) struct Compiled {
    pub validator: Validator,
    pub schema: Value,
    /// Whether a call without arguments fits; most tools without any are called so.
    pub takes_nothing: bool,
    pub cost: Cost,
    _shares: (Share, Share),
}

impl Kind {
    pub(super) fn compile(tool: &str, text: Option<&str>, allowance: &Allowance) -> Self {
        let Some(text) = text else { return Self::Open };
        let patterns = Patterns::default();
        let compiled = Compiled::new(text, &patterns, allowance);
        for pattern in patterns.skipped() {
            tracing::warn!(
                tool,
                ?pattern,
                "the pattern is too large, or needs look-around or back-references; it is not checked"
            );
        }
        match compiled {
            Ok(compiled) => Self::Compiled(Box::new(compiled)),
            Err(why) => {
                tracing::warn!(tool, %why, "the tool's input schema cannot be used; its arguments are not checked");
                Self::Open
            }
        }
    }
}

impl Compiled {
    fn new(text: &str, patterns: &Patterns, allowance: &Allowance) -> Result<Self, String> {
        if text.len() > MOST_BYTES {
            return Err(format!("it has more than {MOST_BYTES} bytes"));
        }
        let schema = serde_json::from_str(text).map_err(|e| e.to_string())?;
        let prepare::Prepared { schema, bytes } = prepared(schema, patterns)?;
        let full = || "the schemas of this server take too much memory together".to_owned();
        let share = allowance.take(bytes).ok_or_else(full)?;
        let cost = Cost::of(&schema).ok_or("it has references that are not followed")?;
        if cost.is_hopeless() {
            return Err("checking any arguments would take too long".to_owned());
        }
        let validator = validator(&schema, patterns)?;
        let of_patterns = allowance.take(patterns.bytes()).ok_or_else(full)?;
        pattern::begin_check();
        let takes_nothing = cost.visits("{}") <= cost::MOST && validator.is_valid(&json!({}));
        Ok(Self { validator, schema, takes_nothing, cost, _shares: (share, of_patterns) })
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

/// What a pattern for names may take, with some room for how another engine counts.
const NAMES: usize = 256 * 1024;
