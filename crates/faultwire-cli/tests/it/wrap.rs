//! `faultwire wrap`, with real processes on both sides.

mod arguments;
mod client;
mod deadlines;
mod hostile;
mod matrix;
mod parts;
mod real;
mod recovery;
mod session;
mod settings;
mod soak;
mod transparency;
