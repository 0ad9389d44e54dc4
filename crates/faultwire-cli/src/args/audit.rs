//! The arguments of `faultwire audit`.

use std::path::{Path, PathBuf};

use clap::{Subcommand, ValueEnum};
use faultwire::audit::segment;

use super::Contract;
use crate::edge;
use crate::problem::Problem;

#[derive(Subcommand)]
pub enum AuditCommand {
    /// Check every record and signature; report the first bad line
    Verify(VerifyArgs),
    /// Show the newest records, and new ones as they are written
    Tail(TailArgs),
    /// Find failures by time, code, client, tool, origin or incident
    Query(QueryArgs),
    /// Show everything that is known about one failure
    Show(ShowArgs),
    /// Print failures as OCSF or ECS events, one JSON object per line
    Export(ExportArgs),
    /// Record faults (JSON on stdin, one per line) and print the answer to each once it is on disk
    Append(AppendArgs),
}

/// Which log.
#[derive(clap::Args)]
pub struct LogLocation {
    /// The log's directory, or the name of a wrapped server
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
    /// The log's directory, if DIR is not given [default: the only log in ~/.local/state/faultwire/audit; for append, the log named append there]
    #[arg(long, value_name = "DIR", env = "FAULTWIRE_AUDIT")]
    audit: Option<PathBuf>,
}

impl LogLocation {
    /// The log to write: the directory that was named, or `append` in the default one.
    pub fn to_write(&self) -> PathBuf {
        let named = self.dir.as_ref().or(self.audit.as_ref());
        named.cloned().unwrap_or_else(|| edge::audit_dir().join("append"))
    }

    /// The log to read: the one that was named, by its directory or by its server; otherwise the
    /// only one in the default directory.
    pub fn log(&self) -> Result<PathBuf, Problem> {
        let usual = edge::audit_dir();
        if let Some(named) = self.dir.as_ref().or(self.audit.as_ref()) {
            let below = usual.join(named);
            let is_name = named.components().count() == 1 && !is_log(named) && is_log(&below);
            return Ok(if is_name { below } else { named.clone() });
        }
        if is_log(&usual) {
            return Ok(usual);
        }
        let below = std::fs::read_dir(&usual).into_iter().flatten().flatten();
        let mut names: Vec<String> = below
            .filter(|entry| is_log(&entry.path()))
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        match &names[..] {
            [] => Ok(usual),
            [only] => Ok(usual.join(only)),
            several => {
                let what = format!("the directory has {} logs", several.len());
                let help = format!("name one: {}", names.join(", "));
                Err(Problem::bad(&usual.display().to_string(), what, help))
            }
        }
    }
}

fn is_log(dir: &Path) -> bool {
    dir.join(segment::LIVE).exists()
}

#[derive(clap::Args)]
#[command(after_help = include_str!("../../help/audit-verify.txt"))]
pub struct VerifyArgs {
    #[command(flatten)]
    pub place: LogLocation,
    /// The public key that the signatures must match: a file, or the key itself
    #[arg(long, value_name = "FILE_OR_KEY")]
    pub key: Option<String>,
    /// Older segments may have been moved away
    #[arg(long)]
    pub archived: bool,
}

#[derive(clap::Args)]
#[command(after_help = include_str!("../../help/audit-tail.txt"))]
pub struct TailArgs {
    #[command(flatten)]
    pub place: LogLocation,
    /// How many records
    #[arg(long, short = 'n', value_name = "N", default_value_t = 10)]
    pub lines: usize,
    /// Keep running and show new records as they are written
    #[arg(long, short)]
    pub follow: bool,
}

/// The filters of a query.
#[derive(clap::Args)]
pub struct Wanted {
    /// Recorded at or after this time: 2026-01-19, 2026-01-19T15:32:10Z, or an age such as 90s, 15m, 2h, 7d
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub since: Option<Moment>,
    /// Recorded before this time, in the same form
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub until: Option<Moment>,
    /// The code; * stands for anything
    #[arg(long)]
    pub code: Option<String>,
    /// The client; * stands for anything
    #[arg(long)]
    pub client: Option<String>,
    /// The tool; * stands for anything
    #[arg(long)]
    pub tool: Option<String>,
    /// Where the failure came from
    #[arg(long, value_parser = ["client", "gateway", "upstream", "policy"])]
    pub origin: Option<String>,
    /// How far the call got
    #[arg(long, value_parser = ["not_sent", "maybe_executed", "executed"])]
    pub outcome: Option<String>,
    /// The incident; * stands for anything
    #[arg(long)]
    pub incident: Option<String>,
}

#[derive(clap::Args)]
#[command(after_help = include_str!("../../help/audit-query.txt"))]
pub struct QueryArgs {
    #[command(flatten)]
    pub place: LogLocation,
    #[command(flatten)]
    pub wanted: Wanted,
    /// At most this many, the newest; 0 for all
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub limit: u64,
    /// Print CSV
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
}

#[derive(clap::Args)]
#[command(after_help = include_str!("../../help/audit-show.txt"))]
pub struct ShowArgs {
    /// The incident, as the envelope shows it, or the number of a record
    pub incident: String,
    #[command(flatten)]
    pub place: LogLocation,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Open Cybersecurity Schema Framework, API Activity
    Ocsf,
    /// Elastic Common Schema
    Ecs,
}

#[derive(clap::Args)]
#[command(after_help = include_str!("../../help/audit-export.txt"))]
pub struct ExportArgs {
    #[command(flatten)]
    pub place: LogLocation,
    /// The format of the events
    #[arg(long, value_enum, default_value_t = Format::Ocsf)]
    pub format: Format,
    /// Recorded at or after this time: 2026-01-19, 2026-01-19T15:32:10Z, or an age such as 90s, 15m, 2h, 7d
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub since: Option<Moment>,
    /// Recorded before this time, in the same form
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub until: Option<Moment>,
}

#[derive(clap::Args)]
#[command(after_help = include_str!("../../help/audit-append.txt"))]
pub struct AppendArgs {
    #[command(flatten)]
    pub place: LogLocation,
    #[command(flatten)]
    pub contract: Contract,
    /// The file with the signing key [default: a new key in the log's directory]
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Close a segment at this size
    #[arg(long, value_name = "BYTES", default_value_t = 16 * 1024 * 1024)]
    pub segment_bytes: u64,
    /// Sign a checkpoint after this many records
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..))]
    pub checkpoint_every: u64,
    /// How many faults may wait for the disk at once; with 1, each is answered before the next is read
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u16).range(1..))]
    pub in_flight: u16,
    /// Answer faults even if they cannot be recorded, and record their number later
    #[arg(long)]
    pub fail_open: bool,
}

/// A time as it was typed.
#[derive(Clone, Copy, Debug)]
pub enum Moment {
    /// Milliseconds since the epoch.
    At(i64),
    /// Milliseconds ago.
    Ago(i64),
}

impl Moment {
    /// Milliseconds since the epoch.
    pub fn ms(self) -> i64 {
        match self {
            Self::At(ms) => ms,
            Self::Ago(ms) => edge::now_ms().saturating_sub(ms),
        }
    }
}

fn moment(text: &str) -> Result<Moment, String> {
    if let Ok(moment) = text.parse::<jiff::Timestamp>() {
        return Ok(Moment::At(moment.as_millisecond()));
    }
    let midnight = format!("{text}T00:00:00Z");
    if let Ok(moment) = midnight.parse::<jiff::Timestamp>() {
        return Ok(Moment::At(moment.as_millisecond()));
    }
    let (number, unit) = text.split_at(text.len() - text.chars().last().map_or(0, char::len_utf8));
    let factor = match unit {
        "s" => 1000,
        "m" => 60 * 1000,
        "h" => 60 * 60 * 1000,
        "d" => 24 * 60 * 60 * 1000,
        _ => 0,
    };
    let ms = number.parse::<u32>().ok().filter(|_| factor > 0).map(|n| i64::from(n) * factor);
    ms.map(Moment::Ago).ok_or_else(|| {
        "expected a date (2026-01-19), a time (2026-01-19T15:32:10Z) or an age (15m)".to_owned()
    })
}
