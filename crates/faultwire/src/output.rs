//! Results against the tool's own output schema, after the call.
//!
//! The protocol: a tool that declares an `outputSchema` MUST give structured content that conforms
//! to it.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use faultwire_contract::bound::cut_unredacted;
use serde_json::{Value, json};

use crate::arguments::{Allowance, Issue, Schema};

/// A longer result is not checked, because parsing it needs several times its length in memory.
const LONGEST: usize = 1024 * 1024;
/// So many issues are noted; an envelope has all.
const MOST_NOTED: usize = 3;
/// A longer path is cut.
const LONGEST_PATH: usize = 256;
/// A longer message is cut. It contains text of the schema.
const LONGEST_MESSAGE: usize = 768;

/// What happens to results that do not match the tool's `outputSchema`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// They are not checked.
    Off,
    /// They pass as they are, and are recorded.
    #[default]
    Warn,
    /// They are failures of the server.
    Enforce,
}

/// A tool's output schema, compiled.
#[derive(Debug)]
pub struct OutputSchema {
    tool: Box<str>,
    schema: Schema,
    /// How many results were too large to check.
    unchecked: AtomicU64,
}

/// How a result differs from its tool's output schema.
#[derive(Clone, Debug)]
pub struct Mismatch {
    /// Each issue. Names and types, and no values.
    pub issues: Vec<Issue>,
}

impl OutputSchema {
    /// Compiles the text of a tool's output schema. With one that cannot be used everything
    /// passes, and a warning says so.
    #[must_use]
    pub fn compile(tool: &str, text: &str) -> Self {
        Self::compile_within(tool, Some(text), &Allowance::default())
    }

    /// The same for a server whose schemas share an allowance. Everything passes without a text.
    #[must_use]
    pub fn compile_within(tool: &str, text: Option<&str>, allowance: &Allowance) -> Self {
        let schema = Schema::of_output(tool, text, allowance);
        Self { tool: tool.into(), schema, unchecked: AtomicU64::new(0) }
    }

    /// Whether a check of a result of this length is always fast.
    #[must_use]
    pub fn is_quick(&self, length: usize) -> bool {
        length > LONGEST || self.schema.is_quick(length)
    }

    /// Compares the `structuredContent` of a success, still as text, with the schema.
    ///
    /// ```
    /// use faultwire::output::OutputSchema;
    ///
    /// let schema = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;
    /// let schema = OutputSchema::compile("count", schema);
    /// assert!(schema.mismatch(Some(r#"{"n":1}"#)).is_none());
    /// assert_eq!(schema.mismatch(Some(r#"{"n":"one"}"#)).unwrap().issues[0].path, "n");
    /// assert!(schema.mismatch(None).is_some());
    /// ```
    #[must_use]
    pub fn mismatch(&self, structured: Option<&str>) -> Option<Mismatch> {
        if !self.schema.is_usable() {
            return None;
        }
        let Some(text) = structured else { return Some(Mismatch::missing()) };
        if text.len() > LONGEST || self.schema.is_too_much(text) {
            return self.too_large(text.len());
        }
        // JSON that this parser cannot represent, such as 1e999, may still conform.
        let value = serde_json::from_str(text).ok()?;
        self.compared(&value)
    }

    /// The same for content that was read already.
    #[must_use]
    pub fn mismatch_of(&self, structured: Option<&Value>) -> Option<Mismatch> {
        if !self.schema.is_usable() {
            return None;
        }
        match structured {
            Some(value) => self.compared(value),
            None => Some(Mismatch::missing()),
        }
    }

    fn compared(&self, value: &Value) -> Option<Mismatch> {
        match self.schema.issues_in(value) {
            Some(issues) if issues.is_empty() => None,
            Some(issues) => Some(Mismatch::bounded(issues)),
            None => self.too_large(0),
        }
    }

    /// A server can cause this without end: it is written at powers of two (X4).
    fn too_large(&self, bytes: usize) -> Option<Mismatch> {
        let count = self.unchecked.fetch_add(1, Ordering::Relaxed) + 1;
        if count.is_power_of_two() {
            let tool = &*self.tool;
            tracing::warn!(tool, count, bytes, "the result is too large to check; it passes");
        }
        None
    }
}

impl Mismatch {
    fn missing() -> Self {
        Self { issues: vec![Issue::new("", "structuredContent is missing")] }
    }

    /// Names come from the server, and may be as long as its result.
    fn bounded(mut issues: Vec<Issue>) -> Self {
        for issue in &mut issues {
            for (text, most) in
                [(&mut issue.path, LONGEST_PATH), (&mut issue.message, LONGEST_MESSAGE)]
            {
                if text.len() > most {
                    *text = cut_unredacted(text, most).into_owned();
                }
            }
        }
        Self { issues }
    }

    /// One sentence for all issues. Paths are not followed by a colon, because text after `token:`
    /// would be redacted as a secret.
    #[must_use]
    pub fn message(&self, tool: &str) -> String {
        let mut said = format!("The result of {tool} does not match its outputSchema: ");
        for (at, issue) in self.issues.iter().take(MOST_NOTED).enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            let _ = match issue.path.as_str() {
                "" => write!(said, "{comma}{}", issue.message),
                path => write!(said, "{comma}{path} ({})", issue.message),
            };
        }
        match self.issues.len().saturating_sub(MOST_NOTED) {
            0 => {}
            more => _ = write!(said, ", and {more} more"),
        }
        said
    }

    /// `{"validationIssues":[{path, message}]}`.
    #[must_use]
    pub fn details(&self) -> Value {
        json!({ "validationIssues": listed(&self.issues) })
    }

    /// What the log has of it where the result passes.
    #[must_use]
    pub fn facts(&self, tool: &str) -> Value {
        let first = &self.issues[..self.issues.len().min(MOST_NOTED)];
        json!({ "tool": tool, "issues": listed(first), "count": self.issues.len() })
    }
}

fn listed(issues: &[Issue]) -> Vec<Value> {
    issues.iter().map(|i| json!({ "path": i.path, "message": i.message })).collect()
}
