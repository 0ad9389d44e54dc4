//! `audit export`: failures as OCSF or ECS events, one JSON object per line.

use faultwire::audit::{Dialect, Disk, Summary, each_line, export};
use serde_json::Value;

use crate::Done;
use crate::args::audit::{ExportArgs, Format, Moment};
use crate::edge;
use crate::problem::Problem;

pub fn run(args: &ExportArgs) -> Result<Done, Problem> {
    let dir = args.place.log()?;
    super::expect_log(&dir)?;
    super::note_gaps(&dir);
    let dialect = match args.format {
        Format::Ocsf => Dialect::Ocsf,
        Format::Ecs => Dialect::Ecs,
    };
    let (since, until) = (args.since.map(Moment::ms), args.until.map(Moment::ms));
    let mut skipped = 0;
    let all = each_line(&Disk::new(&dir), |line| {
        let Ok(record) = serde_json::from_slice::<Value>(line) else {
            skipped += 1;
            return Ok(());
        };
        let at = Summary::read(line).ok().and_then(|s| s.ts.parse().ok());
        let at = at.map(jiff::Timestamp::as_millisecond);
        let early = since.is_some_and(|since| at.is_none_or(|at| at < since));
        let late = until.is_some_and(|until| at.is_none_or(|at| at >= until));
        match export(&record, &String::from_utf8_lossy(line), dialect) {
            Some(event) if !early && !late => edge::print(format!("{event}\n").as_bytes()),
            _ => Ok(()),
        }
    });
    all.map_err(super::broken)??;
    if skipped > 0 {
        edge::complain(&format!(
            "note: skipped {skipped} lines that are not records; run `faultwire audit verify` for details\n"
        ));
    }
    Ok(Done::Fine)
}
