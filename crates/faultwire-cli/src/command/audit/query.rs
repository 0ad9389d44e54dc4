//! `audit query`: failures that fit, as a table, JSON lines or CSV.

use std::io;
use std::path::Path;

use faultwire::audit::{Filter, Index, Summary};

use super::record::{COLUMNS, cells};
use crate::Done;
use crate::args::audit::{Moment, QueryArgs, Wanted};
use crate::edge;
use crate::problem::Problem;
use crate::progress::Progress;
use crate::style::{DIM, paint, table};

/// Nobody needs to know exactly how many more there are.
const COUNT_TO: u64 = 100_000;

pub fn run(args: &QueryArgs, json: bool) -> Result<Done, Problem> {
    let dir = args.place.log()?;
    let index = open(&dir)?;
    let filter = filter(&args.wanted);
    let limit = (args.limit > 0).then_some(args.limit);
    if json {
        index.find(&filter, limit, |line| edge::print(&[line, b"\n"].concat()))?;
        return Ok(Done::Fine);
    }
    if args.csv {
        csv(&index, &filter, limit)?;
        return Ok(Done::Fine);
    }
    let mut rows = vec![COLUMNS.map(str::to_owned).to_vec()];
    index.find::<Problem>(&filter, limit, |line| {
        rows.extend(Summary::read(line).ok().as_ref().map(cells));
        Ok(())
    })?;
    let (shown, all) = (rows.len() as u64 - 1, index.count(&filter, COUNT_TO)?);
    let mut text = if shown > 0 { table(&rows) } else { String::new() };
    text += &match all {
        0 => "no failure fits\n".to_owned(),
        COUNT_TO if shown < all => {
            paint(DIM, &format!("the newest {shown} of {COUNT_TO} or more; --limit 0 shows all\n"))
        }
        _ if shown < all => {
            paint(DIM, &format!("the newest {shown} of {all}; --limit 0 shows all\n"))
        }
        _ => paint(DIM, &format!("{all} in all\n")),
    };
    edge::show(&text)?;
    Ok(Done::Fine)
}

/// The index of the log, brought up to date.
pub fn open(dir: &Path) -> Result<Index, Problem> {
    super::expect_log(dir)?;
    let mut progress = Progress::over_bytes(super::size(dir), "reading the log");
    let index = Index::open(dir, &mut |read| progress.advance(read));
    progress.finish();
    let index = index?;
    super::note_gaps(dir);
    if index.skipped() > 0 {
        let n = index.skipped();
        edge::complain(&format!(
            "note: {n} lines are no records; `faultwire audit verify` tells more\n"
        ));
    }
    Ok(index)
}

fn filter(wanted: &Wanted) -> Filter {
    Filter {
        since_ms: wanted.since.map(Moment::ms),
        until_ms: wanted.until.map(Moment::ms),
        kind: Some("fault".to_owned()),
        code: wanted.code.clone(),
        client: wanted.client.clone(),
        tool: wanted.tool.clone(),
        origin: wanted.origin.clone(),
        outcome: wanted.outcome.clone(),
        incident: wanted.incident.clone(),
        seq: None,
    }
}

fn csv(index: &Index, filter: &Filter, limit: Option<u64>) -> Result<(), Problem> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let row = |writer: &mut csv::Writer<Vec<u8>>, cells: &[&str]| {
        writer.write_record(cells).map_err(|e| Problem::Output(io::Error::other(e)))
    };
    let heads = [
        "seq", "time", "contract", "code", "tool", "client", "origin", "outcome", "incident",
        "message",
    ];
    row(&mut writer, &heads)?;
    index.find(filter, limit, |line| {
        let Ok(s) = Summary::read(line) else { return Ok(()) };
        let cell = |value: Option<&str>| value.unwrap_or_default().to_owned();
        let cells = [
            s.seq.to_string(),
            s.ts.to_string(),
            cell(s.contract.as_deref()),
            cell(s.code()),
            cell(s.tool()),
            cell(s.client()),
            cell(s.origin()),
            cell(s.outcome()),
            cell(s.incident()),
            cell(s.message()),
        ];
        row(&mut writer, &cells.each_ref().map(String::as_str))
    })?;
    let bytes =
        writer.into_inner().map_err(|e| Problem::Output(io::Error::other(e.to_string())))?;
    edge::print(&bytes)
}
