//! `audit`: the log's reader, checker and, for scripts, writer.

mod append;
mod export;
mod query;
mod record;
mod show;
mod tail;
mod verify;

use std::fs;
use std::path::Path;

use faultwire::audit::segment;

use crate::Done;
use crate::args::audit::AuditCommand;
use crate::problem::Problem;

pub fn run(command: &AuditCommand, json: bool) -> Result<Done, Problem> {
    match command {
        AuditCommand::Verify(args) => verify::run(args, json),
        AuditCommand::Tail(args) => tail::run(args, json),
        AuditCommand::Query(args) => query::run(args, json),
        AuditCommand::Show(args) => show::run(args, json),
        AuditCommand::Export(args) => export::run(args),
        AuditCommand::Append(args) => append::run(args),
    }
}

/// Makes sure that there is a log to read.
fn expect_log(dir: &Path) -> Result<(), Problem> {
    let entries = fs::read_dir(dir).map_err(|e| {
        let help = "name the directory of an audit log, or set FAULTWIRE_AUDIT";
        Problem::bad(&dir.display().to_string(), e.to_string(), help)
    })?;
    let names = entries.filter_map(|e| e.ok()?.file_name().into_string().ok());
    let is_log = |name: String| name == segment::LIVE || segment::number(&name).is_some();
    if names.into_iter().any(is_log) {
        return Ok(());
    }
    let help = "name the directory that has an audit-log.jsonl in it, or set FAULTWIRE_AUDIT";
    Err(Problem::bad(&dir.display().to_string(), "there is no audit log here", help))
}

/// How many bytes the log's segments have.
fn size(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let is_segment = |name: &str| name == segment::LIVE || segment::number(name).is_some();
    let segments = entries.filter(|e| e.file_name().to_str().is_some_and(is_segment));
    segments.filter_map(|e| e.metadata().ok()).map(|m| m.len()).sum()
}
