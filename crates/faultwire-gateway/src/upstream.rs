//! The server: a process that is started, fed, listened to, ended, and started again; or one
//! behind a URL.

pub(crate) mod pool;
pub(crate) mod process;
mod reaper;
pub(crate) mod stderr;
pub(crate) mod writer;
