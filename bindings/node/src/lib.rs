//! The engine for Node.js. JSON goes in and out as text; the package's TypeScript gives it types.
//!
//! Errors are thrown with a JSON object as message (`kind`, `what`, `file`, `line`, `column`, `help`,
//! `text`), of which the TypeScript part makes its exceptions.

// The exports are called by name.
#![cfg_attr(test, allow(dead_code))]

mod audit;
mod boundary;
mod contract;
mod error;
mod fault;
mod reader;
