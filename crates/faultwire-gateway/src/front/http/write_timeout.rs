//! A connection to a client that may not read. Writing to it has a time limit: what it does
//! not take is held in memory that others need.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::rt::{Read, ReadBufCursor, Write};
use tokio::time::{Instant, Sleep};

/// How often it is looked whether the client reads on.
const LOOK: Duration = Duration::from_secs(5);
/// What it must have read then, if others wait for the room that its answer takes.
const ENOUGH: usize = 64 * 1024;
/// A client that has taken nothing at all for so many looks is gone.
const LOOKS: u32 = 12;

/// A connection that ends when the other side does not read.
pub(crate) struct WriteTimeout<T, F> {
    inner: T,
    /// Whether others wait for what is held for this client.
    is_crowded: F,
    stalled: Option<Stalled>,
}

/// What was not taken at once.
struct Stalled {
    look: Pin<Box<Sleep>>,
    /// Taken since the last look.
    taken: usize,
    /// Looks that found nothing taken.
    in_vain: u32,
}

impl<T, F: Fn() -> bool> WriteTimeout<T, F> {
    pub(crate) fn new(inner: T, is_crowded: F) -> Self {
        Self { inner, is_crowded, stalled: None }
    }

    /// What becomes of an attempt to write.
    fn judge(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
        offered: usize,
    ) -> Poll<io::Result<usize>> {
        match written {
            Poll::Ready(Ok(taken)) if taken < offered => {
                if let Some(stalled) = &mut self.stalled {
                    stalled.taken += taken;
                }
            }
            Poll::Ready(_) => self.stalled = None,
            Poll::Pending => ready!(self.look(context)?),
        }
        written
    }

    /// Looks whether the client reads, when it is time to.
    fn look(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let stalled = self.stalled.get_or_insert_with(|| Stalled {
            look: Box::pin(tokio::time::sleep(LOOK)),
            taken: 0,
            in_vain: 0,
        });
        while stalled.look.as_mut().poll(context).is_ready() {
            stalled.in_vain = if stalled.taken == 0 { stalled.in_vain + 1 } else { 0 };
            let slow = stalled.taken < ENOUGH && (self.is_crowded)();
            if slow || stalled.in_vain >= LOOKS {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            stalled.taken = 0;
            stalled.look.as_mut().reset(Instant::now() + LOOK);
        }
        Poll::Pending
    }
}

impl<T: Read + Unpin, F: Unpin> Read for WriteTimeout<T, F> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_read(context, buffer)
    }
}

impl<T: Write + Unpin, F: Fn() -> bool + Unpin> Write for WriteTimeout<T, F> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.inner).poll_write(context, bytes);
        this.judge(context, written, bytes.len())
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.inner).poll_write_vectored(context, parts);
        this.judge(context, written, parts.iter().map(|part| part.len()).sum())
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(context)
    }
}
