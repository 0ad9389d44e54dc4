//! One error contract for every MCP tool failure.
//!
//! [`contract`] turns failures into envelopes and back; [`audit`] writes each of them down before
//! it is sent. The way from a failure to its answer:
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
#[cfg(feature = "axum")]
mod problem;
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
#[cfg(feature = "axum")]
pub use problem::{ProblemLayer, Problems};
pub use typed::{HasStatus, KeepsData, MayRepeat, MayStop, Row, TakesDelay, TypedCode};
pub use unknown::Unknown;
