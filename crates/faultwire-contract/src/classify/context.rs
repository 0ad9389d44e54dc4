//! What is known of the call that a reply answers.

use std::str::FromStr;

/// What a reply answers. Only what a tool gave can be a failure that is dressed as a success.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Answers {
    /// `tools/call`.
    #[default]
    ToolCall,
    /// Any other method.
    Other,
}

/// The call that a reply answers: what the client said in it, and what the tool list says of the
/// tool. The client's own words decide no code (U1).
#[derive(Clone, Copy, Debug, Default)]
pub struct CallContext<'a> {
    /// What was asked.
    pub answers: Answers,
    /// The request's `params`, as they were sent.
    pub params: Option<&'a str>,
    /// Whether the tool declares an `outputSchema`.
    pub has_output_schema: bool,
    /// The tool's `readOnlyHint`, where its annotations have one.
    pub read_only: Option<bool>,
    /// What becomes of failures that the server calls a success.
    pub soft_failures: SoftFailures,
    /// The tool's name.
    pub tool: Option<&'a str>,
}

impl<'a> CallContext<'a> {
    pub(super) fn tool(&self) -> Option<&'a str> {
        self.tool
    }

    /// A call about which nothing is known.
    #[must_use]
    pub fn of(answers: Answers) -> Self {
        Self { answers, ..Self::default() }
    }
}

/// What becomes of failures that the server calls a success (U5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SoftFailures {
    /// They pass.
    Off,
    /// They pass, and are recorded.
    Record,
    /// Those whose shape leaves no doubt are failures; the others pass, and are recorded.
    #[default]
    Auto,
    /// All of them are failures.
    Rewrite,
}

impl SoftFailures {
    const ALL: [(&'static str, Self); 4] = [
        ("off", Self::Off),
        ("record", Self::Record),
        ("auto", Self::Auto),
        ("rewrite", Self::Rewrite),
    ];

    /// The name in settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, mode)| *mode == self).map_or("auto", |(name, _)| name)
    }
}

impl FromStr for SoftFailures {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name);
        found.map(|(_, mode)| *mode).ok_or_else(|| {
            let names = Self::ALL.map(|(name, _)| name).join(", ");
            format!("{name:?} is not one of {names}")
        })
    }
}
