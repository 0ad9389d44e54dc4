//! The body of an answer: all at once, or a stream of events.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use http_body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep};

use crate::exchange::{Exchange, Piece};
use crate::memory_quota::SHORT;

/// How long a stream may be silent before it is shown to be alive.
const SILENCE: Duration = Duration::from_secs(15);

const BEFORE: &[u8] = b"event: message\ndata: ";
const AFTER: &[u8] = b"\n\n";

/// The body of an answer.
pub(crate) enum Body {
    /// All of it; none once it is sent.
    Whole(Option<Bytes>),
    /// Events as they come.
    Events(Events),
}

/// A stream of server-sent events.
pub(crate) struct Events {
    exchange: Arc<Exchange>,
    /// What was taken out already.
    first: Option<Piece>,
    /// The rest of an event that goes out in parts.
    rest: VecDeque<Bytes>,
    /// Called when the body is not read any more.
    on_end: Option<OnEnd>,
    alive: Pin<Box<Sleep>>,
}

/// What is done when a stream ends, from either side.
pub(crate) type OnEnd = Box<dyn FnOnce(&Exchange) + Send>;

impl Body {
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self::Whole(Some(bytes.into()))
    }

    pub(crate) fn empty() -> Self {
        Self::Whole(None)
    }

    pub(crate) fn events(exchange: Arc<Exchange>, first: Option<Piece>, on_end: OnEnd) -> Self {
        let alive = Box::pin(tokio::time::sleep(SILENCE));
        Self::Events(Events { exchange, first, rest: VecDeque::new(), on_end: Some(on_end), alive })
    }
}

impl Events {
    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(part) = self.rest.pop_front() {
            return Poll::Ready(Some(part));
        }
        let piece = match self.first.take() {
            Some(piece) => Poll::Ready(Some(piece)),
            None => self.exchange.poll_piece(context),
        };
        if let Poll::Ready(piece) = piece {
            self.alive.as_mut().reset(Instant::now() + SILENCE);
            return Poll::Ready(piece.map(|piece| self.event(piece)));
        }
        match self.alive.as_mut().poll(context) {
            Poll::Ready(()) => {
                self.alive.as_mut().reset(Instant::now() + SILENCE);
                // The timer wants to be asked once to know whom to wake.
                let _ = self.alive.as_mut().poll(context);
                Poll::Ready(Some(Bytes::from_static(b": alive\n\n")))
            }
            Poll::Pending => Poll::Pending,
        }
    }

    /// `event: message`, and the message as data. JSON has no line ends of its own here. What is
    /// long is not copied for it, but goes out in parts.
    fn event(&mut self, piece: Piece) -> Bytes {
        let (Piece::Message(data) | Piece::Reply(data) | Piece::Failed(data, _)) = piece;
        // Between the members of JSON it is a blank, and here it would end the line.
        let data = if memchr::memchr(b'\r', &data).is_some() {
            let blank = |b: &u8| if *b == b'\r' { b' ' } else { *b };
            data.iter().map(blank).collect::<Vec<u8>>().into()
        } else {
            data
        };
        if data.len() >= SHORT {
            self.rest.extend([data, Bytes::from_static(AFTER)]);
            return Bytes::from_static(BEFORE);
        }
        let mut bytes = BytesMut::with_capacity(BEFORE.len() + data.len() + AFTER.len());
        bytes.put_slice(BEFORE);
        bytes.put_slice(&data);
        bytes.put_slice(AFTER);
        bytes.freeze()
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        if let Some(on_end) = self.on_end.take() {
            on_end(&self.exchange);
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Events(events) => {
                events.poll_event(context).map(|event| event.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Self::Events(_) => SizeHint::default(),
        }
    }
}
