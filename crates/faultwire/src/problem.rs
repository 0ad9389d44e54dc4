//! Failures as answers of axum: the contract's HTTP surface, which for most is Problem Details
//! (RFC 9457), with `Retry-After` where the failure names a delay.
//!
//! ```
//! use axum::{Router, routing::get};
//! use faultwire::audit::{Log, Options};
//! use faultwire::{ProblemLayer, owlclaw};
//! # let dir = std::env::temp_dir().join(format!("faultwire-problem-{}", std::process::id()));
//!
//! async fn price() -> Result<String, owlclaw::Failure> {
//!     Err(owlclaw::dependency_unavailable().message("The exchange is closed").into())
//! }
//!
//! let log = Log::open(&dir, Options::default())?;
//! let app: Router = Router::new()
//!     .route("/price", get(price))
//!     .layer(ProblemLayer::<owlclaw::Code>::new(log));
//! # drop(app);
//! # std::fs::remove_dir_all(dir)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::convert::Infallible;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::extract::Request;
use axum::http::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, TRANSFER_ENCODING,
    WWW_AUTHENTICATE,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use faultwire_contract::{Condition, Fault, Profile, Report, Surface};
use tower_layer::Layer;
use tower_service::Service;

use crate::audit::{Call, Log};
use crate::edge;
use crate::failure::Failure;
use crate::set::CodeSet;
use crate::typed::TypedCode;
use crate::watch::{Ended, keep_stacks, observed, watch};

/// The default deadline of a handler.
const DEADLINE: Duration = Duration::from_mins(1);
/// How long to wait for the body of an answer that is not an envelope.
const BODY_PATIENCE: Duration = Duration::from_secs(1);
/// How much of an answer that is not an envelope is reported.
const MOST_TOLD: usize = 4096;

/// What a handler returned, for the layer, which makes a better answer of it.
#[derive(Clone)]
struct Said(Box<Report>);

impl<S: CodeSet> IntoResponse for Failure<S> {
    /// The contract's HTTP surface. Without a [`ProblemLayer`] it is not recorded.
    fn into_response(self) -> Response {
        let said = Said(Box::new(self.report().clone()));
        let fault = self.into_fault();
        let envelope = fault.envelope(Surface::Http, Profile::default());
        let mut response = response(&fault, envelope);
        response.extensions_mut().insert(said);
        response
    }
}

/// Records every failure of a service and answers it under the contract of `C`: failures that
/// handlers return, panics, timeouts, rejections and unknown paths.
pub struct ProblemLayer<C> {
    log: Log,
    deadline: Duration,
    code: PhantomData<fn() -> C>,
}

/// A service with that layer around it.
pub struct Problems<C, S> {
    inner: S,
    log: Log,
    deadline: Duration,
    code: PhantomData<fn() -> C>,
}

impl<C: TypedCode> ProblemLayer<C> {
    /// Failures are recorded in this log.
    #[must_use]
    pub fn new(log: Log) -> Self {
        keep_stacks::<C>();
        Self { log, deadline: DEADLINE, code: PhantomData }
    }

    /// How long an answer may take. A minute without it.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }
}

impl<C> Clone for ProblemLayer<C> {
    fn clone(&self) -> Self {
        Self { log: self.log.clone(), deadline: self.deadline, code: PhantomData }
    }
}

impl<C, S: Clone> Clone for Problems<C, S> {
    fn clone(&self) -> Self {
        let (inner, log) = (self.inner.clone(), self.log.clone());
        Self { inner, log, deadline: self.deadline, code: PhantomData }
    }
}

impl<C, S> Layer<S> for ProblemLayer<C> {
    type Service = Problems<C, S>;

    fn layer(&self, inner: S) -> Self::Service {
        Problems { inner, log: self.log.clone(), deadline: self.deadline, code: PhantomData }
    }
}

impl<C, S> Service<Request> for Problems<C, S>
where
    C: TypedCode,
    S: Service<Request, Response = Response, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let asked = Asked::of(&request);
        // The clone is not ready; the one that is, is used.
        let next = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, next);
        let (log, deadline) = (self.log.clone(), self.deadline);
        Box::pin(async move {
            let handler = async move { inner.call(request).await };
            let ended = watch(handler, deadline, std::future::pending()).await;
            Ok(asked.settle::<C>(&log, ended).await)
        })
    }
}

/// What is known of a request before it is answered.
struct Asked {
    since: Instant,
    /// Method and path.
    what: String,
    trace: Option<String>,
}

impl Asked {
    fn of(request: &Request) -> Self {
        let trace = request.headers().get("traceparent").and_then(|trace| trace.to_str().ok());
        Self {
            since: edge::now(),
            what: format!("{} {}", request.method(), request.uri().path()),
            trace: trace.map(str::to_owned),
        }
    }

    async fn settle<C: TypedCode>(
        self,
        log: &Log,
        ended: Ended<Result<Response, Infallible>>,
    ) -> Response {
        let mut kept = HeaderMap::new();
        let mut report = match ended.or_report::<C>() {
            Ok(Ok(mut response)) => match response.extensions_mut().remove::<Said>() {
                Some(Said(report)) => report,
                None if is_failure(response.status()) => {
                    kept = response.headers().clone();
                    refused::<C>(response).await
                }
                None => return response,
            },
            Err(report) => report,
        };
        let elapsed = edge::now().saturating_duration_since(self.since);
        report.method.get_or_insert(self.what);
        report.trace = report.trace.take().or(self.trace);
        report.meta.elapsed_ms =
            report.meta.elapsed_ms.or_else(|| u64::try_from(elapsed.as_millis()).ok());
        let fault = Failure::<C>::told(report).into_fault();
        let call = Call { elapsed_ms: fault.public().meta.elapsed_ms, ..Call::default() };
        let answer = log.answer_async(fault, &call, Surface::Http, Profile::default()).await;
        let mut answer = response(&answer.fault, answer.envelope);
        // Headers that others set are kept: Allow, cookies, a challenge.
        for own in [CONTENT_TYPE, CONTENT_LENGTH, CONTENT_ENCODING, TRANSFER_ENCODING, RETRY_AFTER]
        {
            kept.remove(own);
        }
        answer.headers_mut().extend(kept);
        answer
    }
}

fn is_failure(status: StatusCode) -> bool {
    status.is_client_error() || status.is_server_error()
}

/// The report for an answer of an extractor or the router.
async fn refused<C: TypedCode>(response: Response) -> Box<Report> {
    let (head, body) = response.into_parts();
    // The wait for a body is bounded.
    let said = tokio::time::timeout(BODY_PATIENCE, axum::body::to_bytes(body, MOST_TOLD)).await;
    let said = said.ok().and_then(Result::ok).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    let reason = head.status.canonical_reason().unwrap_or("Failed");
    let message = if said.trim().is_empty() { reason } else { said.trim() };
    let mut report = observed::<C>(Condition::of_status(head.status.as_u16()), message);
    let row = C::contract().code(&report.code);
    let takes = row.is_some_and(|row| row.retry.iter().any(|class| class.takes_delay()));
    report.retry_after_ms = retry_after_ms(&head.headers).filter(|_| takes);
    report
}

fn retry_after_ms(headers: &HeaderMap) -> Option<u64> {
    let seconds: u64 = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(seconds.saturating_mul(1000))
}

/// A fault on the HTTP surface.
fn response(fault: &Fault, envelope: Vec<u8>) -> Response {
    let status = StatusCode::from_u16(fault.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status, envelope).into_response();
    let headers = response.headers_mut();
    let media = fault.contract().content_type(Surface::Http);
    let media = HeaderValue::from_str(media);
    headers.insert(CONTENT_TYPE, media.unwrap_or(HeaderValue::from_static("application/json")));
    if let Some(delay) = fault.retry_after() {
        let seconds = delay.as_millis().div_ceil(1000);
        headers.insert(RETRY_AFTER, HeaderValue::from(u64::try_from(seconds).unwrap_or(u64::MAX)));
    }
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}
