//! The other side: what a client makes of a failure, in whichever of the loaded contracts it was
//! told.
//!
//! ```
//! use faultwire::client::{Ask, Reader};
//! use serde_json::json;
//!
//! let reader = Reader::builtin();
//! let result = json!({
//!     "content": [{ "type": "text", "text": r#"{"error":{"code":"governance.rate_limited",
//!         "message":"Slow down","category":"governance","retryable":true,
//!         "incident_id":"inc_20260119_7","retry_after":2}}"# }],
//!     "isError": true,
//! });
//! let told = reader.result(&result).expect("it is a failure");
//! let verdict = told.verdict(&Ask::default());
//! assert!(verdict.retry);
//! assert_eq!(verdict.delay.unwrap().as_secs(), 2);
//! assert_eq!(verdict.code.as_deref(), Some("governance.rate_limited"));
//! ```

#[cfg(feature = "rmcp-client")]
mod retrying;

use std::sync::Arc;
use std::time::Duration;

use faultwire_contract::{
    BUILTINS, CONTRACT_META, Contract, Outcome, Question, ReadError, Reason, Report, RetryClass,
    Safety, Surface, decide,
};
use serde_json::Value;

use crate::edge;
#[cfg(feature = "rmcp-client")]
pub use retrying::Retrying;

/// What is said of a code that no loaded contract knows.
const UNKNOWN_ACTION: &str = "Nobody here knows this failure; do not send the call again.";

/// Reads failures of the contracts that it knows.
#[derive(Clone, Debug)]
pub struct Reader {
    contracts: Vec<Arc<Contract>>,
}

/// A failure that was told by a server.
#[derive(Clone, Debug)]
pub struct Told {
    contract: Option<Arc<Contract>>,
    report: Report,
    class: RetryClass,
}

/// What the answer depends on beside the failure.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    /// Which attempt failed, from 1.
    pub attempt: u32,
    /// What is known of the tool.
    pub safety: Safety,
    /// How many retries are left; without limit if there is none.
    pub budget: Option<u32>,
}

impl Default for Ask {
    fn default() -> Self {
        Self { attempt: 1, safety: Safety::Unknown, budget: None }
    }
}

/// What to do about a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether to send the call again.
    pub retry: bool,
    /// After how long.
    pub delay: Option<Duration>,
    /// The most that could have been drawn.
    pub max_delay: Option<Duration>,
    /// Why, or why not.
    pub reason: Reason,
    /// What to do instead, or until then.
    pub action: String,
    /// The code, where there is one.
    pub code: Option<String>,
    /// The contract that it is of.
    pub contract: Option<String>,
    /// The id to ask support with.
    pub incident: Option<String>,
}

impl Reader {
    /// Reads these contracts.
    #[must_use]
    pub fn new(contracts: impl IntoIterator<Item = Arc<Contract>>) -> Self {
        Self { contracts: contracts.into_iter().collect() }
    }

    /// Reads the five that are built in.
    #[must_use]
    pub fn builtin() -> Self {
        Self::new(BUILTINS.iter().map(faultwire_contract::Builtin::contract))
    }

    /// What a tool's result tells, if it is a failure.
    #[must_use]
    pub fn result(&self, result: &Value) -> Option<Told> {
        let named = result.pointer(&format!("/_meta/{}/name", CONTRACT_META.replace('/', "~1")));
        let named = named.and_then(Value::as_str);
        let text = result.pointer("/content/0/text").and_then(Value::as_str);
        let structured = result.get("structuredContent").map(ToString::to_string);
        let told = [text, structured.as_deref()].into_iter().flatten();
        let told = told.filter_map(|envelope| self.envelope(Surface::Mcp, named, envelope));
        let failed = result.get("isError").and_then(Value::as_bool) == Some(true);
        // A success may be an envelope of a contract that wraps them, which is none of a failure.
        told.into_iter().next().or_else(|| failed.then(|| Told::unknown(text)))
    }

    /// What a JSON-RPC error tells: the object with `code`, `message` and `data`.
    #[must_use]
    pub fn error(&self, error: &Value) -> Told {
        let read = |data: &Value| self.envelope(Surface::Mcp, None, &data.to_string());
        let told = error.get("data").and_then(|data| {
            read(data).or_else(|| {
                // Where the protocol wants members of its own, the envelope stands beside them.
                let mut data = data.as_object()?.clone();
                data.retain(|name, _| name != "supported" && name != "requested");
                read(data.get("envelope").unwrap_or(&Value::Object(data.clone())))
            })
        });
        told.unwrap_or_else(|| Told::unknown(error.get("message").and_then(Value::as_str)))
    }

    /// What an answer over HTTP tells, if its status is a failure. `retry_after` is the header.
    #[must_use]
    pub fn http(&self, status: u16, retry_after: Option<&str>, body: &[u8]) -> Option<Told> {
        if status < 400 {
            return None;
        }
        let text = String::from_utf8_lossy(body);
        let told = self.envelope(Surface::Http, None, &text);
        let mut told = told.unwrap_or_else(|| Told::unknown(None));
        let header = retry_after.and_then(|seconds| seconds.trim().parse::<u64>().ok());
        let header = header.map(|seconds| seconds.saturating_mul(1000));
        told.report.retry_after_ms = told.report.retry_after_ms.or(header);
        Some(told)
    }

    /// An envelope of any contract that is known; of the one that was named, if one was.
    fn envelope(&self, surface: Surface, named: Option<&str>, text: &str) -> Option<Told> {
        let mut guess = None;
        let fits = |contract: &&Arc<Contract>| named.is_none_or(|name| contract.name == name);
        for contract in self.contracts.iter().filter(fits) {
            let read = contract.read_any(surface, text.as_bytes()).map(|(report, _)| report);
            let known = read.is_ok();
            match Told::of(contract, read) {
                Ok(told) if known => return Some(told),
                Ok(told) => _ = guess.get_or_insert(told),
                Err(_) => {}
            }
        }
        guess
    }
}

impl Told {
    /// What was read of an envelope of this contract. A code of a newer version is taken by its
    /// category; anything else that could not be read stays the error that it is.
    pub fn of(
        contract: &Arc<Contract>,
        read: Result<Report, ReadError>,
    ) -> Result<Self, ReadError> {
        let (report, class) = match read {
            Ok(report) => {
                let class = report.retry.unwrap_or(RetryClass::Never);
                (report, class)
            }
            Err(ReadError::UnknownCode { code, category, retryable, retry_after_ms, .. }) => {
                let class = contract.class_of_unknown(category.as_deref(), retryable);
                (Report { retry_after_ms, ..Report::new(code) }, class)
            }
            // Whatever contradicts itself or its contract is not worth another try.
            Err(ReadError::Contradiction { code, .. }) => (Report::new(code), RetryClass::Never),
            Err(other) => return Err(other),
        };
        Ok(Self { contract: Some(Arc::clone(contract)), report, class })
    }

    /// What a body tells that is no envelope of this contract, if it says that it is not worth a
    /// retry, or names a code of the contract: then the safe answer is to stop.
    #[must_use]
    pub fn stopping(contract: &Arc<Contract>, body: &[u8]) -> Option<Self> {
        let body: Value = serde_json::from_slice(body).ok()?;
        let places = ["", "/error", "/structuredContent", "/structuredContent/error"];
        let code = places.iter().filter_map(|place| body.pointer(place)).find_map(|at| {
            let text = |key: &str| at.get(key).and_then(Value::as_str);
            let code = text("code").or_else(|| text("error_code")).unwrap_or_default();
            let says = |pointer: &str, no: &Value| at.pointer(pointer) == Some(no);
            let stops = says("/retryable", &false.into())
                || says("/retry", &false.into())
                || says("/retry/kind", &"not_retryable".into());
            (stops || contract.code(code).is_some()).then(|| code.to_owned())
        })?;
        let report = Report::new(code);
        Some(Self { contract: Some(Arc::clone(contract)), report, class: RetryClass::Never })
    }

    /// A failure in words that nobody agreed on.
    fn unknown(message: Option<&str>) -> Self {
        let message = message.map(str::to_owned);
        let report = Report { message, ..Report::default() };
        Self { contract: None, report, class: RetryClass::Never }
    }

    /// The contract that it was told in, if it is one that is known.
    #[must_use]
    pub fn contract(&self) -> Option<&Arc<Contract>> {
        self.contract.as_ref()
    }

    /// Everything that was told.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The code, where there is one.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        Some(&*self.report.code).filter(|code| !code.is_empty())
    }

    /// What to do about it (O6). A tool that may have run is called again only if that is safe.
    #[must_use]
    pub fn verdict(&self, ask: &Ask) -> Verdict {
        let row = self.contract.as_ref().and_then(|contract| contract.code(&self.report.code));
        let known = self.report.outcome.or_else(|| row?.outcome);
        let fixed = row.and_then(|row| row.after).filter(|_| self.class == RetryClass::After);
        let decided = self.contract.as_ref().map(|contract| {
            let stamp = edge::stamp(contract);
            decide(&Question {
                class: self.class,
                named_delay: self.report.delay(stamp.now_ms).or(fixed),
                outcome: known.unwrap_or(Outcome::MaybeExecuted),
                safety: ask.safety,
                attempt: ask.attempt,
                budget: ask.budget,
                backoff: contract.retry.backoff,
                random: stamp.random,
            })
        });
        let (delay, max_delay, reason) = match decided {
            Some(faultwire_contract::Verdict::Retry { delay, ceiling }) => {
                (Some(delay), Some(ceiling), Reason::Retryable)
            }
            Some(faultwire_contract::Verdict::Stop(reason)) => (None, None, reason),
            None => (None, None, Reason::NeverRetried),
        };
        let category = "The contract does not know this code; treat it by its category.";
        let stranger = if self.contract.is_some() { category } else { UNKNOWN_ACTION };
        Verdict {
            retry: delay.is_some(),
            delay,
            max_delay,
            reason,
            action: row.map_or(stranger, |row| &row.action).to_owned(),
            code: self.code().map(str::to_owned),
            contract: self.contract.as_ref().map(|contract| contract.name.clone()),
            incident: self.report.incident.clone(),
        }
    }
}
