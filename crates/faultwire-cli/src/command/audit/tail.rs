//! `audit tail`: the newest records, and new ones as they are written.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use faultwire::audit::{Disk, Extent, Reader, Summary};

use super::{broken, record};
use crate::Done;
use crate::args::audit::TailArgs;
use crate::edge;
use crate::problem::Problem;
use crate::style::plain;

/// How often a log that is followed is read.
const PAUSE: Duration = Duration::from_millis(200);

pub fn run(args: &TailArgs, json: bool) -> Result<Done, Problem> {
    let dir = args.place.log()?;
    super::expect_log(&dir)?;
    super::note_gaps(&dir);
    let disk = Disk::new(&dir);
    let (newest, at) = newest(&disk, args.lines)?;
    newest.iter().try_for_each(|line| print(line, json))?;
    let (true, Some(mut at)) = (args.follow, at) else { return Ok(Done::Fine) };
    loop {
        let mut fresh = Vec::new();
        let live = read(&mut at, |line| fresh.push(line.to_vec()))?;
        fresh.iter().try_for_each(|line| print(line, json))?;
        if !live {
            at.next_segment();
        } else if fresh.is_empty() {
            expect_directory(&dir)?;
            thread::sleep(PAUSE);
        }
    }
}

/// Between two segments the live one is missing for a moment; a missing directory is an error.
fn expect_directory(dir: &Path) -> Result<(), Problem> {
    if dir.exists() {
        return Ok(());
    }
    let help = "the log was removed or moved while it was being read";
    let gone = io::Error::from(io::ErrorKind::NotFound).to_string();
    Err(Problem::bad(&dir.display().to_string(), gone, help))
}

fn print(line: &[u8], json: bool) -> Result<(), Problem> {
    if json {
        return edge::print(&[line, b"\n"].concat());
    }
    match Summary::read(line) {
        Ok(summary) => edge::show(&record::line(&summary)),
        Err(_) => {
            edge::show(&format!("(not a record) {}\n", plain(&String::from_utf8_lossy(line))))
        }
    }
}

/// The last lines of the log, and a reader for what comes after them. Each segment is checked as a
/// whole before any of it is shown.
fn newest(disk: &Disk, count: usize) -> Result<(VecDeque<Vec<u8>>, Option<Reader<'_>>), Problem> {
    let extent = Extent::of(disk).map_err(broken)?;
    let mut numbers = extent.present.clone();
    let mut lines = VecDeque::new();
    let mut end = None;
    while lines.len() < count.max(1)
        && let Some(number) = numbers.pop()
    {
        let mut reader = Reader::new(disk, number).map_err(broken)?;
        let mut older = VecDeque::new();
        let missing = count - lines.len();
        let live = read(&mut reader, |line| keep(&mut older, line, missing))?;
        older.append(&mut lines);
        lines = older;
        if end.is_none() {
            extent.expect_all(&reader).map_err(broken)?;
            if !live {
                reader.next_segment();
            }
            end = Some(reader);
        }
    }
    Ok((lines, end))
}

/// Reads a segment to its present end. Returns whether more may follow.
fn read(reader: &mut Reader<'_>, mut each: impl FnMut(&[u8])) -> Result<bool, Problem> {
    let read = reader.read_segment(|line| {
        each(line.raw);
        Ok::<_, Infallible>(())
    });
    let Ok(live) = read.map_err(broken)?;
    Ok(live)
}

fn keep(lines: &mut VecDeque<Vec<u8>>, line: &[u8], count: usize) {
    lines.push_back(line.to_vec());
    if lines.len() > count {
        lines.pop_front();
    }
}
