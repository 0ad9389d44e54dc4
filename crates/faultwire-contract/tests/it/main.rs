//! Integration tests of the contract crate.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]
#![allow(clippy::needless_pass_by_value, clippy::too_many_lines, reason = "tables of cases")]

mod alerts;
mod all_contracts;
mod blocks;
mod bounds;
mod caller;
mod classification;
mod clauses;
mod compatibility;
mod context_resolve;
mod documents;
mod kaiza;
mod mistakes;
mod modules;
mod owlclaw;
mod redaction;
mod retry;
mod round_trip;
mod schemas;
mod sixth;
mod sources;
mod standard;
mod support;
mod tool_failure;
mod tuitbot;
mod usefulness;
mod workrail;
