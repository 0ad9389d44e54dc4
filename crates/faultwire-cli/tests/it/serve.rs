//! `faultwire serve`, with real clients and servers on both sides.

mod eras;
mod gateway;
mod http;
mod protocol;
mod real;
