//! Failures dressed as successes: `{"ok":false}`, `<error>…`, `Error: …` as the only text.
//!
//! With care: a document that merely mentions an error is no failure. The signs are data, in the
//! `[soft]` table of `rules/classification.toml`.

mod body;
mod claim;
mod gate;
mod tool;

use serde_json::Value;

use super::context::CallContext;
use super::evidence::Evidence;
use super::rule;
use crate::pattern::Pattern;
use crate::rule::Signs;
use claim::Claim;
pub(super) use gate::may_fail;
use tool::ToolKind;

/// A text longer than this is a document.
const LONGEST_TEXT: usize = 4096;

/// A text with more lines than this is a failure only if they are all continuations.
const MOST_LINES: usize = 5;

/// A sentence with a value of the call stands in a text with no more lines.
const MOST_SENTENCES: usize = 3;

/// A statement in prose is no longer than this.
const LONGEST_STATEMENT: usize = 400;

/// One in the place of content is no longer than this.
const SHORT_STATEMENT: usize = 200;

/// How sure it is that a success is a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doubt {
    /// The shape leaves none.
    None,
    /// It may be a document that reads like a failure.
    Some,
}

impl Doubt {
    fn if_any(is_there: bool) -> Self {
        if is_there { Self::Some } else { Self::None }
    }
}

/// The thorough look: `None` is a success.
pub(super) fn judge(evidence: &mut Evidence, context: &CallContext<'_>) -> Option<Doubt> {
    let signs = rule::signs();
    let kind = ToolKind::of(signs, context);
    let fails_as_body = match &evidence.body {
        Some(Value::Array(items)) => signs.items_fail(items, &kind),
        Some(Value::Object(object))
            if signs.is_read(object, &kind) || signs.is_told_back(object, &kind) =>
        {
            return None;
        }
        Some(Value::Object(object)) => signs.body_fails(object, &kind),
        _ => false,
    };
    let may_be_told = match &evidence.body {
        // Words in an object are words.
        Some(Value::Object(object)) => {
            evidence.texts <= 1 && signs.only_says(object) && signs.may_be_told(&evidence.text)
        }
        Some(_) => false,
        None => evidence.only_text && evidence.texts == 1 && signs.may_be_told(&evidence.text),
    };
    if !fails_as_body && !may_be_told && !evidence.says_error {
        return None;
    }
    evidence.settle(context);
    if evidence.says_error {
        return Some(Doubt::None);
    }
    let views = evidence.views();
    // Whatever the client sent itself and gets back says nothing.
    let words = views.words.trim();
    if !fails_as_body && !words.bytes().any(|b| b.is_ascii_alphanumeric() || !b.is_ascii())
        || is_echo(evidence, context)
    {
        return None;
    }
    let claim = Claim::of(signs, &kind, evidence);
    if fails_as_body {
        return Some(Doubt::if_any(claim.is_body_of_others(signs, &kind, evidence)));
    }
    claim.judge_text(signs, &kind, evidence)
}

/// Whether prose is the whole short answer of a tool that could not do what it was asked to.
fn says_no(signs: &Signs, kind: &ToolKind<'_>, evidence: &Evidence) -> bool {
    let views = evidence.views();
    let (text, words) = (views.said.trim(), views.words.trim());
    let is_made = !kind.is_listing && !kind.is_document;
    if is_made && signs.loose_fails(text, words) {
        return true;
    }
    if signs.markup.is_match(text.as_bytes()) {
        return false;
    }
    let is_line = is_line(evidence);
    // A page is longer than a line that says why there is none.
    if kind.is_page {
        let names_it = views.names_whole_argument;
        let is_absent = names_it && signs.absent.is_match(words.as_bytes());
        let is_event = rule::is_told(evidence) && !signs.general.is_match(words.as_bytes());
        let is_about = names_it && rule::is_known(evidence) || is_event;
        return signs.is_plain_statement(words) && is_about && (is_line || is_absent);
    }
    // Where the text may be content, or say that there is nothing, it must be one line that names
    // what was asked for.
    if !is_made {
        let is_named = views.names_whole_argument
            || kind.is_document && signs.absent.is_match(words.as_bytes())
            || signs.service.is_match(words.as_bytes());
        return is_line && is_named && signs.is_plain_statement(words) && rule::is_told(evidence);
    }
    // A tool that changes something has no document to give back, and says first how it went.
    let words = if kind.writes { first_sentence(words) } else { words };
    if kind.is_done(words) {
        return false;
    }
    let refuses = is_line && signs.refusal.is_match(words.as_bytes());
    // What is not there, and what the service says of itself, is told in one line.
    let is_absent = kind.reads && signs.absent.is_match(words.as_bytes());
    // Of a statement in letters of another kind no subject is known.
    let is_foreign = words.chars().next().is_some_and(|c| c.is_alphabetic() && !c.is_ascii());
    // That a thing is offline or full may be what was asked for.
    let is_refused = || {
        let is_rule = || signs.general.is_match(words.as_bytes());
        rule::is_of_call(evidence) && (!kind.reads || !is_rule())
            || signs.service.is_match(words.as_bytes())
    };
    let is_own = || is_absent || is_foreign || kind.is_subject_of(words) || is_refused();
    let is_about = views.names_argument || kind.writes || is_line && is_own();
    // Any rule will do where an act was asked for, and the answer says no. An object has members to
    // say so.
    let may_be_weak = kind.writes && evidence.body.is_none();
    let is_told = || may_be_weak && rule::is_known(evidence) || rule::is_told(evidence);
    signs.is_plain_statement(words) && (refuses || is_about && is_told())
}

/// Whether all that was said is one short line.
fn is_line(evidence: &Evidence) -> bool {
    let words = first_line(evidence.views().words.trim());
    words.len() <= SHORT_STATEMENT && !evidence.text.trim().contains('\n')
}

/// The text up to its first empty line.
fn first_paragraph(text: &str) -> &str {
    text.split("\n\n").next().unwrap_or_default()
}

fn first_line(words: &str) -> &str {
    words.lines().next().unwrap_or_default()
}

/// The first line, up to the end of its first sentence.
fn first_sentence(words: &str) -> &str {
    let line = first_line(words);
    line.find(". ").map_or(line, |end| &line[..=end])
}

/// Whether the whole body stands in the call.
fn is_echo(evidence: &Evidence, context: &CallContext<'_>) -> bool {
    let body = evidence.bodies.first().map_or(evidence.text.as_str(), String::as_str).trim();
    let quoted = serde_json::to_string(body).unwrap_or_default();
    let inner = quoted.trim_matches('"');
    inner.len() > 8 && context.params.is_some_and(|params| params.contains(inner))
}

impl Signs {
    /// A look at the beginning that is cheaper than taking the text apart.
    fn may_be_told(&self, text: &str) -> bool {
        let text = text.trim();
        // Below a title stands what to try.
        let told = if text.starts_with('#') { first_line(text) } else { text };
        let is_one = text.len() <= LONGEST_TEXT || self.has_head(text);
        is_one && !self.innocent.is_match(told.as_bytes())
    }

    /// Whether a text begins as only a program begins one.
    fn has_head(&self, text: &str) -> bool {
        let head = first_paragraph(text);
        head.len() <= LONGEST_STATEMENT && self.heads.is_match(head.as_bytes())
    }

    /// Whether a short text is a sentence with a place for a value of the call.
    fn is_filled_in(&self, text: &str, words: &str, kind: &ToolKind<'_>) -> bool {
        let has_head = self.has_head(text);
        let text = if has_head { first_paragraph(text) } else { text };
        let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
        let is_answer = kind.is_question && !has_head;
        if is_answer || text.len() > LONGEST_STATEMENT || lines > MOST_SENTENCES {
            return false;
        }
        let fits = |sentence: &Pattern| {
            let found = sentence.find(words.as_bytes());
            found.is_some_and(|found| !self.good.is_match(found.as_bytes()))
        };
        self.refusals.iter().any(fits) || !kind.is_listing && self.templates.iter().any(fits)
    }

    /// A shape that programs make and people do not write.
    fn is_machine_made(&self, text: &str) -> bool {
        self.machine.iter().any(|sign| sign.is_match(text.as_bytes())) && self.is_one_message(text)
    }

    /// Whether each part of a text, or each line, is of such a shape.
    fn is_all_made(&self, text: &str) -> bool {
        let is_made =
            |part: &str| self.machine.iter().any(|sign| sign.is_match(part.trim().as_bytes()));
        text.split("\n---\n").all(is_made) && text.contains("\n---\n")
            || text.lines().filter(|line| !line.trim().is_empty()).all(is_made)
    }

    fn text_fails(&self, text: &str, words: &str) -> bool {
        self.text.iter().any(|sign| sign.is_match(words.as_bytes())) && self.is_one_message(text)
    }

    /// Whether a text says that the tool could not do what its name says.
    fn tells_own_act(&self, tool: &str, words: &str) -> bool {
        let fits = |(tools, act): &(Pattern, Pattern)| {
            tools.is_match(tool.as_bytes()) && act.is_match(words.as_bytes())
        };
        self.acts.iter().any(fits)
    }

    fn loose_fails(&self, text: &str, words: &str) -> bool {
        let mut later = text.lines().skip(1).filter(|line| !line.trim().is_empty());
        self.loose.iter().any(|sign| sign.is_match(words.as_bytes()))
            && !self.good.is_match(words.as_bytes())
            && later.all(|line| !line.contains(": ") || self.continuation.is_match(line.as_bytes()))
            && self.is_one_message(text)
    }

    /// A short statement that does not call itself a success; a rule says what it means.
    fn is_plain_statement(&self, words: &str) -> bool {
        words.len() <= LONGEST_STATEMENT
            && words.lines().count() <= MOST_LINES
            && self.missing.is_match(words.as_bytes())
            && !self.good.is_match(words.as_bytes())
    }

    /// Few lines, or later ones that belong to the first.
    fn is_one_message(&self, text: &str) -> bool {
        // Of several parts each must have failed.
        let is_part = |part: &str| {
            let signs = self.machine.iter().chain(&self.text);
            signs.into_iter().any(|sign| sign.is_match(part.trim().as_bytes()))
        };
        if text.contains("\n---\n") {
            return text.split("\n---\n").all(is_part);
        }
        let mut later = text.lines().skip(1).filter(|line| !line.trim().is_empty());
        later.clone().count() < MOST_LINES
            || later.all(|line| self.continuation.is_match(line.as_bytes()))
    }
}
