//! Error contracts as data.
//!
//! A contract is one TOML file: codes, retry answers, messages, envelope shapes, alert levels. This
//! crate loads it, turns failures into envelopes and envelopes back into failures, and makes all
//! decisions about them. It is pure: no I/O, no clock, no randomness, no runtime; callers pass
//! these in.
//!
//! ```
//! use faultwire_contract::{Fault, Profile, Report, Stamp, Surface, builtin};
//!
//! let contract = builtin("tuitbot").expect("it is built in");
//! let report = Report { message: Some("slow down".into()), ..Report::new("x_rate_limited") };
//! let fault = Fault::new(&contract, report, &Stamp::default())?;
//!
//! let envelope = fault.envelope(Surface::Mcp, Profile::default());
//! assert_eq!(
//!     String::from_utf8_lossy(&envelope),
//!     r#"{"success":false,"data":null,"error":{"code":"x_rate_limited","message":"slow down","retryable":true}}"#,
//! );
//!
//! let read = contract.read(Surface::Mcp, Profile::default(), &envelope)?;
//! assert_eq!(read.code, "x_rate_limited");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | to | use |
//! |---|---|
//! | load a contract | [`Contract::load`], [`builtin()`] |
//! | say that something failed | [`Report`], [`Fault::new`] |
//! | write and read envelopes | [`Fault::envelope`], [`Contract::read`] |
//! | judge what a server sent | [`classify()`] |
//! | make text safe | [`Redactor`] |
//! | decide on a retry | [`decide`] |
//! | decide on a page | [`Alerts`] |
//! | describe and compare | [`Contract::schema`], [`compat::changes`], [`lint::lint`] |

mod alert;
mod ambiguity;
pub mod bound;
mod builtin;
pub mod cause;
mod classify;
mod code;
pub mod compat;
mod condition;
mod contract;
pub mod details;
mod envelope;
mod fault;
mod fold;
mod incident;
mod json_escape;
mod level;
pub mod lint;
mod load;
mod mistake;
pub mod nesting;
mod next;
mod origin;
mod pattern;
pub mod protocol;
mod redact;
mod report;
mod retry;
mod rule;
mod schema;
mod section;
mod session;
mod start;
mod template;
mod tool_failure;
mod tool_failure_policy;

pub use alert::{Alerts, DEFAULT_CAPACITY, Page};
pub use ambiguity::{Ambiguity, ambiguity, is_of_protocol};
pub use builtin::{BUILTINS, Builtin, DEFAULT, builtin};
pub use classify::{
    Answers, CUT_OFF, CallContext, Explanation, Failure, Judgement, Line, MaskKind, Masked,
    SoftFailures, Sort, classify, classify_call, malformed, oversize, peek, prepare,
};
pub use code::{Code, Retired};
pub use condition::{Aspect, Condition, UnknownCondition};
pub use contract::{
    Contract, Example, InvalidDetails, Profile, Release, Requires, RetryPolicy, Surface, Switch,
    TextPolicy,
};
pub use envelope::{CONTRACT_META, ENVELOPE_META, Envelope, ReadError, ResultOptions};
pub use fault::{Fault, FaultError, Private};
pub use fold::fold;
pub use incident::Stamp;
pub use json_escape::quote;
pub use level::{Level, Paging};
pub use mistake::{Mistake, Mistakes, nearest};
pub use origin::{Origin, Outcome};
pub use redact::{Caller, Masks, RedactRule, Redactor, RuleKind, shorten_home, strip};
pub use report::{Hints, Meta, Report, Reset, Session};
pub use retry::{Backoff, Question, Reason, RetryClass, Safety, Verdict, decide};
pub use schema::SchemaOf;
pub use session::{Reports, SessionCall, SessionRules, SessionState};
pub use start::start_check;
pub use tool_failure::{TOOL_FAILURE_META, ToolFailure};
pub use tool_failure_policy::{FailureClass, ToolFailurePolicy};
