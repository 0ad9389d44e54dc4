//! The public side of a report: text that is stripped, redacted and bounded, and what follows from
//! the row, the condition and the stamp.

use std::time::Duration;

use serde_json::Value;

use crate::bound;
use crate::cause;
use crate::code::Code;
use crate::condition::Condition;
use crate::contract::Contract;
use crate::incident::Stamp;
use crate::next::warns;
use crate::redact::{Caller, prefix};
use crate::report::{Hints, Report, Reset};
use crate::retry::RetryClass;

/// Makes the public side of a report.
pub(super) struct Public<'a> {
    pub contract: &'a Contract,
    pub row: &'a Code,
    pub stamp: &'a Stamp,
    pub caller: &'a Caller<'a>,
}

/// The longest sentence that says what to do.
const NEXT_BYTES: usize = 512;

/// The longest untrusted name, id or other short text.
const LONGEST_WORD: usize = 256;

impl Public<'_> {
    pub fn make_safe(&self, report: &mut Report) {
        let text = &self.contract.text;
        report.message = Some(self.message(report.message.take()));
        report.suggestion = report.suggestion.take().map(|s| self.words(s, text.suggestion_bytes));
        let something = |v: &Value| !v.is_null();
        let details = report.details.take().filter(something);
        report.details = details.map(|d| self.json(d, text.details_bytes));
        let kept = report.data.take().filter(|d| self.row.keeps_data && something(d));
        report.data = kept.map(|d| self.json(d, text.details_bytes));
        let cause = report.cause.take().and_then(cause::normalise);
        report.cause = cause.map(|c| self.json(c, text.cause_bytes));
        let shows_stack = self.stamp.show_stack && self.contract.stack.is_some();
        let stack = report.stack.take().filter(|_| shows_stack);
        report.stack = stack.map(|s| {
            let safe = self.contract.redactor.redact_credentials(&s);
            bound::cut(&safe, text.stack_bytes).into_owned()
        });
        report.origin = report.origin.or(report.condition.map(Condition::origin));
        let known = self.row.outcome.or(report.condition.map(Condition::outcome));
        // A code alone has the same weight as a server that reports it: it only shows that a call
        // was not sent if no tool can have run.
        report.outcome = report
            .outcome
            .or(known)
            .or_else(|| self.contract.first_condition(self.row).map(Condition::reported_outcome));
        let moment = self.stamp.at(report.timestamp.as_deref());
        report.timestamp.get_or_insert_with(|| self.stamp.timestamp());
        report.trace = report.trace.take().map(|trace| self.name(trace));
        let given = report.incident.take().map(|incident| self.name(incident));
        let given = given.filter(|incident| !incident.is_empty());
        report.incident = Some(given.unwrap_or_else(|| moment.incident(report.trace.as_deref())));
        for name in names(report) {
            *name = name.take().map(|n| self.name(n));
        }
        for word in words(report) {
            *word = word.take().map(|w| self.words(w, LONGEST_WORD));
        }
        report.tool.take_if(|tool| tool.is_empty());
        if let Some(Reset::Text(moment)) = &mut report.rate_limit_reset {
            *moment = self.words(std::mem::take(moment), LONGEST_WORD);
        }
    }

    /// What to do now, from the contract's `[next]`. What is known for its slots is used up here.
    /// The answer is whether the call must not be repeated before its effect is checked (S4).
    pub fn say_next(&self, retry: (RetryClass, Option<Duration>), report: &mut Report) -> bool {
        let condition = report.condition.or_else(|| self.contract.first_condition(self.row));
        let warned = warns(self.row, condition, report, retry.0);
        let mut hints = std::mem::take(&mut report.hints);
        let given = report.next.take().map(|next| self.words(next, NEXT_BYTES));
        report.next = given.filter(|next| !next.trim().is_empty()).or_else(|| {
            let next = self.contract.next.as_ref()?;
            for hint in hints.all() {
                // What is masked for the client names nothing that it could use.
                let is_seen = |text: &String| self.words(text.clone(), LONGEST_WORD) == *text;
                *hint = hint.take().filter(is_seen);
            }
            report.hints = hints;
            Some(next.sentence(condition, report, retry, warned, &self.row.action))
        });
        report.hints = Hints::default();
        report.repeatable = None;
        warned
    }

    /// The failure's own message, made safe, or the row's: never an empty string (K7).
    fn message(&self, given: Option<String>) -> String {
        let text = &self.contract.text;
        let own = given.filter(|_| !text.canonical);
        let safe = |m: String| {
            if text.keeps_tail {
                self.both_ends(m, text.message_bytes)
            } else {
                self.words(m, text.message_bytes)
            }
        };
        own.map(safe).filter(|m| !m.trim().is_empty()).unwrap_or_else(|| self.row.message.clone())
    }

    /// The first and last lines of a long text. Of a very long text, only the ends are redacted,
    /// but much more than is kept, so that no secret that begins between them is shown.
    fn both_ends(&self, text: String, max: usize) -> String {
        let redact = |part| self.contract.redact_for(part, self.caller);
        if text.len() <= max * 16 {
            let safe = redact(&text);
            return changed(&text, &bound::middle(&safe, max)).unwrap_or(text);
        }
        let tail = &text[text.ceil_char_boundary(text.len() - max * 8)..];
        bound::ends(&redact(prefix(&text, max * 8)), &redact(tail), text.len(), max)
    }

    fn words(&self, text: String, max: usize) -> String {
        // Redaction mostly shortens a text, so more is redacted than is kept.
        let safe = self.contract.redact_for(prefix(&text, max * 8), self.caller);
        changed(&text, &bound::cut(&safe, max)).unwrap_or(text)
    }

    /// A name or an id: kept, except for credentials, invisible characters and excess length.
    fn name(&self, text: String) -> String {
        let safe = self.contract.redactor.redact_credentials(&text);
        changed(&text, &bound::cut(&safe, LONGEST_WORD)).unwrap_or(text)
    }

    fn json(&self, value: Value, bytes: usize) -> Value {
        let shallow = bound::json_unredacted(
            value,
            self.contract.text.details_depth,
            bytes.max(LONGEST_WORD) * 4,
        );
        bound::json(
            self.contract.redact_json_for(shallow, self.caller),
            self.contract.text.details_depth,
            bytes,
        )
    }
}

/// What became of a text, if it is not the same any more. Most stay as they are, and need no copy.
fn changed(text: &str, safe: &str) -> Option<String> {
    let same = text.len() == safe.len() && std::ptr::eq(text.as_ptr(), safe.as_ptr());
    (!same).then(|| safe.to_owned())
}

/// Names and ids are not masked, including a workspace's path, but credentials are removed.
pub(super) fn names(report: &mut Report) -> [&mut Option<String>; 6] {
    let session = &mut report.session;
    [
        &mut report.tool,
        &mut report.method,
        &mut session.id,
        &mut session.client,
        &mut session.workspace_root,
        &mut session.plan_hash,
    ]
}

/// Short texts that are not used as keys.
pub(super) fn words(report: &mut Report) -> [&mut Option<String>; 6] {
    let (session, meta) = (&mut report.session, &mut report.meta);
    [
        &mut report.invariant,
        &mut report.policy_decision,
        &mut session.role,
        &mut session.phase,
        &mut meta.tool_version,
        &mut meta.mode,
    ]
}
