//! Newline framing, bounded. Lines are handed out as places in the buffer, so that what passes
//! through is written from where it was read.

use std::io::{self, Read};
use std::ops::Range;

/// What the buffer has room for when nothing is long.
const ROOM: usize = 64 * 1024;
/// From here on a line is given all the room that it may need.
const LONG: usize = 1024 * 1024;
/// By how much it gets longer then.
const STEP: usize = 4 * ROOM;
/// How much of an overlong line is kept from its beginning, and from its end.
const KEPT: usize = 4 * 1024;

/// So many lines are passed on together, even if more are there: the other side can begin with
/// them meanwhile.
pub(crate) const LINES_TOGETHER: usize = 16;

/// Bytes that came, and how far they were taken apart.
///
/// ```
/// use faultwire_gateway::frame::{Frame, Frames};
///
/// let mut frames = Frames::new(1024);
/// frames.fill(&mut &b"{}\n{\"id\""[..])?;
/// assert_eq!(frames.next_frame(), Some(Frame::Line(0..3)));
/// assert_eq!(frames.next_frame(), None);
/// assert_eq!(frames.rest(), b"{\"id\"");
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Frames {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// How far there is surely no line end.
    searched: usize,
    limit: usize,
    /// The newest bytes of a line that is too long, while its end is awaited.
    overlong: Option<Vec<u8>>,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A line with its end; see [`Frames::bytes`].
    Line(Range<usize>),
    /// A line has grown beyond the limit: this is how it begins. It will be read over.
    Overlong(Vec<u8>),
    /// That line has ended, like this.
    OverlongEnd(Vec<u8>),
}

impl Frames {
    /// No line may be longer than `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        let buffer = vec![0; ROOM.min(limit.saturating_add(2)).max(64)];
        Self { buffer, start: 0, end: 0, searched: 0, limit, overlong: None }
    }

    /// Reads once. Places that were handed out before are void.
    pub fn fill(&mut self, source: &mut impl Read) -> io::Result<usize> {
        self.make_room();
        let read = source.read(&mut self.buffer[self.end..])?;
        self.end += read;
        Ok(read)
    }

    /// Gives back the room that a long line needed, once nothing is left of it. Places that were
    /// handed out before are void.
    pub fn tidy(&mut self) {
        if self.start == self.end && self.buffer.len() > 4 * ROOM {
            (self.start, self.end, self.searched) = (0, 0, 0);
            self.buffer = vec![0; ROOM];
        }
    }

    /// The next line, if there is a whole one.
    pub fn next_frame(&mut self) -> Option<Frame> {
        let found = memchr::memchr(b'\n', &self.buffer[self.searched..self.end]);
        let line_end = found.map(|at| self.searched + at + 1);
        let until = line_end.unwrap_or(self.end);
        self.searched = until;
        if self.overlong.is_some() {
            return self.read_over(until, line_end.is_some());
        }
        let line = self.start..until;
        if line.len() > self.limit.saturating_add(usize::from(line_end.is_some())) {
            return Some(self.begin_overlong(line_end.is_some()));
        }
        line_end
            .map(|end| {
                self.start = end;
                line
            })
            .map(Frame::Line)
    }

    /// The bytes of a line.
    #[must_use]
    pub fn bytes(&self, line: &Range<usize>) -> &[u8] {
        &self.buffer[line.clone()]
    }

    /// How much of a line is there whose end is awaited.
    #[must_use]
    pub fn unfinished(&self) -> usize {
        self.end - self.start
    }

    /// Whether a line that is too long is being read over.
    #[must_use]
    pub fn is_reading_over(&self) -> bool {
        self.overlong.is_some()
    }

    /// Has the line that is not whole yet read over, as if it were too long.
    pub fn give_up_line(&mut self) -> Frame {
        self.searched = self.end;
        self.begin_overlong(false)
    }

    /// What is left when nothing more comes: a line without an end.
    #[must_use]
    pub fn rest(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    fn begin_overlong(&mut self, ended: bool) -> Frame {
        // The end is told on its own, even if it is there already.
        self.searched -= usize::from(ended);
        let line = &self.buffer[self.start..self.searched];
        let head = line[..line.len().min(KEPT)].to_vec();
        self.overlong = Some(line[line.len().saturating_sub(KEPT)..].to_vec());
        self.start = self.searched;
        Frame::Overlong(head)
    }

    fn read_over(&mut self, until: usize, ended: bool) -> Option<Frame> {
        let tail = self.overlong.as_mut()?;
        let more = &self.buffer[self.start..until];
        tail.extend_from_slice(&more[more.len().saturating_sub(KEPT)..]);
        tail.drain(..tail.len().saturating_sub(KEPT));
        self.start = until;
        if ended { self.overlong.take().map(Frame::OverlongEnd) } else { None }
    }

    /// Moves what is left to the front when little room is behind it, and grows for a long line.
    fn make_room(&mut self) {
        let kept = self.end - self.start;
        if kept == 0 {
            (self.start, self.end, self.searched) = (0, 0, 0);
            self.tidy();
        } else if self.start > 0 && self.is_nearly_full() {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.searched, self.start, self.end) = (self.searched - self.start, 0, kept);
        }
        // The limit, and one read more: then the line is too long, and need not be kept.
        let most = self.limit.saturating_add(ROOM);
        if self.is_nearly_full() && self.buffer.len() < most {
            // A line that is that long may be as long as any. Room that is never touched costs
            // nothing; moving from one place to a larger one again and again does.
            let more = if self.buffer.len() < LONG {
                self.buffer.len()
            } else {
                self.buffer.reserve_exact(most - self.buffer.len());
                STEP
            };
            self.buffer.resize((self.buffer.len() + more).min(most), 0);
        }
    }

    fn is_nearly_full(&self) -> bool {
        self.buffer.len() - self.end < (self.buffer.len() / 4).min(ROOM)
    }
}
