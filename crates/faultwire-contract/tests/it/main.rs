//! Integration tests of the contract crate.

mod classification;
mod redaction;
