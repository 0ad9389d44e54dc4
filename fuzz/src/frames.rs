//! Framing: whatever comes, in whichever pieces, no byte of a line within the limit is lost,
//! doubled or moved, and no more is held than the limit allows.
#![no_main]

use std::io::Read;

use faultwire_gateway::frame::{Frame, Frames};
use libfuzzer_sys::fuzz_target;

/// Gives its bytes in pieces of the sizes that the input itself names.
struct Pieces<'a> {
    bytes: &'a [u8],
    sizes: std::iter::Cycle<std::slice::Iter<'a, u8>>,
}

impl Read for Pieces<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let size = usize::from(*self.sizes.next().unwrap_or(&1)).max(1);
        let n = size.min(into.len()).min(self.bytes.len());
        into[..n].copy_from_slice(&self.bytes[..n]);
        self.bytes = &self.bytes[n..];
        Ok(n)
    }
}

fuzz_target!(|data: &[u8]| {
    let [limit, count, rest @ ..] = data else { return };
    let (limit, count) = (usize::from(*limit) + 1, usize::from(*count % 8) + 1);
    if rest.len() < count {
        return;
    }
    let (sizes, bytes) = rest.split_at(count);
    let mut source = Pieces { bytes, sizes: sizes.iter().cycle() };
    let mut frames = Frames::new(limit);
    let mut expected = bytes.split_inclusive(|b| *b == b'\n');
    let mut current = expected.next();
    loop {
        if frames.fill(&mut source).unwrap() == 0 {
            break;
        }
        while let Some(frame) = frames.next_frame() {
            let line = current.expect("a frame without bytes for it");
            let text = line.strip_suffix(b"\n").unwrap_or(line);
            match frame {
                Frame::Line(place) => {
                    assert_eq!(frames.bytes(&place), line);
                    assert!(text.len() <= limit);
                    current = expected.next();
                }
                Frame::Overlong(head) => {
                    assert!(text.len() > limit);
                    assert!(line.starts_with(&head));
                }
                Frame::OverlongEnd(tail) => {
                    assert!(line.ends_with(&tail));
                    current = expected.next();
                }
            }
        }
        assert!(frames.rest().len() <= 2 * (limit + 512));
    }
});
