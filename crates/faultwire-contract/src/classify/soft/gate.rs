//! The first look at a success: cheap, and right for almost every one.

use std::sync::LazyLock;

use aho_corasick::packed::Searcher;

use crate::classify::peek::Peek;

/// Texts are looked at this far for the words that a failure begins with.
const BEGINNING: usize = 320;

/// A letter that is no ASCII is looked for this far.
const FOREIGN: usize = 32;

/// An object with a flag that names an act, and words about it, is no longer than this.
const SHORT_BODY: usize = 2048;

/// Some words, one of which is looked for.
type Words = LazyLock<Option<Searcher>>;

fn has(words: &Words, text: &[u8]) -> bool {
    words.as_ref().is_none_or(|words| words.find(text).is_some())
}

/// A cheap look that lets almost every success pass: no text is unescaped, nothing is parsed.
pub(in crate::classify) fn may_fail(result: &Peek<'_>) -> bool {
    if result.says_error {
        return true;
    }
    let structured = || result.structured.or(result.bare).is_some_and(body_hints);
    let Some(raw) = result.only_text() else { return structured() };
    let first = raw.as_bytes().iter().skip(1).find(|b| !b.is_ascii_whitespace());
    let hints = match first {
        Some(b'{' | b'[') => body_hints(raw),
        _ => text_hints(&raw.as_bytes()[..raw.len().min(BEGINNING)]),
    };
    hints || structured()
}

/// The words that a text begins with when it is a failure without the word "error" in it, in order.
const OPENERS: [&str; 36] = [
    "a",
    "access",
    "an",
    "call",
    "cannot",
    "command",
    "connection",
    "could",
    "couldn",
    "erreur",
    "execution",
    "expected",
    "failed",
    "fatal",
    "fehler",
    "http",
    "invalid",
    "missing",
    "no",
    "oops",
    "operation",
    "panic",
    "permission",
    "query",
    "rate",
    "request",
    "search",
    "something",
    "sorry",
    "thread",
    "too",
    "tool",
    "traceback",
    "unable",
    "unknown",
    "validation",
];

/// None of them is longer.
const LONGEST_OPENER: usize = 12;

/// Words near the beginning of a failure, however long it is.
const NEAR: [&str; 7] =
    ["rror", "RROR", "xception", "not found", "not exist", "not allowed", "ot Found"];

/// Words that say no.
const NEGATIVE: [&str; 35] = [
    "not ",
    "Not ",
    "n't ",
    "annot",
    "ailed",
    "AILED",
    "ailure",
    "nvalid",
    "enied",
    "lready",
    "issing",
    "nable to",
    "xpired",
    "efused",
    "must ",
    "nknown",
    "nsupported",
    "orbidden",
    "xceed",
    "equired",
    "navailable",
    "imed out",
    "imeout",
    "ejected",
    "nauthori",
    "too ",
    "used up",
    "needs ",
    "lease ",
    "busy",
    "ocked",
    "ffline",
    "eclined",
    " full",
    "did n",
];

/// Whether a text may begin as one of the signs does. It is told by its first word, or by the
/// word "error" near the beginning; if it is short, by any word that says no. No pattern runs on
/// what is neither.
fn text_hints(raw: &[u8]) -> bool {
    static LONG: Words = LazyLock::new(|| Searcher::new(NEAR));
    static SHORT: Words = LazyLock::new(|| Searcher::new(NEAR.iter().chain(&NEGATIVE)));
    let text = raw.strip_prefix(b"\"").unwrap_or(raw);
    let begins = text.iter().position(u8::is_ascii_alphanumeric).unwrap_or(text.len());
    let word = &text[begins..];
    let word = &word[..word.iter().position(|b| !b.is_ascii_alphanumeric()).unwrap_or(word.len())];
    let opens = || {
        let mut lower = [0; LONGEST_OPENER];
        lower.get_mut(..word.len()).is_some_and(|lower| {
            lower.copy_from_slice(word);
            lower.make_ascii_lowercase();
            OPENERS.binary_search_by(|opener| opener.as_bytes().cmp(lower)).is_ok()
        })
    };
    let is_upper = || word.len() > 2 && word.iter().all(u8::is_ascii_uppercase);
    let is_errno = || is_upper() && (word[0] == b'E' || is_numbered(&text[begins + word.len()..]));
    let is_status = || word.len() == 3 && matches!(word[0], b'4' | b'5');
    // A letter that is no ASCII, or a mark, may be written as an escape. What it says is left to
    // the signs: there are too many languages for a list of words here.
    let head = &text[..text.len().min(FOREIGN)];
    let foreign = || head.iter().any(|b| *b >= 0x80) || text.starts_with(b"\\u");
    let words = if raw.len() < BEGINNING { &SHORT } else { &LONG };
    opens() || is_errno() || is_status() || foreign() || has(words, raw)
}

/// `ORA-00054`: a number behind a dash.
fn is_numbered(rest: &[u8]) -> bool {
    matches!(rest, [b'-', digit, ..] if digit.is_ascii_digit())
}

/// What an object that is a failure has somewhere: the name of an error, or a flag that is false.
fn body_hints(raw: &str) -> bool {
    static ERRORS: Words = LazyLock::new(|| {
        Searcher::new([
            "rror", "RROR", "xception", "fail", "FAIL", "Fail", "ault", "errcode", "err_code",
            "errno", "tatus",
        ])
    });
    static FLAGS: Words = LazyLock::new(|| Searcher::new(["ok", "uccess", "ucceeded"]));
    static TOLD: Words = LazyLock::new(|| Searcher::new(["essage", "eason", "etail"]));
    static NO: Words = LazyLock::new(|| Searcher::new(NEGATIVE));
    let has = |words: &Words| has(words, raw.as_bytes());
    let has_false = || memchr::memmem::find(raw.as_bytes(), b"false").is_some();
    let says_no = || raw.len() <= BEGINNING && has(&TOLD) && has(&NO);
    let is_refused = || has(&FLAGS) || raw.len() <= SHORT_BODY && has(&TOLD);
    has(&ERRORS) || has_false() && is_refused() || says_no()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_openers_are_in_order_and_short() {
        assert!(OPENERS.is_sorted());
        assert!(OPENERS.iter().all(|opener| opener.len() <= LONGEST_OPENER));
        for text in ["Access to it", "\"VALIDATION of", "an x", "unknown"] {
            assert!(text_hints(text.as_bytes()), "{text}");
        }
        for text in ["zebra", "\"fine", "accessibility"] {
            assert!(!text_hints(text.as_bytes()), "{text}");
        }
    }
}
