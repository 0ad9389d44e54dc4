//! Lines of a file, as they are on disk, in bounded memory.

use std::io::{self, Read};

use crate::audit::line::LONGEST_LINE;

/// Reads a file line by line.
pub struct Lines<R> {
    input: R,
    buffer: Vec<u8>,
    /// What of the buffer is not handed out yet.
    from: usize,
    to: usize,
    /// Where in the file that begins.
    offset: u64,
    number: u64,
}

/// One line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// Its bytes, without the newline.
    pub raw: &'a [u8],
    /// Where in the file it begins.
    pub offset: u64,
    /// Which line of the file it is, from 1.
    pub number: u64,
    /// Whether it is a whole line.
    pub shape: Shape,
}

/// Whether a line is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// It ends with a newline.
    Whole,
    /// The file ends before the line does.
    Unfinished,
    /// It is longer than any record, and its bytes are not given.
    TooLong,
}

const CHUNK: usize = 256 * 1024;

impl<R: Read> Lines<R> {
    /// From the beginning of a file.
    pub fn new(input: R) -> Self {
        Self { input, buffer: Vec::new(), from: 0, to: 0, offset: 0, number: 0 }
    }

    /// The same for a reader that is already at `offset`.
    pub fn starting_at(input: R, offset: u64) -> Self {
        Self { offset, ..Self::new(input) }
    }

    /// Where the next line begins.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The next line.
    pub fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        let mut searched = 0;
        loop {
            let have = &self.buffer[self.from..self.to];
            if let Some(at) = memchr::memchr(b'\n', &have[searched..]) {
                let len = searched + at;
                if len >= LONGEST_LINE {
                    return self.skip_long().map(Some);
                }
                return Ok(Some(self.hand_out(len, 1, Shape::Whole)));
            }
            searched = have.len();
            if searched >= LONGEST_LINE {
                return self.skip_long().map(Some);
            }
            if self.fill()? == 0 {
                return Ok((searched > 0).then(|| self.hand_out(searched, 0, Shape::Unfinished)));
            }
        }
    }

    fn hand_out(&mut self, len: usize, newline: usize, shape: Shape) -> Line<'_> {
        let (from, offset) = (self.from, self.offset);
        self.from += len + newline;
        self.offset += (len + newline) as u64;
        self.number += 1;
        Line { raw: &self.buffer[from..from + len], offset, number: self.number, shape }
    }

    /// Reads over a line that is longer than any record.
    fn skip_long(&mut self) -> io::Result<Line<'_>> {
        let offset = self.offset;
        self.number += 1;
        loop {
            let have = &self.buffer[self.from..self.to];
            let end = memchr::memchr(b'\n', have);
            let over = end.map_or(have.len(), |at| at + 1);
            self.from += over;
            self.offset += over as u64;
            if end.is_some() || self.fill()? == 0 {
                break;
            }
        }
        Ok(Line { raw: &[], offset, number: self.number, shape: Shape::TooLong })
    }

    fn fill(&mut self) -> io::Result<usize> {
        self.buffer.copy_within(self.from..self.to, 0);
        self.to -= self.from;
        self.from = 0;
        if self.buffer.len() < self.to + CHUNK {
            self.buffer.resize(self.to + CHUNK, 0);
        }
        loop {
            match self.input.read(&mut self.buffer[self.to..]) {
                Ok(read) => {
                    self.to += read;
                    return Ok(read);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }
}
