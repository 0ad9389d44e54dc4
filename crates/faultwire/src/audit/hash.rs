//! Hashes of lines and of pairs, as RFC 6962 computes them.

use std::fmt;

use sha2::{Digest, Sha256};

/// A SHA-256 hash.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// The `prev` of a log's first line.
    pub const ZERO: Self = Self([0; 32]);

    /// The hash of a line: SHA-256 over `0x00` and the line's bytes without its newline. It links
    /// the next line to this one, and it is the line's leaf in the Merkle tree.
    #[must_use]
    pub fn line(raw: &[u8]) -> Self {
        Self(Sha256::new().chain_update([0]).chain_update(raw).finalize().into())
    }

    /// The hash of two subtrees.
    #[must_use]
    pub fn pair(left: &Self, right: &Self) -> Self {
        let mut bytes = [1; 65];
        bytes[1..33].copy_from_slice(&left.0);
        bytes[33..].copy_from_slice(&right.0);
        Self(Sha256::digest(bytes).into())
    }

    /// Plain SHA-256 over the bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Reads 64 lower-case hexadecimal digits, and nothing else.
    #[must_use]
    pub fn from_hex(hex: &[u8]) -> Option<Self> {
        let digit = |b: u8| match b {
            b'0'..=b'9' => Some(b - b'0'),
            b'a'..=b'f' => Some(b - b'a' + 10),
            _ => None,
        };
        let mut out = [0; 32];
        let (pairs, rest) = hex.as_chunks::<2>();
        if pairs.len() != 32 || !rest.is_empty() {
            return None;
        }
        for (byte, [high, low]) in out.iter_mut().zip(pairs) {
            *byte = digit(*high)? << 4 | digit(*low)?;
        }
        Some(Self(out))
    }

    /// The 64 digits.
    #[must_use]
    pub fn hex(&self) -> [u8; 64] {
        let mut out = [0; 64];
        let (pairs, _) = out.as_chunks_mut::<2>();
        for (pair, byte) in pairs.iter_mut().zip(self.0) {
            *pair = [byte >> 4, byte & 15];
        }
        // Without a table: letters are 39 places after the character that follows 9.
        out.map(|n| n + b'0' + 39 * u8::from(n > 9))
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(str::from_utf8(&self.hex()).unwrap_or_default())
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
