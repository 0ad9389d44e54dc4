//! A fault: one failure that happened, accepted by a contract. There is no other way to make one
//! than [`Fault::new`], and nothing unsafe for a client gets past it.

pub(crate) mod fill;
mod private;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::bound;
use crate::cause;
use crate::code::Code;
use crate::condition::Condition;
use crate::contract::{Contract, Profile, Surface};
use crate::incident::{Stamp, is_timestamp};
use crate::redact::prefix;
use crate::report::{Hints, Report, Reset};
use crate::retry::RetryClass;
use crate::template::write::Page;

pub use private::Private;

/// One failure under one contract: a registered code, text that is fit for the client, and the
/// private side that is not.
#[derive(Clone, Debug)]
pub struct Fault {
    contract: Arc<Contract>,
    code: usize,
    retry: RetryClass,
    delay: Option<Duration>,
    status: u16,
    public: Box<Report>,
    private: Private,
}

/// Why a report is no fault of the contract.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// The code is not registered (K3).
    #[error("{contract} has no code {code:?}{}", near(.nearest.as_deref()))]
    UnknownCode {
        /// The contract.
        contract: String,
        /// What was asked for.
        code: String,
        /// What may have been meant.
        nearest: Option<String>,
    },
    /// The row does not list the retry class (W3).
    #[error("{code} cannot be {retry:?}: its row lists {listed}")]
    RetryNotListed {
        /// The code.
        code: String,
        /// What was asked for.
        retry: &'static str,
        /// What there is.
        listed: String,
    },
    /// A delay makes no sense for the class.
    #[error("{code} takes no retry_after_ms: it is retried {class:?}")]
    DelayNotTaken {
        /// The code.
        code: String,
        /// The class.
        class: &'static str,
    },
    /// The row does not list the status.
    #[error("{code} cannot have the status {status}: its row lists {listed}")]
    StatusNotListed {
        /// The code.
        code: String,
        /// What was asked for.
        status: u16,
        /// What there is.
        listed: String,
    },
    /// The timestamp is no moment in the contract's form (K5).
    #[error(
        "the timestamp {0:?} is not ISO 8601 in UTC with milliseconds, as 2026-01-19T15:32:10.123Z"
    )]
    Timestamp(String),
}

fn near(nearest: Option<&str>) -> String {
    nearest.map(|n| format!("; did you mean {n:?}?")).unwrap_or_default()
}

impl Fault {
    /// Accepts a report: the code must be registered, the retry answer and the status must be
    /// the row's. Text is stripped, redacted and bounded; what is missing is filled in from the
    /// row, the condition and the stamp.
    ///
    /// ```
    /// use faultwire_contract::{Fault, Profile, Report, Stamp, Surface, builtin};
    ///
    /// let contract = builtin("context-resolve").unwrap();
    /// let report = Report { message: Some("boom /etc/passwd".into()), ..Report::new("cache_invalid") };
    /// let stamp = Stamp::default();
    /// let fault = Fault::new(&contract, report, &stamp)?;
    /// assert_eq!(
    ///     fault.envelope(Surface::Mcp, Profile::default()),
    ///     br#"{"error":{"code":"cache_invalid","message":"Cache exists but is invalid"}}"#,
    /// );
    /// # Ok::<(), faultwire_contract::FaultError>(())
    /// ```
    pub fn new(
        contract: &Arc<Contract>,
        report: impl Into<Box<Report>>,
        stamp: &Stamp,
    ) -> Result<Self, FaultError> {
        Self::accept(contract, report.into(), stamp)
    }

    fn accept(
        contract: &Arc<Contract>,
        mut report: Box<Report>,
        stamp: &Stamp,
    ) -> Result<Self, FaultError> {
        let Some(&code) = contract.index.get(&report.code) else {
            return Err(FaultError::UnknownCode {
                contract: contract.name.clone(),
                nearest: contract.nearest_code(&report.code).map(str::to_owned),
                code: std::mem::take(&mut report.code),
            });
        };
        let row = &contract.codes[code];
        let (retry, delay) = choose_retry(contract, row, &report)?;
        let status = choose_status(row, report.status)?;
        if let Some(given) = report.timestamp.as_deref().filter(|t| !is_timestamp(t)) {
            return Err(FaultError::Timestamp(given.to_owned()));
        }
        let private = Private::of(&report);
        let safe = Public { contract, row, stamp };
        safe.make_safe(&mut report);
        safe.say_next((retry, delay), &mut report);
        let mut public = report;
        public.retry = Some(retry);
        public.retry_after_ms = delay.and_then(|d| u64::try_from(d.as_millis()).ok());
        public.status = (status != row.default_status()).then_some(status);
        Ok(Self { contract: Arc::clone(contract), code, retry, delay, status, public, private })
    }

    /// The contract it is a fault of.
    #[must_use]
    pub fn contract(&self) -> &Arc<Contract> {
        &self.contract
    }

    /// Every fact about its code.
    #[must_use]
    pub fn code(&self) -> &Code {
        &self.contract.codes[self.code]
    }

    /// Its retry class.
    #[must_use]
    pub fn retry(&self) -> RetryClass {
        self.retry
    }

    /// How long to wait before the next attempt, where that is known.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.delay
    }

    /// Its HTTP status.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The fault in its JSON form: the report with its text made safe, with origin, outcome,
    /// incident, timestamp and the retry answer, and with the status where it is not the row's
    /// default.
    #[must_use]
    pub fn public(&self) -> &Report {
        &self.public
    }

    /// What may only be written down.
    #[must_use]
    pub fn private(&self) -> &Private {
        &self.private
    }

    /// The envelope's bytes.
    #[must_use]
    pub fn envelope(&self, surface: Surface, profile: Profile) -> Vec<u8> {
        self.written(surface, profile, Vec::with_capacity(512))
    }

    /// The envelope on a page that was empty, as small as the contract wants it.
    pub(crate) fn written<P: Page>(&self, surface: Surface, profile: Profile, mut page: P) -> P {
        let template = self.contract.template(surface, profile);
        let start = page.mark();
        template.write(self, &mut page);
        if page.len() <= self.contract.text.envelope_bytes {
            return page;
        }
        let mut smaller = self.clone();
        for shrink in SHRINKS {
            shrink(&mut smaller.public);
            page.back_to(start);
            template.write(&smaller, &mut page);
            if page.len() <= self.contract.text.envelope_bytes {
                break;
            }
        }
        page
    }
}

/// What goes when an envelope is too large as a whole, the least needed first.
const SHRINKS: [fn(&mut Report); 6] = [
    |r| r.stack = None,
    |r| r.cause = r.cause.take().map(|c| bound::json(c, 2, 256)),
    |r| r.data = r.data.take().map(|d| bound::json(d, 2, 256)),
    |r| r.details = r.details.take().map(|d| bound::json(d, 2, 256)),
    |r| {
        r.cause = None;
        r.suggestion = None;
        r.message = r.message.take().map(|m| bound::cut(&m, 128).into_owned());
    },
    |r| {
        for short in names(r) {
            *short = short.take().map(|w| bound::cut(&w, 32).into_owned());
        }
        for short in words(r) {
            *short = short.take().map(|w| bound::cut(&w, 32).into_owned());
        }
    },
];

/// The class that the report names, or the row's default. A delay alone chooses the class that
/// takes one.
fn choose_retry(
    contract: &Contract,
    row: &Code,
    report: &Report,
) -> Result<(RetryClass, Option<Duration>), FaultError> {
    let named = report.retry_after_ms.map(Duration::from_millis);
    let class = match report.retry {
        Some(class) if row.retry.contains(&class) => class,
        Some(class) => {
            let listed: Vec<_> = row.retry.iter().map(|c| c.name()).collect();
            return Err(FaultError::RetryNotListed {
                code: row.id.clone(),
                retry: class.name(),
                listed: listed.join(", "),
            });
        }
        None if named.is_some() => {
            let takes = row.retry.iter().copied().find(|class| class.takes_delay());
            takes.unwrap_or_else(|| row.default_retry())
        }
        None => row.default_retry(),
    };
    if named.is_some() && !class.takes_delay() {
        return Err(FaultError::DelayNotTaken { code: row.id.clone(), class: class.name() });
    }
    let delay = match class {
        RetryClass::After => named.or(row.after),
        _ => named,
    };
    Ok((class, delay.map(|d| contract.expressible(d))))
}

fn choose_status(row: &Code, named: Option<u16>) -> Result<u16, FaultError> {
    match named {
        None => Ok(row.default_status()),
        Some(status) if row.status.contains(&status) => Ok(status),
        Some(status) => {
            let listed: Vec<_> = row.status.iter().map(ToString::to_string).collect();
            Err(FaultError::StatusNotListed {
                code: row.id.clone(),
                status,
                listed: listed.join(", "),
            })
        }
    }
}

/// Makes the public side of a report.
struct Public<'a> {
    contract: &'a Contract,
    row: &'a Code,
    stamp: &'a Stamp,
}

/// The longest sentence that says what to do.
const NEXT_BYTES: usize = 512;

/// The longest name, id or other short word that comes from outside.
const LONGEST_WORD: usize = 256;

impl Public<'_> {
    fn make_safe(&self, report: &mut Report) {
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
        // A code alone tells as much as a server that reports it: that a call was not sent, only
        // where no tool can have run.
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
    fn say_next(&self, retry: (RetryClass, Option<Duration>), report: &mut Report) {
        let mut hints = std::mem::take(&mut report.hints);
        let given = report.next.take().map(|next| self.words(next, NEXT_BYTES));
        report.next = given.filter(|next| !next.trim().is_empty()).or_else(|| {
            let next = self.contract.next.as_ref()?;
            for hint in hints.all() {
                *hint = hint.take().map(|text| self.words(text, LONGEST_WORD));
            }
            report.hints = hints;
            let condition = report.condition.or_else(|| self.contract.first_condition(self.row));
            next.sentence(condition, report, retry)
        });
        report.hints = Hints::default();
        report.repeatable = None;
    }

    /// The failure's own words made safe, or the row's: never an empty string (K7).
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

    /// The first and the last lines of a long text. Of a very long one only the ends are looked
    /// at, much more than is kept of them, so that no secret that begins between them is shown.
    fn both_ends(&self, text: String, max: usize) -> String {
        let redact = |part| self.contract.redactor.redact(part);
        if text.len() <= max * 16 {
            let safe = redact(&text);
            return changed(&text, &bound::middle(&safe, max)).unwrap_or(text);
        }
        let tail = &text[text.ceil_char_boundary(text.len() - max * 8)..];
        bound::ends(&redact(prefix(&text, max * 8)), &redact(tail), text.len(), max)
    }

    fn words(&self, text: String, max: usize) -> String {
        // Redaction mostly shortens, so more is looked at than is kept.
        let safe = self.contract.redactor.redact(prefix(&text, max * 8));
        changed(&text, &bound::cut(&safe, max)).unwrap_or(text)
    }

    /// A name or an id: kept as it is, but for credentials and what is invisible or overlong.
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
            self.contract.redactor.redact_json(shallow),
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

/// Names and ids: they are told as they are, a workspace's path, too, but never a credential.
fn names(report: &mut Report) -> [&mut Option<String>; 6] {
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

/// Short texts that nobody looks anything up by.
fn words(report: &mut Report) -> [&mut Option<String>; 6] {
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
