//! What can be typed after `faultwire serve`.

use std::ffi::OsString;
use std::net::IpAddr;

use crate::args::treatment::Treatment;

#[derive(clap::Args)]
#[command(after_help = include_str!("../../help/serve.txt"))]
pub struct ServeArgs {
    #[command(flatten)]
    pub treatment: Treatment,
    /// Where to listen [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS", env = "FAULTWIRE_HOST")]
    pub host: Option<IpAddr>,
    /// On which port; 0 is any that is free [default: 7332]
    #[arg(long, env = "FAULTWIRE_PORT")]
    pub port: Option<u16>,
    /// What the upstream is called, and found under: /mcp/NAME [default: from CMD or URL]
    #[arg(long)]
    pub name: Option<String>,
    /// A server behind a URL, in place of a command
    #[arg(long, value_name = "URL", conflicts_with = "command", env = "FAULTWIRE_UPSTREAM")]
    pub upstream: Option<String>,
    /// Send a span of every call to the OTLP collector there, such as http://127.0.0.1:4318
    #[arg(long, value_name = "URL", env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    pub otlp: Option<String>,
    /// A server's command and its arguments; without one, the bundled demo server
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}
