//! One error contract for every MCP tool failure.
//!
//! [`contract`] turns failures into envelopes and back; [`audit`] writes each of them down before
//! it is sent.

pub mod audit;

pub use faultwire_contract as contract;
