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

use crate::edge;
use crate::frame::{Frame, Frames};
use crate::front::stdio::LINES_TOGETHER;
use crate::join::{Fragment, Joined};
use crate::linger::{FEW, Habit, MOMENT, is_alone};
use crate::link::{Link, Verdict};
use crate::pipeline::{TooLong, says_jsonrpc};
use crate::room::{PATIENCE, SHORT, Share};
use crate::wire::salvage_id;

/// The one who listens to one run of the server.
pub(crate) struct Listener {
    link: Arc<Link>,
    frames: Frames,
    /// A message over several lines that is not whole yet.
    fragment: Option<Fragment>,
    /// Whether the line that is read over was answered already.
    overlong_told: bool,
    /// Why it is read over.
    why: TooLong,
    /// Whether it pays to stay awake, if it may.
    habit: Option<Habit>,
    signs: Signs,
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
    pub(crate) fn new(link: Arc<Link>, signs: Signs) -> Self {
        let frames = Frames::new(link.settings().limits.line_bytes);
        let habit = (link.settings().linger && !is_alone()).then(Habit::default);
        let (fragment, overlong_told, why) = (None, false, TooLong::Limit);
        Self { link, frames, fragment, overlong_told, why, habit, signs }
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
                Ok(_) => self.take_apart(),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        self.finish();
    }

    /// Listens as a task until the server says no more: an answer is written by the thread that
    /// reads it.
    pub(crate) async fn listen_along(mut self, stdout: File) -> io::Result<()> {
        let mut stdout = pipe::Receiver::from_file(stdout)?;
        let mut share = None;
        loop {
            if !self.make_room(&mut share).await {
                self.give_up_line();
            }
            let patience = match &self.fragment {
                Some(fragment) => Some(fragment.patience(edge::now())),
                // Others may wait for the room that this line takes.
                None => share.as_ref().map(|_| PATIENCE),
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
                Ok(_) => self.take_apart(),
            }
        }
        self.finish();
        Ok(())
    }

    /// A long line takes room that others want, too. Whether there is enough to go on.
    async fn make_room(&self, share: &mut Option<Share>) -> bool {
        let pending = self.fragment.as_ref().map_or(0, |fragment| fragment.bytes().len());
        let long = self.frames.unfinished() + pending;
        if long < SHORT || self.frames.is_reading_over() {
            *share = None;
            return true;
        }
        let share = share.get_or_insert_with(|| self.link.door.room.share());
        share.grow(long + SHORT).await.is_ok()
    }

    /// The server has begun something and does not go on.
    fn stands_still(&mut self) {
        let now = edge::now();
        if self.fragment.as_ref().is_some_and(|fragment| fragment.patience(now).is_zero()) {
            self.give_up_fragment();
        }
        if self.frames.unfinished() >= SHORT && self.link.door.room.is_crowded() {
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
        self.overlong_told = self.link.overlong(salvage_id(head).as_deref(), false, why);
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
                self.habit.iter().for_each(|habit| habit.learn(!in_vain));
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
        self.habit.as_ref().is_some_and(|habit| {
            self.fragment.is_none() && self.link.state().calls.len() <= FEW && habit.takes()
        })
    }

    /// Everything that is whole.
    fn take_apart(&mut self) {
        let link = Arc::clone(&self.link);
        let together = link.door.burst();
        let mut run: Range<usize> = 0..0;
        let mut passed = 0usize;
        let at_once = !link.client.is_only_way();
        while let Some(frame) = self.frames.next_frame() {
            if self.is_over() {
                break;
            }
            let verdict = match &frame {
                Frame::Line(place) => self.line(place.clone()),
                Frame::Overlong(head) => {
                    self.read_over(head, TooLong::Limit);
                    Verdict::Drop
                }
                Frame::OverlongEnd(tail) => {
                    if !self.overlong_told {
                        self.link.overlong(salvage_id(tail).as_deref(), true, self.why);
                    }
                    Verdict::Drop
                }
            };
            match (verdict, frame) {
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
                    self.link.client.send(&line);
                }
                (Verdict::Pass | Verdict::Drop | Verdict::Unfinished, _) => together.pause(),
            }
        }
        self.pass(&run);
        self.frames.tidy();
    }

    fn pass(&self, run: &Range<usize>) {
        if !run.is_empty() {
            self.signs.handing.fetch_add(1, Ordering::Relaxed);
            self.link.client.send(self.frames.bytes(run));
            self.signs.handing.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn line(&mut self, place: Range<usize>) -> Verdict {
        let line = self.frames.bytes(&place);
        if self.fragment.is_none() {
            return match self.link.hear_server(line) {
                Verdict::Unfinished => {
                    self.fragment = Fragment::begin(line, edge::now());
                    if self.fragment.is_none() {
                        self.link.garbled(line);
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
        let limit = self.link.settings().limits.line_bytes;
        let Some(mut fragment) = self.fragment.take() else { return Verdict::Drop };
        match fragment.push(line, limit) {
            Joined::Open => {
                fragment.touch(edge::now());
                self.fragment = Some(fragment);
                Verdict::Drop
            }
            Joined::Broken => {
                self.link.garbled(fragment.bytes());
                Verdict::Drop
            }
            Joined::Whole => {
                let whole = fragment.into_line();
                match self.link.hear_server(&whole) {
                    Verdict::Pass => Verdict::Instead(whole),
                    Verdict::Unfinished => {
                        self.link.garbled(&whole);
                        Verdict::Drop
                    }
                    verdict => verdict,
                }
            }
        }
    }

    fn give_up_fragment(&mut self) {
        if let Some(fragment) = self.fragment.take() {
            self.link.garbled(fragment.bytes());
        }
    }

    /// The server says no more. A last line without an end may still be whole.
    fn finish(&mut self) {
        if self.is_over() {
            return;
        }
        let rest = self.frames.rest().to_vec();
        if rest.is_empty() {
            return self.give_up_fragment();
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
        match self.link.hear_server(&last) {
            Verdict::Pass => self.link.client.send(&last),
            Verdict::Instead(line) => self.link.client.send(&line),
            // Whoever waits for it is told that the server ended.
            Verdict::Unfinished | Verdict::Drop => {}
        }
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
