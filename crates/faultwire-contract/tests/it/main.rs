//! Integration tests of the contract crate.

mod redaction;
