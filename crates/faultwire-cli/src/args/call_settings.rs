//! Arguments that `wrap` and `serve` have in common: how calls are handled.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use faultwire_contract::DEFAULT;

use crate::config::span;

#[derive(clap::Args)]
pub struct CallSettings {
    #[arg(
        long,
        short,
        value_name = "NAME_OR_FILE",
        env = "FAULTWIRE_CONTRACT",
        help = format!("The contract: a built-in name or a file [default: {DEFAULT}]")
    )]
    pub contract: Option<String>,
    /// Which profile, if the contract has several
    #[arg(long, env = "FAULTWIRE_PROFILE")]
    pub profile: Option<String>,
    /// A settings file; flags and environment variables take precedence over it
    #[arg(long, value_name = "FILE", env = "FAULTWIRE_CONFIG")]
    pub config: Option<PathBuf>,
    /// How long a reply may take; each progress notification restarts the time [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = span, env = "FAULTWIRE_TIMEOUT")]
    pub timeout: Option<Duration>,
    /// How long a call may take in total, regardless of progress [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = span, env = "FAULTWIRE_MAX_TIMEOUT")]
    pub max_timeout: Option<Duration>,
    /// The timeout of one tool; can be given several times
    #[arg(long, value_name = "NAME=TIME", value_parser = tool_timeout)]
    pub tool_timeout: Vec<(String, Duration)>,
    /// What to do with arguments that do not match the tool's inputSchema [default: enforce]
    #[arg(long, value_enum, env = "FAULTWIRE_ARGUMENTS")]
    pub arguments: Option<Arguments>,
    /// What to do with results that do not match the tool's outputSchema [default: warn]
    #[arg(long, value_enum, env = "FAULTWIRE_OUTPUT")]
    pub output: Option<Output>,
    /// What to do with failures that the server reports as successes [default: auto]
    #[arg(long, value_enum, env = "FAULTWIRE_SOFT_FAILURES")]
    pub soft_failures: Option<SoftFailures>,
    /// Retry a failed call up to this many times if its code and the tool allow it [default: 0]
    #[arg(long, value_name = "TIMES", env = "FAULTWIRE_RETRY")]
    pub retry: Option<u32>,
    /// The audit log's directory [default: ~/.local/state/faultwire/audit/NAME]
    #[arg(long, value_name = "DIR", env = "FAULTWIRE_AUDIT")]
    pub audit: Option<PathBuf>,
    /// What to log to stderr [default: warn]
    #[arg(long, value_enum, value_name = "LEVEL", env = "FAULTWIRE_LOG")]
    pub log: Option<LogLevel>,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum Arguments {
    /// Refuse only names that a lenient parser could confuse with a declared property
    Off,
    /// Send them, and log a warning
    Warn,
    /// Refuse them before they reach the server
    Enforce,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum Output {
    /// Do not check them
    Off,
    /// Pass them on unchanged, and record them in the audit log
    Warn,
    /// Turn them into failures of the server
    Enforce,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum SoftFailures {
    /// Pass them on
    Off,
    /// Pass them on, and record them in the audit log
    Record,
    /// Turn those with an unambiguous shape into failures; pass on and record the others
    Auto,
    /// Turn all of them into failures
    Rewrite,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum LogLevel {
    Off,
    Error,
    Warn,
    Info,
    Debug,
}

fn tool_timeout(text: &str) -> Result<(String, Duration), String> {
    let (name, time) = text
        .split_once('=')
        .ok_or_else(|| format!("{text:?} is not NAME=TIME, such as search=5s"))?;
    Ok((name.to_owned(), span(time)?))
}
