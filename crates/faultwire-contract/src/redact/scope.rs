//! Which kinds of rules are applied.

use super::masks::Masks;
use super::rule::RuleKind;

/// Credentials always, other kinds as far as they are masked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scope {
    masks: Masks,
    /// Whether paths into hidden directories of a home go although paths stay.
    hidden: bool,
}

impl Scope {
    pub const CREDENTIALS: Self = Self { masks: Masks::NONE, hidden: false };
    /// How many scopes there are.
    pub const COUNT: usize = 2 * Masks::COUNT;

    /// What a client may not see.
    pub fn for_client(masks: Masks) -> Self {
        // Rules for paths find those into hidden directories, too.
        Self { masks, hidden: !masks.covers(Masks::PATHS) }
    }

    /// What is not written down.
    pub fn for_record(masks: Masks) -> Self {
        let personal = masks.covers(Masks::PERSONAL);
        Self { masks: if personal { Masks::PERSONAL } else { Masks::NONE }, hidden: false }
    }

    pub fn takes(self, kind: RuleKind) -> bool {
        match kind {
            RuleKind::Credential => true,
            RuleKind::HiddenHome => self.hidden,
            RuleKind::Path => self.masks.covers(Masks::PATHS),
            RuleKind::Frame => self.masks.covers(Masks::FRAMES),
            RuleKind::Address => self.masks.covers(Masks::ADDRESSES),
            RuleKind::Personal => self.masks.covers(Masks::PERSONAL),
        }
    }

    /// A unique number for each scope, below [`Scope::COUNT`].
    pub fn index(self) -> usize {
        self.masks.index() + Masks::COUNT * usize::from(self.hidden)
    }
}
