//! Listens to the server: bytes in, lines to the pipeline, what passes to the client from where
//! it was read.

use std::fs::File;
use std::future::poll_fn;
use std::io::{self, PipeReader, Read};
use std::ops::Range;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use faultwire_contract::{Sort, peek};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::unix::pipe;

use crate::busy_poll::{FEW, MOMENT, SpinPolicy, is_alone};
use crate::call::Comparison;
use crate::connection::{Connection, Verdict};
use crate::edge;
use crate::frame::{Frame, Frames, LINES_TOGETHER};
use crate::memory_quota::{PATIENCE, Reservation, SHORT};
use crate::reassembly::{Fragment, Joined};
use crate::session::{TooLong, says_jsonrpc};
use crate::wire::salvage_id;

/// The one who listens to one run of the server.
pub(crate) struct Listener {
    connection: Arc<Connection>,
    frames: Frames,
    /// A message over several lines that is not whole yet.
    fragment: Option<Fragment>,
    /// A line that is to be heard again.
    again: Option<Again>,
    /// Whether the line that is read over was answered already.
    overlong_told: bool,
    /// Why it is read over.
    why: TooLong,
    /// Whether it pays to stay awake, if it may.
    spin: Option<SpinPolicy>,
    signs: Signs,
}

/// A line of the server.
enum Again {
    /// It stands there in the buffer.
    Read(Range<usize>),
    /// It was put together.
    Made(Vec<u8>),
}

/// What the one who listens and the one who watches tell each other.
#[derive(Default)]
pub(crate) struct Signs {
    /// Whether this run of the server is over, and another one may have begun.
    pub is_over: Arc<AtomicBool>,
    /// Odd while something is handed to the client.
    pub handing: Arc<AtomicU64>,
}

impl Listener {
    pub(crate) fn new(connection: Arc<Connection>, signs: Signs) -> Self {
        let frames = Frames::new(connection.settings().limits.line_bytes);
        let spin = (connection.settings().busy_poll && !is_alone()).then(SpinPolicy::default);
        let (fragment, overlong_told, why) = (None, false, TooLong::Limit);
        Self { connection, frames, fragment, again: None, overlong_told, why, spin, signs }
    }

    /// What the client did not take in time was answered for a server that had ended.
    fn is_over(&self) -> bool {
        self.signs.is_over.load(Ordering::Relaxed)
    }

    /// Listens on a thread of its own until the server says no more, or `stop` is closed.
    pub(crate) fn listen(mut self, mut stdout: File, stop: &PipeReader) {
        while self.wait(&stdout, stop) {
            match self.frames.fill(&mut stdout) {
                Ok(0) => break,
                Ok(_) => {
                    while let Some(due) = self.take_apart() {
                        self.connection.compare(due);
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        while let Some(due) = self.finish() {
            self.connection.compare(due);
        }
    }

    /// Listens as a task until the server says no more: an answer is written by the thread that
    /// reads it.
    pub(crate) async fn listen_along(mut self, stdout: File) -> io::Result<()> {
        let mut stdout = pipe::Receiver::from_file(stdout)?;
        let mut reservation = None;
        loop {
            if !self.make_room(&mut reservation).await {
                self.give_up_line();
            }
            let patience = match &self.fragment {
                Some(fragment) => Some(fragment.patience(edge::now())),
                // Others may wait for the room that this line takes.
                None => reservation.as_ref().map(|_| PATIENCE),
            };
            let frames = &mut self.frames;
            let more =
                poll_fn(|context| match frames.fill(&mut Polled { pipe: &mut stdout, context }) {
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
                    more => Poll::Ready(more),
                });
            let more = match patience {
                None => more.await,
                Some(patience) => {
                    let patience = patience + Duration::from_millis(1);
                    let Ok(more) = tokio::time::timeout(patience, more).await else {
                        self.stands_still();
                        continue;
                    };
                    more
                }
            };
            match more {
                Ok(0) | Err(_) => break,
                Ok(_) => {
                    while let Some(due) = self.take_apart() {
                        self.connection.compare_aside(due).await;
                    }
                }
            }
        }
        while let Some(due) = self.finish() {
            self.connection.compare_aside(due).await;
        }
        Ok(())
    }

    /// A long line takes room that others want, too. Whether there is enough to go on.
    async fn make_room(&self, reservation: &mut Option<Reservation>) -> bool {
        let pending = self.fragment.as_ref().map_or(0, |fragment| fragment.bytes().len());
        let long = self.frames.unfinished() + pending;
        if long < SHORT || self.frames.is_reading_over() {
            *reservation = None;
            return true;
        }
        let reservation =
            reservation.get_or_insert_with(|| self.connection.responder.quota.reservation());
        reservation.grow(long + SHORT).await.is_ok()
    }

    /// The server has begun something and does not go on.
    fn stands_still(&mut self) {
        let now = edge::now();
        if self.fragment.as_ref().is_some_and(|fragment| fragment.patience(now).is_zero()) {
            self.give_up_fragment();
        }
        if self.frames.unfinished() >= SHORT && self.connection.responder.quota.is_crowded() {
            self.give_up_line();
        }
    }

    /// There is no room for the rest of the line.
    fn give_up_line(&mut self) {
        self.give_up_fragment();
        if self.frames.unfinished() == 0 {
            return;
        }
        if let Frame::Overlong(head) = self.frames.give_up_line() {
            self.read_over(&head, TooLong::NoRoom);
        }
    }

    fn read_over(&mut self, head: &[u8], why: TooLong) {
        self.why = why;
        self.overlong_told = self.connection.on_overlong(salvage_id(head).as_deref(), false, why);
    }

    /// Waits for something to read, at first without going to sleep if that may pay. Nothing more
    /// comes when it is false.
    fn wait(&mut self, stdout: &File, stop: &PipeReader) -> bool {
        let mut awake = self.stays_awake().then(|| edge::now() + MOMENT);
        loop {
            let patience = self.fragment.as_ref().map(|f| f.patience(edge::now()));
            let patience = patience.map(|p| p + Duration::from_millis(1));
            let timeout = awake.map(|_| Duration::ZERO).or(patience).map(timespec);
            let out = stdout.as_fd();
            let stopped = stop.as_fd();
            let mut watched =
                [PollFd::new(&out, PollFlags::IN), PollFd::new(&stopped, PollFlags::IN)];
            let seen = poll(&mut watched, timeout.as_ref());
            if let Some(until) = awake {
                let in_vain = seen == Ok(0);
                if in_vain && edge::now() < until {
                    continue;
                }
                self.spin.iter().for_each(|spin| spin.learn(!in_vain));
                awake = None;
                if in_vain {
                    continue;
                }
            }
            match seen {
                Ok(0) => self.give_up_fragment(),
                Err(rustix::io::Errno::INTR) => {}
                Ok(_) if watched[1].revents().is_empty() => return true,
                Ok(_) | Err(_) => return false,
            }
        }
    }

    fn stays_awake(&self) -> bool {
        self.spin.as_ref().is_some_and(|spin| {
            self.fragment.is_none() && self.connection.session().open_calls() <= FEW && spin.takes()
        })
    }

    /// Everything that is whole, up to a line that something has to be made for first.
    fn take_apart(&mut self) -> Option<Comparison> {
        let connection = Arc::clone(&self.connection);
        let together = connection.responder.burst();
        let mut run: Range<usize> = 0..0;
        let mut passed = 0usize;
        let at_once = !connection.sink.is_only_way();
        while let Some(frame) = self.next_frame() {
            if self.is_over() {
                break;
            }
            let verdict = match &frame {
                Frame::Line(place) if place.is_empty() => self.made_line(),
                Frame::Line(place) => self.line(place.clone()),
                Frame::Overlong(head) => {
                    self.read_over(head, TooLong::Limit);
                    Verdict::Drop
                }
                Frame::OverlongEnd(tail) => {
                    if !self.overlong_told {
                        self.connection.on_overlong(salvage_id(tail).as_deref(), true, self.why);
                    }
                    Verdict::Drop
                }
            };
            match (verdict, frame) {
                (Verdict::Later(due), frame) => {
                    self.pass(&run);
                    if let Frame::Line(place) = frame
                        && self.again.is_none()
                    {
                        self.again = Some(Again::Read(place));
                    }
                    return Some(due);
                }
                // What comes before a reply must not find the call answered.
                (Verdict::Pass, Frame::Line(place)) if at_once => self.pass(&place),
                (Verdict::Pass, Frame::Line(place)) if place.start == run.end => {
                    run.end = place.end;
                    passed += 1;
                    if passed.is_multiple_of(LINES_TOGETHER) {
                        self.pass(&run);
                        run = place.end..place.end;
                    }
                }
                (Verdict::Pass, Frame::Line(place)) => {
                    self.pass(&run);
                    run = place;
                }
                (Verdict::Instead(line), _) => {
                    self.pass(&run);
                    run = 0..0;
                    self.connection.sink.send(&line);
                }
                (Verdict::Pass | Verdict::Drop | Verdict::Unfinished, _) => together.pause(),
            }
        }
        self.pass(&run);
        self.frames.tidy();
        None
    }

    /// What comes next. A line that was put together has no place in the buffer.
    fn next_frame(&mut self) -> Option<Frame> {
        match &self.again {
            Some(Again::Made(_)) => return Some(Frame::Line(0..0)),
            Some(Again::Read(place)) => {
                let place = place.clone();
                self.again = None;
                return Some(Frame::Line(place));
            }
            None => {}
        }
        self.frames.next_frame()
    }

    /// A line that was put together, and is heard again.
    fn made_line(&mut self) -> Verdict {
        match self.again.take() {
            Some(Again::Made(line)) => self.whole(line),
            _ => Verdict::Drop,
        }
    }

    fn whole(&mut self, line: Vec<u8>) -> Verdict {
        match self.connection.on_server(&line) {
            Verdict::Pass => Verdict::Instead(line),
            Verdict::Unfinished => {
                self.connection.on_garbled(&line);
                Verdict::Drop
            }
            Verdict::Later(due) => {
                self.again = Some(Again::Made(line));
                Verdict::Later(due)
            }
            verdict => verdict,
        }
    }

    fn pass(&self, run: &Range<usize>) {
        if !run.is_empty() {
            self.signs.handing.fetch_add(1, Ordering::Relaxed);
            self.connection.sink.send(self.frames.bytes(run));
            self.signs.handing.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn line(&mut self, place: Range<usize>) -> Verdict {
        let line = self.frames.bytes(&place);
        if self.fragment.is_none() {
            return match self.connection.on_server(line) {
                Verdict::Unfinished => {
                    self.fragment = Fragment::begin(line, edge::now());
                    if self.fragment.is_none() {
                        self.connection.on_garbled(line);
                    }
                    Verdict::Drop
                }
                verdict => verdict,
            };
        }
        if is_message(line) {
            self.give_up_fragment();
            return self.line(place);
        }
        self.join(place)
    }

    /// Another line of a message that is not whole yet.
    fn join(&mut self, place: Range<usize>) -> Verdict {
        let line = self.frames.bytes(&place);
        let limit = self.connection.settings().limits.line_bytes;
        let Some(mut fragment) = self.fragment.take() else { return Verdict::Drop };
        match fragment.push(line, limit) {
            Joined::Open => {
                fragment.touch(edge::now());
                self.fragment = Some(fragment);
                Verdict::Drop
            }
            Joined::Broken => {
                self.connection.on_garbled(fragment.bytes());
                Verdict::Drop
            }
            Joined::Whole => self.whole(fragment.into_line()),
        }
    }

    fn give_up_fragment(&mut self) {
        if let Some(fragment) = self.fragment.take() {
            self.connection.on_garbled(fragment.bytes());
        }
    }

    /// The server says no more. A last line without an end may still be whole.
    fn finish(&mut self) -> Option<Comparison> {
        if self.is_over() {
            return None;
        }
        let last = match self.again.take() {
            Some(Again::Made(line)) => line,
            _ => self.last_line()?,
        };
        match self.connection.on_server(&last) {
            Verdict::Pass => self.connection.sink.send(&last),
            Verdict::Instead(line) => self.connection.sink.send(&line),
            // Its call fails when the server's end is seen.
            Verdict::Unfinished | Verdict::Drop => {}
            Verdict::Later(due) => {
                self.again = Some(Again::Made(last));
                return Some(due);
            }
        }
        None
    }

    /// What was left without an end.
    fn last_line(&mut self) -> Option<Vec<u8>> {
        let rest = self.frames.rest().to_vec();
        if rest.is_empty() {
            self.give_up_fragment();
            return None;
        }
        let mut last = rest;
        last.push(b'\n');
        if is_message(&last) {
            self.give_up_fragment();
        }
        if let Some(mut fragment) = self.fragment.take() {
            fragment.push(&last, usize::MAX);
            last = fragment.into_line();
        }
        Some(last)
    }
}

/// Reads what is there now, and has the task woken when there is more.
struct Polled<'a, 'c, 'w> {
    pipe: &'a mut pipe::Receiver,
    context: &'c mut Context<'w>,
}

impl Read for Polled<'_, '_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut buffer = ReadBuf::new(buffer);
        match Pin::new(&mut *self.pipe).poll_read(self.context, &mut buffer) {
            Poll::Ready(read) => read.map(|()| buffer.filled().len()),
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

/// Whether the line is a whole message by itself.
fn is_message(line: &[u8]) -> bool {
    !matches!(peek(line).sort(), Sort::Malformed(_)) && says_jsonrpc(line)
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}
