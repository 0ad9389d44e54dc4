//! The keyword `pattern`, in time linear in the text. A pattern that a lazy DFA cannot express
//! (look-around, back-references) or that is too large is skipped; the rest of the schema counts.

use std::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError};

use jsonschema::{Keyword, ValidationError};
use regex_automata::Input;
use regex_automata::hybrid::dfa::{Cache, Config, DFA};
use regex_automata::nfa::thompson;
use regex_automata::util::syntax;
use serde_json::Value;

use super::ecma;

/// The size limit of a compiled pattern: about the size of `^.{1,1000}$`.
const MOST_COMPILED: usize = 512 * 1024;
/// All patterns of a schema together are.
const MOST_TOGETHER: usize = 1024 * 1024;
/// A longer one is not compiled.
const LONGEST: usize = 4 * 1024;
/// When the states of the DFA take more memory than this, the search is given up.
const MOST_STATES: usize = 128 * 1024;
/// A smaller cache is kept for the next search.
const MOST_KEPT: usize = 32 * 1024;
/// Groups in groups.
const DEEPEST: u32 = 64;
/// So many bytes of new states and of text may be worked through in one check.
const MOST_WORK: usize = 256 * 1024;
/// The text costs this much less than building states.
const TEXT_PER_WORK: usize = 64;

thread_local! {
    /// How much more the patterns of the check that runs on this thread may do.
    static LEFT: Cell<usize> = const { Cell::new(MOST_WORK) };
}

/// Lets the patterns of a new check do all that one check may.
pub(super) fn begin_check() {
    LEFT.set(MOST_WORK);
}

/// Whether a pattern was skipped since the check began, because all of them did too much.
pub(super) fn is_exhausted() -> bool {
    LEFT.get() == 0
}

/// The patterns of one schema while it is compiled.
#[derive(Clone, Default)]
pub(super) struct Patterns(Arc<Mutex<Compiled>>);

#[derive(Default)]
struct Compiled {
    bytes: usize,
    skipped: Vec<String>,
}

impl Patterns {
    /// The keyword of one pattern, which does nothing if the pattern cannot be used.
    pub(super) fn keyword(&self, pattern: &Value) -> Box<dyn for<'i> Keyword<'i>> {
        let Some(pattern) = pattern.as_str() else { return Box::new(Skipped) };
        let mut compiled = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let left = MOST_TOGETHER.saturating_sub(compiled.bytes);
        if let Some(dfa) = dfa(pattern, left.min(MOST_COMPILED)) {
            compiled.bytes += size(&dfa);
            Box::new(Pattern { text: pattern.into(), dfa, cache: Mutex::default() })
        } else {
            compiled.skip(pattern);
            Box::new(Skipped)
        }
    }

    /// Remembers that a pattern is not used.
    pub(super) fn skip(&self, pattern: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).skip(pattern);
    }

    /// The memory that all of them take.
    pub(super) fn bytes(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).bytes
    }

    /// Those that are not used.
    pub(super) fn skipped(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).skipped)
    }
}

impl Compiled {
    fn skip(&mut self, pattern: &str) {
        const MOST: usize = 16;
        let shown = &pattern[..pattern.floor_char_boundary(128)];
        if self.skipped.len() < MOST && !self.skipped.iter().any(|known| known == shown) {
            self.skipped.push(shown.to_owned());
        }
    }
}

/// Whether a text is a pattern, or one that only other engines take.
pub(super) fn is_regex(text: &str) -> bool {
    let is_beyond_us = ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|look| text.contains(look))
        || text.contains('\\');
    is_beyond_us || dfa(text, MOST_COMPILED).is_some()
}

/// Whether a compiled pattern has at most this size.
pub(super) fn is_small(pattern: &str, most: usize) -> bool {
    dfa(pattern, most).is_some()
}

fn dfa(pattern: &str, most: usize) -> Option<DFA> {
    if pattern.len() > LONGEST {
        return None;
    }
    let nfa = thompson::Compiler::new()
        .syntax(syntax::Config::new().nest_limit(DEEPEST))
        .configure(
            thompson::Config::new()
                .nfa_size_limit(Some(most))
                .which_captures(thompson::WhichCaptures::None),
        )
        .build(&ecma::translated(pattern))
        .ok()?;
    let config = Config::new()
        .cache_capacity(MOST_STATES)
        .skip_cache_capacity_check(true)
        .minimum_cache_clear_count(Some(0));
    DFA::builder().configure(config).build_from_nfa(nfa).ok()
}

fn size(dfa: &DFA) -> usize {
    dfa.memory_usage() + dfa.get_nfa().memory_usage()
}

/// A pattern that is not used.
struct Skipped;

impl<'i> Keyword<'i> for Skipped {
    fn validate(&self, _: &'i Value) -> Result<(), ValidationError<'i>> {
        Ok(())
    }

    fn is_valid(&self, _: &'i Value) -> bool {
        true
    }
}

/// A pattern, ready to be searched for.
struct Pattern {
    text: Box<str>,
    dfa: DFA,
    /// States that the next search need not build again.
    cache: Mutex<Option<Cache>>,
}

impl<'i> Keyword<'i> for Pattern {
    fn validate(&self, value: &'i Value) -> Result<(), ValidationError<'i>> {
        if self.is_valid(value) {
            return Ok(());
        }
        Err(ValidationError::custom(format!("The value does not match {:?}", self.text)))
    }

    fn is_valid(&self, value: &'i Value) -> bool {
        value.as_str().is_none_or(|text| self.matches(text))
    }
}

impl Pattern {
    /// Whether the text matches, or cannot be searched within bounds.
    fn matches(&self, text: &str) -> bool {
        let left = LEFT.get();
        if left == 0 {
            return true;
        }
        let kept = self.cache.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut cache = kept.unwrap_or_else(|| self.dfa.create_cache());
        let before = cache.memory_usage();
        let found = self.dfa.try_search_fwd(&mut cache, &Input::new(text).earliest(true));
        let grown = cache.memory_usage().saturating_sub(before);
        LEFT.set(left.saturating_sub(grown + text.len() / TEXT_PER_WORK));
        if found.is_ok() && cache.memory_usage() <= MOST_KEPT {
            *self.cache.lock().unwrap_or_else(PoisonError::into_inner) = Some(cache);
        }
        found.map_or(true, |found| found.is_some())
    }
}
