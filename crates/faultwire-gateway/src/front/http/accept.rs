//! What a client takes for an answer.

use std::sync::Arc;

use faultwire_contract::Surface;
use hyper::header::{ACCEPT, HeaderMap};

use crate::call::{ClientContext, RequestContext};
use crate::guard::refusals::Stranger;
use crate::wire;

/// What a client takes for an answer, and which trace it belongs to.
#[derive(Clone, Copy)]
pub(crate) struct Accept<'a> {
    pub streams: bool,
    pub surface: Surface,
    pub trace: Option<&'a str>,
    /// Who asks, if nothing else is known of the client.
    pub stranger: Option<&'a Stranger<'a>>,
}

impl<'a> Accept<'a> {
    /// As the head of its request says.
    pub(crate) fn of(headers: &'a HeaderMap) -> Self {
        let trace = headers.get(&wire::TRACE).and_then(|trace| trace.to_str().ok());
        let trace = trace.filter(|trace| wire::is_traceparent(trace));
        let accepted = headers.get_all(ACCEPT).iter().filter_map(|accept| accept.to_str().ok());
        let (mut streams, mut problems) = (false, false);
        for media in accepted.flat_map(|accept| accept.split(',')) {
            streams |= is_wanted(media, "text/event-stream");
            problems |= is_wanted(media, "application/problem+json");
        }
        // Who takes problem details and nothing of MCP asks as a client of HTTP.
        let surface = if !streams && problems { Surface::Http } else { Surface::Mcp };
        Self { streams, surface, trace, stranger: None }
    }

    /// Who asks in this way. Where the answer goes has still to be said.
    pub(crate) fn context<'p>(&self, client: &'p Arc<ClientContext>) -> RequestContext<'p>
    where
        'a: 'p,
    {
        RequestContext {
            surface: self.surface,
            trace: self.trace,
            stranger: self.stranger,
            ..client.plainly()
        }
    }
}

/// Whether an entry of `Accept` is this media type, and wanted.
fn is_wanted(entry: &str, media: &str) -> bool {
    let (name, parameters) = entry.split_once(';').unwrap_or((entry, ""));
    let is_none = |parameter: &str| {
        let weight = parameter.trim().strip_prefix("q=").and_then(|q| q.parse::<f32>().ok());
        weight == Some(0.0)
    };
    name.trim().eq_ignore_ascii_case(media) && !parameters.split(';').any(is_none)
}
