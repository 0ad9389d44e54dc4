//! What is checked before a call is sent.

pub(crate) mod access;
pub(crate) mod breaker;
pub(crate) mod budget;
pub(crate) mod filter;
pub(crate) mod mirror;
pub(crate) mod refusals;
pub(crate) mod scope;
pub(crate) mod session;
pub(crate) mod targets;
pub(crate) mod tasks;
pub(crate) mod version;
