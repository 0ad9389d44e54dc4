//! The client that a text is for: what it may see, and what it sent itself (U2).

use std::cell::{Cell, OnceCell};

use serde_json::Value;

use super::masks::Masks;
use super::rule::RuleKind;
use super::said::Said;
use super::view::View;

/// The receiver of a fault. Text that the client sent itself is kept, except credentials.
///
/// ```
/// use faultwire_contract::{Caller, Masks, builtin};
///
/// let contract = builtin("standard").unwrap();
/// let caller = Caller::new(Masks::REMOTE).sent_raw(r#"{"arguments":{"path":"/srv/notes"}}"#);
/// let text = "/srv/notes/a.md links to /srv/keys/b.md";
/// assert_eq!(
///     contract.redact_for(text, &caller),
///     "/srv/notes/a.md links to [redacted:path]",
/// );
/// ```
#[derive(Debug, Default)]
pub struct Caller<'a> {
    pub(super) masks: Masks,
    params: Params<'a>,
    /// Read from the params when first needed: most failures have nothing to compare with it.
    said: OnceCell<Said>,
    /// Whether something was kept because the client sent it.
    kept: Cell<bool>,
}

/// The params of the call, as far as they are known.
#[derive(Debug, Default)]
enum Params<'a> {
    #[default]
    Unknown,
    Raw(&'a str),
    Read(&'a Value),
}

impl<'a> Caller<'a> {
    /// A client for whom these kinds are masked, and of whose call nothing is known.
    #[must_use]
    pub fn new(masks: Masks) -> Self {
        Self { masks, ..Self::default() }
    }

    /// The client sent these params: the JSON text of the request's `params`.
    #[must_use]
    pub fn sent_raw(self, params: impl Into<Option<&'a str>>) -> Self {
        let params = params.into().map_or(Params::Unknown, Params::Raw);
        Self { masks: self.masks, params, ..Self::default() }
    }

    /// The client sent these arguments or params.
    #[must_use]
    pub fn sent(self, params: impl Into<Option<&'a Value>>) -> Self {
        let params = params.into().map_or(Params::Unknown, Params::Read);
        Self { masks: self.masks, params, ..Self::default() }
    }

    /// Whether a finding is kept: the client sent it, or it is under a directory that it named.
    /// `seen` is the finding, maybe without escapes, and `found` is the original text.
    pub(super) fn said(&self, kind: RuleKind, seen: &[u8], found: &str) -> bool {
        if kind == RuleKind::Credential || matches!(self.params, Params::Unknown) {
            return false;
        }
        let said = self.said.get_or_init(|| match self.params {
            Params::Unknown => Said::default(),
            Params::Raw(text) => serde_json::from_str(text).map(Said::of).unwrap_or_default(),
            Params::Read(value) => Said::of(value.clone()),
        });
        let decoded = || View::decoded(found);
        let stays = said.has(kind, seen)
            || seen != found.as_bytes() && said.has(kind, found.as_bytes())
            || decoded().is_some_and(|view| said.has(kind, &view.bytes));
        self.kept.set(self.kept.get() || stays);
        stays
    }

    /// Whether something stayed since this was asked last.
    pub(super) fn take_kept(&self) -> bool {
        self.kept.take()
    }
}
