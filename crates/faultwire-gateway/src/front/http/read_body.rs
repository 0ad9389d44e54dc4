//! Reading the body of a request: no longer than it may be, no slower, and only as far as there is
//! room for it.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http_body::Body as _;
use hyper::body::Incoming;

use crate::edge;
use crate::memory_quota::SHORT;
use crate::mount::Mount;

/// How long a client may take with its body, and so much longer for each part of it: who sends a
/// byte now and then is not waited for.
const PATIENCE: Duration = Duration::from_secs(15);
const BYTES_A_SECOND: usize = 1024;

/// The body on one line.
pub(super) async fn read(body: Incoming, limit: usize, mount: &Mount) -> Result<Vec<u8>, String> {
    let too_late = || "The body did not arrive in time".to_owned();
    let too_long = || format!("The body has more than {limit} bytes");
    let expected = body.size_hint().exact().and_then(|n| usize::try_from(n).ok());
    if expected.is_some_and(|n| n > limit) {
        return Err(too_long());
    }
    let mut line = Vec::with_capacity(expected.unwrap_or(0).min(64 * 1024) + 1);
    let mut body = body;
    let quota = &mount.responder.quota;
    let mut reservation = quota.reservation();
    let mut began = None;
    loop {
        // Most bodies come along with their head, and then there is nothing to wait for.
        let frame = match poll_fn(|context| Poll::Ready(poll_frame(&mut body, context))).await {
            Poll::Ready(frame) => frame,
            Poll::Pending => {
                let began = *began.get_or_insert_with(edge::now);
                let earned = Duration::from_secs((line.len() / BYTES_A_SECOND) as u64);
                let left = (began + PATIENCE + earned).saturating_duration_since(edge::now());
                let next = poll_fn(|context| poll_frame(&mut body, context));
                let Ok(frame) = tokio::time::timeout(left.min(PATIENCE), next).await else {
                    return Err(too_late());
                };
                frame
            }
        };
        let Some(frame) = frame else { break };
        let frame = frame.map_err(|_| "The body was cut off".to_owned())?;
        if let Some(data) = frame.data_ref() {
            if line.len() + data.len() > limit {
                return Err(too_long());
            }
            line.extend_from_slice(data);
            if line.len() > SHORT {
                reservation
                    .grow(line.len())
                    .await
                    .map_err(|_| "There is no room for long bodies now")?;
                let since = |began| edge::now().saturating_duration_since(began);
                let slow = began.is_some_and(|began| since(began) > PATIENCE);
                if slow && quota.is_crowded() {
                    return Err(too_late());
                }
            }
        }
    }
    // Line ends are blanks in JSON; inside texts they cannot stand.
    if memchr::memchr2(b'\n', b'\r', &line).is_some() {
        line.iter_mut().filter(|b| matches!(b, b'\n' | b'\r')).for_each(|b| *b = b' ');
    }
    line.push(b'\n');
    Ok(line)
}

fn poll_frame(
    body: &mut Incoming,
    context: &mut Context<'_>,
) -> Poll<Option<Result<http_body::Frame<bytes::Bytes>, hyper::Error>>> {
    Pin::new(body).poll_frame(context)
}
