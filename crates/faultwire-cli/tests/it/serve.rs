//! `faultwire serve`, with real clients and servers on both sides.

mod apart;
mod batches;
mod cases;
mod conformance;
mod differential;
mod eras;
mod facts;
mod gateway;
mod guards;
mod http;
mod limits;
mod mounts;
mod operation;
mod output;
mod protocol;
mod real;
mod recorder;
mod redaction;
mod reload;
mod schemas;
mod session_limits;
mod sessions;
mod smuggling;
mod strangers;
mod traces;
mod upstreams;
