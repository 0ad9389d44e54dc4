//! One redaction rule: a pattern, the keywords that select it, and what it keeps.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use regex::bytes::{CaptureLocations, Regex, RegexBuilder};

use super::caller::Caller;
use super::check::Check;
use super::view::View;
use crate::mistake::Mistakes;
use crate::section::{Section, Text, read_file};

/// Replaces a secret. It contains no word that rules read as a secret's name.
pub(super) const SECRET: &str = "[redacted]";

/// What kind of thing a rule finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RuleKind {
    /// Something that lets its holder in.
    Credential,
    /// A place in a file system.
    Path,
    /// A place in a hidden directory of a home, such as `~/.ssh`: masked where paths stay, too.
    HiddenHome,
    /// A line of a stack trace.
    Frame,
    /// A host or address of the inner network.
    Address,
    /// Personal data; only redacted on request.
    Personal,
}

impl RuleKind {
    const ALL: [Self; 6] = [
        Self::Credential,
        Self::Path,
        Self::HiddenHome,
        Self::Frame,
        Self::Address,
        Self::Personal,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Credential => "credential",
            Self::Path => "path",
            Self::HiddenHome => "hidden_home",
            Self::Frame => "frame",
            Self::Address => "address",
            Self::Personal => "personal",
        }
    }

    const fn placeholder(self) -> &'static str {
        match self {
            Self::Credential => SECRET,
            Self::Path | Self::HiddenHome => "[redacted:path]",
            Self::Frame => "[redacted:frame]",
            Self::Address => "[redacted:address]",
            Self::Personal => "[redacted:personal]",
        }
    }
}

/// A redaction rule. Cheap to clone; its patterns are compiled when first needed.
#[derive(Clone, Debug)]
pub struct RedactRule {
    /// The rule's name.
    pub name: Arc<str>,
    /// What it finds.
    pub kind: RuleKind,
    /// The rule is tried on texts that hold one of these, in any case.
    pub(super) keywords: Arc<[String]>,
    pattern: Lazy,
    keep: Option<Lazy>,
    /// Text before a finding that excludes it.
    unless: Option<Lazy>,
    /// A match with the few bytes behind it that excludes it.
    unless_whole: Option<Lazy>,
    /// The rule is tried only on stretches that match this.
    within: Option<Lazy>,
    /// What a finding must pass beyond the pattern.
    check: Option<Check>,
}

/// A longer match is removed as a whole, because separating its secret from the text before would
/// be slow.
const LONGEST_SPLIT: usize = 2048;

/// How much behind a finding can exclude it.
const BEHIND: usize = 8;

#[derive(Clone, Debug)]
struct Lazy {
    source: Arc<str>,
    compiled: Arc<OnceLock<Pattern>>,
}

/// A pattern and its groups named `secret…`.
#[derive(Debug)]
struct Pattern {
    regex: Regex,
    secrets: Vec<usize>,
}

impl Lazy {
    fn get(&self) -> &Pattern {
        self.compiled.get_or_init(|| match build(&self.source) {
            Ok(regex) => {
                let named = regex.capture_names().enumerate();
                let secret =
                    |(i, name): (usize, Option<&str>)| name?.starts_with("secret").then_some(i);
                Pattern { secrets: named.filter_map(secret).collect(), regex }
            }
            // A contract's patterns are compiled when it is loaded, the shared ones by a test.
            Err(e) => panic!("a checked pattern does not compile: {e}"),
        })
    }
}

impl RedactRule {
    /// Rules from a separate file with only `[[redact]]` tables.
    ///
    /// ```
    /// use faultwire_contract::{RedactRule, Redactor};
    ///
    /// let file = r#"
    ///     [[redact]]
    ///     name = "badge"
    ///     kind = "credential"
    ///     keywords = ["badge-"]
    ///     pattern = 'badge-\d+'
    /// "#;
    /// let redactor = Redactor::with(RedactRule::load("own.toml", file)?);
    /// assert_eq!(redactor.redact("my badge-77, password=x1"), "my [redacted], password=[redacted]");
    /// # Ok::<(), faultwire_contract::Mistakes>(())
    /// ```
    pub fn load(file: &str, text: &str) -> Result<Vec<Self>, Mistakes> {
        read_tables(file, text, read)
    }

    /// A rule for one known secret, at any place in a text.
    ///
    /// ```
    /// use faultwire_contract::{RedactRule, Redactor};
    ///
    /// let redactor = Redactor::default().and(vec![RedactRule::exact("k9.Xv3pQz81")]);
    /// assert_eq!(redactor.redact("bad key k9.Xv3pQz81"), "bad key [redacted]");
    /// assert_eq!(redactor.redact("bad key k9-Xv3pQz81"), "bad key k9-Xv3pQz81");
    /// ```
    #[must_use]
    pub fn exact(secret: &str) -> Self {
        Self {
            name: "known".into(),
            kind: RuleKind::Credential,
            keywords: [secret.to_owned()].into(),
            pattern: Lazy { source: regex::escape(secret).into(), compiled: Arc::default() },
            keep: None,
            unless: None,
            unless_whole: None,
            within: None,
            check: None,
        }
    }

    /// Adds the rule's findings: the groups named `secret…`, or the whole match without them.
    pub(super) fn find<'f>(&'f self, place: &Position<'_>, findings: &mut Vec<Finding<'f>>) {
        let bytes = &place.view.bytes;
        let Some(within) = &self.within else {
            return self.find_in(place, (0, bytes.len()), findings);
        };
        for stretch in within.get().regex.find_iter(bytes) {
            self.find_in(place, (stretch.start(), stretch.end()), findings);
        }
    }

    /// After a match the search restarts, as it will after the match is replaced by a placeholder.
    fn find_in<'f>(
        &'f self,
        place: &Position<'_>,
        (mut from, until): (usize, usize),
        findings: &mut Vec<Finding<'f>>,
    ) {
        let bytes = &place.view.bytes[..until];
        let Pattern { regex, secrets } = self.pattern.get();
        let mut splitter =
            Splitter { regex, secrets, places: regex.capture_locations(), last: None };
        // What stays is a part of the text around the next match, unlike a placeholder.
        let mut stayed = false;
        while let Some(whole) = find_from(regex, bytes, from, stayed) {
            let Range { start, end } = whole;
            let (lead, secret_end) = splitter.split(&bytes[start..end]);
            let found = (start + lead, start + secret_end);
            let lead = &bytes[start..found.0];
            let around = &bytes[start..bytes.len().min(found.1 + BEHIND)];
            let excludes =
                |by: &Option<Lazy>, part| by.as_ref().is_some_and(|u| u.get().regex.is_match(part));
            let is_none = excludes(&self.unless, lead) || excludes(&self.unless_whole, around);
            let taken = if is_none { Taken::No } else { self.take(place, found, findings) };
            stayed = taken == Taken::Said;
            from = match taken {
                Taken::Yes => end,
                // What is left standing may hold the name of the next secret.
                Taken::No => found.0,
                Taken::Said => found.1,
            };
            from = from.max(start + 1);
            if from >= bytes.len() {
                break;
            }
        }
    }

    fn take<'f>(
        &'f self,
        &Position { text, view, caller }: &Position<'_>,
        (start, end): (usize, usize),
        findings: &mut Vec<Finding<'f>>,
    ) -> Taken {
        let seen = &view.bytes[start..end];
        let (start, end) = view.source(start, end);
        let (start, end) = (floor(text, start), ceil(text, end));
        let kept = || self.keep.as_ref().is_some_and(|k| k.get().regex.is_match(seen));
        let passes = || self.check.is_none_or(|check| check.passes(seen));
        if start >= end || is_redacted(&text[start..end]) || kept() || !passes() {
            return Taken::No;
        }
        if caller.is_some_and(|caller| caller.said(self.kind, seen, &text[start..end])) {
            return Taken::Said;
        }
        findings.push((start, end, self.kind.placeholder()));
        Taken::Yes
    }
}

/// A finding: its start, its end, and the replacement.
pub(super) type Finding<'f> = (usize, usize, &'f str);

/// Where a rule looks, and for whom.
pub(super) struct Position<'a> {
    pub text: &'a str,
    pub view: &'a View<'a>,
    pub caller: Option<&'a Caller<'a>>,
}

/// The first match from there on.
fn find_from(regex: &Regex, bytes: &[u8], from: usize, in_text: bool) -> Option<Range<usize>> {
    if in_text {
        return regex.find_at(bytes, from).map(|whole| whole.range());
    }
    let whole = regex.find(&bytes[from..])?;
    Some(from + whole.start()..from + whole.end())
}

/// What became of a match.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Taken {
    Yes,
    /// It is not a finding.
    No,
    /// The client sent it.
    Said,
}

/// Separates the secret of a match from the text before and after it.
struct Splitter<'p, 'v> {
    regex: &'p Regex,
    secrets: &'p [usize],
    places: CaptureLocations,
    /// The last match and its answer: texts with many secrets mostly repeat themselves.
    last: Option<(&'v [u8], (usize, usize))>,
}

impl<'v> Splitter<'_, 'v> {
    fn split(&mut self, found: &'v [u8]) -> (usize, usize) {
        let whole = (0, found.len());
        if self.secrets.is_empty() || found.len() > LONGEST_SPLIT {
            return whole;
        }
        if let Some((_, answer)) = self.last.filter(|(last, _)| *last == found) {
            return answer;
        }
        // Without its surroundings a match may not match again, if the pattern looks at them.
        let split = self.regex.captures_read(&mut self.places, found);
        let secret = split.and_then(|_| self.secrets.iter().find_map(|g| self.places.get(*g)));
        let answer = secret.unwrap_or(whole);
        self.last = Some((found, answer));
        answer
    }
}

/// Whether nothing is left but placeholders, ours or those of another program.
fn is_redacted(found: &str) -> bool {
    if is_masked(found) {
        return true;
    }
    let mut rest = found;
    let mut left = false;
    while let Some((before, after)) = rest.split_once("[redacted") {
        left |= before.contains(char::is_alphanumeric);
        rest = after.split_once(']').map_or("", |(_, after)| after);
    }
    !left && !rest.contains(char::is_alphanumeric)
}

/// Whether another program already redacted the value: `[REDACTED]`, `<masked>`, `***`, `(hidden)`.
fn is_masked(found: &str) -> bool {
    let is_sign =
        |c: char| matches!(c, '[' | ']' | '<' | '>' | '(' | ')' | '*' | ' ' | '"' | ',' | '.');
    let rest = found.trim_start_matches("Bearer ").trim_start_matches("Basic ");
    let word = rest.trim_matches(is_sign);
    let known = ["", "redacted", "masked", "hidden", "filtered", "removed", "set", "unset"];
    word.len() < rest.len() && known.iter().any(|known| word.eq_ignore_ascii_case(known))
}

/// Patterns work on bytes: a match may begin or end inside a character.
fn floor(text: &str, i: usize) -> usize {
    text.floor_char_boundary(i)
}

fn ceil(text: &str, i: usize) -> usize {
    text.ceil_char_boundary(i)
}

fn build(source: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(source).unicode(false).multi_line(true).size_limit(1 << 20).build()
}

/// A file of nothing but `[[redact]]` tables. Its patterns are compiled when first needed.
pub(super) fn read_shared(file: &str, text: &str) -> Result<Vec<RedactRule>, Mistakes> {
    read_tables(file, text, parse)
}

fn read_tables(
    file: &str,
    text: &str,
    one: fn(&Section<'_>) -> Option<RedactRule>,
) -> Result<Vec<RedactRule>, Mistakes> {
    read_file(file, text, "write [[redact]] tables", |root| {
        root.allow(&["redact"]);
        Some(root.list("redact").iter().filter_map(one).collect())
    })
}

/// A `[[redact]]` table of a user: its patterns are compiled immediately.
pub(crate) fn read(section: &Section<'_>) -> Option<RedactRule> {
    let rule = parse(section)?;
    for key in ["pattern", "keep", "unless", "unless_whole", "within"] {
        let Some(text) = section.text(key) else {
            continue;
        };
        check(section, &text)?;
    }
    Some(rule)
}

fn check(section: &Section<'_>, pattern: &Text<'_>) -> Option<()> {
    let Err(failed) = build(pattern.value) else {
        return Some(());
    };
    let failed = failed.to_string();
    let last = failed.lines().last().unwrap_or_default().trim_start_matches("error: ");
    let what = format!("the pattern {:?} does not compile: {last}", pattern.value);
    section.log.note(&pattern.at, what, "use the syntax of Rust's regex crate, for bytes");
    None
}

fn parse(section: &Section<'_>) -> Option<RedactRule> {
    section.allow(&[
        "name",
        "kind",
        "keywords",
        "pattern",
        "keep",
        "unless",
        "unless_whole",
        "within",
        "check",
    ]);
    let name = section.need_text("name", "name the rule")?;
    let pattern = section.need_text("pattern", "set the pattern of the text to remove")?;
    let help = "list words; the rule is only tried on texts that contain one of them";
    let Some(keywords) = section.texts("keywords") else {
        section.note(format!("{} has no \"keywords\"", section.name), help);
        return None;
    };
    let lazy = |text: Text<'_>| Lazy { source: text.value.into(), compiled: Arc::default() };
    Some(RedactRule {
        name: name.value.into(),
        kind: kind(section)?,
        keywords: keywords.iter().map(|t| t.value.to_owned()).collect(),
        pattern: lazy(pattern),
        keep: section.text("keep").map(lazy),
        unless: section.text("unless").map(lazy),
        unless_whole: section.text("unless_whole").map(lazy),
        within: section.text("within").map(lazy),
        check: check_name(section),
    })
}

/// The check that the table names. An unknown name is noted as a mistake.
fn check_name(section: &Section<'_>) -> Option<Check> {
    let word = section.text("check")?;
    let found = Check::from_name(word.value);
    if found.is_none() {
        let what = format!("unknown check {:?}", word.value);
        section.log.note(&word.at, what, format!("write one of {}", Check::names()));
    }
    found
}

fn kind(section: &Section<'_>) -> Option<RuleKind> {
    let names = RuleKind::ALL.map(RuleKind::name).join(", ");
    let word = section.need_text("kind", &format!("write one of {names}"))?;
    let found = RuleKind::ALL.into_iter().find(|k| k.name() == word.value);
    if found.is_none() {
        let what = format!("unknown kind of redaction {:?}", word.value);
        section.log.note(&word.at, what, format!("write one of {names}"));
    }
    found
}
