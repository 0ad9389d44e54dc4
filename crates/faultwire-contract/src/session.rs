//! Sessions that must be begun, and that lock after serious failures (K12).

use serde_json::Value;

use crate::code::Code;
use crate::condition::Condition;

/// A contract's rules for sessions. They apply to servers that have the tool that begins one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionRules {
    /// The tool that begins a session. Nothing is called before it.
    pub begin: String,
    /// The tools that end it.
    pub end: Vec<String>,
    /// Categories of failures that lock the session.
    pub lock_categories: Vec<String>,
    /// Patterns of tools that stay allowed while it is locked.
    pub while_locked: Vec<String>,
    /// Whether tools stay allowed that say of themselves that they only read.
    pub reading_while_locked: bool,
    /// What may still be written while it is locked.
    pub reports: Option<Reports>,
}

/// Reports that may be written while a session is locked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reports {
    /// The tools that write them.
    pub tools: Vec<String>,
    /// The argument that says where.
    pub argument: String,
    /// The directory in the workspace that they belong in.
    pub under: String,
}

/// The state of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionState {
    /// It was begun and has not ended.
    pub begun: bool,
    /// A serious failure locked it.
    pub locked: bool,
}

/// The facts of a call that matter for sessions.
#[derive(Clone, Copy, Debug)]
pub struct SessionCall<'a> {
    /// The tool.
    pub tool: &'a str,
    /// Its arguments.
    pub arguments: Option<&'a Value>,
    /// Whether the tool's annotations say that it only reads.
    pub read_only: bool,
    /// The workspace, if it is known.
    pub workspace_root: Option<&'a str>,
}

impl SessionRules {
    /// Whether the session's state allows a call; if not, the condition.
    pub fn judge(&self, state: SessionState, call: &SessionCall<'_>) -> Result<(), Condition> {
        if call.tool == self.begin || self.end.iter().any(|end| end == call.tool) {
            return Ok(());
        }
        if !state.begun {
            return Err(Condition::NotReady);
        }
        let free = !state.locked
            || (self.reading_while_locked && call.read_only)
            || self.while_locked.iter().any(|p| fast_glob::glob_match(p, call.tool))
            || self.reports.as_ref().is_some_and(|reports| reports.take(call));
        if free { Ok(()) } else { Err(Condition::Locked) }
    }

    /// The state of the session after a successful call.
    #[must_use]
    pub fn after_success(&self, state: SessionState, tool: &str) -> SessionState {
        if tool == self.begin {
            return SessionState { begun: true, locked: false };
        }
        if self.end.iter().any(|end| end == tool) {
            return SessionState::default();
        }
        state
    }

    /// The state of the session after a failed call.
    #[must_use]
    pub fn after_failure(&self, state: SessionState, code: &Code) -> SessionState {
        let locks = self.lock_categories.contains(&code.category);
        SessionState { locked: state.locked || (state.begun && locks), ..state }
    }
}

impl Reports {
    fn take(&self, call: &SessionCall<'_>) -> bool {
        let named = self.tools.iter().any(|tool| tool == call.tool);
        let path = call.arguments.and_then(|a| a.get(&self.argument)?.as_str());
        named && path.is_some_and(|path| self.is_under(path, call.workspace_root))
    }

    /// Whether the path is inside the directory and cannot leave it.
    fn is_under(&self, path: &str, workspace_root: Option<&str>) -> bool {
        let root = workspace_root.map(|root| root.trim_end_matches('/'));
        let inside = root.and_then(|root| path.strip_prefix(root)?.strip_prefix('/'));
        let path = inside.unwrap_or(path);
        let path = path.strip_prefix("./").unwrap_or(path);
        let Some(rest) = path.strip_prefix(&*self.under) else { return false };
        !rest.is_empty() && !rest.split(['/', '\\']).any(|part| matches!(part, "" | "." | ".."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k12_reports_stay_where_they_belong() {
        let reports = Reports {
            tools: vec!["write_file".into()],
            argument: "path".into(),
            under: "docs/reports/".into(),
        };
        for (path, expected) in [
            ("docs/reports/a.md", true),
            ("./docs/reports/deep/a.md", true),
            ("/w/docs/reports/a.md", true),
            ("docs/reports/", false),
            ("docs/reports", false),
            ("docs/reports/../secret", false),
            ("docs/reports/x/../../y", false),
            ("docs/reports//a", false),
            ("docs/reports/..\\..\\a", false),
            ("docs/reportsx/a.md", false),
            ("/docs/reports/a.md", false),
            ("/w/../docs/reports/a.md", false),
            ("/etc/passwd", false),
            ("", false),
        ] {
            assert_eq!(reports.is_under(path, Some("/w")), expected, "{path:?}");
        }
    }
}
