//! Which kinds of text are masked before a client sees them (U2).

use std::fmt;

/// A set of kinds of text that are masked. Credentials are masked always and are in no set.
///
/// ```
/// use faultwire_contract::Masks;
///
/// assert!(Masks::REMOTE.covers(Masks::PATHS));
/// assert!(!Masks::LOCAL.covers(Masks::PATHS));
/// assert_eq!(Masks::LOCAL.with(Masks::PERSONAL).to_string(), "frames, personal");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Masks(u8);

impl Masks {
    /// No kind. Paths into hidden directories of a home are still masked.
    pub const NONE: Self = Self(0);
    /// Places in a file system.
    pub const PATHS: Self = Self(1);
    /// Hosts and addresses of the inner network.
    pub const ADDRESSES: Self = Self(1 << 1);
    /// Lines of a stack trace.
    pub const FRAMES: Self = Self(1 << 2);
    /// Mail addresses, card and account numbers.
    pub const PERSONAL: Self = Self(1 << 3);
    /// Every kind.
    pub const ALL: Self = Self::REMOTE.with(Self::PERSONAL);
    /// For a client on the server's own machine, which can see its files anyway.
    pub const LOCAL: Self = Self::FRAMES;
    /// For a client elsewhere.
    pub const REMOTE: Self = Self::PATHS.with(Self::ADDRESSES).with(Self::FRAMES);

    /// Each kind with its name in settings and contract files.
    pub const KINDS: [(&'static str, Self); 4] = [
        ("paths", Self::PATHS),
        ("addresses", Self::ADDRESSES),
        ("frames", Self::FRAMES),
        ("personal", Self::PERSONAL),
    ];

    /// How many sets there are.
    pub(super) const COUNT: usize = 1 << Self::KINDS.len();

    /// The kind of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::KINDS.into_iter().find(|(known, _)| *known == name).map(|(_, kind)| kind)
    }

    /// The kinds of both sets.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The kinds that the other set does not have.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether it has every kind of the other set.
    #[must_use]
    pub const fn covers(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The names of its kinds.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::KINDS.into_iter().filter(move |(_, kind)| self.covers(*kind)).map(|(name, _)| name)
    }

    /// A unique number for each set, below [`Masks::COUNT`].
    pub(super) fn index(self) -> usize {
        self.0.into()
    }
}

/// What a client elsewhere must not see.
impl Default for Masks {
    fn default() -> Self {
        Self::REMOTE
    }
}

impl fmt::Display for Masks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names().collect::<Vec<_>>().join(", "))
    }
}
