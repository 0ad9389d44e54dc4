//! How a mount is set up.

use std::time::Duration;

use crate::endpoint::Endpoint;
use crate::guard::breaker::BreakerSettings;
use crate::launch::Launch;
use crate::settings::Settings;

/// One upstream under a name.
#[derive(Clone, Debug)]
pub struct MountSettings {
    /// It is found at `/mcp/NAME`; the first one at `/mcp`, too.
    pub name: String,
    /// What stands behind it.
    pub upstream: Upstream,
    /// How many servers it may run.
    pub session_limits: SessionLimits,
    /// When it is left alone.
    pub breaker: BreakerSettings,
    /// How its calls are treated.
    pub settings: Settings,
}

/// What stands behind a mount.
#[derive(Clone, Debug)]
pub enum Upstream {
    /// A server that speaks over stdio, started as often as needed.
    Command(Launch),
    /// A server behind a URL.
    Url(Endpoint),
}

/// How many servers a mount may run, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct SessionLimits {
    /// Sessions with a server of their own that may be open at once.
    pub sessions: usize,
    /// How long a session may go unused.
    pub idle: Duration,
    /// Servers that are started for sessions to come, once there has been one.
    pub spare: usize,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self { sessions: 64, idle: Duration::from_mins(30), spare: 1 }
    }
}
