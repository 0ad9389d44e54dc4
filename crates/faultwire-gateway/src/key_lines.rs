//! A private key that a server prints line by line: no line of it alone looks like a key.

use memchr::memmem;

/// Whether the lines that come are part of a private key.
#[derive(Debug, Default)]
pub(crate) struct KeyLines {
    inside: bool,
}

/// A key that never ends must not hide everything that comes after it.
const LONGEST_LINE: usize = 128;

impl KeyLines {
    /// Whether this line belongs to a key, and must not be shown.
    pub(crate) fn hides(&mut self, line: &[u8]) -> bool {
        let line = line.trim_ascii();
        let has = |word: &[u8]| memmem::find(line, word).is_some();
        let is_private = has(b"PRIVATE KEY");
        if (is_private && has(b"BEGIN ")) || line.starts_with(b"Private-Lines:") {
            self.inside = !has(b"END ");
            return true;
        }
        if is_private && has(b"END ") || line.starts_with(b"Private-MAC:") {
            self.inside = false;
            return true;
        }
        self.inside &= is_encoded(line) || is_head(line);
        self.inside
    }
}

fn is_encoded(line: &[u8]) -> bool {
    let encoded = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=');
    line.len() <= LONGEST_LINE && line.iter().all(encoded)
}

/// Lines before the encoded ones: `Proc-Type: 4,ENCRYPTED`, `DEK-Info: …`, `Comment: …`.
fn is_head(line: &[u8]) -> bool {
    let heads: [&[u8]; 4] = [b"Proc-Type:", b"DEK-Info:", b"Comment:", b"Subject:"];
    heads.iter().any(|head| line.starts_with(head))
}

#[cfg(test)]
mod tests {
    use super::KeyLines;

    #[test]
    fn x6_a_key_over_several_lines_is_hidden() {
        let mut lines = KeyLines::default();
        let hidden = [
            "-----BEGIN RSA PRIVATE KEY-----",
            "Proc-Type: 4,ENCRYPTED",
            "",
            "MIIEpAIBAAKCAQEA7h3k",
            "q0Zx8w==",
            "-----END RSA PRIVATE KEY-----",
        ];
        for line in hidden {
            assert!(lines.hides(line.as_bytes()), "{line}");
        }
        assert!(!lines.hides(b"MIIEpAIBAAKCAQEA7h3k"));
        assert!(lines.hides(b"Private-Lines: 2") && lines.hides(b"AAAAgQDkq0Zx8w=="));
        assert!(lines.hides(b"Private-MAC: 00ff"));
        assert!(!lines.hides(b"server listens on port 80"));
        assert!(lines.hides(b"---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----"));
        assert!(!lines.hides(b"this key never ended, and the log goes on"));
    }
}
