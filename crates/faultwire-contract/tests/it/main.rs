//! Integration tests of the contract crate.

mod alerts;
mod all_contracts;
mod bounds;
mod classification;
mod compatibility;
mod context_resolve;
mod kaiza;
mod mistakes;
mod owlclaw;
mod redaction;
mod retry;
mod round_trip;
mod schemas;
mod sixth;
mod sources;
mod support;
mod tuitbot;
mod workrail;
