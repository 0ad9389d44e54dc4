//! The delay that a failure names, in words or in its structured part.

use std::sync::LazyLock;
use std::time::Duration;

use regex::Regex;
use serde_json::Value;

use super::LOOKED_AT;
use crate::classify::cache::Cache;

/// A delay that a failure names in its structured part: milliseconds, or seconds.
pub(super) fn in_body(body: &Value) -> Option<Duration> {
    const MS: [&str; 4] = ["retryAfterMs", "retry_after_ms", "afterMs", "retryInMs"];
    const SECONDS: [&str; 8] = [
        "retryAfter",
        "retry_after",
        "retry-after",
        "Retry-After",
        "retry_in_seconds",
        "retryAfterSeconds",
        "retry_after_seconds",
        "retry_after_s",
    ];
    let number = |key: &&str| {
        let value = body.get(*key)?;
        value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())
    };
    let found = MS.iter().find_map(number).map(|ms| ms / 1000.0);
    let seconds = found.or_else(|| SECONDS.iter().find_map(number))?;
    (seconds > 0.0 && seconds <= 86_400.0).then(|| Duration::from_secs_f64(seconds))
}

static DELAY: LazyLock<Regex> = LazyLock::new(|| {
    fixed(
        r"(?i-u)\b(?:retry|try again|wait|resets?)[a-z0-9_]*(?:(?:[ -](?:in|after|for|at)[:\s]+(?:about )?|:\s*)|[:\s]+(?:about )?)\d{1,6}(?:\.\d+)?\s*(?:ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?)?\b",
    )
});

/// A pattern of this file.
fn fixed(pattern: &str) -> Regex {
    match Regex::new(pattern) {
        Ok(regex) => regex,
        Err(e) => unreachable!("a pattern of this file does not compile: {e}"),
    }
}

/// The first delay that a text names.
pub(super) fn in_text(text: &str) -> Option<Duration> {
    static DECIDED: LazyLock<Cache<Option<Duration>>> = LazyLock::new(Cache::new);
    let words = &text[..text.floor_char_boundary(LOOKED_AT)];
    DECIDED.decided(words, || delay_in(words))
}

fn delay_in(words: &str) -> Option<Duration> {
    // Captures are slow; what was found is taken apart by hand.
    let found = DELAY.find(words)?.as_str().to_ascii_lowercase();
    let (before, rest) = found.split_at(found.find(|c: char| c.is_ascii_digit())?);
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let (number, unit) = (rest[..end].trim_end_matches('.'), rest[end..].trim());
    // Without a unit the number counts only where a word says that it is a time.
    let before = before.trim_end().trim_end_matches("about").trim_end();
    let timed =
        ["in", "after", "for", "at"].iter().any(|w| before.trim_end_matches(':').ends_with(w));
    if unit.is_empty() && !timed && !before.ends_with(':') {
        return None;
    }
    let number: f64 = number.parse().ok()?;
    let seconds = match unit {
        unit if unit.starts_with("ms") || unit.starts_with("mil") => number / 1000.0,
        unit if unit.starts_with('m') => number * 60.0,
        _ => number,
    };
    (seconds > 0.0 && seconds <= 86_400.0).then(|| Duration::from_secs_f64(seconds))
}
