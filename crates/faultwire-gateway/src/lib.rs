//! Faultwire in front of any MCP server.
//!
//! [`wrap`] runs a server that speaks MCP over stdio and stands between it and its client. What
//! succeeds passes with its own bytes. What fails, in whichever way, becomes one envelope of the
//! [`Contract`](faultwire_contract::Contract), recorded before it is sent. Every request gets
//! exactly one answer within its deadline.
//!
//! | file | is |
//! |---|---|
//! | `pipeline` | what happens to a message, from either side: the whole order |
//! | `call`, `calls` | an open call, and all of them |
//! | `responder` | fault → audit → envelope → client: the only way to fail a call |
//! | `guard` | what is checked before a call is sent |
//! | `upstream` | the server's process: start, feed, listen, end, start again |
//! | `front` | where the client is |

mod backlog;
mod batch;
mod body;
mod busy_poll;
mod call;
mod calls;
mod client_sink;
mod connection;
mod directories;
mod edge;
mod endpoint;
mod era;
mod exchange;
mod failing;
pub mod frame;
mod front;
#[doc(hidden)]
pub mod fuzzing;
mod gateway;
mod guard;
mod handshake;
mod header_params;
mod http_client;
mod key_lines;
mod last_output;
mod launch;
mod memory_quota;
mod method;
mod metrics;
mod mount;
mod probe;
mod reassembly;
mod recent;
mod remote;
mod replayed_requests;
mod reply;
mod request;
mod responder;
mod rewrite;
mod running;
mod serve;
mod session;
mod settings;
mod spans;
mod sparse;
mod supervisor;
mod tools;
mod trace;
mod upstream;
mod wire;

pub use endpoint::{Endpoint as RemoteSettings, RemoteError};
pub use faultwire::output::Output;
pub use front::stdio::{Streams, WrapError, wrap};
pub use gateway::{HttpLimits, Reload, Renewed, Serve, ServeError};
pub use guard::access::{ClientSettings, Rate};
pub use guard::breaker::BreakerSettings;
pub use guard::budget::{Allowance, Period};
pub use guard::host::Hosts;
pub use guard::peer::{BadNetwork, Network};
pub use guard::scope::ScopeSettings;
pub use launch::Launch;
pub use mount::{MountSettings, SessionLimits, Upstream};
pub use serve::serve;
pub use settings::{Arguments, Deadlines, Limits, Restart, Retry, Settings};
pub use wire::salvage_id;
