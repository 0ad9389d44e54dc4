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
        let moment = TimeZone::UTC.to_datetime(self.moment());
        // Formatting has its price, and each failure is stamped.
        let mut text = *b"0000-00-00T00:00:00.000Z";
        digits(&mut text[..4], moment.year());
        digits(&mut text[5..7], moment.month().into());
        digits(&mut text[8..10], moment.day().into());
        digits(&mut text[11..13], moment.hour().into());
        digits(&mut text[14..16], moment.minute().into());
        digits(&mut text[17..19], moment.second().into());
        digits(&mut text[20..23], moment.millisecond());
        ascii(&text).to_owned()
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
        let date = TimeZone::UTC.to_datetime(self.moment()).date();
        let mut head = *b"inc_00000000_";
        digits(&mut head[4..8], date.year());
        digits(&mut head[8..10], date.month().into());
        digits(&mut head[10..12], date.day().into());
        let mut text = String::with_capacity(head.len() + 32);
        text.push_str(ascii(&head));
        if let Some(id) = trace.and_then(trace_id) {
            text.push_str(&id);
        } else {
            let mut id = [0; 16];
            for (digit, place) in id.iter_mut().zip((0..16).rev()) {
                *digit = hex(self.random >> (4 * place));
            }
            text.push_str(ascii(&id));
        }
        text
    }

    /// The same edge at the moment that a report names, if it does.
    pub(crate) fn at(&self, timestamp: Option<&str>) -> Self {
        let named = timestamp.and_then(|t| t.parse::<Timestamp>().ok());
        Self { now_ms: named.map_or(self.now_ms, Timestamp::as_millisecond), ..*self }
    }

    /// Times before the year 0 cannot be written, and no clock has them.
    fn moment(&self) -> Timestamp {
        let moment = Timestamp::from_millisecond(self.now_ms).ok();
        moment.filter(|m| *m >= YEAR_ZERO).unwrap_or(Timestamp::UNIX_EPOCH)
    }
}

const YEAR_ZERO: Timestamp = Timestamp::constant(-62_167_219_200, 0);

/// Writes the number with as many digits as there are places.
fn digits(places: &mut [u8], number: i16) {
    let mut left = number.unsigned_abs();
    for place in places.iter_mut().rev() {
        *place = b"0123456789"[usize::from(left % 10)];
        left /= 10;
    }
}

/// The last four bits as a digit.
fn hex(number: u64) -> u8 {
    b"0123456789abcdef"[usize::try_from(number % 16).unwrap_or(0)]
}

/// What was just written in ASCII.
fn ascii(text: &[u8]) -> &str {
    str::from_utf8(text).unwrap_or_default()
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
    // All zeros means "no trace" in a trace context.
    let is_one = id.bytes().any(|b| b != b'0');
    (fits && plain && is_one).then(|| id.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k5_o9_every_moment_is_written_as_the_calendar_has_it() {
        let year = 31_556_952_000;
        let moments = (0..9_999).map(|n| n * year + n * 86_399_977 - 62_167_219_200_000);
        for now_ms in moments.chain([0, -1, 951_782_399_999, 951_782_400_000]) {
            let stamp = Stamp { now_ms, random: 0xfe_dcba_9876, show_stack: false };
            let moment = stamp.moment();
            assert_eq!(stamp.timestamp(), format!("{moment:.3}"));
            let day = moment.strftime("%Y%m%d");
            assert_eq!(stamp.incident(None), format!("inc_{day}_000000fedcba9876"));
        }
    }

    #[test]
    fn what_no_clock_says_is_the_epoch() {
        for now_ms in [i64::MIN, i64::MAX, -62_167_219_200_001] {
            let stamp = Stamp { now_ms, ..Stamp::default() };
            assert_eq!(stamp.timestamp(), "1970-01-01T00:00:00.000Z");
        }
    }
}
