//! A policy for the retry layer of tower: requests over HTTP are sent again when, and only when,
//! the failure says that they may.
//!
//! ```
//! use faultwire::RetryPolicy;
//! use faultwire::client::Reader;
//! use tower::ServiceBuilder;
//!
//! let policy = RetryPolicy::new(Reader::builtin()).retries(2);
//! let builder = ServiceBuilder::new().retry(policy);
//! # drop(builder);
//! ```

use bytes::Bytes;
use faultwire_contract::Safety;
use http::header::RETRY_AFTER;
use http::{Method, Request, Response};
use tokio::time::{Sleep, sleep};
use tower::retry::Policy;

use crate::client::{Reader, RetryContext};

/// The default number of retries of a request.
const RETRIES: u32 = 3;

/// Follows the class and delay of failures, and whether sending twice is safe. A request whose
/// method is neither safe nor idempotent is idempotent if it has an `Idempotency-Key`.
#[derive(Clone, Debug)]
pub struct RetryPolicy {
    reader: Reader,
    attempt: u32,
    left: u32,
}

impl RetryPolicy {
    /// Failures are read by this reader.
    #[must_use]
    pub fn new(reader: Reader) -> Self {
        Self { reader, attempt: 1, left: RETRIES }
    }

    /// How often one request may be sent again. Three times without it.
    #[must_use]
    pub fn retries(mut self, retries: u32) -> Self {
        self.left = retries;
        self
    }
}

impl<B: Clone, E> Policy<Request<B>, Response<Bytes>, E> for RetryPolicy {
    type Future = Sleep;

    fn retry(
        &mut self,
        request: &mut Request<B>,
        result: &mut Result<Response<Bytes>, E>,
    ) -> Option<Sleep> {
        let response = result.as_ref().ok()?;
        let after = response.headers().get(RETRY_AFTER).and_then(|after| after.to_str().ok());
        let failure = self.reader.http(response.status().as_u16(), after, response.body())?;
        let (attempt, budget) = (self.attempt, Some(self.left));
        let delay =
            failure.verdict(&RetryContext { attempt, safety: safety(request), budget }).delay?;
        self.attempt += 1;
        self.left = self.left.saturating_sub(1);
        Some(sleep(delay))
    }

    fn clone_request(&mut self, request: &Request<B>) -> Option<Request<B>> {
        Some(request.clone())
    }
}

/// What is known of a request by its method (RFC 9110).
fn safety<B>(request: &Request<B>) -> Safety {
    match *request.method() {
        Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE => Safety::ReadOnly,
        Method::PUT | Method::DELETE => Safety::Idempotent,
        _ if request.headers().contains_key("idempotency-key") => Safety::Idempotent,
        _ => Safety::Unknown,
    }
}
