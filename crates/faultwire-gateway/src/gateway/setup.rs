//! How a gateway is set up, and with what it can be renewed.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::endpoint::{Endpoint, RemoteError};
use crate::guard::access::ClientSettings;
use crate::guard::host::Hosts;
use crate::mount::MountSettings;
use crate::settings::Settings;

/// How a gateway is set up.
#[derive(Clone, Debug)]
pub struct Serve {
    /// Where it listens.
    pub listen: SocketAddr,
    /// What stands behind it.
    pub mounts: Vec<MountSettings>,
    /// Which names it goes by.
    pub hosts: Hosts,
    /// Who may call; without any, everybody.
    pub clients: Vec<ClientSettings>,
    /// Where it is written down what was spent of their budgets.
    pub budgets: Option<PathBuf>,
    /// How much is taken from clients.
    pub limits: HttpLimits,
    /// The collector of traces (OTLP over HTTP), if there is one.
    pub collector: Option<Endpoint>,
    /// Threads that serve clients. One has the shortest way from client to server and back.
    pub threads: usize,
    /// Whether one of them stays awake for a moment after a call, if that pays.
    pub busy_poll: bool,
}

/// How much is taken from clients over HTTP.
#[derive(Clone, Copy, Debug)]
pub struct HttpLimits {
    /// The longest body.
    pub body_bytes: usize,
    /// The longest head.
    pub header_bytes: usize,
    /// Connections that are open at once.
    pub connections: usize,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self { body_bytes: 4 * 1024 * 1024, header_bytes: 64 * 1024, connections: 4096 }
    }
}

/// Settings that take the place of others while the gateway runs.
pub struct Renewed {
    /// Who may call.
    pub clients: Vec<ClientSettings>,
    /// How calls are treated, by mount.
    pub mounts: Vec<(String, Settings)>,
    /// Variables of the environment that no server is given.
    pub withheld: BTreeSet<OsString>,
}

/// Reads the settings again.
pub type Reload = Box<dyn Fn() -> Result<Renewed, String> + Send + Sync>;

/// Why a gateway cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// Which one.
        address: SocketAddr,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// An upstream cannot be used.
    #[error("{0}")]
    Remote(#[from] RemoteError),
    /// Spans cannot be sent.
    #[error("the collector of traces cannot be used: {0}")]
    Collector(String),
    /// Something that the system must give us.
    #[error("{0}")]
    System(#[from] io::Error),
    /// A part of the gateway itself failed.
    #[error("the gateway's {0} panicked; stopping")]
    Broken(&'static str),
}
