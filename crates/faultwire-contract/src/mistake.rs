//! Mistakes in a file: where, what is wrong, and what to do.

use std::fmt;

/// One mistake in a contract file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Line in the file, from 1.
    pub line: usize,
    /// Column in that line, in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub help: String,
}

/// All the mistakes found in one file, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistakes {
    /// The file's name, as it was given.
    pub file: String,
    /// The mistakes, at least one.
    pub list: Vec<Mistake>,
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, m) in self.list.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{}:{}:{}: {}", self.file, m.line, m.column, m.what)?;
            write!(f, "\n  help: {}", m.help)?;
        }
        Ok(())
    }
}

impl std::error::Error for Mistakes {}

/// The name in `known` that was most likely meant by `word`.
#[must_use]
pub fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    // Longer names are not compared, because the time grows with the square of the length.
    if word.len() > 128 {
        return None;
    }
    let wanted = word.to_lowercase();
    known
        .into_iter()
        .map(|k| (strsim::normalized_damerau_levenshtein(&wanted, &k.to_lowercase()), k))
        .filter(|(score, _)| *score >= 0.6)
        // The first of several that are equally near.
        .reduce(|best, next| if next.0 > best.0 { next } else { best })
        .map(|(_, k)| k)
}
