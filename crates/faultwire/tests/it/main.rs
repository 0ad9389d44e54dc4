//! The library, from outside.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

mod appending;
mod boundary;
mod client;
mod crash;
mod domain;
mod examples;
mod folding;
mod format;
mod hostile;
mod http;
mod json_boundary;
mod manifest;
mod opening;
mod problem;
mod retry_policy;
mod schemas;
mod sessions;
mod sim;
mod support;
mod tamper;
mod thrown;
mod typed;
