//! The server's process: started, fed, listened to, ended, and started again.

pub(crate) mod inlet;
pub(crate) mod listener;
pub(crate) mod process;
pub(crate) mod restart;
