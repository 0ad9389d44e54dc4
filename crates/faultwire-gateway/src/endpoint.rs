//! A server behind a URL: where it is, and what it wants.

use hyper::Uri;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};

use crate::header_params;

/// Headers that say how a message is sent, and those of the protocol: the gateway's own.
const OWN_HEADERS: [&str; 19] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "keep-alive",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "proxy-connection",
    "te",
    "traceparent",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// A server behind a URL.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Where it is.
    pub url: Uri,
    /// Headers that it wants, such as one that says who we are.
    pub headers: HeaderMap,
    /// Authorities to trust beside the usual ones, in PEM.
    pub trust: Option<Vec<u8>>,
}

/// Why a URL cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// It is no URL of a server.
    #[error("{0:?} is not an http:// or https:// URL with a host")]
    Url(String),
    /// The header has no such name or value.
    #[error("{0:?} cannot be a header")]
    Header(String),
    /// The header is not for others to set.
    #[error("the header {0:?} is set by the gateway itself")]
    OwnHeader(String),
    /// The authorities to trust cannot be read.
    #[error("the trusted certificates are not valid PEM")]
    Trust,
}

impl Endpoint {
    /// A server that needs nothing but its URL.
    pub fn at(url: &str) -> Result<Self, RemoteError> {
        let wrong = || RemoteError::Url(url.to_owned());
        let url: Uri = url.parse().map_err(|_| wrong())?;
        let known = matches!(url.scheme_str(), Some("http" | "https"));
        if !known || url.host().is_none_or(str::is_empty) {
            return Err(wrong());
        }
        Ok(Self { url, headers: HeaderMap::new(), trust: None })
    }

    /// Sends this header, too.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, RemoteError> {
        let wrong = || RemoteError::Header(name.to_owned());
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| wrong())?;
        let is_argument = header.as_str().starts_with(header_params::PREFIX);
        if is_argument || OWN_HEADERS.contains(&header.as_str()) {
            return Err(RemoteError::OwnHeader(name.to_owned()));
        }
        value.set_sensitive(true);
        self.headers.insert(header, value);
        Ok(self)
    }
}
