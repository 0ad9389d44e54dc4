//! The audit log, from outside.

mod appending;
mod crash;
mod format;
mod opening;
mod sim;
mod support;
mod tamper;
