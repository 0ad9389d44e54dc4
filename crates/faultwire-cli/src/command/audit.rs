//! `audit`: reads, checks and, for scripts, writes the log.

mod append;
mod export;
mod query;
mod record;
mod show;
mod tail;
mod verify;

use std::path::Path;
use std::{fs, io};

use faultwire::audit::{Disk, Finding, IndexError, Lines, Storage, legacy, segment, segments};

use crate::args::audit::AuditCommand;
use crate::problem::Problem;
use crate::{Done, edge};

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
        Problem::bad(&dir.display().to_string(), format!("cannot read the directory: {e}"), help)
    })?;
    let names = entries.filter_map(|e| e.ok()?.file_name().into_string().ok());
    let is_log = |name: String| name == segment::LIVE || segment::number(&name).is_some();
    if names.into_iter().any(is_log) {
        return expect_new_format(dir);
    }
    let help = "name a directory that contains audit-log.jsonl, or set FAULTWIRE_AUDIT";
    Err(Problem::bad(&dir.display().to_string(), "no audit log in this directory", help))
}

fn expect_new_format(dir: &Path) -> Result<(), Problem> {
    let file = dir.join(segment::LIVE);
    if first_line(&file)?.is_some_and(|line| legacy::is_legacy(&line)) {
        let help = "only `faultwire audit verify` reads the older format";
        return Err(Problem::bad(
            &file.display().to_string(),
            "the log is in the older format",
            help,
        ));
    }
    Ok(())
}

/// The first line of a file, if there is one.
fn first_line(file: &Path) -> Result<Option<Vec<u8>>, Problem> {
    let failed = |e: io::Error| {
        let help = "make sure that it is a regular file that you can read";
        Problem::bad(&file.display().to_string(), e.to_string(), help)
    };
    let (Some(dir), Some(name)) = (file.parent(), file.file_name().and_then(|n| n.to_str())) else {
        return Ok(None);
    };
    match Disk::new(dir).read(name) {
        Ok(opened) => {
            let mut lines = Lines::new(opened);
            let first = lines.next_line().map_err(failed)?;
            Ok(first.map(|line| line.raw.to_vec()))
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(failed(e)),
    }
}

/// The error for a log that fails verification.
fn broken(finding: Box<Finding>) -> Problem {
    IndexError::Broken(finding).into()
}

/// Notes segments that are missing between others.
fn note_gaps(dir: &Path) {
    let numbers = segments::present(&Disk::new(dir)).unwrap_or_default();
    for pair in numbers.windows(2).filter(|pair| pair[1] > pair[0] + 1) {
        let missing = pair[0] + 1;
        edge::complain(&format!(
            "note: segment {missing} is missing; run `faultwire audit verify` for details\n"
        ));
    }
}

/// The total size of the log's segments, in bytes.
fn size(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let is_segment = |name: &str| name == segment::LIVE || segment::number(name).is_some();
    let segments = entries.filter(|e| e.file_name().to_str().is_some_and(is_segment));
    segments.filter_map(|e| e.metadata().ok()).map(|m| m.len()).sum()
}
