//! A message that a server printed over several lines: its parts, until they are whole.

use std::time::{Duration, Instant};

use faultwire_contract::nesting::Nesting;

/// Parts come at once or not at all.
pub(crate) const PATIENCE: Duration = Duration::from_millis(200);

/// The beginning of a message whose end has not come.
pub(crate) struct Fragment {
    bytes: Vec<u8>,
    nesting: Nesting,
    since: Instant,
}

/// What a part made of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Joined {
    /// More must come.
    Open,
    /// All brackets are closed; line breaks have become blanks.
    Whole,
    /// No further part can make a message of it.
    Broken,
}

impl Fragment {
    /// Begins with a line that is cut off, if it can go on in the next one.
    pub(crate) fn begin(line: &[u8], now: Instant) -> Option<Self> {
        let mut fragment = Self { bytes: Vec::new(), nesting: Nesting::default(), since: now };
        (fragment.push(line, usize::MAX) == Joined::Open).then_some(fragment)
    }

    pub(crate) fn push(&mut self, line: &[u8], limit: usize) -> Joined {
        let line = line.trim_ascii_end();
        if self.bytes.len() + line.len() > limit {
            return Joined::Broken;
        }
        for byte in line {
            self.nesting.read(*byte);
        }
        self.bytes.extend_from_slice(line);
        // No text goes over a line end.
        match (self.nesting.in_text(), self.nesting.depth()) {
            (true, _) => Joined::Broken,
            (false, 0) => Joined::Whole,
            (false, _) => {
                self.bytes.push(b' ');
                Joined::Open
            }
        }
    }

    /// A part came: the next one may take as long again.
    pub(crate) fn touch(&mut self, now: Instant) {
        self.since = now;
    }

    /// Everything so far.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The whole message as one line.
    pub(crate) fn into_line(mut self) -> Vec<u8> {
        self.bytes.push(b'\n');
        self.bytes
    }

    /// How much longer its rest is awaited.
    pub(crate) fn patience(&self, now: Instant) -> Duration {
        (self.since + PATIENCE).saturating_duration_since(now)
    }
}
