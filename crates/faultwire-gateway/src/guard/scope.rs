//! What a client may use: patterns of tools, prompts and resources that are allowed and denied.
//! What is allowed is compared exactly as it was written; what is denied is compared folded, since
//! a server may take no notice of case.

use std::borrow::Cow;

use faultwire_contract::fold;

/// Patterns as an operator writes them. `*` stands for any text, `/` included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScopeSettings {
    /// Tools that may be called; none is all.
    pub tools: Option<Vec<String>>,
    /// Tools that may not be called, even if they are allowed.
    pub deny: Vec<String>,
    /// URIs and URI templates that may be read; none is all, or nothing where `tools` is set.
    pub resources: Option<Vec<String>>,
    /// URIs that may not be read.
    pub deny_resources: Vec<String>,
    /// Prompts that may be used; none is all, or nothing where `tools` is set.
    pub prompts: Option<Vec<String>>,
    /// Prompts that may not be used.
    pub deny_prompts: Vec<String>,
}

/// What can be allowed and denied by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Tool,
    Resource,
    Prompt,
}

/// What one client may use.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    tools: Patterns,
    resources: Patterns,
    prompts: Patterns,
}

#[derive(Debug, Default)]
struct Patterns {
    /// None is everything.
    allowed: Option<Vec<String>>,
    denied: Vec<String>,
}

impl Scope {
    pub(crate) fn new(settings: &ScopeSettings) -> Self {
        // A client that is limited to some tools may not use the rest of the server.
        let unset = || settings.tools.is_some().then(Vec::new);
        let of = |allowed: &Option<Vec<String>>, denied: &[String]| Patterns {
            allowed: allowed.as_ref().map(|all| all.iter().map(|p| flat(p).into()).collect()),
            denied: denied.iter().map(|pattern| flat(&fold(pattern)).into()).collect(),
        };
        Self {
            tools: of(&settings.tools, &settings.deny),
            resources: of(&settings.resources.clone().or_else(unset), &settings.deny_resources),
            prompts: of(&settings.prompts.clone().or_else(unset), &settings.deny_prompts),
        }
    }

    /// Whether a thing of this name may be used.
    pub(crate) fn allows(&self, kind: Kind, name: &str) -> bool {
        let patterns = self.of(kind);
        if patterns.is_free() {
            return true;
        }
        // A path that climbs is not the one that its beginning names.
        if kind == Kind::Resource && climbs(name) || name.chars().any(char::is_control) {
            return false;
        }
        patterns.allow(name)
    }

    /// Whether some things of a kind may not be used.
    pub(crate) fn limits(&self, kind: Kind) -> bool {
        !self.of(kind).is_free()
    }

    /// The patterns of tools that match none of these.
    pub(crate) fn unmatched<'a>(
        &'a self,
        tools: &'a [String],
    ) -> impl Iterator<Item = String> + 'a {
        let allowed = self.tools.allowed.iter().flatten().map(|pattern| (pattern, false));
        let denied = self.tools.denied.iter().map(|pattern| (pattern, true));
        let matches = |pattern: &str, name: &String, folded: bool| {
            let name = if folded { fold(name) } else { name.as_str().into() };
            fast_glob::glob_match(pattern, &*flat(&name))
        };
        allowed
            .chain(denied)
            .filter(move |(pattern, folded)| {
                !tools.iter().any(|tool| matches(pattern, tool, *folded))
            })
            .map(|(pattern, _)| pattern.replace('\u{1f}', "/"))
    }

    /// Whether everything may be used.
    pub(crate) fn is_free(&self) -> bool {
        [Kind::Tool, Kind::Resource, Kind::Prompt].iter().all(|kind| !self.limits(*kind))
    }

    fn of(&self, kind: Kind) -> &Patterns {
        match kind {
            Kind::Tool => &self.tools,
            Kind::Resource => &self.resources,
            Kind::Prompt => &self.prompts,
        }
    }
}

impl Patterns {
    fn is_free(&self) -> bool {
        self.allowed.is_none() && self.denied.is_empty()
    }

    fn allow(&self, name: &str) -> bool {
        let fits = |patterns: &[String], name: &str| {
            patterns.iter().any(|pattern| fast_glob::glob_match(pattern, name))
        };
        let allowed = self.allowed.as_deref().is_none_or(|all| fits(all, &flat(name)));
        allowed && (self.denied.is_empty() || !fits(&self.denied, &flat(fold(name).trim())))
    }
}

/// A name in which no part is a directory: `*` stands for all of it.
fn flat(name: &str) -> Cow<'_, str> {
    if name.contains('/') { name.replace('/', "\u{1f}").into() } else { name.into() }
}

/// Whether a URI has a segment that leads upwards, in whichever spelling.
fn climbs(uri: &str) -> bool {
    let mut text = uri.to_owned();
    for _ in 0..4 {
        let segments = text.split(['/', '\\', '?', '#', ':', ';']);
        if segments.into_iter().any(|segment| matches!(segment.trim(), "." | "..")) {
            return true;
        }
        let decoded = percent_decoded(&text);
        if decoded == text {
            return false;
        }
        text = decoded;
    }
    // Encoded so often for no good reason.
    true
}

fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).and_then(|b| char::from(*b).to_digit(16));
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        match (bytes[at], digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                decoded.push(u8::try_from(high * 16 + low).unwrap_or_default());
                at += 3;
            }
            (byte, ..) => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(patterns: &[&str]) -> Vec<String> {
        patterns.iter().map(|pattern| (*pattern).to_owned()).collect()
    }

    fn check(scope: &Scope, kind: Kind, rows: &[(&str, bool)]) {
        for (name, expected) in rows {
            assert_eq!(scope.allows(kind, name), *expected, "{kind:?} {name:?}");
        }
    }

    #[test]
    fn x1_what_is_denied_is_denied_in_every_spelling() {
        let scope = Scope::new(&ScopeSettings {
            tools: Some(list(&["read_*", "*_all"])),
            deny: list(&["read_slow", "delete_*"]),
            ..ScopeSettings::default()
        });
        let rows = [
            ("read_a", true),
            ("read_slow", false),
            ("READ_SLOW", false),
            ("read_ſlow", false),
            ("list_all", true),
            ("delete_all", false),
            ("Delete_all", false),
            ("write", false),
            ("Read_a", false),
            ("delete\0_all", false),
        ];
        check(&scope, Kind::Tool, &rows);
        check(&scope, Kind::Prompt, &[("any", false)]);
        check(&scope, Kind::Resource, &[("file:///any", false)]);
    }

    #[test]
    fn patterns_that_match_no_tool_are_found() {
        let scope = Scope::new(&ScopeSettings {
            tools: Some(list(&["read_*", "raed_*", "notes/get"])),
            deny: list(&["DELETE_*", "drop"]),
            ..ScopeSettings::default()
        });
        let tools = list(&["read_a", "delete_all", "notes/set"]);
        assert_eq!(scope.unmatched(&tools).collect::<Vec<_>>(), ["raed_*", "notes/get", "drop"]);
    }

    #[test]
    fn x1_deny_alone_leaves_the_rest() {
        let deny = list(&["delete_*"]);
        let scope = Scope::new(&ScopeSettings { deny, ..ScopeSettings::default() });
        check(&scope, Kind::Tool, &[("read", true), ("delete_x", false)]);
        check(&scope, Kind::Prompt, &[("any", true)]);
        assert!(!scope.is_free());
        assert!(Scope::new(&ScopeSettings::default()).is_free());
    }

    #[test]
    fn x1_a_path_that_climbs_is_not_allowed() {
        let scope = Scope::new(&ScopeSettings {
            resources: Some(list(&["file:///notes/*", "memo://{id}"])),
            deny_resources: list(&["*/private/*"]),
            ..ScopeSettings::default()
        });
        let rows = [
            ("file:///notes/a.md", true),
            ("file:///notes/deep/a..b.md", true),
            ("file:///notes/../etc/passwd", false),
            ("file:///notes/%2e%2e/etc/passwd", false),
            ("file:///notes/%252e%252e/etc/passwd", false),
            ("file:///notes/..\\etc", false),
            ("file:///notes/.", false),
            ("file:///notes/Private/x", false),
            ("file:///etc/passwd", false),
            ("FILE:///notes/a.md", false),
        ];
        check(&scope, Kind::Resource, &rows);
        check(&scope, Kind::Tool, &[("any", true)]);
    }
}
