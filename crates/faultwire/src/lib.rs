//! One error contract for every MCP tool failure, inside a Rust server.
//!
//! # Codes that cannot be wrong
//!
//! A contract is one TOML file. [`contract!`] generates a module from it: an exhaustive enum of its
//! codes, and a function for each code that only accepts what the code allows. The built-in
//! contracts are modules already: [`standard`], for servers without their own codes, and five
//! published ones.
//!
//! ```
//! use std::time::Duration;
//! use faultwire::standard::{self, Code, Failure};
//!
//! assert_eq!(Code::RateLimited.status(), 429);
//!
//! let failure: Failure = standard::rate_limited()
//!     .message("Ten calls a minute are allowed")
//!     .after(Duration::from_secs(6))
//!     .into();
//! assert_eq!(failure.code(), Code::RateLimited);
//! ```
//!
//! A delay on a code that is never retried does not compile, nor does a status that the row does
//! not list, nor a `match` that misses a code.
//!
//! # Failures from anything
//!
//! A handler returns `Result<_, Failure>`. `?` converts any error, with the contract's code for
//! unexpected errors; [`ResultExt`] sets another code.
//!
//! ```
//! use faultwire::ResultExt;
//! use faultwire::standard::{Code, Failure};
//!
//! fn settings(path: &str) -> Result<u8, Failure> {
//!     let text = std::fs::read_to_string(path).fault(Code::NotFound)?;
//!     Ok(text.trim().parse::<u8>()?)
//! }
//!
//! let failure = settings("/nosuch").unwrap_err();
//! assert_eq!(failure.code(), Code::NotFound);
//! assert_eq!(failure.report().cause.as_ref().unwrap()["code"], "NotFound");
//! ```
//!
//! # A server whose failures are all the same
//!
#![cfg_attr(feature = "rmcp", doc = "[`Boundary`] wraps a handler of rmcp (feature `rmcp`).")]
#![cfg_attr(not(feature = "rmcp"), doc = "`Boundary` wraps a handler of rmcp (feature `rmcp`).")]
//! Errors, panics, timeouts, bad arguments and tools that do not exist all reach the client as one
//! envelope, recorded in the [audit log](audit) before it is sent.
#![cfg_attr(feature = "rmcp", doc = "\n")]
#![cfg_attr(feature = "rmcp", doc = include_str!("adopting.md"))]
//!
//! For services made with axum there is a layer that does the same (feature `axum`).
//!
//! # What a tool may answer
//!
//! [`codes!`] names some codes of a contract, and a function that returns `Failure<Those>` answers
//! no others: they do not compile.
#![cfg_attr(
    feature = "rmcp",
    doc = "[`#[manifest]`](macro@manifest) collects what each tool needs and may answer, and\n\
           [`assert_manifest!`] compares that with a committed file."
)]
//!
//! ```
//! use faultwire::{Failure, standard};
//!
//! faultwire::codes! {
//!     /// What looking something up may end in.
//!     pub Reading of standard { NotFound, RateLimited }
//! }
//!
//! fn look_up(id: &str) -> Result<String, Failure<Reading>> {
//!     Err(standard::not_found().message(format!("There is no {id}")).into())
//! }
//! assert_eq!(look_up("t1").unwrap_err().code(), standard::Code::NotFound);
//! ```
//!
//! # The other side
//!
//! [`client`] reads a failure in any contract, and says whether and when to call again, and what to
//! do instead.
//!
//! ```
//! use faultwire::client::{RetryContext, Reader};
//! use serde_json::json;
//!
//! let envelope = json!({ "error": {
//!     "code": "rate_limited", "message": "Too many calls", "next": "Wait 2 seconds, then call again.",
//!     "retryable": true, "retry_after": 2, "outcome": "not_sent", "incident_id": "inc_1",
//! } });
//! let result = json!({ "isError": true,
//!                      "content": [{ "type": "text", "text": envelope.to_string() }] });
//!
//! let failure = Reader::builtin().result(&result).expect("it is a failure");
//! let verdict = failure.verdict(&RetryContext::default());
//! assert!(verdict.retry);
//! assert_eq!(verdict.delay.unwrap().as_millis(), 2000);
//! assert_eq!(verdict.contract.as_deref(), Some("standard"));
//! ```
//!
//! # By hand
//!
//! The steps behind all of these:
//!
//! ```
//! use faultwire::audit::{Call, Log, Options};
//! use faultwire::contract::{Fault, Profile, Report, Stamp, Surface, builtin};
//!
//! # let dir = std::env::temp_dir().join(format!("faultwire-lib-{}", std::process::id()));
//! let contract = builtin("standard").unwrap();
//! let log = Log::open(&dir, Options::default())?;
//!
//! let report = Report { tool: Some("advance".into()), ..Report::new("timeout") };
//! let fault = Fault::new(&contract, report, &Stamp::default())?;
//! let call = Call { client: Some("desktop".into()), ..Call::default() };
//!
//! // Recorded first, then given back to be sent.
//! let answer = log.answer(fault, &call, Surface::Mcp, Profile::default());
//! assert!(answer.receipt.is_some());
//! assert!(answer.envelope.starts_with(br#"{"error":{"code":"timeout""#));
//! # log.close()?;
//! # std::fs::remove_dir_all(dir)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// What `contract!` makes names us by this name, here as elsewhere.
extern crate self as faultwire;

#[cfg(feature = "arguments")]
pub mod arguments;
pub mod audit;
#[cfg(feature = "rmcp")]
mod boundary;
mod builtin;
pub mod client;
mod draft;
mod edge;
mod failure;
pub mod json;
#[cfg(feature = "rmcp")]
mod manifest;
#[cfg(feature = "arguments")]
pub mod output;
#[cfg(feature = "arguments")]
mod own_codes;
#[cfg(feature = "axum")]
mod problem;
#[cfg(feature = "tower")]
mod retry_policy;
mod set;
mod typed;
mod unknown;
#[cfg(any(feature = "rmcp", feature = "axum"))]
mod watch;
mod widen;

#[cfg(feature = "rmcp")]
pub use boundary::Boundary;
pub use builtin::*;
pub use draft::Draft;
pub use failure::Failure;
pub use faultwire_contract as contract;
/// Makes a module of typed codes from a contract file.
///
/// ```
/// faultwire::contract!(pub mod errors = "../../contracts/standard.toml");
///
/// use errors::{Code, Failure};
///
/// fn served(calls: u32) -> Result<&'static str, Failure> {
///     if calls > 10 {
///         return Err(errors::rate_limited().message("Ten calls are allowed").into());
///     }
///     Ok("tea")
/// }
///
/// fn main() {
///     assert_eq!(served(1).unwrap(), "tea");
///     assert_eq!(served(11).unwrap_err().code(), Code::RateLimited);
///     const STATUS: u16 = Code::RateLimited.status();
///     assert_eq!(STATUS, 429);
/// }
/// ```
///
pub use faultwire_macros::contract;
/// Puts the tools of an `impl` block into the [manifest](struct@Manifest) of their server.
///
/// ```
/// use faultwire::{Failure, Manifest, tuitbot};
/// use rmcp::{tool, tool_router};
///
/// faultwire::codes! {
///     /// What posting may end in.
///     pub Posting of tuitbot { TweetTooLong, XRateLimited }
/// }
///
/// struct Bot;
///
/// #[faultwire::manifest(requires(x_client, db))]
/// #[tool_router]
/// impl Bot {
///     #[tool(description = "Posts a text")]
///     #[declare(category = "write", mutation, requires(x_client), profiles(api))]
///     async fn post(&self) -> Result<String, Failure<Posting>> {
///         Err(tuitbot::tweet_too_long().into())
///     }
/// }
///
/// fn main() {
///     let manifest = Manifest::of::<Bot>().to_json();
///     assert!(manifest.contains(r#""requires_x_client": true"#), "{manifest}");
///     assert!(manifest.contains(r#""tweet_too_long""#), "{manifest}");
/// }
/// ```
///
#[cfg(feature = "rmcp")]
pub use faultwire_macros::manifest;
#[cfg(feature = "rmcp")]
pub use manifest::Manifest;
/// What the macros name.
#[cfg(feature = "rmcp")]
#[doc(hidden)]
pub mod __manifest {
    pub use crate::manifest::{Declared, Part, Raises, assert, contract_of, inventory, only};
}
#[cfg(feature = "axum")]
pub use problem::{ProblemLayer, Problems};
#[cfg(feature = "tower")]
pub use retry_policy::RetryPolicy;
#[doc(hidden)]
pub use set::listed as __listed;
pub use set::{CodeSet, Listed};
pub use typed::{HasStatus, KeepsData, MayRepeat, MayStop, Row, TakesDelay, TypedCode};
pub use unknown::{ResultExt, Unknown};
pub use widen::{Widen, Widened};

/// The examples of the README compile, too.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;
