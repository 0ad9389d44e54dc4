//! Integration tests of the command line: the real binary, real pipes.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod alerts;
mod audit;
mod audit_crash;
mod classify;
mod contract;
mod help;
mod readme;
mod render;
mod retry;
mod support;
mod wrap;
