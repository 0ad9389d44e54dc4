//! The moment of a failure and the id it is found under (K5, O9).

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// What only the edge knows. Passed in, so that the rest is pure.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stamp {
    /// Milliseconds since the epoch.
    pub now_ms: i64,
    /// A uniform random number.
    pub random: u64,
    /// Whether the contract's switch for stacks is on (K2).
    pub show_stack: bool,
}

impl Stamp {
    /// ISO 8601 in UTC with milliseconds and `Z`.
    ///
    /// ```
    /// let stamp = faultwire_contract::Stamp { now_ms: 1_768_836_730_123, ..Default::default() };
    /// assert_eq!(stamp.timestamp(), "2026-01-19T15:32:10.123Z");
    /// ```
    #[must_use]
    pub fn timestamp(&self) -> String {
        format!("{:.3}", self.moment())
    }

    /// `inc_`, the UTC date, and an id that leads to the trace where there is one (O9).
    ///
    /// ```
    /// let stamp = faultwire_contract::Stamp { now_ms: 1_768_836_730_123, random: 7, show_stack: false };
    /// let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    /// assert_eq!(stamp.incident(Some(trace)), "inc_20260119_4bf92f3577b34da6a3ce929d0e0e4736");
    /// assert_eq!(stamp.incident(None), "inc_20260119_0000000000000007");
    /// ```
    #[must_use]
    pub fn incident(&self, trace: Option<&str>) -> String {
        let date = self.moment().to_zoned(TimeZone::UTC).date();
        let month = i32::from(date.year()) * 100 + i32::from(date.month());
        let day = month * 100 + i32::from(date.day());
        match trace.and_then(trace_id) {
            Some(id) => format!("inc_{day:08}_{id}"),
            None => format!("inc_{day:08}_{:016x}", self.random),
        }
    }

    /// The same edge at the moment that a report names, if it does.
    pub(crate) fn at(&self, timestamp: Option<&str>) -> Self {
        let named = timestamp.and_then(|t| t.parse::<Timestamp>().ok());
        Self { now_ms: named.map_or(self.now_ms, Timestamp::as_millisecond), ..*self }
    }

    fn moment(&self) -> Timestamp {
        Timestamp::from_millisecond(self.now_ms).unwrap_or(Timestamp::UNIX_EPOCH)
    }
}

/// Whether the text is a timestamp as K5 wants it.
#[must_use]
pub fn is_timestamp(text: &str) -> bool {
    let shape = text.len() == 24
        && text.ends_with('Z')
        && text.as_bytes()[19] == b'.'
        && text.as_bytes()[10] == b'T';
    shape && text.parse::<Timestamp>().is_ok()
}

/// The trace id of a `traceparent`, or the text itself when it can stand in an id.
fn trace_id(trace: &str) -> Option<String> {
    let parts: Vec<&str> = trace.trim().split('-').collect();
    let id = match parts[..] {
        [version, id, span, _flags, ..]
            if version.len() == 2 && id.len() == 32 && span.len() == 16 =>
        {
            id
        }
        _ => trace.trim(),
    };
    let fits = (1..=64).contains(&id.len());
    let plain = id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    // All zeros is how the trace context says that there is no trace.
    let is_one = id.bytes().any(|b| b != b'0');
    (fits && plain && is_one).then(|| id.to_ascii_lowercase())
}
