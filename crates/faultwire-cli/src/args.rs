//! The command line's arguments and their help.

pub mod audit;
pub mod call_settings;
pub mod serve;
pub mod wrap;

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use faultwire_contract::{DEFAULT, Masks};

/// One error contract for every MCP tool failure.
#[derive(Parser)]
#[command(name = "faultwire", version, max_term_width = 100, after_help = include_str!("../help/faultwire.txt"), arg_required_else_help = true)]
pub struct Args {
    /// Print JSON; errors are printed to stderr as envelopes
    #[arg(long, global = true)]
    pub json: bool,

    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Run an MCP server behind a contract: each failure becomes one recorded envelope
    Wrap(wrap::WrapArgs),
    /// Show what a client sees of a failing server, without and with Faultwire
    #[command(after_help = include_str!("../help/demo.txt"))]
    Demo,
    /// Run the bundled demo server, whose tools fail in many ways
    #[command(after_help = include_str!("../help/demo-server.txt"))]
    DemoServer,
    /// Create, show, check and compare contracts
    #[command(subcommand)]
    Contract(ContractCommand),
    /// Explain a code: meaning, retry, status, alert level, what to do, an example
    Explain(ExplainArgs),
    /// Turn a fault (JSON on stdin) into its envelope
    Render(RenderArgs),
    /// Turn an envelope (JSON on stdin) back into the fault
    Decode(DecodeArgs),
    /// Classify each line that a server sent: a success, or which failure
    Classify(ClassifyArgs),
    /// Remove credentials, paths, stack frames, addresses and personal data from a text
    Redact(RedactArgs),
    /// Decide whether and when to retry a call that failed with this envelope
    Retry(RetryArgs),
    /// Test a contract's alert rules
    #[command(subcommand)]
    Alerts(AlertsCommand),
    /// Read, check and write the audit log
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    /// Run the gateway: MCP over HTTP in front of one or more servers, behind a contract
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
    /// The contract that the command uses, if one was named.
    pub fn contract(&self) -> Option<&str> {
        match self {
            Self::Wrap(args) => args.call_settings.contract.as_deref(),
            Self::Serve(args) => args.call_settings.contract.as_deref(),
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
    /// Write a commented contract file to start from; it loads without changes
    #[command(after_help = include_str!("../help/new.txt"))]
    New(NewArgs),
    /// List the built-in contracts
    List,
    /// Show a contract's codes and conditions; with --json, everything
    #[command(
        after_help = include_str!("../help/show.txt")
    )]
    Show {
        /// A built-in name or a file
        contract: String,
    },
    /// Check contracts: report every mistake with its line, and run the contracts' own tests
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
        /// The new version: a built-in name or a file
        new: String,
    },
    /// Print the JSON Schema (2020-12) of an envelope
    #[command(after_help = include_str!("../help/schema.txt"))]
    Schema(SchemaArgs),
    /// Generate a module with a typed constructor for each code
    #[command(after_help = include_str!("../help/generate.txt"))]
    Generate(GenerateArgs),
}

/// Which contract.
#[derive(clap::Args)]
pub struct Contract {
    /// A built-in name or a file
    #[arg(long, short, value_name = "NAME_OR_FILE", default_value = DEFAULT, env = "FAULTWIRE_CONTRACT")]
    pub contract: String,
}

#[derive(clap::Args)]
pub struct NewArgs {
    /// The contract's name: lower-case letters, digits and -
    pub name: String,
    /// The file to write, or - for stdout [default: NAME.toml in the current directory]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long)]
    pub force: bool,
}

#[derive(clap::Args)]
pub struct GenerateArgs {
    /// The language of the module
    #[arg(value_enum)]
    pub language: Language,
    #[command(flatten)]
    pub contract: Contract,
    /// The file to write [default: stdout]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The module with the package's classes, if the package has another name
    #[arg(long, value_name = "MODULE", default_value = "faultwire")]
    pub import: String,
    /// Write nothing; exit with 1 if the file differs from the contract
    #[arg(long, requires = "output")]
    pub check: bool,
}

/// A language that a module can be generated for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Language {
    /// A module of TypeScript, for the npm package faultwire
    Typescript,
    /// A module of Python, for the PyPI package faultwire
    Python,
}

impl Language {
    pub fn name(self) -> &'static str {
        match self {
            Self::Typescript => "typescript",
            Self::Python => "python",
        }
    }
}

#[derive(clap::Args)]
pub struct SchemaArgs {
    /// A built-in name or a file
    pub contract: String,
    /// Which envelope
    #[arg(long, value_enum, default_value_t = SchemaSurface::Mcp)]
    pub surface: SchemaSurface,
    /// Which profile, if the contract has several
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
    /// The envelope of successes, if the contract has one
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

impl From<Surface> for faultwire::json::View {
    fn from(surface: Surface) -> Self {
        match surface {
            Surface::Mcp => Self::Mcp,
            Surface::Http => Self::Http,
            Surface::Result => Self::Result,
        }
    }
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
    /// Which profile, if the contract has several
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
    /// Which profile [default: all are tried]
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
    /// The request that the lines answer, as JSON or as a file: words that only repeat the request
    /// do not decide the code
    #[arg(long, value_name = "REQUEST")]
    pub call: Option<String>,
    /// Also print the evidence, which parts of it were masked, and which rules were tried
    #[arg(long)]
    pub why: bool,
    /// The longest line to classify; a longer line is a failure
    #[arg(long, value_name = "BYTES", default_value_t = 16 * 1024 * 1024)]
    pub max_line: usize,
}

#[derive(clap::Args)]
#[command(after_help = include_str!("../help/redact.txt"))]
pub struct RedactArgs {
    /// Use the redaction rules of this file too
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// Kinds of text to keep: paths, addresses, frames, personal; separate several with commas
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
    /// Which attempt failed, counted from 1
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub attempt: u32,
    /// How many retries are left in the budget [default: no limit]
    #[arg(long)]
    pub budget: Option<u32>,
    /// The tool only reads
    #[arg(long)]
    pub read_only: bool,
    /// Running the tool twice has the same effect as running it once
    #[arg(long)]
    pub idempotent: bool,
    /// Which envelope [default: all are tried]
    #[arg(long, value_enum)]
    pub surface: Option<Surface>,
}

fn kind(name: &str) -> Result<Masks, String> {
    Masks::named(name).ok_or_else(|| format!("expected one of {}", Masks::ALL))
}

#[derive(Subcommand)]
pub enum AlertsCommand {
    /// Read failures in order of time, one JSON object per line, and print the pages they raise
    #[command(
        after_help = include_str!("../help/replay.txt")
    )]
    Replay {
        #[command(flatten)]
        contract: Contract,
        /// How many pairs of client and code are guaranteed to be remembered
        #[arg(long, default_value_t = faultwire_contract::DEFAULT_CAPACITY)]
        capacity: usize,
    },
}
