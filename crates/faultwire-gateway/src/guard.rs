//! What is checked before a call is sent.

pub(crate) mod access;
pub(crate) mod arguments;
pub(crate) mod breaker;
pub(crate) mod budget;
pub(crate) mod filter;
pub(crate) mod host;
pub(crate) mod peer;
pub(crate) mod refusals;
pub(crate) mod scope;
pub(crate) mod targets;
pub(crate) mod tasks;
pub(crate) mod version;
