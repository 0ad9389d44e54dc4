//! Where a call stands in the trace of its client.

use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};

use crate::{edge, wire};

/// Where a call stands in its trace.
pub(crate) struct Traced {
    pub context: SpanContext,
    pub parent: SpanId,
}

impl Traced {
    /// A part of the client's trace, or the beginning of one.
    pub(crate) fn begin(parent: Option<&str>) -> Self {
        let (trace, parent, flags) = parent.and_then(parsed).unwrap_or_else(|| {
            let id = u128::from(edge::random()) << 64 | u128::from(edge::random()) | 1;
            (TraceId::from(id), SpanId::INVALID, TraceFlags::SAMPLED)
        });
        let own = SpanId::from(edge::random() | 1);
        let context = SpanContext::new(trace, own, flags, false, TraceState::NONE);
        Self { context, parent }
    }

    /// The `traceparent` for the next hop.
    pub(crate) fn traceparent(&self) -> String {
        let (trace, own) = (self.context.trace_id(), self.context.span_id());
        format!("00-{trace}-{own}-{:02x}", self.context.trace_flags().to_u8())
    }
}

fn parsed(traceparent: &str) -> Option<(TraceId, SpanId, TraceFlags)> {
    if !wire::is_traceparent(traceparent) {
        return None;
    }
    let mut parts = traceparent.trim().split('-').skip(1);
    let trace = TraceId::from_hex(parts.next()?).ok()?;
    let parent = SpanId::from_hex(parts.next()?).ok()?;
    let flags = u8::from_str_radix(parts.next()?, 16).ok()?;
    Some((trace, parent, TraceFlags::new(flags) & TraceFlags::SAMPLED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn o9_the_trace_of_the_client_goes_on() {
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let traced = Traced::begin(Some(parent));
        let next = traced.traceparent();
        assert_eq!(next[..36], parent[..36], "the same trace");
        assert_ne!(next[36..52], parent[36..52], "a span of its own");
        assert!(next.ends_with("-01"));
        let unsampled = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
        assert!(!Traced::begin(Some(unsampled)).context.is_sampled());
        let none = [
            "",
            "00",
            "00-0-0-00",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4bf92f3577b34da6a3ce929d0e0e473é-00f067aa0ba902b7-01",
        ];
        for none in none {
            assert_eq!(Traced::begin(Some(none)).parent, SpanId::INVALID, "{none}");
        }
    }
}
