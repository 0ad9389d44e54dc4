//! Where the client is.

pub mod stdio;
