//! `audit query`: matching failures as a table, JSON lines or CSV.

use std::borrow::Cow;
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

/// Matches are counted up to this number; an exact count beyond it is not worth the time.
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
        0 => "no matching failures\n".to_owned(),
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
        row(&mut writer, &cells.each_ref().map(|cell| inert(cell)).each_ref().map(|c| &**c))
    })?;
    let bytes =
        writer.into_inner().map_err(|e| Problem::Output(io::Error::other(e.to_string())))?;
    edge::print(&bytes)
}

/// A text that no spreadsheet reads as a formula. A text that could be one, or that begins with an
/// apostrophe, gets an apostrophe before it; to read it back, remove the first apostrophe of every
/// cell that begins with one.
fn inert(cell: &str) -> Cow<'_, str> {
    const FORMULA: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];
    let skipped = |c: char| c.is_whitespace() || c.is_control() || is_invisible(c);
    let formula = cell.trim_start_matches(skipped).starts_with(FORMULA);
    // Some programs read a cell that begins with a control character as part of the one before.
    let steers = cell.starts_with(|c: char| c.is_control());
    if formula || steers || cell.starts_with('\'') {
        Cow::Owned(format!("'{cell}"))
    } else {
        Cow::Borrowed(cell)
    }
}

/// Characters without width, which a spreadsheet may remove before it reads a cell.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::inert;

    #[test]
    fn x5_no_cell_is_a_formula() {
        for start in ["=", "+", "-", "@", "＝", "＋", "－", "＠"] {
            for before in
                ["", " ", "\t", "\r", "\n", "\r\n", "\u{a0}", "\u{3000}", "\u{feff}", "\0"]
            {
                let cell = format!("{before}{start}cmd|' /C calc'!A0");
                assert_eq!(inert(&cell), format!("'{cell}"));
            }
        }
        for plain in ["", "search", "2026-01-19T15:32:10.123Z", "a=b", "inc_1", "x -1"] {
            assert_eq!(inert(plain), plain);
        }
    }

    #[test]
    fn x5_what_was_made_inert_can_be_read_back() {
        for cell in ["=1", "'=1", "'", "''", "\t=1", "plain", "", "it's"] {
            let written = inert(cell);
            assert_eq!(written.strip_prefix('\'').unwrap_or(&written), cell);
        }
    }
}
