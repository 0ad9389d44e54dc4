//! How deep in JSON one is, byte by byte, without building it.

/// Brackets that are open, as far as was read.
#[derive(Debug, Default)]
pub struct Nesting {
    depth: usize,
    text: bool,
    escaped: bool,
}

impl Nesting {
    /// Reads one byte more.
    pub fn read(&mut self, byte: u8) {
        if self.text {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.text = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => self.text = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }

    /// How many brackets are open.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Whether a text is open.
    #[must_use]
    pub fn in_text(&self) -> bool {
        self.text
    }
}

/// Whether the JSON is nested deeper than `limit`.
#[must_use]
pub fn deeper_than(json: &[u8], limit: usize) -> bool {
    // Fewer openings than that cannot be so deep, and counting them is quick.
    if memchr::memchr2_iter(b'{', b'[', json).nth(limit).is_none() {
        return false;
    }
    let mut nesting = Nesting::default();
    json.iter().any(|byte| {
        nesting.read(*byte);
        nesting.depth() > limit
    })
}
