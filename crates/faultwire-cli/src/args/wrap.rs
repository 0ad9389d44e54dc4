//! The arguments of `faultwire wrap`.

use std::ffi::OsString;

use clap::ValueEnum;

use crate::args::call_settings::CallSettings;

#[derive(clap::Args)]
#[command(after_help = include_str!("../../help/wrap.txt"))]
pub struct WrapArgs {
    #[command(flatten)]
    pub call_settings: CallSettings,
    /// The server's name, for its log and for --print-config [default: from CMD]
    #[arg(long)]
    pub name: Option<String>,
    /// Print what to paste into a client's settings, and exit
    #[arg(long, value_enum, value_name = "CLIENT")]
    pub print_config: Option<Client>,
    /// The server's command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// The client whose settings to print.
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
