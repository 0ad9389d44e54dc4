//! `faultwire.toml`: settings in a file. Every key is optional, and a key that is none is an
//! error with its line.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::SignedDuration;
use serde::{Deserialize, Deserializer};

use crate::edge;
use crate::problem::Problem;

/// The whole file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    pub contract: Option<String>,
    pub profile: Option<String>,
    pub name: Option<String>,
    pub log: Option<String>,
    #[serde(deserialize_with = "maybe_span")]
    pub timeout: Option<Duration>,
    #[serde(deserialize_with = "maybe_span")]
    pub max_timeout: Option<Duration>,
    #[serde(deserialize_with = "maybe_span")]
    pub start_timeout: Option<Duration>,
    #[serde(deserialize_with = "maybe_span")]
    pub drain: Option<Duration>,
    pub arguments: Option<String>,
    pub retry: Option<u32>,
    pub retry_budget: Option<u32>,
    pub answer_cancelled: Option<bool>,
    pub failures_as_results: Option<bool>,
    pub tool: BTreeMap<String, Tool>,
    pub session: Session,
    pub meta: Meta,
    pub limits: Limits,
    pub restart: Restart,
    pub audit: Audit,
}

/// `[tool.NAME]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tool {
    #[serde(deserialize_with = "maybe_span")]
    pub timeout: Option<Duration>,
}

/// `[session]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Session {
    pub role: Option<String>,
    pub workspace_root: Option<String>,
}

/// `[meta]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Meta {
    pub tool_version: Option<String>,
    pub mode: Option<String>,
    pub approval_mode: Option<bool>,
}

/// `[limits]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    pub line_bytes: Option<usize>,
    pub depth: Option<usize>,
    pub in_flight: Option<usize>,
    pub backlog_bytes: Option<usize>,
}

/// `[restart]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Restart {
    pub limit: Option<u32>,
    #[serde(deserialize_with = "maybe_span")]
    pub base: Option<Duration>,
    #[serde(deserialize_with = "maybe_span")]
    pub cap: Option<Duration>,
}

/// `[audit]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Audit {
    pub dir: Option<PathBuf>,
    pub fail_open: Option<bool>,
}

impl Config {
    /// The file, or nothing when none is named.
    pub fn read(path: Option<&Path>) -> Result<Self, Problem> {
        let Some(path) = path else { return Ok(Self::default()) };
        let text = edge::file(path)?;
        toml::from_str(&text).map_err(|e: toml::de::Error| {
            let at = e.span().map_or(0, |span| span.start);
            let line = text[..at.min(text.len())].matches('\n').count() + 1;
            let place = format!("{}:{line}", path.display());
            let written = text.lines().nth(line - 1).unwrap_or_default().trim();
            let what = format!("{}, in `{written}`", e.message().trim_end().replace('\n', " "));
            let help = "docs/faultwire.toml in the repository shows every key";
            Problem::bad(&place, what, help)
        })
    }
}

/// Longer than anybody waits.
const LONGEST: Duration = Duration::from_hours(24 * 30);

/// `90s`, `500ms`, `2m`, `1h 30m`; a bare number is seconds.
pub fn span(text: &str) -> Result<Duration, String> {
    let seconds = text.trim().parse::<u32>().ok().map(|s| SignedDuration::from_secs(s.into()));
    let span = seconds.or_else(|| text.trim().parse::<SignedDuration>().ok());
    let positive = span.filter(SignedDuration::is_positive);
    positive
        .and_then(|span| Duration::try_from(span).ok())
        .filter(|span| *span <= LONGEST)
        .ok_or_else(|| format!("{text:?} is no time span; write 500ms, 90s, 2m or 1h"))
}

fn maybe_span<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Duration>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Text(String),
        Seconds(u32),
    }
    let text = match Written::deserialize(d)? {
        Written::Text(text) => text,
        Written::Seconds(seconds) => seconds.to_string(),
    };
    span(&text).map(Some).map_err(serde::de::Error::custom)
}
