//! How a contract classifies its categories for clients that do not know it.

/// How a client should react to a failure, independent of its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureClass {
    /// It cannot succeed as requested: the call has to change.
    Capability,
    /// The service failed: it may succeed later, if it is retryable.
    Reliability,
    /// A policy refused it: someone has to permit it.
    Governance,
}

impl FailureClass {
    /// Every class.
    pub const ALL: [Self; 3] = [Self::Capability, Self::Reliability, Self::Governance];

    /// The name on the wire and in contract files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Capability => "capability",
            Self::Reliability => "reliability",
            Self::Governance => "governance",
        }
    }

    /// The class of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }
}

/// The `[tool_failure]` table of a contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolFailurePolicy {
    /// The class of each category.
    pub classes: Vec<(String, FailureClass)>,
    /// What to do if the tool may have run and must not run twice (S4), for contracts whose
    /// `[next]` does not say it.
    pub maybe_executed: Option<String>,
}

impl ToolFailurePolicy {
    /// The class of a category. The table has all of them.
    #[must_use]
    pub fn class(&self, category: &str) -> Option<FailureClass> {
        self.classes.iter().find(|(of, _)| of == category).map(|(_, class)| *class)
    }
}
