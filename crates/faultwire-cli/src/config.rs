//! `faultwire.toml`: settings in a file. Every key is optional, and an unknown key is an error with
//! its line.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use faultwire_contract::builtin;
use faultwire_gateway::{Allowance, Period, Rate};
use jiff::SignedDuration;
use serde::{Deserialize, Deserializer};
use toml::de::{DeArray, DeTable, DeValue};

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
    pub output: Option<String>,
    pub soft_failures: Option<String>,
    pub retry: Option<u32>,
    pub retry_budget: Option<u32>,
    pub answer_cancelled: Option<bool>,
    pub failures_as_results: Option<bool>,
    pub busy_poll: Option<bool>,
    /// The old name of `busy_poll`.
    linger: Option<bool>,
    pub tool: BTreeMap<String, ToolSettings>,
    pub session: SessionFacts,
    pub meta: Meta,
    pub redact: Redact,
    pub limits: Limits,
    pub restart: Restart,
    pub audit: Audit,
    pub serve: Serve,
    pub breaker: Breaker,
    pub client: Vec<Client>,
    pub mount: Vec<Mount>,
    /// The file's path and text.
    #[serde(skip)]
    source: Option<(PathBuf, String)>,
}

/// `[serve]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Serve {
    pub host: Option<IpAddr>,
    pub port: Option<u16>,
    pub hosts: Vec<String>,
    pub origins: Vec<String>,
    pub trusted_proxies: Vec<String>,
    pub threads: Option<usize>,
    pub body_bytes: Option<usize>,
    pub header_bytes: Option<usize>,
    pub connections: Option<usize>,
    pub sessions: Option<usize>,
    #[serde(deserialize_with = "maybe_span")]
    pub idle: Option<Duration>,
    pub spare: Option<usize>,
    pub open_to_all: bool,
    pub otlp: Option<String>,
}

/// `[breaker]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Breaker {
    pub failures: Option<u32>,
    #[serde(deserialize_with = "maybe_span")]
    pub wait: Option<Duration>,
    #[serde(deserialize_with = "maybe_span")]
    pub cap: Option<Duration>,
}

/// `[[client]]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Client {
    pub name: String,
    pub token_env: Option<String>,
    pub token_file: Option<PathBuf>,
    pub role: Option<String>,
    pub tools: Option<Vec<String>>,
    pub deny: Vec<String>,
    pub resources: Option<Vec<String>>,
    pub deny_resources: Vec<String>,
    pub prompts: Option<Vec<String>>,
    pub deny_prompts: Vec<String>,
    #[serde(deserialize_with = "maybe_rate")]
    pub rate: Option<Rate>,
    #[serde(deserialize_with = "maybe_allowance")]
    pub budget: Option<Allowance>,
}

/// `[[mount]]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Mount {
    pub name: String,
    pub command: Vec<String>,
    pub url: Option<String>,
    pub headers_env: BTreeMap<String, String>,
    pub env: BTreeMap<String, String>,
    pub ca_file: Option<PathBuf>,
    pub contract: Option<String>,
    pub profile: Option<String>,
}

/// `[tool.NAME]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ToolSettings {
    #[serde(deserialize_with = "maybe_span")]
    pub timeout: Option<Duration>,
    #[serde(deserialize_with = "maybe_rate")]
    pub rate: Option<Rate>,
}

/// `[session]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SessionFacts {
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

/// `[redact]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Redact {
    pub paths: Option<Treat>,
    pub addresses: Option<Treat>,
    pub frames: Option<Treat>,
    pub personal: Option<Treat>,
}

/// Whether clients see one kind of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Treat {
    Keep,
    Mask,
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
        Self::parse(path, edge::file(path)?)
    }

    /// The settings in the text of a file.
    pub fn parse(path: &Path, text: String) -> Result<Self, Problem> {
        let read = toml::from_str(&text).map_err(|e: toml::de::Error| {
            let line = line_at(&text, e.span().map_or(0, |span| span.start));
            let place = format!("{}:{line}", path.display());
            let written = text.lines().nth(line - 1).unwrap_or_default().trim();
            let what = format!("{}, in `{written}`", e.message().trim_end().replace('\n', " "));
            let help = "docs/faultwire.toml in the repository lists every key";
            Problem::bad(&place, what, help)
        });
        let mut config = Self { source: Some((path.to_owned(), text)), ..read? };
        if config.linger.is_some() && config.busy_poll.is_some() {
            let what = "linger is the old name of busy_poll, and both are set";
            return Err(Problem::bad(&config.place(&["linger"]), what, "remove linger"));
        }
        config.busy_poll = config.busy_poll.or(config.linger);
        Ok(config)
    }

    /// Warns about settings that are still read under an old name.
    pub fn warn_of_old_names(&self) {
        if self.linger.is_some() {
            let place = self.place(&["linger"]);
            tracing::warn!("{place}: the setting linger is now called busy_poll; rename it");
        }
    }

    /// The contract that the file names: a path is looked up beside this file first.
    pub fn contract_named(&self, name: &str) -> String {
        if builtin(name).is_some() {
            return name.to_owned();
        }
        let dir = self.source.as_ref().and_then(|(path, _)| path.parent());
        let beside = dir.map(|dir| dir.join(name)).filter(|beside| beside.is_file());
        beside.map_or_else(|| name.to_owned(), |beside| beside.display().to_string())
    }

    /// The file and line of a key, or of its table if the key is absent.
    pub fn place(&self, keys: &[&str]) -> String {
        let Some((path, text)) = &self.source else { return keys.join(".") };
        let Ok(file) = DeTable::parse(text) else { return path.display().to_string() };
        let (mut at, mut here) = (0, Some(file.get_ref()));
        let mut list: Option<&DeArray<'_>> = None;
        for key in keys {
            let found = match (here, list) {
                (Some(table), _) => table.get(*key),
                (None, Some(list)) => key.parse().ok().and_then(|n: usize| list.get(n)),
                (None, None) => None,
            };
            let Some(found) = found else { break };
            at = found.span().start;
            (here, list) = match found.get_ref() {
                DeValue::Table(table) => (Some(table), None),
                DeValue::Array(items) => (None, Some(items)),
                _ => (None, None),
            };
        }
        format!("{}:{}", path.display(), line_at(text, at))
    }
}

/// The line that contains a byte, counted from 1.
fn line_at(text: &str, at: usize) -> usize {
    text[..text.floor_char_boundary(at)].matches('\n').count() + 1
}

/// The longest time span that a setting accepts.
const LONGEST: Duration = Duration::from_hours(24 * 30);

/// `90s`, `500ms`, `2m`, `1h 30m`; a bare number is seconds.
pub fn span(text: &str) -> Result<Duration, String> {
    let seconds = text.trim().parse::<u32>().ok().map(|s| SignedDuration::from_secs(s.into()));
    let span = seconds.or_else(|| text.trim().parse::<SignedDuration>().ok());
    let positive = span.filter(SignedDuration::is_positive);
    positive
        .and_then(|span| Duration::try_from(span).ok())
        .filter(|span| *span <= LONGEST)
        .ok_or_else(|| {
            format!(
                "{text:?} is not a valid time span; write 500ms, 90s, 2m or 1h (at most 30 days)"
            )
        })
}

/// `60/m`: a count for each second, minute, hour or day.
fn counted(text: &str) -> Result<(u32, Duration), String> {
    let wrong = || format!("{text:?} is not a valid rate; write 5/s, 60/m, 1000/h or 10000/d");
    let (times, per) = text.split_once('/').ok_or_else(wrong)?;
    let seconds = match per.trim() {
        "s" | "second" => 1,
        "m" | "min" | "minute" => 60,
        "h" | "hour" => 3600,
        "d" | "day" => 86_400,
        _ => return Err(wrong()),
    };
    let times = times.trim().parse().map_err(|_| wrong())?;
    Ok((times, Duration::from_secs(seconds)))
}

fn maybe_rate<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Rate>, D::Error> {
    let text = String::deserialize(d)?;
    let (times, per) = counted(&text).map_err(serde::de::Error::custom)?;
    let times = NonZeroU32::new(times)
        .ok_or_else(|| serde::de::Error::custom("a rate must be at least 1"))?;
    Ok(Some(Rate { times, per }))
}

fn maybe_allowance<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Allowance>, D::Error> {
    let text = String::deserialize(d)?;
    let (calls, per) = counted(&text).map_err(serde::de::Error::custom)?;
    let period = match per.as_secs() {
        60 => Period::Minute,
        3600 => Period::Hour,
        86_400 => Period::Day,
        _ => return Err(serde::de::Error::custom("a budget must be per minute, hour or day")),
    };
    Ok(Some(Allowance { calls: calls.into(), period }))
}

fn maybe_span<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Duration>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "not a valid time span; write 500ms, 90s, 2m or 1h")]
    enum Written {
        Text(String),
        Seconds(u32),
        Parts(f64),
    }
    let text = match Written::deserialize(d)? {
        Written::Text(text) => text,
        Written::Seconds(seconds) => seconds.to_string(),
        Written::Parts(seconds) => format!("{seconds}s"),
    };
    span(&text).map(Some).map_err(serde::de::Error::custom)
}
