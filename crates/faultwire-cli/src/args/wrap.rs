//! What can be typed after `faultwire wrap`.

use std::ffi::OsString;

use clap::ValueEnum;

use crate::args::treatment::Treatment;

#[derive(clap::Args)]
#[command(after_help = include_str!("../../help/wrap.txt"))]
pub struct WrapArgs {
    #[command(flatten)]
    pub treatment: Treatment,
    /// What the server is called, in the log's place and in --print-config [default: from CMD]
    #[arg(long)]
    pub name: Option<String>,
    /// Print what to paste into a client's settings, and run nothing
    #[arg(long, value_enum, value_name = "CLIENT")]
    pub print_config: Option<Client>,
    /// The server and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// Whose settings.
#[derive(Clone, Copy, ValueEnum)]
pub enum Client {
    /// Claude Desktop and Claude Code: mcpServers
    Claude,
    /// Cursor: ~/.cursor/mcp.json
    Cursor,
    /// VS Code: .vscode/mcp.json
    Vscode,
    /// Codex: ~/.codex/config.toml
    Codex,
}
