//! What HTTP says when it does not work, as failures of the contract.

use std::time::Duration;

use faultwire_contract::{Condition, Contract, Origin, Outcome, bound};
use hyper::StatusCode;
use hyper::header::{HeaderMap, RETRY_AFTER};
use serde::Deserialize;

use crate::edge;
use crate::failing::CallFailure;

/// How much of a page is told of.
const TOLD: usize = 200;

/// The server answered with a status that is no success, and with no reply.
pub(crate) fn of_status(
    contract: &Contract,
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
) -> CallFailure {
    let condition = match status.as_u16() {
        401 => Condition::Unauthorized,
        403 => Condition::Forbidden,
        408 | 504 => Condition::Timeout,
        429 => Condition::RateLimited,
        300..=399 | 404 | 405 | 410 | 421 | 502 | 503 => Condition::UpstreamUnreachable,
        _ => Condition::UpstreamProtocol,
    };
    // What a server refuses in this way it has not begun with.
    let outcome = match status.as_u16() {
        300..=399 | 401 | 403 | 404 | 405 | 410 | 413 | 415 | 421 | 429 => Outcome::NotSent,
        _ => Outcome::MaybeExecuted,
    };
    let mut failing = CallFailure::observed(contract, condition)
        .saying(told(contract, status, body))
        .outcome(outcome)
        .after(contract, retry_after(headers));
    failing.report.origin = Some(Origin::Upstream);
    failing.upstream_code = Some(status.as_u16().into());
    failing
}

/// The connection ended in the middle of an answer.
pub(crate) fn cut_off(contract: &Contract, why: &str) -> CallFailure {
    CallFailure::observed(contract, Condition::UpstreamCrashed)
        .saying(format!("The server's answer was cut off: {why}"))
        .outcome(Outcome::MaybeExecuted)
}

fn told(contract: &Contract, status: StatusCode, body: &[u8]) -> String {
    let reason = status.canonical_reason().unwrap_or("unknown");
    let mut told = format!("The server answered {} {reason}", status.as_u16());
    // What is redacted after it was cut may be half a secret that no rule knows any more (X6). What
    // is no credential may be the client's own, and is left to who knows the call.
    let text = String::from_utf8_lossy(body);
    let text = contract.redactor().redact_credentials(&text);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if !text.is_empty() && !text.starts_with('<') {
        told.push_str(": ");
        told.push_str(&bound::cut_unredacted(&text, TOLD));
    }
    told
}

/// Whether a server does not know the session: the protocol has 404 for that, and the servers made
/// with the official library answer 400 and say so, under no request's id. What is a reply to the
/// request itself is nothing else, unless it is 404 and names the session.
pub(crate) fn knows_no_session(status: StatusCode, body: &[u8], is_reply: bool) -> bool {
    #[derive(Deserialize)]
    struct Reply {
        error: Said,
    }
    #[derive(Deserialize)]
    struct Said {
        message: String,
    }
    let said = || serde_json::from_slice::<Reply>(body).ok();
    let names = |reply: Reply| reply.error.message.to_ascii_lowercase().contains("session");
    match status {
        StatusCode::NOT_FOUND => !is_reply || said().is_some_and(names),
        StatusCode::BAD_REQUEST => !is_reply && said().is_some_and(names),
        _ => false,
    }
}

/// How long to wait, in seconds or until a date.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let said = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let until = |moment: &str| {
        let until = jiff::fmt::rfc2822::parse(moment).ok()?.timestamp().as_millisecond();
        Some(u64::try_from(until).ok()?.saturating_sub(edge::unix_ms()))
    };
    let seconds = said.parse().ok().map(Duration::from_secs);
    let wait = seconds.or_else(|| until(said).map(Duration::from_millis))?;
    Some(wait.min(Duration::from_hours(24)))
}

#[cfg(test)]
mod tests {
    use faultwire_contract::BUILTINS;
    use hyper::StatusCode;

    use super::{TOLD, told};

    #[test]
    fn x6_a_secret_at_the_bound_of_a_body_is_redacted_first() {
        let contract = BUILTINS[0].contract();
        for lead in TOLD - 60..=TOLD {
            let body =
                format!("{} postgres://app:k4Zq9vTw2LmX8@db.example.com/x", "a".repeat(lead));
            let said = told(&contract, StatusCode::BAD_GATEWAY, body.as_bytes());
            assert!(!said.contains("k4Zq"), "{said}");
        }
    }
}
