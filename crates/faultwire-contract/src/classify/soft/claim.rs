//! What shows that a text is the tool's own, and not one that it gives back.

use serde_json::Value;

use super::tool::ToolKind;
use super::{Doubt, LONGEST_STATEMENT, Signs, first_line, is_line, says_no};
use crate::classify::evidence::Evidence;
use crate::classify::rule;

/// What shows that a text is the tool's own, and not one that it gives back.
#[expect(clippy::struct_excessive_bools, reason = "each is a sign of its own")]
pub(super) struct Claim {
    /// It is one short line.
    is_line: bool,
    /// It begins as only a program begins one.
    has_head: bool,
    /// It says that the tool could not do what its name says.
    is_act: bool,
    /// It repeats a value of the call whole.
    is_named: bool,
}

impl Claim {
    pub fn of(signs: &Signs, kind: &ToolKind<'_>, evidence: &Evidence) -> Self {
        let views = evidence.views();
        let words = views.words.trim();
        let (is_line, has_head) = (is_line(evidence), signs.has_head(views.said.trim()));
        // People tell of their own acts, too.
        let is_of_people = kind.is_page || kind.is_document || kind.is_authored;
        let tells = is_line && (has_head || !is_of_people) && signs.tells_own_act(kind.name, words);
        let is_act = tells
            || words.len() <= LONGEST_STATEMENT
                && kind.is_act_of(&signs.failing, first_line(words))
            || !kind.is_question && kind.is_act_that(&signs.failed, first_line(words));
        Self { is_line, has_head, is_act, is_named: views.names_whole_argument }
    }

    /// Whether a file, a store or a program may have the object. One that names what was asked for,
    /// in a program's words, is the tool's own.
    pub fn is_body_of_others(
        &self,
        signs: &Signs,
        kind: &ToolKind<'_>,
        evidence: &Evidence,
    ) -> bool {
        let text = evidence.views().said.trim();
        let is_told = || signs.is_machine_made(text) || rule::is_told(evidence);
        let is_result =
            matches!(&evidence.body, Some(Value::Array(items)) if kind.names_all(items));
        let is_own = is_result || self.is_named && is_told();
        kind.prints || kind.is_raw && !is_own && !evidence.is_mirrored
    }

    pub fn judge_text(
        &self,
        signs: &Signs,
        kind: &ToolKind<'_>,
        evidence: &Evidence,
    ) -> Option<Doubt> {
        let views = evidence.views();
        let (text, words) = (views.said.trim(), views.words.trim());
        if kind.prints && signs.runs.is_match(text.as_bytes()) {
            return Some(Doubt::None);
        }
        // Of what others wrote or printed, only what names something of the call is the tool's own.
        let is_theirs = !self.is_act && (kind.prints || kind.is_verbatim && !self.is_named);
        let is_page = kind.is_generated || !self.has_head;
        let is_authored = kind.is_authored && is_page && !kind.does_own_act(&signs.failing, words);
        if signs.is_machine_made(text) {
            // A log names itself in its frames; of several files each has its own line.
            let is_log = kind.is_verbatim && !self.is_line && !signs.is_all_made(text);
            let is_theirs = is_theirs || is_authored || is_log && !self.is_act;
            return Some(Doubt::if_any(is_theirs && !signs.sdk.is_match(text.as_bytes())));
        }
        if self.is_named && !is_authored && signs.is_filled_in(text, words, kind) {
            return Some(Doubt::None);
        }
        // That a thing cannot be reached, or may not be done, answers a question.
        let is_answer = kind.is_question && !self.has_head && !self.is_act;
        if signs.text_fails(text, words) && !is_answer {
            // No page is one line that says that its reader may not see it.
            let is_refused =
                || rule::is_of_call(evidence) || signs.service.is_match(words.as_bytes());
            let is_verdict = kind.is_lookup && self.is_line && is_refused();
            if is_verdict && !signs.general.is_match(words.as_bytes()) {
                return Some(Doubt::None);
            }
            let is_found = !self.is_act && self.is_found(signs, kind, evidence);
            return Some(Doubt::if_any(is_theirs || is_authored || is_found));
        }
        if self.is_act || self.has_head && kind.is_act_of(&signs.failing, first_line(words)) {
            return Some(Doubt::None);
        }
        (kind.makes_answers() && says_no(signs, kind, evidence)).then_some(Doubt::None)
    }

    /// Whether it may be anybody's sentence that was found or read.
    fn is_found(&self, signs: &Signs, kind: &ToolKind<'_>, evidence: &Evidence) -> bool {
        let views = evidence.views();
        let words = views.words.trim();
        // A page is longer than a line that says why there is none.
        if kind.is_page {
            return !(self.is_named || self.is_line && rule::is_told(evidence));
        }
        let is_sentence = || {
            let names_error = words.to_ascii_lowercase().contains("error");
            !names_error && signs.failing.is_match(words.as_bytes()) && !rule::is_told(evidence)
        };
        (kind.is_document || kind.is_listing && is_sentence()) && !views.names_argument
    }
}
