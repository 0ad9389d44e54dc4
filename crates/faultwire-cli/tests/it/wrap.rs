//! `faultwire wrap`, with real processes on both sides.

mod apart;
mod arguments;
pub mod client;
mod deadlines;
pub mod facts;
mod hostile;
mod matrix;
pub mod output;
pub mod parts;
pub mod real;
mod recovery;
pub mod redaction;
mod session;
mod settings;
mod soak;
mod standard;
mod transparency;
