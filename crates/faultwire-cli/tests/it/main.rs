//! Integration tests of the command line: the real binary, real pipes.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]
#![allow(clippy::format_collect, reason = "the texts are small")]
#![allow(clippy::disallowed_methods, reason = "tests wait for real processes")]

mod alerts;
mod audit;
mod audit_crash;
mod classify;
mod contract;
mod demo;
mod generate;
mod help;
mod messages;
mod new_contract;
mod readme;
mod render;
mod retry;
mod serve;
mod support;
mod wrap;
