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

/// The words that a text begins with when it is a failure without the word "error" in it.
const OPENERS: &[&str] = &[
    "a",
    "access",
    "an",
    "cannot",
    "call",
    "command",
    "connection",
    "could",
    "couldn",
    "execution",
    "expected",
    "failed",
    "fatal",
    "fehler",
    "erreur",
    "http",
    "oops",
    "sorry",
    "something",
    "invalid",
    "missing",
    "no",
    "operation",
    "panic",
    "permission",
    "query",
    "rate",
    "request",
    "search",
    "thread",
    "too",
    "tool",
    "traceback",
    "unable",
    "unknown",
    "validation",
];

/// Words that say no.
static NEGATIVE: LazyLock<Option<Searcher>> = LazyLock::new(|| {
    Searcher::new([
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
        "ailure",
        " full",
        "did n",
    ])
});

/// Whether a text may begin as one of the signs does. It is told by its first word, or by the
/// word "error" near the beginning; if it is short, by any word that says no. No pattern runs on
/// what is neither.
fn text_hints(raw: &[u8]) -> bool {
    static NEAR: LazyLock<Option<Searcher>> = LazyLock::new(|| {
        Searcher::new([
            "rror",
            "RROR",
            "xception",
            "not found",
            "not exist",
            "not allowed",
            "ot Found",
        ])
    });
    let has = |words: &Option<Searcher>| words.as_ref().is_none_or(|w| w.find(raw).is_some());
    let text = raw.strip_prefix(b"\"").unwrap_or(raw);
    let begins = text.iter().position(u8::is_ascii_alphanumeric).unwrap_or(text.len());
    let word = &text[begins..];
    let word = &word[..word.iter().position(|b| !b.is_ascii_alphanumeric()).unwrap_or(word.len())];
    let opens = || OPENERS.iter().any(|opener| word.eq_ignore_ascii_case(opener.as_bytes()));
    let is_upper = || word.len() > 2 && word.iter().all(u8::is_ascii_uppercase);
    let is_errno = || is_upper() && (word[0] == b'E' || is_numbered(&text[begins + word.len()..]));
    let is_status = || word.len() == 3 && matches!(word[0], b'4' | b'5');
    // A letter that is no ASCII, or a mark, may be written as an escape. What it says is left to
    // the signs: there are too many languages for a list of words here.
    let head = &text[..text.len().min(FOREIGN)];
    let foreign = || head.iter().any(|b| *b >= 0x80) || text.starts_with(b"\\u");
    let is_short = raw.len() < BEGINNING;
    opens() || is_errno() || is_status() || foreign() || has(&NEAR) || is_short && has(&NEGATIVE)
}

/// `ORA-00054`: a number behind a dash.
fn is_numbered(rest: &[u8]) -> bool {
    matches!(rest, [b'-', digit, ..] if digit.is_ascii_digit())
}

/// What an object that is a failure has somewhere: the name of an error, or a flag that is false.
fn body_hints(raw: &str) -> bool {
    static ERRORS: LazyLock<Option<Searcher>> = LazyLock::new(|| {
        Searcher::new([
            "rror", "RROR", "xception", "fail", "FAIL", "Fail", "ault", "errcode", "err_code",
            "errno", "tatus",
        ])
    });
    static FLAGS: LazyLock<Option<Searcher>> =
        LazyLock::new(|| Searcher::new(["ok", "uccess", "ucceeded"]));
    static WORDS: LazyLock<Option<Searcher>> =
        LazyLock::new(|| Searcher::new(["essage", "eason", "etail"]));
    let has = |words: &Option<Searcher>| words.as_ref().is_none_or(|w| w.find(raw).is_some());
    let has_false = || memchr::memmem::find(raw.as_bytes(), b"false").is_some();
    let says_no = || raw.len() <= BEGINNING && has(&WORDS) && has(&NEGATIVE);
    let is_refused = || has(&FLAGS) || raw.len() <= SHORT_BODY && has(&WORDS);
    has(&ERRORS) || has_false() && is_refused() || says_no()
}
