//! A fault: one failure, accepted by a contract. [`Fault::new`] is the only way to make one, and it
//! removes everything that is unsafe for a client.

mod blocks;
pub(crate) mod fill;
mod private;
mod public;

use std::sync::Arc;
use std::time::Duration;

use crate::bound;
use crate::code::Code;
use crate::contract::{Contract, Profile, Surface};
use crate::incident::{Stamp, is_timestamp};
use crate::redact::{Caller, Masks};
use crate::report::Report;
use crate::retry::RetryClass;
use crate::template::write::Page;

pub use private::Private;
use public::{Public, names, words};

/// One failure under one contract: a registered code, text that is safe for the client, and a
/// private side that is not.
#[derive(Clone, Debug)]
pub struct Fault {
    contract: Arc<Contract>,
    code: usize,
    retry: RetryClass,
    delay: Option<Duration>,
    status: u16,
    /// The tool may have run and must not run twice without a check of its effect (S4).
    warned: bool,
    public: Box<Report>,
    private: Private,
    /// Content blocks that follow the envelope in a result, as JSON.
    blocks: Vec<String>,
}

/// Why a report is not a fault of the contract.
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
    #[error("{code} cannot have retry_after_ms: its retry class is {class:?}")]
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
    /// The timestamp is not in the contract's format (K5).
    #[error(
        "the timestamp {0:?} is not ISO 8601 in UTC with milliseconds, such as 2026-01-19T15:32:10.123Z"
    )]
    Timestamp(String),
}

fn near(nearest: Option<&str>) -> String {
    nearest.map(|n| format!("; did you mean {n:?}?")).unwrap_or_default()
}

impl Fault {
    /// Accepts a report: the code must be registered, the retry answer and the status must be the
    /// row's. Text is stripped, redacted and bounded; missing facts are filled in from the row, the
    /// condition and the stamp.
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
        Self::for_caller(contract, report, stamp, &Caller::new(Masks::REMOTE))
    }

    /// The same for a known client: what it may see, and what it sent (U2).
    ///
    /// ```
    /// use faultwire_contract::{Caller, Fault, Masks, Report, Stamp, builtin};
    ///
    /// let contract = builtin("standard").unwrap();
    /// let message = Some("cannot open /srv/notes/a.md, see /srv/log/notes".into());
    /// let report = Report { message, ..Report::new("not_found") };
    /// let caller = Caller::new(Masks::REMOTE).sent_raw(r#"{"arguments":{"dir":"/srv/notes"}}"#);
    /// let fault = Fault::for_caller(&contract, report, &Stamp::default(), &caller)?;
    /// let told = fault.public().message.as_deref();
    /// assert_eq!(told, Some("cannot open /srv/notes/a.md, see [redacted:path]"));
    /// # Ok::<(), faultwire_contract::FaultError>(())
    /// ```
    pub fn for_caller(
        contract: &Arc<Contract>,
        report: impl Into<Box<Report>>,
        stamp: &Stamp,
        caller: &Caller<'_>,
    ) -> Result<Self, FaultError> {
        Self::accept(contract, report.into(), stamp, caller)
    }

    fn accept(
        contract: &Arc<Contract>,
        mut report: Box<Report>,
        stamp: &Stamp,
        caller: &Caller<'_>,
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
        let safe = Public { contract, row, stamp, caller };
        safe.make_safe(&mut report);
        let warned = safe.say_next((retry, delay), &mut report);
        let mut public = report;
        public.retry = Some(retry);
        public.retry_after_ms = delay.and_then(|d| u64::try_from(d.as_millis()).ok());
        public.status = (status != row.default_status()).then_some(status);
        let contract = Arc::clone(contract);
        let blocks = Vec::new();
        Ok(Self { contract, code, retry, delay, status, warned, public, private, blocks })
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

    /// Whether the tool may have run and is not known to do no harm when it runs twice: its effect
    /// is to be checked before the call is repeated (S4, A7).
    pub(crate) fn is_warned(&self) -> bool {
        self.warned
    }

    /// The fault in its JSON form: the report with safe text, origin, outcome, incident, timestamp
    /// and retry answer, and with the status if it is not the row's default.
    #[must_use]
    pub fn public(&self) -> &Report {
        &self.public
    }

    /// The content blocks that follow the envelope in a result, as JSON.
    pub(crate) fn blocks(&self) -> &[String] {
        &self.blocks
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

/// What is removed if an envelope is too large, the least important first.
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

/// The class that the report names, or the row's default. A delay alone selects the class that has
/// one.
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
