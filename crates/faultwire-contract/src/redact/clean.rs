//! A cache of recent texts without findings: names of tools and sessions, and the texts of repeated
//! failures. A text with a secret is never cached.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use foldhash::fast::RandomState;

/// Longer texts are rarely the same twice.
const LONGEST: usize = 512;
/// The number of texts in each of the two generations.
const MOST: usize = 256;

/// A bounded memory of clean texts.
#[derive(Debug, Default)]
pub(super) struct Clean(Mutex<Generations>);

#[derive(Debug, Default)]
struct Generations {
    young: HashSet<Box<str>, RandomState>,
    old: HashSet<Box<str>, RandomState>,
}

impl Clean {
    pub(super) fn knows(&self, text: &str) -> bool {
        if text.len() > LONGEST {
            return false;
        }
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.young.contains(text) || known.old.contains(text)
    }

    pub(super) fn remember(&self, text: &str) {
        if text.len() > LONGEST {
            return;
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.young.len() >= MOST {
            known.old = std::mem::take(&mut known.young);
        }
        known.young.insert(text.into());
    }
}
