//! A pattern of a rule, compiled when it must be known to compile or when a text first needs it.

use std::sync::OnceLock;

use regex::bytes::{Match, Regex, RegexBuilder};

/// A compiled pattern takes no more bytes than this.
const SIZE_LIMIT: usize = 1 << 20;

/// A pattern. It sees bytes: that compiles many times faster, and a contract is loaded at every
/// start.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    source: String,
    compiled: OnceLock<Regex>,
}

impl Pattern {
    /// A pattern of a file that anybody may have written.
    pub fn checked(source: &str) -> Result<Self, regex::Error> {
        let compiled = compile(source)?;
        Ok(Self { source: source.to_owned(), compiled: compiled.into() })
    }

    /// A pattern of a file that is part of this build. There are hundreds, and a process needs few.
    pub fn built_in(source: &str) -> Self {
        Self { source: source.to_owned(), compiled: OnceLock::new() }
    }

    pub fn as_str(&self) -> &str {
        &self.source
    }

    pub fn is_match(&self, text: &[u8]) -> bool {
        self.regex().is_match(text)
    }

    pub fn find<'t>(&self, text: &'t [u8]) -> Option<Match<'t>> {
        self.regex().find(text)
    }

    fn regex(&self) -> &Regex {
        self.compiled.get_or_init(|| match compile(&self.source) {
            Ok(regex) => regex,
            Err(e) => unreachable!("a test compiles all patterns of this build: {e}"),
        })
    }
}

fn compile(source: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(source).unicode(false).size_limit(SIZE_LIMIT).build()
}
