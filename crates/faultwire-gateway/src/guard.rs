//! What is checked before a call is sent.

pub(crate) mod arguments;
pub(crate) mod version;
