//! transparency
