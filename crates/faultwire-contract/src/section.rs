//! One table of a TOML file, read key by key. Every mistake is noted with its place and reading
//! continues, so that an author sees all mistakes at once.

use std::cell::RefCell;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::mistake::{Mistake, Mistakes, nearest};

/// So many mistakes are listed.
const MOST_MISTAKES: usize = 500;

/// The file being read, and its mistakes so far.
pub(crate) struct Log<'a> {
    file: &'a str,
    text: &'a str,
    found: RefCell<Vec<(usize, Mistake)>>,
}

/// Reads a TOML file: `read` notes mistakes, and its result is only used if there are none.
pub(crate) fn read_file<T>(
    file: &str,
    text: &str,
    help: &str,
    read: impl FnOnce(&Section<'_>) -> Option<T>,
) -> Result<T, Mistakes> {
    let log = Log::new(file, text);
    let answer = match DeTable::parse(text) {
        Ok(table) => read(&Section::root(&log, &table)),
        Err(e) => {
            let at = e.span().unwrap_or(0..0);
            log.note(&at, format!("not valid TOML: {}", e.message()), help);
            None
        }
    };
    let clean = log.found.borrow().is_empty();
    answer.filter(|_| clean).ok_or_else(|| log.into_mistakes())
}

/// A place in the file: byte offsets.
pub(crate) type At = Range<usize>;

/// A string of the file and its place.
#[derive(Clone)]
pub(crate) struct Text<'a> {
    pub value: &'a str,
    pub at: At,
}

impl<'a> Log<'a> {
    fn new(file: &'a str, text: &'a str) -> Self {
        Self { file, text, found: RefCell::default() }
    }

    /// The line of a place, from 1.
    pub(crate) fn line(&self, at: &At) -> usize {
        self.before(at).matches('\n').count() + 1
    }

    fn before(&self, at: &At) -> &'a str {
        self.text.get(..at.start).unwrap_or(self.text)
    }

    pub(crate) fn note(&self, at: &At, what: impl Into<String>, help: impl Into<String>) {
        if self.found.borrow().len() >= MOST_MISTAKES {
            return;
        }
        let before = self.before(at);
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        let mistake = Mistake {
            line: self.line(at),
            column: before[line_start..].chars().count() + 1,
            what: what.into(),
            help: help.into(),
        };
        self.found.borrow_mut().push((at.start, mistake));
    }

    fn into_mistakes(self) -> Mistakes {
        let mut found = self.found.into_inner();
        found.sort_by_key(|(offset, _)| *offset);
        Mistakes {
            file: self.file.to_owned(),
            list: found.into_iter().map(|(_, mistake)| mistake).collect(),
        }
    }
}

/// What the file as a whole is called.
const ROOT: &str = "the file";

/// One table, with the name that a person knows it by.
pub(crate) struct Section<'a> {
    pub log: &'a Log<'a>,
    pub name: String,
    pub at: At,
    table: &'a DeTable<'a>,
}

impl<'a> Section<'a> {
    fn root(log: &'a Log<'a>, table: &'a Spanned<DeTable<'a>>) -> Self {
        Self { log, name: ROOT.to_owned(), at: 0..0, table: table.get_ref() }
    }

    /// Refuses every key that is not in the list.
    pub(crate) fn allow(&self, known: &[&str]) {
        for key in self.table.keys() {
            let word: &str = key.get_ref();
            if known.contains(&word) {
                continue;
            }
            let help = match nearest(word, known.iter().copied()) {
                Some(near) => format!("did you mean {near:?}?"),
                None => format!("the keys here are {}", known.join(", ")),
            };
            self.log.note(&key.span(), format!("unknown key {word:?} in {}", self.name), help);
        }
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = Text<'a>> {
        self.table.keys().map(|k| Text { value: k.get_ref(), at: k.span() })
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    pub(crate) fn text(&self, key: &str) -> Option<Text<'a>> {
        let value = self.table.get(key)?;
        self.expect_text(key, value)
    }

    pub(crate) fn need_text(&self, key: &str, help: &str) -> Option<Text<'a>> {
        let found = self.need(key, help)?;
        let text = self.expect_text(key, found)?;
        if text.value.trim().is_empty() {
            self.log.note(&text.at, format!("{key:?} of {} is empty", self.name), help);
            return None;
        }
        Some(text)
    }

    /// A string or a list of strings; not empty if present.
    pub(crate) fn texts(&self, key: &str) -> Option<Vec<Text<'a>>> {
        let value = self.table.get(key)?;
        let DeValue::Array(list) = value.get_ref() else {
            return self.expect_text(key, value).map(|t| vec![t]);
        };
        if list.is_empty() {
            self.empty_list(key, value);
            return None;
        }
        list.iter().map(|item| self.expect_text(key, item)).collect()
    }

    /// An integer or a list of integers, each with its place.
    pub(crate) fn integers(&self, key: &str) -> Option<Vec<(i64, At)>> {
        let value = self.table.get(key)?;
        match value.get_ref() {
            DeValue::Array(list) if list.is_empty() => {
                self.empty_list(key, value);
                None
            }
            DeValue::Array(list) => list.iter().map(|v| self.expect_integer(key, v)).collect(),
            _ => self.expect_integer(key, value).map(|i| vec![i]),
        }
    }

    /// An integer within the range.
    pub(crate) fn integer(&self, key: &str, range: std::ops::RangeInclusive<i64>) -> Option<i64> {
        let (value, at) = self.expect_integer(key, self.table.get(key)?)?;
        if !range.contains(&value) {
            self.log.note(
                &at,
                format!("{key:?} of {} is {value}", self.name),
                format!("use a number from {} to {}", range.start(), range.end()),
            );
            return None;
        }
        Some(value)
    }

    pub(crate) fn boolean(&self, key: &str) -> Option<bool> {
        let value = self.table.get(key)?;
        if let DeValue::Boolean(b) = value.get_ref() {
            return Some(*b);
        }
        self.wrong_type(key, value, "true or false");
        None
    }

    pub(crate) fn section(&self, key: &str) -> Option<Section<'a>> {
        let (k, value) = self.table.get_key_value(key)?;
        let DeValue::Table(table) = value.get_ref() else {
            self.wrong_type(key, value, "a table");
            return None;
        };
        Some(Section { log: self.log, name: self.path_of(key), at: k.span(), table })
    }

    pub(crate) fn need_section(&self, key: &str, help: &str) -> Option<Section<'a>> {
        self.need(key, help)?;
        self.section(key)
    }

    /// The tables of a list `[[key]]`.
    pub(crate) fn list(&self, key: &str) -> Vec<Section<'a>> {
        let Some(value) = self.table.get(key) else {
            return Vec::new();
        };
        let DeValue::Array(items) = value.get_ref() else {
            self.wrong_type(key, value, "a list of tables");
            return Vec::new();
        };
        let mut sections = Vec::with_capacity(items.len());
        for item in items {
            match item.get_ref() {
                DeValue::Table(table) => sections.push(Section {
                    log: self.log,
                    name: format!("[[{key}]]"),
                    at: item.span(),
                    table,
                }),
                _ => self.wrong_type(key, item, "a table"),
            }
        }
        sections
    }

    /// A key whose value is either a string or a table.
    pub(crate) fn text_or_section(&self, key: &str) -> Option<Result<Text<'a>, Section<'a>>> {
        match self.table.get(key)?.get_ref() {
            DeValue::Table(_) => self.section(key).map(Err),
            _ => self.text(key).map(Ok),
        }
    }

    /// Any scalar, as JSON.
    pub(crate) fn scalar(&self, key: &str) -> Option<serde_json::Value> {
        let value = self.table.get(key)?;
        match value.get_ref() {
            DeValue::String(s) => Some(s.as_ref().into()),
            DeValue::Boolean(b) => Some((*b).into()),
            DeValue::Integer(_) => self.expect_integer(key, value).map(|(i, _)| i.into()),
            _ => {
                self.wrong_type(key, value, "a string, a number, true or false");
                None
            }
        }
    }

    /// Notes a mistake at this table's own place.
    pub(crate) fn note(&self, what: impl Into<String>, help: impl Into<String>) {
        self.log.note(&self.at, what, help);
    }

    fn need(&self, key: &str, help: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        let value = self.table.get(key);
        if value.is_none() {
            self.note(format!("{} has no {key:?}", self.name), help);
        }
        value
    }

    fn expect_text(&self, key: &str, value: &'a Spanned<DeValue<'a>>) -> Option<Text<'a>> {
        if let DeValue::String(s) = value.get_ref() {
            return Some(Text { value: s, at: value.span() });
        }
        self.wrong_type(key, value, "a string");
        None
    }

    fn expect_integer(&self, key: &str, value: &Spanned<DeValue<'a>>) -> Option<(i64, At)> {
        let parsed = match value.get_ref() {
            DeValue::Integer(i) => i64::from_str_radix(i.as_str(), i.radix()).ok(),
            _ => None,
        };
        if parsed.is_none() {
            self.wrong_type(key, value, "a whole number");
        }
        parsed.map(|i| (i, value.span()))
    }

    fn empty_list(&self, key: &str, value: &Spanned<DeValue<'a>>) {
        let what = format!("{key:?} of {} is an empty list", self.name);
        self.log.note(&value.span(), what, "list at least one value, or remove the key");
    }

    fn wrong_type(&self, key: &str, value: &Spanned<DeValue<'a>>, wanted: &str) {
        self.log.note(
            &value.span(),
            format!("{key:?} of {} is {}", self.name, article(value.get_ref().type_str())),
            format!("write {wanted}"),
        );
    }

    fn path_of(&self, key: &str) -> String {
        let inner = self.name.strip_prefix('[').and_then(|n| n.strip_suffix(']'));
        match inner.filter(|inner| !inner.starts_with('[')) {
            Some(inner) => format!("[{inner}.{key}]"),
            None if self.name == ROOT => format!("[{key}]"),
            None => format!("{key:?} of {}", self.name),
        }
    }
}

fn article(noun: &str) -> String {
    let an = noun.starts_with(['a', 'e', 'i', 'o', 'u']);
    format!("{} {noun}", if an { "an" } else { "a" })
}
