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
const MOST: usize = 4096;
/// So many ways to go on make words of their own; with more, a word ends.
const WAYS: usize = 24;
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
    buckets: Vec<Bucket>,
    /// Rules that no word tells of.
    always: [Candidates; 2],
}

/// Words that begin with the same three letters.
#[derive(Clone, Debug, Default)]
struct Bucket {
    /// Those of less than six letters.
    short: Vec<Word>,
    /// The others by the place of their next three letters, in order.
    long: Vec<(u16, Vec<Word>)>,
}

/// A word and the rules whose patterns need it, by view.
#[derive(Clone, Debug)]
struct Word {
    letters: Vec<u8>,
    rules: [Candidates; 2],
}

impl Bucket {
    /// The words that may go on like this, behind their first three letters.
    fn words(&self, rest: &[u8]) -> impl Iterator<Item = &Word> {
        let next = rest.first_chunk::<SHORTEST>().map(|letters| place_of(letters));
        let long = next.and_then(|place| {
            let at = self.long.binary_search_by_key(&place, |(place, _)| *place).ok()?;
            Some(&self.long[at].1)
        });
        self.short.iter().chain(long.into_iter().flatten())
    }

    fn words_like(&mut self, word: &[u8]) -> &mut Vec<Word> {
        let Some(next) = word.get(SHORTEST..2 * SHORTEST) else { return &mut self.short };
        let place = place_of(next);
        let at = match self.long.binary_search_by_key(&place, |(place, _)| *place) {
            Ok(at) => at,
            Err(at) => {
                self.long.insert(at, (place, Vec::new()));
                at
            }
        };
        &mut self.long[at].1
    }
}

/// Three letters, five bits each, take so many places. Both cases of a letter are the same bits.
const PLACES: usize = 1 << 15;

/// The place of the last three letters, from that of the three before and the next letter.
fn next_place(place: usize, letter: u8) -> usize {
    (place << 5 | usize::from(letter & 31)) & (PLACES - 1)
}

/// The place of three letters.
fn place_of(letters: &[u8]) -> u16 {
    let place = letters.iter().fold(0, |place, letter| next_place(place, *letter));
    u16::try_from(place).unwrap_or(u16::MAX)
}

impl Prefilter {
    /// Of the patterns of each rule, where it has any: the one for the first view of a text, and the
    /// one for the second.
    pub fn new<'p>(patterns: impl Iterator<Item = [Option<&'p Pattern>; 2]>) -> Self {
        let mut new = Self {
            table: vec![0; PLACES],
            // No place leads to the first.
            buckets: vec![Bucket::default()],
            always: Default::default(),
        };
        for (rule, patterns) in patterns.enumerate() {
            for (view, pattern) in patterns.into_iter().enumerate() {
                match pattern.and_then(|pattern| words_of(pattern.as_str())) {
                    None => new.always[view].add(rule),
                    Some(words) => words.into_iter().for_each(|word| new.add(word, view, rule)),
                }
            }
        }
        new
    }

    fn add(&mut self, word: Vec<u8>, view: usize, rule: usize) {
        let place = usize::from(place_of(&word[..SHORTEST]));
        let known = usize::from(self.table[place]);
        let number = if known == 0 { self.buckets.len() } else { known };
        let Ok(entry) = u16::try_from(number) else { return self.always[view].add(rule) };
        if known == 0 {
            self.table[place] = entry;
            self.buckets.push(Bucket::default());
        }
        let words = self.buckets[number].words_like(&word);
        if let Some(same) = words.iter_mut().find(|known| known.letters == word) {
            return same.rules[view].add(rule);
        }
        let mut rules = <[Candidates; 2]>::default();
        rules[view].add(rule);
        words.push(Word { letters: word, rules });
    }

    /// The rules whose patterns may match these views of a text.
    pub fn candidates(&self, views: [&str; 2]) -> [Candidates; 2] {
        let mut found = self.always;
        // Nothing was masked in most texts: one pass is enough.
        if views[0] == views[1] {
            self.scan(views[0], |rules| {
                found.iter_mut().zip(rules).for_each(|(found, rules)| found.join(rules));
            });
        } else {
            for (view, text) in views.into_iter().enumerate() {
                self.scan(text, |rules| found[view].join(&rules[view]));
            }
        }
        found
    }

    fn scan(&self, text: &str, mut found: impl FnMut(&[Candidates; 2])) {
        let text = text.as_bytes();
        let mut place = 0;
        for (at, letter) in text.iter().enumerate() {
            place = next_place(place, *letter);
            let entry = self.table[place];
            if entry == 0 || at + 1 < SHORTEST {
                continue;
            }
            let rest = &text[at + 1 - SHORTEST..];
            for word in self.buckets[usize::from(entry)].words(&rest[SHORTEST..]) {
                let begins = rest.get(..word.letters.len());
                if begins.is_some_and(|begins| begins.eq_ignore_ascii_case(&word.letters)) {
                    found(&word.rules);
                }
            }
        }
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
        other => long_enough(all_of(other)?),
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
    let mut run = nothing();
    let mut found: Vec<Vec<Vec<u8>>> = Vec::new();
    for part in parts {
        let all = all_of(part);
        if let Some(longer) = all.as_ref().and_then(|all| followed_by(&run, all)) {
            run = longer;
            continue;
        }
        found.extend(long_enough(std::mem::replace(&mut run, nothing())));
        match all {
            Some(all) => run = all,
            None => found.extend(words(part)),
        }
    }
    found.extend(long_enough(run));
    let shortest = |all: &Vec<Vec<u8>>| all.iter().map(Vec::len).min().unwrap_or(0);
    found.into_iter().max_by_key(|all| (shortest(all), std::cmp::Reverse(all.len())))
}

/// What matches before anything was required.
fn nothing() -> Vec<Vec<u8>> {
    vec![Vec::new()]
}

/// Each of these texts followed by each of those, if these are few enough.
fn followed_by(these: &[Vec<u8>], those: &[Vec<u8>]) -> Option<Vec<Vec<u8>>> {
    let joined =
        || these.iter().flat_map(|one| those.iter().map(|other| [&one[..], other].concat()));
    (these.len() * those.len() <= WAYS).then(|| joined().collect())
}

/// All that a part matches, without its case; none if that is too much.
fn all_of(ast: &Ast) -> Option<Vec<Vec<u8>>> {
    let all = match ast {
        // A place between two characters is no character.
        Ast::Empty(_) | Ast::Flags(_) | Ast::Assertion(_) => nothing(),
        Ast::Literal(literal) => vec![lower(literal)],
        Ast::ClassBracketed(class) => vec![vec![letter(class)?]],
        Ast::Group(group) => all_of(&group.ast)?,
        Ast::Concat(parts) => {
            parts.asts.iter().try_fold(nothing(), |run, part| followed_by(&run, &all_of(part)?))?
        }
        Ast::Alternation(branches) => {
            let all: Option<Vec<_>> = branches.asts.iter().map(all_of).collect();
            all?.into_iter().flatten().collect()
        }
        Ast::Repetition(repetition) if repetition.op.kind == RepetitionKind::ZeroOrOne => {
            [nothing(), all_of(&repetition.ast)?].concat()
        }
        _ => return None,
    };
    (all.len() <= WAYS).then_some(all)
}

/// A byte that was written as one stays one.
fn lower(literal: &Literal) -> Vec<u8> {
    match literal.byte() {
        Some(byte) => vec![byte.to_ascii_lowercase()],
        None => literal.c.to_ascii_lowercase().to_string().into_bytes(),
    }
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

fn long_enough(words: Vec<Vec<u8>>) -> Option<Vec<Vec<u8>>> {
    words.iter().all(|word| word.len() >= SHORTEST).then_some(words)
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
        check(r"(?i)\bnot (?:yet )?found\b", Some(&["not found", "not yet found"]));
        check(r"(?i)unauthori[sz]ed|forbidden", Some(&["forbidden", "unauthori"]));
        check(r"(?i)(?:timed out)+", Some(&["timed out"]));
        check(r"(?i)is (?:closed|merged)", Some(&["is closed", "is merged"]));
        check(r"(?i)is(?:n't|n\xe2\x80\x99t) done", Some(&["isn't done", "isn\u{2019}t done"]));
        check(r"(?:the |a )?(?:lock|lease) \w+ held", Some(&[" held"]));
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
        let filter = Prefilter::new(patterns.iter().map(|p| [Some(p), None]).chain([[None; 2]]));
        let said = |text| filter.candidates([text, ""])[0];
        let found = said("Forbidden");
        assert_eq!([0, 1, 2, 3, 300].map(|rule| found.has(rule)), [true, true, false, true, true]);
        assert!(said("eacces").has(2));
        assert!(!said("EACCE").has(2), "the end of a text");
    }

    #[test]
    fn each_view_has_its_own_rules_whether_or_not_they_are_equal() {
        let (one, other) = (Pattern::built_in("forbidden"), Pattern::built_in("not found"));
        let filter = Prefilter::new([[Some(&one), Some(&other)]].into_iter());
        let has = |views| filter.candidates(views).map(|found| found.has(0));
        assert_eq!(has(["forbidden", "not found"]), [true, true]);
        assert_eq!(has(["not found", "forbidden"]), [false, false]);
        assert_eq!(has(["not found", "not found"]), [false, true]);
        assert_eq!(has(["FORBIDDEN", "FORBIDDEN"]), [true, false]);
    }
}
