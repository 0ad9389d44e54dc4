//! The commands, one file each.

pub mod alerts;
pub mod audit;
pub mod classify;
pub mod completions;
pub mod contract;
pub mod decode;
pub mod explain;
pub mod redact;
pub mod render;
pub mod retry;
pub mod serve;
pub mod wrap;
