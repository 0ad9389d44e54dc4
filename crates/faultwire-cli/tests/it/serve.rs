//! `faultwire serve`, with real clients and servers on both sides.

mod batches;
mod conformance;
mod crowd;
mod eras;
mod gateway;
mod guards;
mod http;
mod limits;
mod mounts;
mod operation;
mod protocol;
mod real;
mod reload;
mod schemas;
mod sessions;
mod traces;
mod upstreams;
