//! Where clients are.

pub(crate) mod http;
pub(crate) mod stdio;
