//! The alert levels of a contract.

use std::time::Duration;

/// An alert level of a contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// The name that rows use.
    pub name: String,
    /// When it pages.
    pub paging: Paging,
}

/// When an alert level pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paging {
    /// Never: it is only counted.
    Never,
    /// On every single event.
    Every,
    /// When a client has more than this many of one code in the window `(t - within, t]`.
    MoreThan {
        /// How many are still quiet.
        events: usize,
        /// The window's length.
        within: Duration,
    },
}
