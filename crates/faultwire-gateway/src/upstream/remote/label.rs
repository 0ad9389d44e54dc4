//! What is written on the outside of a message that goes by HTTP.

use faultwire_contract::Line;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::guard::version;
use crate::upstream::remote::VERSION;

static METHOD: HeaderName = HeaderName::from_static("mcp-method");
static NAME: HeaderName = HeaderName::from_static("mcp-name");

/// What a message says of itself, as far as HTTP wants to know.
pub(super) struct Label {
    pub id: Option<Box<str>>,
    pub method: Option<Box<str>>,
    /// The tool, prompt or resource, in the modern era.
    pub name: Option<Box<str>>,
    /// The version, in the modern era.
    pub version: Option<Box<str>>,
}

impl Label {
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
        let params = seen.params.map(RawValue::get).filter(|raw| raw.starts_with('{'));
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

    /// The headers that the modern era wants.
    pub(super) fn put(&self, headers: &mut HeaderMap) {
        let Some(version) = &self.version else { return };
        let members = [
            (&VERSION, Some(version)),
            (&METHOD, self.method.as_ref()),
            (&NAME, self.name.as_ref()),
        ];
        for (name, value) in members {
            let value = value.map(|value| version::encoded(value));
            if let Some(value) = value.and_then(|v| HeaderValue::from_str(&v).ok()) {
                headers.insert(name, value);
            }
        }
    }
}
