//! What can be typed, and the help that teaches it.

pub mod audit;
pub mod serve;
pub mod treatment;
pub mod wrap;

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use faultwire_contract::{DEFAULT, Masks};

/// One error contract for every MCP tool failure.
#[derive(Parser)]
#[command(name = "faultwire", version, max_term_width = 100, after_help = include_str!("../help/faultwire.txt"), arg_required_else_help = true)]
pub struct Args {
    /// Print JSON; errors of our own become envelopes on stderr
    #[arg(long, global = true)]
    pub json: bool,

    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Run an MCP server behind a contract: every failure one envelope, recorded, in time
    Wrap(wrap::WrapArgs),
    /// See what a client sees of a failing server, without Faultwire and with it
    #[command(after_help = include_str!("../help/demo.txt"))]
    Demo,
    /// Run the bundled server, whose tools fail in every way there is
    #[command(after_help = include_str!("../help/demo-server.txt"))]
    DemoServer,
    /// Look at contracts, check them, compare them
    #[command(subcommand)]
    Contract(ContractCommand),
    /// Explain a code: meaning, retry, status, alert level, what to do, an example
    Explain(ExplainArgs),
    /// Turn a fault (JSON on stdin) into its envelope
    Render(RenderArgs),
    /// Turn an envelope (JSON on stdin) back into the fault
    Decode(DecodeArgs),
    /// Say of each line that a server sent whether it is a failure, and which
    Classify(ClassifyArgs),
    /// Take credentials, paths, stack frames and inner addresses out of a text
    Redact(RedactArgs),
    /// Decide whether a call that failed with this envelope is sent again, and when
    Retry(RetryArgs),
    /// Work with alerts
    #[command(subcommand)]
    Alerts(AlertsCommand),
    /// Read, check and write the audit log
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    /// Run the gateway: MCP over HTTP in front of any server, with the contract
    Serve(serve::ServeArgs),
    /// Print a completion script for your shell
    #[command(
        after_help = include_str!("../help/completions.txt")
    )]
    Completions {
        /// The shell
        shell: Shell,
    },
}

impl Command {
    /// The contract that the command speaks, where one was named.
    pub fn contract(&self) -> Option<&str> {
        match self {
            Self::Wrap(args) => args.treatment.contract.as_deref(),
            Self::Serve(args) => args.treatment.contract.as_deref(),
            Self::Render(args) => Some(&args.contract.contract),
            Self::Decode(args) => Some(&args.contract.contract),
            Self::Classify(args) => Some(&args.contract.contract),
            Self::Retry(args) => Some(&args.contract.contract),
            Self::Alerts(AlertsCommand::Replay { contract, .. }) => Some(&contract.contract),
            Self::Audit(audit::AuditCommand::Append(args)) => Some(&args.contract.contract),
            Self::Explain(args) => args.contract.as_deref(),
            Self::Redact(args) => args.contract.as_deref(),
            Self::Contract(_)
            | Self::Audit(_)
            | Self::Demo
            | Self::DemoServer
            | Self::Completions { .. } => None,
        }
    }
}

#[derive(Subcommand)]
pub enum ContractCommand {
    /// List the built-in contracts
    List,
    /// Show a contract: its codes and conditions; everything with --json
    #[command(
        after_help = include_str!("../help/show.txt")
    )]
    Show {
        /// A built-in name or a file
        contract: String,
    },
    /// Check contracts: every mistake with its line, and the contract's own tests
    #[command(
        after_help = include_str!("../help/lint.txt")
    )]
    Lint {
        /// Built-in names or files
        #[arg(required = true)]
        contracts: Vec<String>,
    },
    /// Compare two versions: breaking, additive or none, with reasons
    #[command(
        after_help = include_str!("../help/diff.txt")
    )]
    Diff {
        /// The published version: a built-in name or a file
        old: String,
        /// The version to come: a built-in name or a file
        new: String,
    },
    /// Print the JSON Schema (2020-12) of an envelope
    #[command(after_help = include_str!("../help/schema.txt"))]
    Schema(SchemaArgs),
}

/// Which contract.
#[derive(clap::Args)]
pub struct Contract {
    /// A built-in name or a file
    #[arg(long, short, value_name = "NAME_OR_FILE", default_value = DEFAULT, env = "FAULTWIRE_CONTRACT")]
    pub contract: String,
}

#[derive(clap::Args)]
pub struct SchemaArgs {
    /// A built-in name or a file
    pub contract: String,
    /// Which envelope
    #[arg(long, value_enum, default_value_t = SchemaSurface::Mcp)]
    pub surface: SchemaSurface,
    /// Which profile, where the contract has several
    #[arg(long)]
    pub profile: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum SchemaSurface {
    /// The envelope that an MCP client reads
    Mcp,
    /// The body that an HTTP client reads
    Http,
    /// The whole MCP result of a tool call
    Result,
    /// The envelope of successes, where the contract has one
    Success,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Surface {
    /// The envelope that an MCP client reads
    Mcp,
    /// The body that an HTTP client reads
    Http,
    /// The whole MCP result of a tool call
    Result,
}

#[derive(clap::Args)]
#[command(
    after_help = include_str!("../help/explain.txt")
)]
pub struct ExplainArgs {
    /// The code, as an envelope shows it
    pub code: String,
    /// Look only in this contract: a built-in name or a file
    #[arg(long, short, value_name = "NAME_OR_FILE", env = "FAULTWIRE_CONTRACT")]
    pub contract: Option<String>,
}

#[derive(clap::Args)]
#[command(
    after_help = include_str!("../help/render.txt")
)]
pub struct RenderArgs {
    #[command(flatten)]
    pub contract: Contract,
    /// Which envelope
    #[arg(long, value_enum, default_value_t = Surface::Mcp)]
    pub surface: Surface,
    /// Which profile, where the contract has several
    #[arg(long)]
    pub profile: Option<String>,
}

#[derive(clap::Args)]
#[command(
    after_help = include_str!("../help/decode.txt")
)]
pub struct DecodeArgs {
    #[command(flatten)]
    pub contract: Contract,
    /// Which envelope
    #[arg(long, value_enum, default_value_t = Surface::Mcp)]
    pub surface: Surface,
    /// Which profile; all are tried without it
    #[arg(long)]
    pub profile: Option<String>,
}

#[derive(clap::Args)]
#[command(
    after_help = include_str!("../help/classify.txt")
)]
pub struct ClassifyArgs {
    #[command(flatten)]
    pub contract: Contract,
    /// The request that the lines answer, as JSON or a file with it: what the client said itself
    /// decides no code
    #[arg(long, value_name = "REQUEST")]
    pub call: Option<String>,
    /// Also print the evidence, what of it was masked, and which rules were tried
    #[arg(long)]
    pub why: bool,
    /// The longest line that is taken apart
    #[arg(long, value_name = "BYTES", default_value_t = 16 * 1024 * 1024)]
    pub max_line: usize,
}

#[derive(clap::Args)]
#[command(after_help = include_str!("../help/redact.txt"))]
pub struct RedactArgs {
    /// Use the redaction rules of this file too
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// Keep these kinds of text: paths, addresses, frames, personal; several with commas
    #[arg(long, value_name = "KINDS", value_delimiter = ',', value_parser = kind)]
    pub keep: Vec<Masks>,
    /// Use this contract's own rules too: a built-in name or a file
    #[arg(long, short, value_name = "NAME_OR_FILE", env = "FAULTWIRE_CONTRACT")]
    pub contract: Option<String>,
}

#[derive(clap::Args)]
#[command(
    after_help = include_str!("../help/retry.txt")
)]
pub struct RetryArgs {
    #[command(flatten)]
    pub contract: Contract,
    /// Which attempt failed, from 1
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub attempt: u32,
    /// How many retries are left to spend; without limit when not given
    #[arg(long)]
    pub budget: Option<u32>,
    /// The tool changes nothing
    #[arg(long)]
    pub read_only: bool,
    /// Running the tool twice does the same as once
    #[arg(long)]
    pub idempotent: bool,
    /// Which envelope; all are tried without it
    #[arg(long, value_enum)]
    pub surface: Option<Surface>,
}

fn kind(name: &str) -> Result<Masks, String> {
    Masks::named(name).ok_or_else(|| format!("write one of {}", Masks::ALL))
}

#[derive(Subcommand)]
pub enum AlertsCommand {
    /// Read failures in order of time, one JSON a line, and print the pages they would have raised
    #[command(
        after_help = include_str!("../help/replay.txt")
    )]
    Replay {
        #[command(flatten)]
        contract: Contract,
        /// How many pairs of client and code are surely remembered
        #[arg(long, default_value_t = faultwire_contract::DEFAULT_CAPACITY)]
        capacity: usize,
    },
}
