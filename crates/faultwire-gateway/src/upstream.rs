//! The server: a process that is started, fed, listened to, ended, and started again; or one
//! behind a URL.

pub(crate) mod inlet;
pub(crate) mod listener;
pub(crate) mod pool;
pub(crate) mod process;
pub(crate) mod remote;
pub(crate) mod restart;
pub(crate) mod stderr;
