//! `faultwire audit`, as it is used.
