//! What a failing reply says about itself, taken apart once for all rules.

mod delay;
mod identifiers;
mod reply;
mod structured;

use std::hash::{Hash, Hasher};
use std::time::Duration;

use serde_json::Value;

use super::context::CallContext;
use super::mask::{self, MaskKind};
use super::own_words::OwnWords;
use super::rule::Shape;
use super::{embedded, status};
pub(super) use reply::{of_error, of_result, other_blocks};

/// Rules look at this much of a text's beginning, and at as much of its end: what a failure is about
/// stands in its first or in its last lines.
const LOOKED_AT: usize = 4096;
const LOOKED_AT_END: usize = 2048;

/// Codes in one word without a mark are longer than this, if they lead a text.
const LONG_WORD: usize = 12;

/// Weak rules read texts of no more lines.
const MOST_LINES: usize = 16;

/// The facts that rules can match.
#[derive(Debug)]
pub(crate) struct Evidence {
    pub shape: Shape,
    /// What the server said, in words.
    pub text: String,
    /// Codes by name, the most telling first.
    pub codes: Vec<String>,
    /// The JSON-RPC number.
    pub rpc: Option<i64>,
    /// An HTTP status in the structured part.
    pub status: Option<i64>,
    pub retry_after: Option<Duration>,
    /// Texts that are JSON, as they came: an envelope may be among them.
    pub bodies: Vec<String>,
    /// The structured part.
    pub body: Option<Value>,
    /// The structured facts beside the words (U4).
    pub facts: Option<Value>,
    /// What else was said, for rules only.
    aside: String,
    /// What rules look at; filled by [`Evidence::settle`].
    views: Views,
    /// Whether the text is all there is.
    pub only_text: bool,
    /// How many text blocks there were.
    pub texts: usize,
    /// Whether the structured part is the object that the text is.
    pub is_mirrored: bool,
    /// Whether a member says that it is a failure, although MCP does not know it.
    pub says_error: bool,
}

/// A text as rules see it.
#[derive(Debug, Default)]
pub(crate) struct Views {
    /// Without the client's own words: kinds of failures are read here, quotations included.
    pub said: String,
    /// Without quotations, paths, URLs and code, too: prose is read here.
    pub words: String,
    /// What was looked at, and what of it was masked and why.
    looked_at: String,
    masks: Vec<mask::Mask>,
    /// Whether the text repeats something of the call.
    pub names_argument: bool,
    /// Whether it repeats one value of the call whole: a path, a URL, an id.
    pub names_whole_argument: bool,
}

impl Views {
    /// What was masked, and why.
    pub fn masked(&self) -> impl Iterator<Item = (&str, MaskKind)> {
        self.masks
            .iter()
            .filter_map(|(range, kind)| Some((self.looked_at.get(range.clone())?, *kind)))
    }
}

impl Evidence {
    /// Takes the text apart for the rules, with what the client said itself left out (U1).
    pub(super) fn settle(&mut self, context: &CallContext<'_>) {
        let looked_at = self.looked_at();
        let own = context.params.map(OwnWords::of);
        let masks = mask::masks(&looked_at, own.as_ref());
        self.views = Views {
            said: mask::masked(&looked_at, &masks, |kind| kind == MaskKind::Argument).into_owned(),
            words: mask::masked(&looked_at, &masks, |_| true).into_owned(),
            // What a server calls a failure itself is one, whatever it names.
            names_whole_argument: self.shape == Shape::SoftFailure
                && own.as_ref().is_some_and(|own| own.is_named_whole(&looked_at)),
            names_argument: masks.iter().any(|(_, kind)| *kind == MaskKind::Argument),
            looked_at,
            masks,
        };
        if self.views.looked_at.trim_start().starts_with('#') {
            self.views.words = title(&self.views.words);
        }
        if let Some(names) = identifiers::names_in(&self.views.words) {
            self.views.words.push('\n');
            self.views.words.push_str(&names);
        }
        if self.codes.is_empty() {
            self.codes.extend(leading_code(&self.views.said));
        }
        if self.body.is_none() {
            for body in embedded::bodies(&self.views.said) {
                self.take_codes(&body);
                // Its words count as words, although they stand in quotation marks.
                if let Some(said) = structured::said(&body) {
                    self.views.words.push('\n');
                    let inner = mask::masks(&said, own.as_ref());
                    self.views.words.push_str(&mask::masked(&said, &inner, |_| true));
                }
            }
        }
        self.status = self.status.or_else(|| status::in_text(&self.views.said));
    }

    /// The beginning and the end of what was said.
    fn looked_at(&self) -> String {
        let text = &self.text;
        let mut looked_at = if text.len() <= LOOKED_AT + LOOKED_AT_END {
            text.clone()
        } else {
            let head = &text[..text.floor_char_boundary(LOOKED_AT)];
            let tail = &text[text.ceil_char_boundary(text.len() - LOOKED_AT_END)..];
            format!("{head}\n{tail}")
        };
        if !self.aside.is_empty() {
            looked_at.push('\n');
            looked_at.push_str(&self.aside);
        }
        looked_at
    }

    /// Whether it has few lines: what stands in a long output says little about the failure.
    pub(super) fn is_short(&self) -> bool {
        self.views.words.lines().take(MOST_LINES + 1).count() <= MOST_LINES
    }

    /// Whether the server says in its structured part, or by naming a delay, that the same call may
    /// succeed later.
    pub(super) fn may_be_retried(&self) -> bool {
        const FLAGS: [&str; 4] = ["retryable", "isRetryable", "is_retryable", "transient"];
        let says =
            |part: &Value| FLAGS.iter().any(|key| part.get(*key) == Some(&Value::Bool(true)));
        let inner = |body: &Value| body.get("error").is_some_and(says);
        self.retry_after.is_some() || self.body.as_ref().is_some_and(|b| says(b) || inner(b))
    }

    pub(crate) fn views(&self) -> &Views {
        &self.views
    }
}

/// What rules look at.
impl Hash for Evidence {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.shape, &self.codes, self.rpc, self.status, self.may_be_retried()).hash(state);
        (&self.views.said, &self.views.words).hash(state);
    }
}

impl Evidence {
    fn new(shape: Shape, text: String) -> Self {
        let mut evidence = Self {
            shape,
            codes: Vec::new(),
            rpc: None,
            status: None,
            retry_after: delay::in_text(&text),
            bodies: Vec::new(),
            body: None,
            facts: None,
            aside: String::new(),
            views: Views::default(),
            only_text: false,
            texts: 0,
            is_mirrored: false,
            says_error: false,
            text,
        };
        // The TypeScript SDK puts the number of a protocol error into the text.
        evidence.rpc = prefixed_number(&evidence.text);
        evidence.codes.extend(leading_code(&evidence.text));
        evidence
    }
}

/// The titles of a text and the sentence below them; what to try stands further down.
fn title(words: &str) -> String {
    let lines = words.lines().filter(|line| !line.trim().is_empty()).take(3);
    lines.collect::<Vec<_>>().join("\n")
}

/// `MCP error -32602: what happened`.
fn prefixed_number(text: &str) -> Option<i64> {
    let (number, _) = text.trim_start().strip_prefix("MCP error -")?.split_once(':')?;
    let digits = number.len() == 5 && number.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| number.parse::<i64>().ok()).flatten().map(|n| -n)
}

/// `CODE: what happened`, as many servers write it, or `[CODE]`.
fn leading_code(text: &str) -> Option<String> {
    let text = text.trim_start();
    let text = text.strip_prefix("Error: ").unwrap_or(text);
    let (text, boxed) = text.strip_prefix('[').map_or((text, false), |inner| (inner, true));
    let part = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
    let end = text.bytes().position(|b| !part(b)).unwrap_or(text.len());
    let (code, rest) = text.split_at(end);
    // A short word in lower case is a word, or the program that speaks: `timeout: invalid interval`.
    let is_word = code.len() < LONG_WORD && code.bytes().all(|b| b.is_ascii_lowercase());
    let shaped = (3..=64).contains(&code.len())
        && code.as_bytes()[0].is_ascii_alphabetic()
        && (boxed || !is_word);
    let ended = if boxed {
        rest.starts_with(']')
    } else {
        let told = rest.strip_prefix(':').is_some_and(|r| r.starts_with(char::is_whitespace));
        told || rest.starts_with('\n') || rest.trim_start().is_empty()
    };
    (shaped && ended).then(|| code.to_owned())
}
