//! The arguments of `faultwire serve`.

use std::ffi::OsString;
use std::net::IpAddr;

use crate::args::call_settings::CallSettings;

#[derive(clap::Args)]
#[command(after_help = include_str!("../../help/serve.txt"))]
pub struct ServeArgs {
    #[command(flatten)]
    pub call_settings: CallSettings,
    /// The address to listen on [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS", env = "FAULTWIRE_HOST")]
    pub host: Option<IpAddr>,
    /// The port to listen on; 0 chooses a free one [default: 7332]
    #[arg(long, env = "FAULTWIRE_PORT")]
    pub port: Option<u16>,
    /// The upstream's name; it is served at /mcp/NAME [default: from CMD or URL]
    #[arg(long)]
    pub name: Option<String>,
    /// The URL of a server, instead of a command
    #[arg(long, value_name = "URL", conflicts_with = "command", env = "FAULTWIRE_UPSTREAM")]
    pub upstream: Option<String>,
    /// Send a span of every call to this OTLP collector, such as http://127.0.0.1:4318
    #[arg(long, value_name = "URL", env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    pub otlp: Option<String>,
    /// The server's command and its arguments [default: the bundled demo server]
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}
