//! Host and Origin: a page in a browser must not reach a gateway on this machine.

use hyper::header::HeaderMap;
use hyper::{Response, StatusCode};

use crate::body::Body;
use crate::front::http::accept::Accept;
use crate::front::http::answer::refuse;
use crate::gateway::Gateway;
use crate::guard::refusals::Stranger;
use faultwire_contract::Condition;

/// The answer to a request that comes from where none may.
pub(crate) async fn refused(
    gateway: &Gateway,
    stranger: &Stranger<'_>,
    path: &str,
    headers: &HeaderMap,
) -> Option<Response<Body>> {
    let why = gateway.hosts.objection(headers)?;
    let trace = Accept::of(headers).trace;
    let client = &gateway.anybody_at(path);
    let mut answer = refuse(client, stranger, trace, Condition::Forbidden, why).await;
    // Whatever the contract's own status for this is, a browser must see that it may not.
    *answer.status_mut() = StatusCode::FORBIDDEN;
    Some(answer)
}
