//! Where lines for the client go. Several threads write; no line is broken by another.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use faultwire_contract::Fault;
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, poll};

use crate::rewrite::Rewrite;

/// Takes whole lines.
pub(crate) trait ClientSink: Send + Sync {
    /// Hands over one or more lines. When they are not read any more, they are dropped.
    fn send(&self, lines: &[u8]);

    /// Hands over the line that answers a request.
    fn reply(&self, line: &Rewrite<'_>) {
        let mut line = line.to_vec();
        line.push(b'\n');
        self.send(&line);
    }

    /// Whether all that its client hears goes this way, so that nothing can overtake what is sent
    /// together.
    fn is_only_way(&self) -> bool {
        false
    }

    /// Whether there is one client behind it, who can be asked something.
    fn is_somebody(&self) -> bool {
        true
    }

    /// When its client would hear a message of so many bytes that answers nothing.
    fn reach(&self, _bytes: usize) -> Reach {
        Reach::Now
    }

    /// Whether it takes messages that answer nothing.
    fn takes_messages(&self) -> bool {
        true
    }

    /// No answer comes to a request, since its client took it back.
    fn keep_silent(&self) {}

    /// Hands over the answers to requests that failed.
    fn fail(&self, failed: &[FailedReply<'_>]) {
        match failed {
            [one] => self.send(one.line),
            all => self.send(&all.iter().map(|one| one.line).collect::<Vec<_>>().concat()),
        }
    }
}

/// When a client hears a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    Now,
    /// When it comes for what waits.
    Later,
    /// There is no room to wait in.
    Never,
}

/// The answer to a request that failed.
pub(crate) struct FailedReply<'a> {
    pub line: &'a [u8],
    pub fault: &'a Fault,
    /// The number, if it is a JSON-RPC error.
    pub number: Option<i64>,
}

/// A pipe to the client.
pub(crate) struct Stream {
    file: Mutex<File>,
    broken: AtomicBool,
    on_break: Box<dyn Fn() + Send + Sync>,
}

impl Stream {
    pub(crate) fn new(file: File, on_break: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            file: Mutex::new(file),
            broken: AtomicBool::new(false),
            on_break: Box::new(on_break),
        }
    }
}

impl ClientSink for Stream {
    fn is_only_way(&self) -> bool {
        true
    }

    fn send(&self, lines: &[u8]) {
        if self.broken.load(Ordering::Relaxed) {
            return;
        }
        let mut file = self.file.lock();
        let written = write_all(&mut file, lines);
        drop(file);
        if written.is_err() && !self.broken.swap(true, Ordering::Relaxed) {
            (self.on_break)();
        }
    }
}

/// Writes everything, also where the pipe was made non-blocking.
fn write_all(file: &mut File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => bytes = &bytes[n..],
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                poll(&mut [PollFd::new(&file.as_fd(), PollFlags::OUT)], None)?;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}
