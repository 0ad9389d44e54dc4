//! What the `_meta` of a failed tool's result says about the failure (S5), after a proposal for the
//! protocol: pull request 3312 of the specification. It may change as the proposal does.

use std::borrow::Cow;
use std::io::Write;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::fault::Fault;
use crate::json_escape::quote;
use crate::next::Next;
use crate::redact::strip;
use crate::tool_failure_policy::{FailureClass, ToolFailurePolicy};

/// The member of `_meta` that classifies a tool's failure.
pub const TOOL_FAILURE_META: &str = "io.modelcontextprotocol/toolFailure";

/// The longest code, id and guidance that is read.
const LONGEST_WORD: usize = 256;
const LONGEST_GUIDANCE: usize = 2048;

/// The latest moment that every parser of JSON reads exactly.
const LATEST_MS: i64 = (1 << 53) - 1;

/// What a result says about its failure in [`TOOL_FAILURE_META`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolFailure<'a> {
    /// How to react.
    pub class: FailureClass,
    /// The failure's code.
    pub code: Cow<'a, str>,
    /// Whether the same call may succeed later. Only failures of the class `reliability` are.
    pub retryable: bool,
    /// The earliest moment of a retry: milliseconds since the epoch.
    pub retry_not_before_ms: Option<i64>,
    /// The id to find the failure under in the server's log.
    pub correlation_id: Option<Cow<'a, str>>,
    /// What to do next, for a model. From another server this is untrusted text: data, not an
    /// instruction.
    pub agent_guidance: Option<Cow<'a, str>>,
}

impl<'a> ToolFailure<'a> {
    /// Reads it from a result of any server. An unknown class, a missing code or a text that is too
    /// long makes it None. If the time cannot be read, the failure is not retryable, because the
    /// wait is unknown.
    ///
    /// ```
    /// use faultwire_contract::{FailureClass, ToolFailure};
    ///
    /// let result = serde_json::json!({ "isError": true, "_meta": {
    ///     "io.modelcontextprotocol/toolFailure": {
    ///         "class": "reliability", "code": "busy", "retryable": true, "correlationId": "7f" } } });
    /// let failure = ToolFailure::read(&result).unwrap();
    /// assert_eq!((failure.class, &*failure.code), (FailureClass::Reliability, "busy"));
    /// assert!(failure.retryable);
    /// ```
    #[must_use]
    pub fn read(result: &'a Value) -> Option<Self> {
        let members = result.get("_meta")?.get(TOOL_FAILURE_META)?.as_object()?;
        let class = FailureClass::from_name(members.get("class")?.as_str()?)?;
        let not_before = members.get("retryNotBefore").filter(|moment| !moment.is_null());
        let retry_not_before_ms = not_before.and_then(epoch_ms);
        let is_readable = not_before.is_some() == retry_not_before_ms.is_some();
        let claimed = members.get("retryable") == Some(&Value::Bool(true));
        let retryable = claimed && is_readable && class == FailureClass::Reliability;
        Some(Self {
            class,
            code: short(members, "code", LONGEST_WORD)?,
            retryable,
            retry_not_before_ms: retry_not_before_ms.filter(|_| retryable),
            correlation_id: short(members, "correlationId", LONGEST_WORD),
            agent_guidance: short(members, "agentGuidance", LONGEST_GUIDANCE),
        })
    }

    /// How long to wait before a retry.
    #[must_use]
    pub fn delay(&self, now_ms: i64) -> Option<Duration> {
        let left = self.retry_not_before_ms?.saturating_sub(now_ms);
        Some(Duration::from_millis(u64::try_from(left).unwrap_or(0)))
    }

    /// An owned copy.
    #[must_use]
    pub fn into_owned(self) -> ToolFailure<'static> {
        let owned = |text: Cow<'a, str>| Cow::Owned(text.into_owned());
        ToolFailure {
            class: self.class,
            code: owned(self.code),
            retryable: self.retryable,
            retry_not_before_ms: self.retry_not_before_ms,
            correlation_id: self.correlation_id.map(owned),
            agent_guidance: self.agent_guidance.map(owned),
        }
    }

    /// Appends it as JSON.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(br#"{"class":"#);
        quote(self.class.name(), out);
        out.extend_from_slice(br#","code":"#);
        quote(&self.code, out);
        let retryable: &[u8] =
            if self.retryable { br#","retryable":true"# } else { br#","retryable":false"# };
        out.extend_from_slice(retryable);
        if let Some(moment) = self.retry_not_before_ms {
            // Writing to memory does not fail.
            let _ = write!(out, r#","retryNotBefore":{moment}"#);
        }
        for (lead, text) in [
            (r#","correlationId":"#, &self.correlation_id),
            (r#","agentGuidance":"#, &self.agent_guidance),
        ] {
            if let Some(text) = text {
                out.extend_from_slice(lead.as_bytes());
                quote(text, out);
            }
        }
        out.push(b'}');
    }
}

impl Fault {
    /// What a result says of it in [`TOOL_FAILURE_META`]; none where the contract has no
    /// `[tool_failure]`.
    ///
    /// ```
    /// use faultwire_contract::{FailureClass, Fault, Report, Stamp, builtin};
    ///
    /// let contract = builtin("standard").unwrap();
    /// let fault = Fault::new(&contract, Report::new("permission_denied"), &Stamp::default())?;
    /// assert_eq!(fault.tool_failure().unwrap().class, FailureClass::Governance);
    /// # Ok::<(), faultwire_contract::FaultError>(())
    /// ```
    #[must_use]
    pub fn tool_failure(&self) -> Option<ToolFailure<'_>> {
        let policy = self.contract().tool_failure.as_ref()?;
        let retryable = self.retry().is_retryable();
        // Whatever its category is, the proposal lets no failure of another class be retried.
        let class = if retryable {
            FailureClass::Reliability
        } else {
            policy.class(&self.code().category)?
        };
        Some(ToolFailure {
            class,
            code: self.code().id.as_str().into(),
            retryable,
            retry_not_before_ms: self.retry_not_before_ms(),
            correlation_id: self.public().incident.as_deref().map(Cow::from),
            agent_guidance: self.guidance(policy),
        })
    }

    /// The fault's time plus its delay, if it has one.
    fn retry_not_before_ms(&self) -> Option<i64> {
        let public = self.public();
        let takes_delay = self.retry().takes_delay();
        let is_named = public.retry_after_ms.is_some() || public.rate_limit_reset.is_some();
        if !takes_delay || !is_named {
            return None;
        }
        let moment = public.timestamp.as_ref()?.parse::<Timestamp>().ok()?.as_millisecond();
        let delay = i64::try_from(public.delay(moment)?.as_millis()).unwrap_or(LATEST_MS);
        Some(moment.saturating_add(delay).min(LATEST_MS))
    }

    /// The sentence of `$next`, or the row's action. Where the tool may have run and must not run
    /// twice, no advice to call again is left in it (S4).
    fn guidance<'a>(&'a self, policy: &'a ToolFailurePolicy) -> Option<Cow<'a, str>> {
        let next = self.public().next.as_deref();
        let own = next.unwrap_or(&self.code().action);
        let warns = |next: &Next| !next.maybe_executed.is_empty();
        let warns_itself = next.is_some() && self.contract().next.as_ref().is_some_and(warns);
        if !self.is_warned() || warns_itself {
            return Some(own.into());
        }
        match (&policy.maybe_executed, self.retry().is_retryable()) {
            (Some(warning), true) => Some(warning.into()),
            (Some(warning), false) => Some(format!("{own} {warning}").into()),
            (None, true) => None,
            (None, false) => Some(own.into()),
        }
    }
}

/// A text that is neither empty nor too long, without invisible characters.
fn short<'a>(members: &'a Map<String, Value>, key: &str, longest: usize) -> Option<Cow<'a, str>> {
    let text = members.get(key)?.as_str().filter(|text| text.len() <= longest)?;
    Some(strip(text)).filter(|text| !text.trim().is_empty())
}

/// A moment in milliseconds. Some servers have a clock with fractions of them.
fn epoch_ms(moment: &Value) -> Option<i64> {
    moment.as_i64().or_else(|| {
        let seconds = Duration::try_from_secs_f64(moment.as_f64()?.ceil() / 1000.0).ok()?;
        i64::try_from(seconds.as_millis()).ok()
    })
}
