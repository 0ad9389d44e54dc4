//! What is checked before a call is sent.

pub mod arguments;
