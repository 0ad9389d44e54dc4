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
//! | `door` | fault → audit → envelope → client: the only way to fail a call |
//! | `guard` | what is checked before a call is sent |
//! | `upstream` | the server's process: start, feed, listen, end, start again |
//! | `front` | where the client is |

mod backlog;
mod batch;
mod call;
mod calls;
mod door;
mod edge;
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
mod join;
mod key_lines;
mod linger;
mod link;
mod metrics;
mod mount;
mod orders;
mod outlet;
mod party;
mod patched;
mod pipeline;
mod recent;
mod request;
mod retry;
mod room;
mod running;
mod settings;
mod spans;
mod sparse;
mod supervisor;
mod tools;
mod upstream;
mod wire;

pub use front::stdio::{Streams, WrapError, wrap};
pub use gateway::{
    BadNetwork, Hosts, HttpLimits, MountSettings, Network, Reload, Renewed, Serve, ServeError,
    serve,
};
pub use guard::access::{ClientSettings, Rate};
pub use guard::breaker::BreakerSettings;
pub use guard::budget::{Allowance, Period};
pub use guard::scope::ScopeSettings;
pub use mount::{Crowd, Upstream};
pub use settings::{Arguments, Deadlines, Limits, Restart, Retry, Settings};
pub use upstream::process::Launch;
pub use upstream::remote::{RemoteError, RemoteSettings};
pub use wire::salvage_id;
