//! How calls are treated: what `wrap` and `serve` have in common.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use faultwire_contract::DEFAULT;

use crate::config::span;

#[derive(clap::Args)]
pub struct Treatment {
    #[arg(
        long,
        short,
        value_name = "NAME_OR_FILE",
        env = "FAULTWIRE_CONTRACT",
        help = format!("Under which contract: a built-in name or a file [default: {DEFAULT}]")
    )]
    pub contract: Option<String>,
    /// Which profile, where the contract has several
    #[arg(long, env = "FAULTWIRE_PROFILE")]
    pub profile: Option<String>,
    /// Settings in a file; flags and environment go before it
    #[arg(long, value_name = "FILE", env = "FAULTWIRE_CONFIG")]
    pub config: Option<PathBuf>,
    /// How long an answer may take; progress starts it anew [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = span, env = "FAULTWIRE_TIMEOUT")]
    pub timeout: Option<Duration>,
    /// The most that progress can stretch that to [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = span, env = "FAULTWIRE_MAX_TIMEOUT")]
    pub max_timeout: Option<Duration>,
    /// The same for one tool; can be given again
    #[arg(long, value_name = "NAME=TIME", value_parser = tool_timeout)]
    pub tool_timeout: Vec<(String, Duration)>,
    /// What happens to arguments that do not fit the tool's schema [default: enforce]
    #[arg(long, value_enum, env = "FAULTWIRE_ARGUMENTS")]
    pub arguments: Option<Arguments>,
    /// What becomes of failures that the server calls a success [default: auto]
    #[arg(long, value_enum, env = "FAULTWIRE_SOFT_FAILURES")]
    pub soft_failures: Option<SoftFailures>,
    /// Send a failed call again, so often, where its code and the tool allow it [default: 0]
    #[arg(long, value_name = "TIMES", env = "FAULTWIRE_RETRY")]
    pub retry: Option<u32>,
    /// The audit log's directory [default: ~/.local/state/faultwire/audit/NAME]
    #[arg(long, value_name = "DIR", env = "FAULTWIRE_AUDIT")]
    pub audit: Option<PathBuf>,
    /// What is told on stderr [default: warn]
    #[arg(long, value_enum, value_name = "LEVEL", env = "FAULTWIRE_LOG")]
    pub log: Option<LogLevel>,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum Arguments {
    /// Only names that a lenient parser takes for a declared property are refused
    Off,
    /// They are sent, and stderr tells of it
    Warn,
    /// They are refused before the server sees them
    Enforce,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum SoftFailures {
    /// They pass
    Off,
    /// They pass, and are recorded in the audit log
    Record,
    /// Those whose shape leaves no doubt are failures; the others pass, and are recorded
    Auto,
    /// All of them are failures
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
    let (name, time) =
        text.split_once('=').ok_or_else(|| format!("{text:?} is not NAME=TIME, as search=5s"))?;
    Ok((name.to_owned(), span(time)?))
}
