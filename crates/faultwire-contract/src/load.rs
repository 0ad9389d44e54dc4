//! From the text of a file to a checked contract. Every mistake is found in one go.

mod code;
mod conditions;
mod contract;
mod head;
mod next;
mod policy;
pub(crate) mod rule;
pub(crate) mod start;
mod surface;
mod tool_failure;

pub(crate) use contract::built_in;
