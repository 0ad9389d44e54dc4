//! What is written on the outside of a message that goes by HTTP.

use faultwire_contract::Line;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::header_params;
use crate::wire;

static METHOD: HeaderName = HeaderName::from_static("mcp-method");
static NAME: HeaderName = HeaderName::from_static("mcp-name");

/// What a message says of itself, as far as HTTP wants to know.
pub(super) struct MessageHeaders {
    pub id: Option<Box<str>>,
    pub method: Option<Box<str>>,
    /// The tool, prompt or resource. Only the modern era asks for it.
    pub name: Option<Box<str>>,
    /// The version, in the modern era.
    pub version: Option<Box<str>>,
}

impl MessageHeaders {
    pub(super) fn of(seen: &Line<'_>) -> Self {
        #[derive(Default, Deserialize)]
        struct Params<'a> {
            #[serde(default)]
            name: Option<Box<str>>,
            #[serde(default)]
            uri: Option<Box<str>>,
            #[serde(borrow, default, rename = "_meta")]
            meta: Option<&'a RawValue>,
        }
        #[derive(Default, Deserialize)]
        struct Meta {
            #[serde(default, rename = "io.modelcontextprotocol/protocolVersion")]
            version: Option<Box<str>>,
        }
        // A message that does not name the version anywhere need not be taken apart.
        let names = |raw: &&str| {
            let raw = raw.as_bytes();
            memchr::memmem::find(raw, b"protocolVersion").is_some()
                || memchr::memchr(b'\\', raw).is_some()
        };
        let params = seen.params.filter(|raw| raw.starts_with('{'));
        let params = params.filter(names);
        let params: Params<'_> =
            params.and_then(|raw| serde_json::from_str(raw).ok()).unwrap_or_default();
        let meta: Meta =
            params.meta.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        let is_request = seen.method.is_some();
        Self {
            id: seen.id.filter(|_| is_request).map(Into::into),
            method: seen.method.as_deref().map(Into::into),
            name: params.name.or(params.uri),
            version: meta.version,
        }
    }

    /// Whether a reply is the one to this request, however it spells the id.
    pub(super) fn is_answered_by(&self, reply: &Line<'_>) -> bool {
        let same = |(own, other): (&str, &str)| own == other || wire::same(own, other);
        self.id.as_deref().zip(reply.id).is_some_and(same)
    }

    /// The headers that the modern era wants.
    pub(super) fn put(&self, headers: &mut HeaderMap) {
        let Some(version) = &self.version else { return };
        let members = [
            (&wire::VERSION, Some(version)),
            (&METHOD, self.method.as_ref()),
            (&NAME, self.name.as_ref()),
        ];
        for (name, value) in members {
            let value = value.map(|value| header_params::encoded(value));
            if let Some(value) = value.and_then(|v| HeaderValue::from_str(&v).ok()) {
                headers.insert(name, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use faultwire_contract::peek;

    use super::*;

    #[test]
    fn the_version_is_found_however_its_name_is_written() {
        let names = [
            "io.modelcontextprotocol/protocolVersion",
            r"io.modelcontextprotocol\/protocolVersion",
            r"io.modelcontextprotocol/protocol\u0056ersion",
        ];
        for name in names {
            let params = format!(r#"{{"name":"ok","_meta":{{"{name}":"2026-07-28"}}}}"#);
            let line =
                format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{params}}}"#);
            let message = MessageHeaders::of(&peek(line.as_bytes()));
            assert_eq!(message.version.as_deref(), Some("2026-07-28"), "{line}");
            assert_eq!(message.name.as_deref(), Some("ok"));
            assert_eq!(
                (message.id.as_deref(), message.method.as_deref()),
                (Some("7"), Some("tools/call"))
            );
        }
    }

    #[test]
    fn a_version_elsewhere_is_none_of_the_message() {
        let elsewhere = [
            r#"{"name":"ok"}"#,
            r#"{"protocolVersion":"2025-11-25"}"#,
            r#"{"name":"ok","arguments":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#,
            r#"["io.modelcontextprotocol/protocolVersion"]"#,
        ];
        for params in elsewhere {
            let line = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"x","params":{params}}}"#);
            let message = MessageHeaders::of(&peek(line.as_bytes()));
            assert_eq!((message.version, message.id.as_deref()), (None, Some("7")), "{line}");
        }
    }
}
