//! Which rules a text is worth trying on: one pass tells, by words of which each match must hold one.
//!
//! The words are taken from the patterns themselves. Most rules know them, and most texts hold few.

use regex_syntax::ast::parse::Parser;
use regex_syntax::ast::{
    Ast, ClassBracketed, ClassSet, ClassSetItem, Literal, RepetitionKind, RepetitionRange,
};

use crate::pattern::Pattern;

/// Shorter words stand in every text, and are not told apart by their beginning.
const SHORTEST: usize = 3;
/// A pattern of more words is tried on all texts.
const MOST: usize = 512;
/// Rules by number, a bit each.
const ROOM: usize = 4;

/// A set of rules.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Candidates([u64; ROOM]);

impl Candidates {
    pub fn has(&self, rule: usize) -> bool {
        // What has no bit is tried.
        self.0.get(rule / 64).is_none_or(|bits| bits & (1 << (rule % 64)) != 0)
    }

    fn add(&mut self, rule: usize) {
        if let Some(bits) = self.0.get_mut(rule / 64) {
            *bits |= 1 << (rule % 64);
        }
    }

    fn join(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(bits, more)| *bits |= more);
    }
}

/// The words of some patterns, and the rules that each of them belongs to.
#[derive(Debug)]
pub(super) struct Prefilter {
    /// Where in `buckets` the words are that begin with three letters; 0 is none.
    table: Vec<u16>,
    buckets: Vec<Vec<Word>>,
    /// Rules that no word tells of.
    always: Candidates,
}

/// A word and the rules whose patterns need it.
#[derive(Debug)]
struct Word {
    letters: Vec<u8>,
    rules: Candidates,
}

/// Three letters, five bits each, take so many places. Both cases of a letter are the same bits.
const PLACES: usize = 1 << 15;

/// The place of the last three letters, from that of the three before and the next letter.
fn next_place(place: usize, letter: u8) -> usize {
    (place << 5 | usize::from(letter & 31)) & (PLACES - 1)
}

impl Prefilter {
    /// Of one pattern a rule, where it has one.
    pub fn new<'p>(patterns: impl Iterator<Item = Option<&'p Pattern>>) -> Self {
        let mut new = Self {
            table: vec![0; PLACES],
            // No place leads to the first.
            buckets: vec![Vec::new()],
            always: Candidates::default(),
        };
        for (rule, pattern) in patterns.enumerate() {
            match pattern.and_then(|pattern| words_of(pattern.as_str())) {
                None => new.always.add(rule),
                Some(words) => words.into_iter().for_each(|word| new.add(word, rule)),
            }
        }
        new
    }

    fn add(&mut self, word: Vec<u8>, rule: usize) {
        let place = word.iter().take(SHORTEST).fold(0, |place, letter| next_place(place, *letter));
        let known = usize::from(self.table[place]);
        let number = if known == 0 { self.buckets.len() } else { known };
        let Ok(entry) = u16::try_from(number) else { return self.always.add(rule) };
        if known == 0 {
            self.table[place] = entry;
            self.buckets.push(Vec::new());
        }
        let bucket = &mut self.buckets[number];
        if let Some(same) = bucket.iter_mut().find(|known| known.letters == word) {
            return same.rules.add(rule);
        }
        let mut rules = Candidates::default();
        rules.add(rule);
        bucket.push(Word { letters: word, rules });
    }

    /// The rules whose pattern may match.
    pub fn candidates(&self, text: &str) -> Candidates {
        let text = text.as_bytes();
        let mut found = self.always;
        let mut place = 0;
        for (at, letter) in text.iter().enumerate() {
            place = next_place(place, *letter);
            let entry = self.table[place];
            if entry == 0 || at + 1 < SHORTEST {
                continue;
            }
            let rest = &text[at + 1 - SHORTEST..];
            for word in &self.buckets[usize::from(entry)] {
                let begins = rest.get(..word.letters.len());
                if begins.is_some_and(|begins| begins.eq_ignore_ascii_case(&word.letters)) {
                    found.join(&word.rules);
                }
            }
        }
        found
    }
}

/// Words of which each match of a pattern holds at least one; none if that cannot be told.
fn words_of(pattern: &str) -> Option<Vec<Vec<u8>>> {
    let words = words(&Parser::new().parse(pattern).ok()?)?;
    (words.len() <= MOST).then_some(words)
}

fn words(ast: &Ast) -> Option<Vec<Vec<u8>>> {
    match ast {
        Ast::Group(group) => words(&group.ast),
        Ast::Repetition(repetition) if is_needed(&repetition.op.kind) => words(&repetition.ast),
        Ast::Alternation(branches) => {
            let all: Option<Vec<_>> = branches.asts.iter().map(words).collect();
            Some(all?.into_iter().flatten().collect())
        }
        Ast::Concat(parts) => of_sequence(&parts.asts),
        _ => None,
    }
}

/// Whether what is repeated occurs at least once.
fn is_needed(kind: &RepetitionKind) -> bool {
    match kind {
        RepetitionKind::OneOrMore => true,
        RepetitionKind::ZeroOrOne | RepetitionKind::ZeroOrMore => false,
        RepetitionKind::Range(
            RepetitionRange::Exactly(least)
            | RepetitionRange::AtLeast(least)
            | RepetitionRange::Bounded(least, _),
        ) => *least > 0,
    }
}

/// The most telling of what the parts of a sequence require.
fn of_sequence(parts: &[Ast]) -> Option<Vec<Vec<u8>>> {
    let mut run = Vec::new();
    let mut found: Vec<Vec<Vec<u8>>> = Vec::new();
    for part in parts {
        match part {
            // A place between two characters is no character.
            Ast::Empty(_) | Ast::Flags(_) | Ast::Assertion(_) => {}
            Ast::Literal(literal) => run.extend(lower(literal)),
            Ast::ClassBracketed(class) if letter(class).is_some() => run.extend(letter(class)),
            _ => {
                found.extend(long_enough(std::mem::take(&mut run)));
                found.extend(words(part));
            }
        }
    }
    found.extend(long_enough(run));
    let shortest = |all: &Vec<Vec<u8>>| all.iter().map(Vec::len).min().unwrap_or(0);
    found.into_iter().max_by_key(|all| (shortest(all), std::cmp::Reverse(all.len())))
}

fn lower(literal: &Literal) -> Vec<u8> {
    literal.c.to_ascii_lowercase().to_string().into_bytes()
}

/// The one letter that a class stands for in both cases.
fn letter(class: &ClassBracketed) -> Option<u8> {
    let ClassSet::Item(ClassSetItem::Union(union)) = &class.kind else { return None };
    let mut letters = union.items.iter().map(|item| match item {
        ClassSetItem::Literal(literal) if literal.c.is_ascii() => lower(literal).first().copied(),
        _ => None,
    });
    let first = letters.next()??;
    (!class.negated && letters.all(|letter| letter == Some(first))).then_some(first)
}

fn long_enough(word: Vec<u8>) -> Option<Vec<Vec<u8>>> {
    (word.len() >= SHORTEST).then(|| vec![word])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, expected: Option<&[&str]>) {
        let mut found = words_of(pattern).map(|all| {
            all.into_iter().map(|word| String::from_utf8(word).unwrap()).collect::<Vec<_>>()
        });
        if let Some(found) = &mut found {
            found.sort();
        }
        assert_eq!(
            found.as_deref(),
            expected.map(|e| e.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>()).as_deref(),
            "{pattern}"
        );
    }

    #[test]
    fn a_pattern_tells_the_words_that_it_needs() {
        check(r"\bENOENT\b", Some(&["enoent"]));
        check(r"(?i)\bnot (?:yet )?found\b", Some(&["found"]));
        check(r"(?i)unauthori[sz]ed|forbidden", Some(&["forbidden", "unauthori"]));
        check(r"(?i)(?:timed out)+", Some(&["timed out"]));
        check(r"(?i)is (?:closed|merged)", Some(&["closed", "merged"]));
        check(r"(?i)\bis\b", None);
        check(r"a|forbidden", None);
        check(r"(?:forbidden)?", None);
        check(r"[45]\d\d", None);
        check(r"[Nn]ot [Ff]ound", Some(&["not found"]));
        check(r"[^n]ot_[ab]_here", Some(&["_here"]));
        check(r"(?x) time \x20 out  # comment", Some(&["time out"]));
        check(r"(?:forbidden){0,2}|denied", None);
    }

    #[test]
    fn rules_without_words_are_always_tried() {
        let patterns = ["(?i)forbidden", r"\d", "ENOENT|EACCES"].map(Pattern::built_in);
        let filter = Prefilter::new(patterns.iter().map(Some).chain([None]));
        let found = filter.candidates("Forbidden");
        assert_eq!([0, 1, 2, 3, 300].map(|rule| found.has(rule)), [true, true, false, true, true]);
        assert!(filter.candidates("eacces").has(2));
        assert!(!filter.candidates("EACCE").has(2), "the end of a text");
    }
}
