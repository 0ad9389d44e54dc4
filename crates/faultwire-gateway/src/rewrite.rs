//! A line that says something else in a few places. It is put together once, where it goes.

use std::borrow::Cow;
use std::ops::Range;

/// A line and what is put into it.
pub(crate) struct Rewrite<'a> {
    line: &'a [u8],
    patches: Vec<(Range<usize>, Cow<'a, str>)>,
}

impl<'a> Rewrite<'a> {
    /// The line as it is.
    pub(crate) fn new(line: &'a [u8]) -> Self {
        Self { line: line.trim_ascii_end(), patches: Vec::new() }
    }

    /// Says something else in place of a part of the line. What is no part of it stays as it is.
    pub(crate) fn instead_of(&mut self, part: &str, text: impl Into<Cow<'a, str>>) {
        if let Some(start) = self.place(part) {
            self.patches.push((start..start + part.len(), text.into()));
        }
    }

    /// Says something more, right after the first byte of a part of the line.
    pub(crate) fn inside(&mut self, part: &str, text: impl Into<Cow<'a, str>>) {
        if let Some(start) = self.place(part) {
            self.patches.push((start + 1..start + 1, text.into()));
        }
    }

    /// The whole line, without an end.
    pub(crate) fn to_vec(&self) -> Vec<u8> {
        let more: usize = self.patches.iter().map(|(_, text)| text.len()).sum();
        let less: usize = self.patches.iter().map(|(place, _)| place.len()).sum();
        let mut all = Vec::with_capacity(self.line.len() + more - less);
        let mut patches: Vec<_> = self.patches.iter().collect();
        patches.sort_by_key(|(place, _)| place.start);
        let mut done = 0;
        for (place, text) in patches {
            all.extend_from_slice(&self.line[done..place.start]);
            all.extend_from_slice(text.as_bytes());
            done = place.end;
        }
        all.extend_from_slice(&self.line[done..]);
        all
    }

    /// Where a part of the line begins.
    fn place(&self, part: &str) -> Option<usize> {
        let start = (part.as_ptr() as usize).checked_sub(self.line.as_ptr() as usize)?;
        let same = self.line.get(start..start + part.len())? == part.as_bytes();
        (same && !part.is_empty()).then_some(start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_replaced_where_they_stand() {
        let line = r#"{"a":1,"b":{"c":1}}"#;
        let mut rewrite = Rewrite::new(line.as_bytes());
        rewrite.inside(&line[11..18], r#""d":3,"#);
        rewrite.instead_of(&line[5..6], "\"two\"");
        rewrite.instead_of("elsewhere", "no");
        assert_eq!(rewrite.to_vec(), br#"{"a":"two","b":{"d":3,"c":1}}"#);
        assert_eq!(Rewrite::new(b"{} \n").to_vec(), b"{}");
    }
}
