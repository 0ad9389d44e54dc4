//! The server's stderr: copied to ours as it comes, and its end kept, which says why a server does
//! not start.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::sync::{Arc, OnceLock};
use std::thread;

use crate::last_output::LastOutput;
use faultwire_contract::{Caller, Contract, start_check, strip};
use parking_lot::{Mutex, MutexGuard};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use tokio::net::unix::pipe;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

/// So much of the end is kept. It is more than is shown, since a secret that begins before the part
/// that is shown must still be recognised (X6).
const KEPT: usize = 16 * 1024;
/// So much of it is shown.
const LINES: usize = 20;
const BYTES: usize = 2 * 1024;
/// How many chunks wait for the reader of our stderr.
const WAITING: usize = 64;

/// What one run of the server wrote to its stderr last.
#[derive(Default)]
pub(crate) struct Stderr {
    end: Mutex<End>,
}

#[derive(Default)]
struct End {
    bytes: VecDeque<u8>,
    /// Whether something before them was dropped.
    is_cut: bool,
    /// Whether no more comes.
    is_over: bool,
}

impl Stderr {
    /// Copies what the server writes until it is closed: as a task where there is a runtime, else
    /// on a thread of its own. Nothing waits for that for long: a process that the server left
    /// behind may keep the pipe open, and the reader of our stderr may have stopped.
    pub(crate) fn copy(pipe: File) -> io::Result<Arc<Self>> {
        let stderr = Arc::new(Self::default());
        let kept = Arc::clone(&stderr);
        let Ok(runtime) = Handle::try_current() else {
            let read = move || kept.read(pipe);
            thread::Builder::new().name("stderr".to_owned()).spawn(read)?;
            return Ok(stderr);
        };
        let (pipe, copied) = (pipe::Receiver::from_file(pipe)?, copied()?);
        runtime.spawn(async move { kept.read_as_task(pipe, copied).await });
        Ok(stderr)
    }

    fn read(&self, mut pipe: File) {
        let _over = Over(self);
        let mut chunk = [0; 4096];
        loop {
            match pipe.read(&mut chunk) {
                Ok(0) => return,
                Ok(length) => {
                    // Before it is copied: that may wait for the reader of our stderr.
                    self.keep(&chunk[..length]);
                    pass_on(&chunk[..length]);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }

    async fn read_as_task(&self, pipe: pipe::Receiver, copied: mpsc::Sender<Vec<u8>>) {
        let _over = Over(self);
        loop {
            if pipe.readable().await.is_err() {
                return;
            }
            match read_now(&pipe) {
                Ok(chunk) if chunk.is_empty() => return,
                Ok(chunk) => {
                    self.keep(&chunk);
                    // While our stderr is not read, the server waits as it would without the gateway.
                    let _ = copied.send(chunk).await;
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    }

    fn keep(&self, bytes: &[u8]) {
        let mut end = self.end();
        end.bytes.extend(bytes);
        let excess = end.bytes.len().saturating_sub(KEPT);
        end.bytes.drain(..excess);
        end.is_cut |= excess > 0;
    }

    /// Whether all of it was read.
    pub(crate) fn is_over(&self) -> bool {
        self.end().is_over
    }

    /// What it says about a failed start.
    pub(crate) fn last_output(&self, contract: &Contract, caller: &Caller<'_>) -> LastOutput {
        let text = self.text(contract, caller);
        LastOutput { check: start_check(&text), text: last_lines(&text).to_owned() }
    }

    /// The last output without secrets and terminal escapes, all that is kept of it.
    fn text(&self, contract: &Contract, caller: &Caller<'_>) -> String {
        let (mut bytes, is_cut) = {
            let end = self.end();
            (end.bytes.iter().copied().collect::<Vec<_>>(), end.is_cut)
        };
        if is_cut {
            // The first line may be half of one, and so may a secret in it.
            let rest = bytes.iter().position(|b| *b == b'\n').map_or(bytes.len(), |at| at + 1);
            bytes.drain(..rest);
        }
        let text = String::from_utf8_lossy(&bytes);
        contract.redact_for(&strip(&text), caller).into_owned()
    }

    fn end(&self) -> MutexGuard<'_, End> {
        self.end.lock()
    }
}

/// The last lines of a text that is safe to show.
fn last_lines(text: &str) -> &str {
    let text = text.trim_end();
    let from = text.rmatch_indices('\n').nth(LINES - 1).map_or(0, |(at, _)| at + 1);
    let lines = &text[from..];
    let Some(excess) = lines.len().checked_sub(BYTES).filter(|excess| *excess > 0) else {
        return lines.trim_matches('\n');
    };
    let cut = &lines[lines.ceil_char_boundary(excess)..];
    // Whole lines, unless one alone is too long.
    cut.split_once('\n').map_or(cut, |(_, whole)| whole).trim_matches('\n')
}

/// Says that no more comes, however the thread ends.
struct Over<'a>(&'a Stderr);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.end().is_over = true;
    }
}

/// What is there now. Nothing is held for a server that prints nothing.
fn read_now(pipe: &pipe::Receiver) -> io::Result<Vec<u8>> {
    let mut chunk = [0; 4096];
    pipe.try_read(&mut chunk).map(|length| chunk[..length].to_vec())
}

/// Where the tasks of all servers send what is to be copied: to one thread, since writing to our
/// stderr may block.
fn copied() -> io::Result<mpsc::Sender<Vec<u8>>> {
    static COPIED: OnceLock<mpsc::Sender<Vec<u8>>> = OnceLock::new();
    if let Some(copied) = COPIED.get() {
        return Ok(copied.clone());
    }
    let (copied, mut to_write) = mpsc::channel::<Vec<u8>>(WAITING);
    let write = move || {
        while let Some(chunk) = to_write.blocking_recv() {
            pass_on(&chunk);
        }
    };
    // Two at once make two threads, which does no harm.
    thread::Builder::new().name("stderr".to_owned()).spawn(write)?;
    Ok(COPIED.get_or_init(|| copied).clone())
}

/// Writes to our own stderr. If that is closed, the bytes are dropped, and the server goes on.
fn pass_on(mut bytes: &[u8]) {
    let stderr = io::stderr();
    let stderr = stderr.as_fd();
    while !bytes.is_empty() {
        match rustix::io::write(stderr, bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let _ = poll(&mut [PollFd::new(&stderr, PollFlags::OUT)], None);
            }
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use faultwire_contract::{DEFAULT, builtin};

    use super::*;

    fn kept(bytes: &[u8]) -> String {
        let stderr = Stderr::default();
        bytes.chunks(1000).for_each(|chunk| stderr.keep(chunk));
        stderr.text(&builtin(DEFAULT).unwrap(), &Caller::default())
    }

    #[test]
    fn u6_the_last_lines_are_bounded_and_whole() {
        let many = (0..100).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n");
        let lines = last_lines(&many);
        assert!(lines.starts_with("line 80\n") && lines.ends_with("line 99"), "{lines}");
        let wide =
            (0..10).map(|n| format!("{n}{}", "é".repeat(300))).collect::<Vec<_>>().join("\n");
        let lines = last_lines(&wide);
        assert!(lines.len() <= BYTES && lines.starts_with('7'), "{lines}");
        assert_eq!(last_lines(&"é".repeat(5000)).len(), BYTES);
        assert_eq!(last_lines("\n\n"), "");
    }

    #[test]
    fn x6_no_half_of_a_secret_is_left_at_the_beginning() {
        let secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";
        for before in KEPT - 60..KEPT + 10 {
            let mut bytes = format!("x token {secret}\n").into_bytes();
            bytes.extend(b"y".repeat(before));
            let text = kept(&bytes);
            assert!(!text.contains("wxyz") && !text.contains("ghp_"), "{before}");
        }
    }

    #[test]
    fn u6_what_is_no_text_does_no_harm() {
        assert_eq!(kept(b"\x1b[31mbad\x1b[0m \xff\n"), "bad \u{fffd}\n");
        assert_eq!(kept(&b"z".repeat(KEPT + 1)), "", "half a line of unknown beginning");
    }
}
