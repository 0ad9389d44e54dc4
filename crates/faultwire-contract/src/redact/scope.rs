//! Which kinds of rules are applied.

use super::rule::RuleKind;

/// Credentials always; all other kinds or none; personal data only where that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scope {
    pub all: bool,
    pub personal: bool,
}

impl Scope {
    pub const CREDENTIALS: Self = Self { all: false, personal: false };
    /// How many scopes there are.
    pub const COUNT: usize = 4;

    pub fn takes(self, kind: RuleKind) -> bool {
        match kind {
            RuleKind::Credential => true,
            RuleKind::Personal => self.personal,
            RuleKind::Path | RuleKind::Frame | RuleKind::Address => self.all,
        }
    }

    /// A number of its own for each scope, below [`Scope::COUNT`].
    pub fn index(self) -> usize {
        usize::from(self.all) + 2 * usize::from(self.personal)
    }
}
