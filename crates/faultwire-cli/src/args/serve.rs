//! What can be typed after `faultwire serve`.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr};

use crate::args::treatment::Treatment;

#[derive(clap::Args)]
#[command(after_help = include_str!("../../help/serve.txt"))]
pub struct ServeArgs {
    #[command(flatten)]
    pub treatment: Treatment,
    /// Where to listen
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST), env = "FAULTWIRE_HOST")]
    pub host: IpAddr,
    /// On which port; 0 is any that is free
    #[arg(long, default_value_t = 7332, env = "FAULTWIRE_PORT")]
    pub port: u16,
    /// What the upstream is called, and found under: /mcp/NAME [default: from CMD or URL]
    #[arg(long)]
    pub name: Option<String>,
    /// A server behind a URL, in place of a command
    #[arg(long, value_name = "URL", conflicts_with = "command", env = "FAULTWIRE_UPSTREAM")]
    pub upstream: Option<String>,
    /// A server's command and its arguments; without one, the bundled demo server
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}
