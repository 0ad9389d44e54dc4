//! Checkpoints: the signed state of the log at some length. A C2SP checkpoint in a C2SP signed
//! note.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::audit::hash::Hash;
use crate::audit::key::{Key, PublicKey};

/// The first `size` lines of the log have this Merkle root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The log's id.
    pub log: String,
    /// How many lines it covers.
    pub size: u64,
    /// The root of the Merkle tree over them.
    pub root: Hash,
}

/// What names a log among all logs, before its id.
const ORIGIN: &str = "faultwire.audit/";

/// The longest note.
const LONGEST_NOTE: usize = 1024;

/// The name under which a log is known to witnesses, and after which its key is called.
#[must_use]
pub fn origin(log: &str) -> String {
    format!("{ORIGIN}{log}")
}

/// Why a text is not a valid checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadCheckpoint {
    /// The text is not a signed note with a checkpoint.
    #[error("not a signed checkpoint")]
    Shape,
    /// Another key signed it.
    #[error("signed with another key ({signer}); the expected key is {key}")]
    OtherKey {
        /// Who signed.
        signer: String,
        /// Whose signature was expected.
        key: String,
    },
    /// The signature is not one over this text.
    #[error("the signature does not match the text")]
    Signature,
}

impl Checkpoint {
    /// The signed note, with the blank line that parts it from the next.
    #[must_use]
    pub fn sign(&self, key: &Key) -> String {
        let text = self.text();
        let id = key.public().id().to_be_bytes();
        let signature = [&id[..], &key.sign(text.as_bytes())].concat();
        format!("{text}\n\u{2014} {} {}\n\n", key.public().name(), STANDARD.encode(signature))
    }

    fn text(&self) -> String {
        format!("{}\n{}\n{}\n", origin(&self.log), self.size, STANDARD.encode(self.root.0))
    }

    /// Reads a note, without the blank line after it, and checks its signature if there is a key
    /// to check it with.
    pub fn read(note: &str, key: Option<&PublicKey>) -> Result<Self, BadCheckpoint> {
        // Signed notes have no control characters; here a NUL is the mark of a torn note.
        if note.contains(|c: char| c.is_control() && c != '\n') {
            return Err(BadCheckpoint::Shape);
        }
        let (text, signature) = note.split_once("\n\n").ok_or(BadCheckpoint::Shape)?;
        let checkpoint = Self::from_text(text).ok_or(BadCheckpoint::Shape)?;
        let (signer, id, signature) = signature_line(signature).ok_or(BadCheckpoint::Shape)?;
        let Some(key) = key else { return Ok(checkpoint) };
        if (signer, id) != (key.name(), key.id()) {
            let signer = format!("{signer}+{id:08x}");
            let key = format!("{}+{:08x}", key.name(), key.id());
            return Err(BadCheckpoint::OtherKey { signer, key });
        }
        let fits = key.has_signed(checkpoint.text().as_bytes(), &signature);
        fits.then_some(checkpoint).ok_or(BadCheckpoint::Signature)
    }

    fn from_text(text: &str) -> Option<Self> {
        let lines: Vec<&str> = text.split('\n').collect();
        let [origin, size, root] = lines[..] else { return None };
        let root = STANDARD.decode(root).ok()?.try_into().ok()?;
        let log = origin.strip_prefix(ORIGIN)?.to_owned();
        let read = Self { log, size: size.parse().ok()?, root: Hash(root) };
        // Only one spelling counts, so that a note cannot be changed without a trace.
        (read.text().strip_suffix('\n') == Some(text)).then_some(read)
    }
}

fn signature_line(line: &str) -> Option<(&str, u32, [u8; 64])> {
    let (name, data) = line.strip_prefix("\u{2014} ")?.strip_suffix('\n')?.split_once(' ')?;
    let data = STANDARD.decode(data).ok()?;
    let (id, signature) = data.split_first_chunk::<4>()?;
    Some((name, u32::from_be_bytes(*id), signature.try_into().ok()?))
}

/// The checkpoints of a file.
#[derive(Debug, Default)]
pub struct Checkpoints {
    bytes: Vec<u8>,
    /// In the order of the file.
    pub all: Vec<Checkpoint>,
    /// Where each of them begins, and where the last one ends.
    starts: Vec<usize>,
}

/// What is wrong with a file of checkpoints.
#[derive(Debug, thiserror::Error)]
pub enum BadCheckpoints {
    /// A note is not valid.
    #[error("checkpoint {number}: {why}")]
    Note {
        /// Which, from 1.
        number: usize,
        /// What is wrong.
        why: BadCheckpoint,
    },
    /// A note is of another log than the ones before it.
    #[error("checkpoint {number} belongs to another log, {log}")]
    OtherLog {
        /// Which, from 1.
        number: usize,
        /// Whose it is.
        log: String,
    },
    /// A later note covers no more than one before it.
    #[error("checkpoint {number} covers {size} records, but the one before covers {before}")]
    Order {
        /// Which, from 1.
        number: usize,
        /// What it covers.
        size: u64,
        /// What the one before covers.
        before: u64,
    },
}

impl Checkpoints {
    /// Reads notes that are parted by blank lines, and checks their signatures if there is a key.
    /// A last one that breaks off or has holes, as after a crash, is left out.
    pub fn read(bytes: Vec<u8>, key: Option<&PublicKey>) -> Result<Self, BadCheckpoints> {
        let mut read = Self { starts: vec![0], bytes, all: Vec::new() };
        while let Some(note) = read.next_note()? {
            let number = read.all.len() + 1;
            let checkpoint = Checkpoint::read(read.text(note)?, key);
            let checkpoint = checkpoint.map_err(|why| BadCheckpoints::Note { number, why })?;
            if let Some(last) = read.all.last() {
                let (size, before) = (checkpoint.size, last.size);
                if checkpoint.log != last.log {
                    return Err(BadCheckpoints::OtherLog { number, log: checkpoint.log });
                }
                if size <= before {
                    return Err(BadCheckpoints::Order { number, size, before });
                }
            }
            read.starts.push(read.end() + note);
            read.all.push(checkpoint);
        }
        Ok(read)
    }

    /// Checks the signatures of checkpoints that cover at least this many records.
    pub fn check_from(&self, size: u64, key: &PublicKey) -> Result<(), BadCheckpoints> {
        let from = self.all.partition_point(|checkpoint| checkpoint.size < size);
        for (i, range) in self.starts.windows(2).enumerate().skip(from) {
            let note = str::from_utf8(&self.bytes[range[0]..range[1] - 1]);
            let checked = note.map_err(|_| BadCheckpoint::Shape);
            let checked = checked.and_then(|note| Checkpoint::read(note, Some(key)));
            checked.map_err(|why| BadCheckpoints::Note { number: i + 1, why })?;
        }
        Ok(())
    }

    /// The length of the next note with its blank line, if there is a whole one.
    fn next_note(&self) -> Result<Option<usize>, BadCheckpoints> {
        let rest = &self.bytes[self.end()..];
        match next_note(rest) {
            Some(note) if !is_torn(rest) => Ok(Some(note)),
            _ if rest.len() > LONGEST_NOTE => {
                let number = self.all.len() + 1;
                Err(BadCheckpoints::Note { number, why: BadCheckpoint::Shape })
            }
            _ => Ok(None),
        }
    }

    fn text(&self, note: usize) -> Result<&str, BadCheckpoints> {
        let number = self.all.len() + 1;
        let text = str::from_utf8(&self.bytes[self.end()..self.end() + note - 1]);
        text.map_err(|_| BadCheckpoints::Note { number, why: BadCheckpoint::Shape })
    }

    fn end(&self) -> usize {
        self.starts.last().copied().unwrap_or(0)
    }

    /// How many bytes the whole notes take up.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.end() as u64
    }

    /// Whether there are no checkpoints.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Where the last one begins.
    #[must_use]
    pub fn last_note(&self) -> u64 {
        let before = self.starts.len().checked_sub(2).and_then(|i| self.starts.get(i));
        before.copied().unwrap_or(0) as u64
    }

    /// Whether something is left over at the end.
    #[must_use]
    pub fn is_torn(&self) -> bool {
        self.end() < self.bytes.len()
    }

    /// The newest.
    #[must_use]
    pub fn last(&self) -> Option<&Checkpoint> {
        self.all.last()
    }

    /// How many records are covered.
    #[must_use]
    pub fn sealed(&self) -> u64 {
        self.last().map_or(0, |c| c.size)
    }

    /// The root that is signed for this length.
    #[must_use]
    pub fn root_at(&self, size: u64) -> Option<Hash> {
        let at = self.all.partition_point(|c| c.size < size);
        self.all.get(at).filter(|c| c.size == size).map(|c| c.root)
    }
}

/// Whether this is the last note, with holes where a crash kept parts of it from the disk.
fn is_torn(rest: &[u8]) -> bool {
    rest.len() <= LONGEST_NOTE
        && rest.contains(&0)
        && next_note(rest).is_none_or(|end| end == rest.len())
}

/// The length of the first note with its blank line, if the whole of it is there.
fn next_note(bytes: &[u8]) -> Option<usize> {
    let text_end = memchr::memmem::find(bytes, b"\n\n")? + 2;
    let signature_end = memchr::memmem::find(&bytes[text_end..], b"\n\n")? + 2;
    Some(text_end + signature_end)
}
