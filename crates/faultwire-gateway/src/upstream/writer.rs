//! The server's input. Writing never waits: what a server does not read waits here, up to a
//! limit, and a thread of its own brings it over as there is room. While many calls are open, what
//! comes at the same time waits here for one write, too.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use faultwire_contract::{Line, Outcome, peek};
use parking_lot::{Condvar, Mutex, MutexGuard};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::ioctl_fionbio;
use tokio::net::unix::pipe;
use tokio::runtime::Handle;

use crate::backlog::Part;
use crate::call::Stage;

/// How long the thread waits before it looks whether the server is still the same one.
const GLANCE: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };
/// The same for a task.
const LOOK: Duration = Duration::from_secs(1);
/// How long the task waits where it cannot be told when there is room.
const PAUSE: Duration = Duration::from_millis(5);

/// Short messages of our own may go a little beyond the limit.
const SPARE: usize = 64 * 1024;

/// A server that is reached in another way than through a pipe. It takes everything at once.
pub(crate) trait Transport: Send + Sync {
    /// Sends one line on its way, which was peeked at.
    fn send(self: Arc<Self>, line: &[u8], seen: &Line<'_>);

    /// What the server was greeted with was for nothing: it is spoken to as if it had never been.
    fn forget_greeting(&self);

    /// Ends the session with the server.
    fn close(self: Arc<Self>);
}

/// Where the server reads.
pub(crate) struct UpstreamWriter {
    state: Mutex<Pipe>,
    /// Wakes the thread that brings over what waits; where there is a runtime, a task does that.
    work: Condvar,
    runtime: Option<Handle>,
}

/// The pipe to one server after the other.
pub(crate) struct Pipe {
    file: Option<Arc<File>>,
    /// A server that is reached in another way takes everything at once.
    remote: Option<Arc<dyn Transport>>,
    /// What the pipe has not taken yet begins here in the backlog.
    start: usize,
    backlog: Vec<u8>,
    /// Bytes that were ever meant for this server, and those that it was given.
    queued: u64,
    written: u64,
    limit: usize,
    /// What the backlog takes of what all sessions share.
    held: Part,
    /// The server gets no more than the backlog.
    closing: bool,
    /// Nothing will ever come again.
    over: bool,
    /// Whether a task brings over what waits.
    is_flushing: bool,
}

impl UpstreamWriter {
    pub(crate) fn new(limit: usize, held: Part, runtime: Option<Handle>) -> Self {
        let state = Pipe {
            file: None,
            remote: None,
            start: 0,
            backlog: Vec::new(),
            queued: 0,
            written: 0,
            limit,
            held,
            closing: false,
            over: false,
            is_flushing: false,
        };
        Self { state: Mutex::new(state), work: Condvar::new(), runtime }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Pipe> {
        self.state.lock()
    }

    /// Turns to a new server.
    pub(crate) fn connect(&self, file: File) -> io::Result<()> {
        // The other end is the server's alone: it does not notice.
        ioctl_fionbio(&file, true)?;
        let mut pipe = self.lock();
        pipe.disconnect();
        pipe.file = Some(Arc::new(file));
        Ok(())
    }

    /// Turns to a server behind a URL.
    pub(crate) fn reach(&self, remote: Arc<dyn Transport>) {
        self.lock().remote = Some(remote);
    }

    /// Gives the pipe what it can take, and leaves the rest to the thread.
    pub(crate) fn send(self: &Arc<Self>, pipe: &mut Pipe, bytes: &[u8]) {
        if pipe.send(bytes) {
            self.bring(pipe);
        }
    }

    /// Keeps it for [`flush`](Self::flush), together with what others bring until then. Whether
    /// the caller has to flush.
    pub(crate) fn put(self: &Arc<Self>, pipe: &mut Pipe, bytes: &[u8]) -> bool {
        if pipe.remote.is_some() || pipe.waiting() > 0 {
            self.send(pipe, bytes);
            return false;
        }
        pipe.queued += bytes.len() as u64;
        pipe.keep(bytes);
        true
    }

    /// Gives the pipe what it can take of all that waits.
    pub(crate) fn flush(self: &Arc<Self>) {
        let mut pipe = self.lock();
        pipe.flush();
        if pipe.waiting() > 0 {
            self.bring(&mut pipe);
        }
    }

    /// Has what waits brought over as there is room.
    fn bring(self: &Arc<Self>, pipe: &mut Pipe) {
        match &self.runtime {
            None => {
                self.work.notify_one();
            }
            Some(runtime) if !std::mem::replace(&mut pipe.is_flushing, true) => {
                drop(runtime.spawn(Arc::clone(self).bring_as_task()));
            }
            Some(_) => {}
        }
    }

    /// The task that brings over what waits, for as long as something does.
    async fn bring_as_task(self: Arc<Self>) {
        loop {
            let file = {
                let mut pipe = self.lock();
                pipe.flush();
                let file = pipe.file.as_ref().filter(|_| pipe.waiting() > 0).map(Arc::clone);
                pipe.is_flushing = file.is_some();
                file
            };
            let Some(file) = file else { return };
            // A moment later it may be another server's.
            let writable = async {
                match file.try_clone().and_then(pipe::Sender::from_file) {
                    Ok(pipe) => drop(pipe.writable().await),
                    Err(_) => tokio::time::sleep(PAUSE).await,
                }
            };
            let _ = tokio::time::timeout(LOOK, writable).await;
        }
    }

    /// Lets the server see the end of its input, once it has read what waits.
    pub(crate) fn close(&self) {
        let mut pipe = self.lock();
        pipe.closing = true;
        if pipe.waiting() == 0 {
            pipe.file = None;
        }
        if let Some(remote) = pipe.remote.take() {
            remote.close();
        }
        self.work.notify_one();
    }

    /// Ends the thread.
    pub(crate) fn end(&self) {
        let mut pipe = self.lock();
        pipe.disconnect();
        pipe.over = true;
        self.work.notify_one();
    }

    /// The thread that brings over what waits.
    pub(crate) fn serve(&self) {
        let mut pipe = self.lock();
        while !pipe.over {
            let waiting = pipe.file.as_ref().filter(|_| pipe.waiting() > 0).map(Arc::clone);
            let Some(file) = waiting else {
                self.work.wait(&mut pipe);
                continue;
            };
            drop(pipe);
            // When the server is gone this returns at once, and writing tells.
            let _ = poll(&mut [PollFd::new(&file.as_fd(), PollFlags::OUT)], Some(&GLANCE));
            pipe = self.lock();
            let same = pipe.file.as_ref().is_some_and(|now| Arc::ptr_eq(now, &file));
            if same {
                pipe.flush();
            }
        }
    }
}

impl Pipe {
    /// A server behind a URL is to be spoken to as if it had never been greeted. Whether it is one.
    pub(crate) fn forget_greeting(&self) -> bool {
        self.remote.iter().for_each(|remote| remote.forget_greeting());
        self.remote.is_some()
    }

    /// At which byte the next message will stand.
    pub(crate) fn position(&self) -> u64 {
        self.queued
    }

    /// How many bytes the server was given.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// How much more may wait.
    pub(crate) fn free(&self) -> usize {
        self.limit.saturating_sub(self.waiting()).min(self.held.free())
    }

    fn waiting(&self) -> usize {
        self.backlog.len() - self.start
    }

    pub(crate) fn disconnect(&mut self) {
        self.file = None;
        if let Some(remote) = self.remote.take() {
            remote.close();
        }
        (self.backlog, self.start) = (Vec::new(), 0);
        self.held.set(0);
        (self.queued, self.written, self.closing) = (0, 0, false);
    }

    /// Gives a line that was looked at already to a server behind a URL. Whether it is one.
    pub(crate) fn send_seen(&mut self, line: &[u8], seen: &Line<'_>) -> bool {
        let Some(remote) = &self.remote else { return false };
        Arc::clone(remote).send(line, seen);
        self.queued += line.len() as u64;
        self.written += line.len() as u64;
        true
    }

    /// Takes a message back that the server has got nothing of yet. Whether that was so. It
    /// becomes blanks before the next message, so that all others stay where they are.
    fn withdraw(&mut self, at: u64, message: &[u8]) -> bool {
        let waiting_from = self.queued - self.waiting() as u64;
        let Some(offset) = at.checked_sub(waiting_from).and_then(|o| usize::try_from(o).ok())
        else {
            return false;
        };
        let from = self.start + offset;
        match self.backlog.get_mut(from..from + message.len()) {
            // Of a batch, or of a line with blanks before it, another part stands there.
            Some(waiting) if *waiting == *message => {
                waiting.fill(b' ');
                true
            }
            _ => false,
        }
    }

    /// Takes a request back, if the server has got nothing of it. How far this try got.
    pub(crate) fn take_back(&mut self, stage: Stage, request: &[u8]) -> Outcome {
        match stage {
            Stage::Sent { at } if self.withdraw(at, request) => Outcome::NotSent,
            Stage::Sent { .. } => Outcome::MaybeExecuted,
            Stage::Held | Stage::Again(_) => Outcome::NotSent,
        }
    }

    /// Whether something is left to the thread.
    fn send(&mut self, bytes: &[u8]) -> bool {
        if self.waiting() > 0 {
            // Requests were refused before it comes to this; what we say ourselves is not needed.
            if self.waiting() + bytes.len() <= self.limit.saturating_add(bytes.len().min(SPARE)) {
                self.queued += bytes.len() as u64;
                self.keep(bytes);
            }
            return false;
        }
        self.queued += bytes.len() as u64;
        let taken = self.write(bytes);
        self.keep(&bytes[taken..]);
        self.waiting() > 0
    }

    /// Has the bytes wait.
    fn keep(&mut self, bytes: &[u8]) {
        self.backlog.extend_from_slice(bytes);
        self.held.set(self.backlog.len());
    }

    fn flush(&mut self) {
        let backlog = std::mem::take(&mut self.backlog);
        self.start += self.write(&backlog[self.start..]);
        if self.start < backlog.len() {
            self.backlog = backlog;
            if self.start > self.backlog.len() / 2 {
                self.backlog.drain(..self.start);
                self.start = 0;
            }
            self.held.set(self.backlog.len());
            return;
        }
        self.start = 0;
        self.held.set(0);
        if self.closing {
            self.file = None;
        }
    }

    /// Writes what the pipe takes now. A server that is gone takes everything: its
    /// calls fail when the supervisor sees the process end.
    fn write(&mut self, bytes: &[u8]) -> usize {
        if let Some(remote) = &self.remote {
            for line in bytes.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
                Arc::clone(remote).send(line, &peek(line));
            }
            self.written += bytes.len() as u64;
            return bytes.len();
        }
        let Some(file) = &self.file else { return bytes.len() };
        let (mut file, mut taken) = (&**file, 0);
        while taken < bytes.len() {
            match file.write(&bytes[taken..]) {
                Ok(n) => {
                    taken += n;
                    self.written += n as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return taken,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    self.file = None;
                    return bytes.len();
                }
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use std::io::{PipeReader, Read};
    use std::os::fd::OwnedFd;

    use super::*;

    /// An inlet, and the server's end of it.
    fn connected() -> (Arc<UpstreamWriter>, PipeReader) {
        let (reader, end) = io::pipe().unwrap();
        let held = crate::backlog::Backlog::new(usize::MAX).part();
        let writer = Arc::new(UpstreamWriter::new(1024, held, None));
        writer.connect(File::from(OwnedFd::from(end))).unwrap();
        ioctl_fionbio(&reader, true).unwrap();
        (writer, reader)
    }

    /// What the server can read now.
    fn read(reader: &mut PipeReader) -> String {
        let mut bytes = [0; 256];
        let length = reader.read(&mut bytes).unwrap_or_default();
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    }

    #[test]
    fn what_is_put_comes_with_one_flush_and_in_order() {
        let (writer, mut reader) = connected();
        let mut pipe = writer.lock();
        assert!(writer.put(&mut pipe, b"one\n"), "the caller has to flush");
        assert!(!writer.put(&mut pipe, b"two\n"), "another caller does already");
        writer.send(&mut pipe, b"three\n");
        assert_eq!((pipe.position(), pipe.written()), (14, 0));
        drop(pipe);
        assert_eq!(read(&mut reader), "");
        writer.flush();
        assert_eq!(read(&mut reader), "one\ntwo\nthree\n");
        assert_eq!(writer.lock().written(), 14);
        writer.flush();
        assert!(writer.put(&mut writer.lock(), b"four\n"), "it starts again");
    }

    #[test]
    fn what_is_put_can_be_taken_back() {
        let (writer, mut reader) = connected();
        let mut pipe = writer.lock();
        writer.put(&mut pipe, b"one\n");
        let at = pipe.position();
        writer.put(&mut pipe, b"two\n");
        assert!(!pipe.withdraw(at, b"wo"), "a part of a batch, or one with blanks before it");
        assert!(pipe.withdraw(at, b"two"));
        drop(pipe);
        writer.flush();
        assert_eq!(read(&mut reader), "one\n   \n");
        assert!(!writer.lock().withdraw(at, b"two"), "the server has it");
    }

    #[test]
    fn what_was_put_for_one_server_is_not_for_the_next() {
        let (writer, mut first) = connected();
        writer.put(&mut writer.lock(), b"one\n");
        let (mut second, end) = io::pipe().unwrap();
        writer.connect(File::from(OwnedFd::from(end))).unwrap();
        writer.put(&mut writer.lock(), b"two\n");
        writer.flush();
        assert_eq!(read(&mut first), "");
        assert_eq!(read(&mut second), "two\n");
    }

    #[test]
    fn what_was_put_before_the_end_is_still_read() {
        let (writer, mut reader) = connected();
        writer.put(&mut writer.lock(), b"one\n");
        writer.close();
        writer.flush();
        let mut all = String::new();
        reader.read_to_string(&mut all).unwrap();
        assert_eq!(all, "one\n");
    }
}
