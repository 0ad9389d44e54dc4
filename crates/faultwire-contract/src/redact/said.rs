//! The text that a client sent in its call, in a form in which findings can be looked up.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};

use memchr::memmem::Finder;
use serde_json::Value;

use super::rule::RuleKind;
use super::view::View;

/// The strings of a call's params.
#[derive(Debug, Default)]
pub(super) struct Said {
    params: Value,
    /// All of them in their plain form, each between line feeds.
    text: Vec<u8>,
    /// Those that name a directory, or a file in one, in their plain form.
    places: HashSet<Vec<u8>>,
    /// How many bytes may still be searched.
    left: Cell<usize>,
    /// What was looked up before.
    known: RefCell<Known>,
}

/// For a finding, whether it is the client's.
type Known = HashMap<(RuleKind, Box<[u8]>), bool>;

/// No more of one string is compared, and no more of all of them: a file's content is long.
const LONGEST: usize = 256 * 1024;
const MOST: usize = 4 * 1024 * 1024;

/// The most bytes to search for one failure. After that, findings that are not known to be the
/// client's are masked.
const EFFORT: usize = 128 * 1024 * 1024;

/// A pointer or a path of more parts is neither.
const MOST_PARTS: usize = 64;

impl Said {
    pub fn of(params: Value) -> Self {
        let mut said = Self { left: Cell::new(EFFORT), ..Self::default() };
        said.text.push(b'\n');
        said.collect(&params);
        said.params = params;
        said
    }

    fn collect(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.add(text),
            Value::Number(number) => self.add(&number.to_string()),
            Value::Array(items) => items.iter().for_each(|item| self.collect(item)),
            Value::Object(members) => {
                for (name, member) in members {
                    self.add(name);
                    self.collect(member);
                }
            }
            Value::Bool(_) | Value::Null => {}
        }
    }

    fn add(&mut self, text: &str) {
        let text = &text[..text.floor_char_boundary(LONGEST)];
        self.add_seen(text.as_bytes());
        // A path inside JSON inside a string, or inside a URL, may be repeated without its escapes.
        if let Some(view) = View::decoded(text) {
            self.add_seen(&view.bytes);
        }
    }

    fn add_seen(&mut self, text: &[u8]) {
        let plain = plain(text);
        if self.text.len() + plain.len() > MOST {
            return;
        }
        self.places.extend(place(&plain));
        self.text.extend_from_slice(&plain);
        self.text.push(b'\n');
    }

    /// Whether the client sent this, or named a directory that contains it.
    pub fn has(&self, kind: RuleKind, found: &[u8]) -> bool {
        let found = trimmed(found);
        let key = (kind, Box::from(found));
        if let Some(known) = self.known.borrow().get(&key) {
            return *known;
        }
        let plain = plain(found);
        let has = self.says(&plain)
            || match kind {
                RuleKind::Path | RuleKind::HiddenHome => {
                    self.is_below(&plain) || self.points(found)
                }
                RuleKind::Address => host(&plain).is_some_and(|host| self.says(host)),
                RuleKind::Credential | RuleKind::Frame | RuleKind::Personal => false,
            };
        self.known.borrow_mut().insert(key, has);
        has
    }

    /// Whether the text has this, and not as a part of a longer name.
    fn says(&self, plain: &[u8]) -> bool {
        if plain.is_empty() || self.left.get() < self.text.len() {
            return false;
        }
        self.left.set(self.left.get() - self.text.len());
        let is_whole = |at: usize| {
            let before = self.text[at - 1];
            !is_name(before)
                && !matches!(before, b'.' | b'~')
                && ends_name(&self.text[at + plain.len()..])
        };
        Finder::new(plain).find_iter(&self.text[1..]).any(|at| is_whole(at + 1))
    }

    /// Whether a path is under one that the client named, or is that path with a line number.
    fn is_below(&self, plain: &[u8]) -> bool {
        let Some(path) = place(plain) else { return false };
        let follows = |byte: &u8| matches!(byte, b'/' | b':' | b'(' | b'[' | b'#');
        let ends = path.iter().enumerate().skip(1).filter(|(_, byte)| follows(byte));
        let ends = ends.map(|(end, _)| end).take(MOST_PARTS).chain([path.len()]);
        ends.into_iter().any(|end| self.places.contains(&path[..end]))
    }

    /// Whether it is a JSON pointer into the arguments, or to a member that one of them lacks.
    fn points(&self, found: &[u8]) -> bool {
        let text = String::from_utf8_lossy(found).replace('\\', "");
        let Some(pointer) = text.strip_prefix('/') else { return false };
        let parts: Vec<&str> = pointer.split('/').take(MOST_PARTS + 1).collect();
        let roots = [self.params.get("arguments"), Some(&self.params)];
        parts.len() <= MOST_PARTS && roots.into_iter().flatten().any(|root| leads(root, &parts))
    }
}

/// Whether all parts of a pointer but the last lead somewhere, the first one in any case.
fn leads(root: &Value, parts: &[&str]) -> bool {
    let mut here = root;
    for (i, part) in parts.iter().enumerate() {
        let name = part.replace("~1", "/").replace("~0", "~");
        let next = match here {
            Value::Array(items) => name.parse().ok().and_then(|n: usize| items.get(n)),
            Value::Object(members) => members.get(&name),
            _ => return false,
        };
        match next {
            Some(next) => here = next,
            None => return i > 0 && i + 1 == parts.len() && here.is_object(),
        }
    }
    true
}

/// Lower case, with one slash for several slashes or backslashes, so that a path is the same for
/// every system and any number of JSON layers.
fn plain(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for byte in text {
        match byte {
            b'/' | b'\\' if out.last() == Some(&b'/') => {}
            b'/' | b'\\' => out.push(b'/'),
            byte => out.push(byte.to_ascii_lowercase()),
        }
    }
    out
}

/// Without the end of a sentence and surrounding spaces.
fn trimmed(found: &[u8]) -> &[u8] {
    let found = found.trim_ascii();
    let end = found.iter().rposition(|b| !matches!(b, b'.' | b'!' | b'?' | b',' | b';' | b':'));
    &found[..end.map_or(0, |end| end + 1)]
}

/// The absolute path that a text consists of, if it does: without dots, and never the root itself.
fn place(plain: &[u8]) -> Option<Vec<u8>> {
    let path = plain.strip_prefix(b"file:").unwrap_or(plain);
    let path = path.strip_prefix(b"/localhost").unwrap_or(path);
    let (root, path) = match path {
        // `file:///C:/x` has a slash more than the path.
        [b'/', drive, b':', b'/', rest @ ..] | [drive, b':', b'/', rest @ ..]
            if drive.is_ascii_alphabetic() =>
        {
            (vec![*drive, b':'], rest)
        }
        [b'~', b'/', rest @ ..] => (vec![b'~'], rest),
        [b'/', rest @ ..] => (Vec::new(), rest),
        _ => return None,
    };
    if path.contains(&b'\n') {
        return None;
    }
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in path.split(|b| *b == b'/') {
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let is_home = root == b"~";
    if parts.is_empty() && !is_home {
        return None;
    }
    let joined = parts.into_iter().flat_map(|part| std::iter::once(&b'/').chain(part));
    Some(root.iter().chain(joined).copied().collect())
}

/// An address without its port, its prefix length and its brackets.
fn host(plain: &[u8]) -> Option<&[u8]> {
    let text = str::from_utf8(plain).ok()?;
    if let Some((inner, _)) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return Some(inner.as_bytes());
    }
    let (host, rest) = text.split_once([':', '/'])?;
    (!rest.contains(':')).then_some(host.as_bytes())
}

/// Whether a name continues with this character.
fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') || !byte.is_ascii()
}

/// Whether a name ends before this: a dot at the end of a sentence does not belong to it.
fn ends_name(rest: &[u8]) -> bool {
    match rest {
        [b'.', next, ..] | [next, ..] => !is_name(*next),
        [] => true,
    }
}
