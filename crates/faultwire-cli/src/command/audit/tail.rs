//! `audit tail`: the newest records, and those that come.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use faultwire::audit::{Disk, Lines, Shape, Summary, segments};

use super::record;
use crate::Done;
use crate::args::audit::TailArgs;
use crate::edge;
use crate::problem::Problem;
use crate::style::plain;

/// How often a log that is followed is looked at.
const PAUSE: Duration = Duration::from_millis(200);

pub fn run(args: &TailArgs, json: bool) -> Result<Done, Problem> {
    let dir = args.place.log()?;
    super::expect_log(&dir)?;
    super::note_gaps(&dir);
    let failed = |e: io::Error| {
        let help = "it was there before: look who removed or changed it";
        Problem::bad(&dir.display().to_string(), e.to_string(), help)
    };
    let (newest, mut at) = newest(&dir, args.lines).map_err(failed)?;
    newest.iter().try_for_each(|line| print(line, json))?;
    if !args.follow {
        return Ok(Done::Fine);
    }
    loop {
        let mut fresh = Vec::new();
        at.read_on(&dir, &mut |line| fresh.push(line.to_vec())).map_err(failed)?;
        fresh.iter().try_for_each(|line| print(line, json))?;
        if fresh.is_empty() {
            thread::sleep(PAUSE);
        }
    }
}

fn print(line: &[u8], json: bool) -> Result<(), Problem> {
    if json {
        return edge::print(&[line, b"\n"].concat());
    }
    match Summary::read(line) {
        Ok(summary) => edge::show(&record::line(&summary)),
        Err(_) => edge::show(&format!("(no record) {}\n", plain(&String::from_utf8_lossy(line)))),
    }
}

/// The last lines of the log, and where it goes on after them.
fn newest(dir: &Path, count: usize) -> io::Result<(VecDeque<Vec<u8>>, Position)> {
    let mut numbers = segments::present(&Disk::new(dir))?;
    let last = numbers.pop().unwrap_or(1);
    let mut lines = VecDeque::new();
    let mut at = Position { segment: last, offset: 0 };
    at.read_on(dir, &mut |line| keep(&mut lines, line, count))?;
    while lines.len() < count
        && let Some(number) = numbers.pop()
    {
        let mut older = VecDeque::new();
        let missing = count - lines.len();
        let mut before = Position { segment: number, offset: 0 };
        before.read_segment(dir, &mut |line| keep(&mut older, line, missing))?;
        older.append(&mut lines);
        lines = older;
    }
    Ok((lines, at))
}

fn keep(lines: &mut VecDeque<Vec<u8>>, line: &[u8], count: usize) {
    lines.push_back(line.to_vec());
    if lines.len() > count {
        lines.pop_front();
    }
}

/// How far a log was read.
struct Position {
    segment: u64,
    offset: u64,
}

impl Position {
    /// Reads what has come since, into the segments that were begun meanwhile.
    fn read_on(&mut self, dir: &Path, each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        while !self.read_segment(dir, each)? {
            self.segment += 1;
            self.offset = 0;
        }
        Ok(())
    }

    /// Reads the segment from here to its end. Tells whether more may come.
    fn read_segment(&mut self, dir: &Path, each: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        let disk = Disk::new(dir);
        let opened = segments::open_at(&disk, self.segment, self.offset)?;
        let Some(segment) = opened else {
            // Between two segments there is no live one for a moment; a log that is gone is gone.
            return if dir.exists() { Ok(true) } else { Err(io::ErrorKind::NotFound.into()) };
        };
        let live = segment.is_live();
        let mut lines = Lines::starting_at(segment.file, self.offset);
        while let Some(line) = lines.next_line()? {
            match line.shape {
                Shape::Unfinished => break,
                Shape::Whole => each(line.raw),
                Shape::TooLong => each(b"(a line longer than any record)"),
            }
            self.offset = lines.offset();
        }
        Ok(live)
    }
}
