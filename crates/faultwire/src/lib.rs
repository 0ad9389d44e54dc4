//! One error contract for every MCP tool failure, inside a Rust server.
//!
//! # Codes that cannot be wrong
//!
//! A contract is one TOML file. [`contract!`] makes a module of it: an exhaustive enum of its
//! codes, and a function for each of them that takes only what the code allows. The five
//! contracts that come along are modules already, such as [`owlclaw`].
//!
//! ```
//! use std::time::Duration;
//! use faultwire::owlclaw::{self, Code, Failure};
//!
//! // In a crate of yours: faultwire::contract!(pub mod errors = "contract.toml");
//! assert_eq!(Code::GovernanceRateLimited.status(), 429);
//!
//! let failure: Failure = owlclaw::governance_rate_limited()
//!     .message("Ten calls a minute are enough")
//!     .after(Duration::from_secs(6))
//!     .into();
//! assert_eq!(failure.code(), Code::GovernanceRateLimited);
//! ```
//!
//! A delay on a code that is never retried does not compile, nor does a status that the row does
//! not list, nor a `match` that forgets a code.
//!
//! # Failures from anything
//!
//! A handler returns `Result<_, Failure>`. Errors become one by `?`, with the contract's code for
//! what nobody expected; [`ResultExt`] gives them another.
//!
//! ```
//! use faultwire::ResultExt;
//! use faultwire::kaiza::{Code, Failure};
//!
//! fn settings(path: &str) -> Result<u8, Failure> {
//!     let text = std::fs::read_to_string(path).fault(Code::FileReadFailed)?;
//!     Ok(text.trim().parse::<u8>()?)
//! }
//!
//! let failure = settings("/nosuch").unwrap_err();
//! assert_eq!(failure.code(), Code::FileReadFailed);
//! assert_eq!(failure.report().cause.as_ref().unwrap()["code"], "NotFound");
//! ```
//!
//! # A server whose failures are all the same
//!
#![cfg_attr(
    feature = "rmcp",
    doc = "[`Boundary`] stands around a handler of rmcp (feature `rmcp`)."
)]
#![cfg_attr(
    not(feature = "rmcp"),
    doc = "`Boundary` stands around a handler of rmcp (feature `rmcp`)."
)]
//! Errors, panics, timeouts, bad arguments and tools that do not exist all reach the client as one
//! envelope, recorded in the [audit log](audit) before it is sent. Adopting it is two lines:
//!
//! ```text
//!  #[tokio::main]
//!  async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! -    MyServer::new().serve(stdio()).await?.waiting().await?;
//! +    let log = Log::open("audit", Options::default())?;
//! +    Boundary::<errors::Code, _>::new(MyServer::new(), log).serve(stdio()).await?.waiting().await?;
//!      Ok(())
//!  }
//! ```
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
//! use faultwire::{Failure, tuitbot};
//!
//! faultwire::codes! {
//!     /// What looking something up may end in.
//!     pub Reading of tuitbot { NotFound, XRateLimited }
//! }
//!
//! fn look_up(id: &str) -> Result<String, Failure<Reading>> {
//!     Err(tuitbot::not_found().message(format!("There is no {id}")).into())
//! }
//! assert_eq!(look_up("t1").unwrap_err().code(), tuitbot::Code::NotFound);
//! ```
//!
//! # The other side
//!
//! [`client`] reads a failure in whichever contract it was told, and says whether to call again,
//! when, and what to do instead.
//!
//! # By hand
//!
//! What all of these do, step by step:
//!
//! ```
//! use faultwire::audit::{Call, Log, Options};
//! use faultwire::contract::{Fault, Profile, Report, Stamp, Surface, builtin};
//!
//! # let dir = std::env::temp_dir().join(format!("faultwire-lib-{}", std::process::id()));
//! let contract = builtin("workrail").unwrap();
//! let log = Log::open(&dir, Options::default())?;
//!
//! let report = Report { tool: Some("advance".into()), ..Report::new("TIMEOUT") };
//! let fault = Fault::new(&contract, report, &Stamp::default())?;
//! let call = Call { client: Some("desktop".into()), ..Call::default() };
//!
//! // Recorded first, then given back to be sent.
//! let answer = log.answer(fault, &call, Surface::Mcp, Profile::default());
//! assert!(answer.receipt.is_some());
//! assert!(answer.envelope.starts_with(br#"{"code":"TIMEOUT""#));
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
#[cfg(feature = "rmcp")]
mod manifest;
#[cfg(feature = "tower")]
mod obedient;
#[cfg(feature = "axum")]
mod problem;
mod set;
mod typed;
mod unknown;
#[cfg(any(feature = "rmcp", feature = "axum"))]
mod watch;

#[cfg(feature = "rmcp")]
pub use boundary::Boundary;
pub use builtin::*;
pub use draft::Draft;
pub use failure::{Failure, ResultExt};
pub use faultwire_contract as contract;
pub use faultwire_macros::contract;
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
#[cfg(feature = "tower")]
pub use obedient::Obedient;
#[cfg(feature = "axum")]
pub use problem::{ProblemLayer, Problems};
#[doc(hidden)]
pub use set::listed as __listed;
pub use set::{CodeSet, Listed, Widen, Widened};
pub use typed::{HasStatus, KeepsData, MayRepeat, MayStop, Row, TakesDelay, TypedCode};
pub use unknown::Unknown;
