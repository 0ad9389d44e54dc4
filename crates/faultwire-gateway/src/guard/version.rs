//! Protocol versions: which are spoken here, and whether a request says the same everywhere.

use faultwire_contract::{Aspect, Condition, Contract, Line, Outcome};
use hyper::header::HeaderMap;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::failing::CallFailure;
use crate::header_params::decoded;
use crate::wire;

/// Versions that begin with a handshake.
pub(crate) const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// Versions whose requests stand for themselves.
pub(crate) const MODERN: [&str; 1] = ["2026-07-28"];

/// The status for a client that could speak another version.
const UPGRADE: u16 = 426;

/// What is wrong with a request's versions, and the number that MCP has for it.
pub(crate) struct Objection {
    pub failing: CallFailure,
    pub number: i64,
}

/// All versions, the newest first.
pub(crate) fn all() -> impl Iterator<Item = &'static str> {
    MODERN.into_iter().chain(LEGACY)
}

/// A message of a session: the version was agreed on, and may be named again.
pub(crate) fn in_session(
    contract: &Contract,
    headers: &HeaderMap,
    seen: Option<&Line<'_>>,
) -> Result<(), Box<Objection>> {
    let Some(version) = only_one(contract, headers)? else { return Ok(()) };
    if !LEGACY.contains(&version) {
        return Err(unsupported(contract, version, true, &LEGACY));
    }
    // Hardly any says more than that, and need not be taken apart.
    let says_more = |seen: &&Line<'_>| {
        let params = seen.params.unwrap_or_default().as_bytes();
        memchr::memmem::find(params, wire::PROTOCOL_VERSION.as_bytes()).is_some()
    };
    let said = seen.filter(says_more).and_then(|seen| Said::of(seen).version);
    match said {
        Some(body) if *body != *version => Err(two_versions(contract, version, &body)),
        _ => Ok(()),
    }
}

/// The first message of a session: what it proposes is what its head names, if that does.
pub(crate) fn at_first(
    contract: &Contract,
    headers: &HeaderMap,
    seen: &Line<'_>,
) -> Result<(), Box<Objection>> {
    let Some(head) = only_one(contract, headers)? else { return Ok(()) };
    let proposed =
        seen.params.and_then(|params| wire::member::<Box<str>>(params, "protocolVersion"));
    match proposed {
        Some(proposed) if *proposed == *head => Ok(()),
        _ if !LEGACY.contains(&head) => Err(unsupported(contract, head, true, &LEGACY)),
        Some(proposed) => Err(two_versions(contract, head, &proposed)),
        None => Ok(()),
    }
}

/// The version that the head names, which must not name two.
fn only_one<'h>(
    contract: &Contract,
    headers: &'h HeaderMap,
) -> Result<Option<&'h str>, Box<Objection>> {
    let first = named(headers);
    let mut all = headers.get_all(&wire::VERSION).iter();
    if all.any(|other| Some(other.to_str().unwrap_or("?")) != first) {
        return Err(conflict(contract, "The head names more than one version".to_owned()));
    }
    Ok(first)
}

fn missing(contract: &Contract, member: &str) -> Box<Objection> {
    let failing = CallFailure::finer(contract, Condition::InvalidArguments, Some(Aspect::Missing))
        .saying(format!("The request has no _meta[{member:?}]"))
        .outcome(Outcome::NotSent);
    Box::new(Objection { failing, number: wire::INVALID_PARAMS })
}

fn two_versions(contract: &Contract, head: &str, body: &str) -> Box<Objection> {
    let (head, body) = (shortened(contract, head), shortened(contract, body));
    conflict(contract, format!("The header names version {head:?}, the body {body:?}"))
}

/// A message without a session: it must say that it is of the modern era, in head and body alike.
pub(crate) fn statelessly(
    contract: &Contract,
    headers: &HeaderMap,
    seen: &Line<'_>,
) -> Result<(), Box<Objection>> {
    let (head, said) = (only_one(contract, headers)?, Said::of(seen));
    let spoken = |version: &str| all().any(|known| known == version);
    if let (Some(head), Some(body)) = (head, said.version.as_deref())
        && head != body
        && (spoken(head) || spoken(body))
    {
        return Err(two_versions(contract, head, body));
    }
    if let Some(version) = head.filter(|version| !spoken(version)) {
        return Err(unsupported(contract, version, true, &MODERN));
    }
    let modern = head.filter(|version| MODERN.contains(version));
    let is_request = seen.id.is_some();
    match (modern, said.version.as_deref()) {
        (_, Some(body)) if !MODERN.contains(&body) => {
            Err(unsupported(contract, body, false, &MODERN))
        }
        (Some(_), Some(_)) if is_request && !said.has_capabilities => {
            Err(missing(contract, wire::CLIENT_CAPABILITIES))
        }
        (Some(_), Some(_)) => header_params(contract, headers, seen, &said),
        (Some(_), None) if is_request => Err(missing(contract, wire::PROTOCOL_VERSION)),
        (Some(_), None) => Ok(()),
        (None, Some(body)) => {
            let why = format!(
                "The body names version {body}, but the header MCP-Protocol-Version is missing"
            );
            Err(conflict(contract, why))
        }
        (None, None) => Err(Box::new(Objection {
            failing: CallFailure::observed(contract, Condition::NotReady)
                .saying("No session; send initialize first")
                .outcome(Outcome::NotSent),
            number: wire::INVALID_REQUEST,
        })),
    }
}

/// What the head repeats of the body, so that others can go by it, must be true.
fn header_params(
    contract: &Contract,
    headers: &HeaderMap,
    seen: &Line<'_>,
    said: &Said,
) -> Result<(), Box<Objection>> {
    let method = seen.method.as_deref().unwrap_or_default();
    let target = match method {
        "tools/call" | "prompts/get" => said.name.as_deref(),
        "resources/read" => said.uri.as_deref(),
        _ => None,
    };
    for (header, body) in [("Mcp-Method", Some(method)), ("Mcp-Name", target)] {
        let Some(body) = body else { continue };
        let mut all = headers.get_all(header).iter();
        let only = all.next().filter(|_| all.next().is_none());
        let head = only.and_then(|value| value.to_str().ok()).and_then(decoded);
        match head {
            Some(head) if head == body => {}
            Some(head) => {
                let why = format!("The header {header} is {head:?}, but the body has {body:?}");
                return Err(conflict(contract, why));
            }
            None => {
                let why = format!("The header {header} must be present exactly once");
                return Err(conflict(contract, why));
            }
        }
    }
    Ok(())
}

pub(crate) fn named(headers: &HeaderMap) -> Option<&str> {
    headers.get(&wire::VERSION).map(|version| version.to_str().unwrap_or("?"))
}

/// Whether a request says that it is of the modern era, in its head or in its body.
pub(crate) fn is_modern(headers: &HeaderMap, seen: &Line<'_>) -> bool {
    let head = named(headers).is_some_and(|version| MODERN.contains(&version));
    head || Said::of(seen).version.is_some_and(|version| MODERN.contains(&&*version))
}

/// The method is not one of the modern era, although a server of the legacy one may know it.
pub(crate) fn removed(contract: &Contract, method: &str) -> Box<Objection> {
    let condition = Condition::UnknownMethod;
    let failing = CallFailure::observed(contract, condition)
        .saying(format!("{method} is not a method of version {}", MODERN[0]))
        .outcome(Outcome::NotSent);
    Box::new(Objection { failing, number: condition.rpc_code() })
}

/// The server speaks versions in which that has no counterpart.
pub(crate) fn not_carried(contract: &Contract, method: &str, spoken: &[&str]) -> Box<Objection> {
    let mut failing = CallFailure::observed(contract, Condition::UnsupportedVersion)
        .saying(format!(
            "{} is no method of the versions that the server speaks",
            shortened(contract, method)
        ))
        .outcome(Outcome::NotSent);
    failing.report.details = Some(json!({ "supported_versions": spoken }));
    Box::new(Objection { failing, number: Condition::UnsupportedVersion.rpc_code() })
}

/// The version is not supported here.
fn unsupported(
    contract: &Contract,
    version: &str,
    in_header: bool,
    instead: &[&str],
) -> Box<Objection> {
    let version = shortened(contract, version);
    let mut failing = CallFailure::observed(contract, Condition::UnsupportedVersion)
        .saying(format!("Version {version:?} is not supported here, or not in this form"))
        .outcome(Outcome::NotSent);
    let versions: Vec<_> = all().collect();
    failing.report.details = Some(json!({ "supported_versions": versions, "requested": version }));
    failing.beside = Some(json!({ "supported": instead, "requested": version }));
    let row = contract.code(&failing.report.code);
    failing.report.status =
        row.filter(|row| in_header && row.status.contains(&UPGRADE)).map(|_| UPGRADE);
    Box::new(Objection { failing, number: Condition::UnsupportedVersion.rpc_code() })
}

fn conflict(contract: &Contract, why: String) -> Box<Objection> {
    let failing = CallFailure::observed(contract, Condition::VersionConflict)
        .saying(why)
        .outcome(Outcome::NotSent);
    Box::new(Objection { failing, number: Condition::VersionConflict.rpc_code() })
}

/// What a client named, made safe before it is cut (X6).
fn shortened(contract: &Contract, text: &str) -> String {
    let safe = contract.redactor().redact_credentials(text);
    safe[..safe.floor_char_boundary(40)].to_owned()
}

/// What the body says that the head repeats.
#[derive(Default)]
struct Said {
    version: Option<Box<str>>,
    name: Option<Box<str>>,
    uri: Option<Box<str>>,
    /// Whether the client says what it can do, be it nothing.
    has_capabilities: bool,
}

impl Said {
    fn of(seen: &Line<'_>) -> Self {
        #[derive(Default, Deserialize)]
        struct Params<'a> {
            #[serde(borrow, default)]
            name: Option<&'a RawValue>,
            #[serde(borrow, default)]
            uri: Option<&'a RawValue>,
            #[serde(borrow, default, rename = "_meta")]
            meta: Option<&'a RawValue>,
        }
        #[derive(Default, Deserialize)]
        struct Meta<'a> {
            #[serde(borrow, default, rename = "io.modelcontextprotocol/protocolVersion")]
            version: Option<&'a RawValue>,
            #[serde(borrow, default, rename = "io.modelcontextprotocol/clientCapabilities")]
            capabilities: Option<&'a RawValue>,
        }
        let params = seen.params.filter(|raw| raw.starts_with('{'));
        let params: Params<'_> =
            params.and_then(|raw| serde_json::from_str(raw).ok()).unwrap_or_default();
        let meta = params.meta.map(RawValue::get).filter(|raw| raw.starts_with('{'));
        let meta: Meta<'_> =
            meta.and_then(|raw| serde_json::from_str(raw).ok()).unwrap_or_default();
        let text = |raw: Option<&RawValue>| serde_json::from_str(raw?.get()).ok();
        Self {
            version: text(meta.version),
            name: text(params.name),
            uri: text(params.uri),
            has_capabilities: meta.capabilities.is_some(),
        }
    }
}
