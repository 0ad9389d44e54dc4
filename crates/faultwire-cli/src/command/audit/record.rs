//! A record on one line, for people.

use faultwire::audit::Summary;

use crate::style::{CODE, DIM, paint, plain};

/// The cells of a table's row.
pub fn cells(summary: &Summary<'_>) -> Vec<String> {
    let cell = |value: Option<&str>| value.map_or_else(|| "-".to_owned(), plain);
    let what = summary.code().map_or_else(|| format!("({})", name(summary)), plain);
    vec![
        plain(&summary.ts),
        what,
        cell(summary.tool()),
        cell(summary.client()),
        cell(summary.origin()),
        cell(summary.outcome()),
        cell(summary.incident()),
    ]
}

/// The heads of these columns.
pub const COLUMNS: [&str; 7] = ["TIME", "CODE", "TOOL", "CLIENT", "ORIGIN", "OUTCOME", "INCIDENT"];

/// One line without columns.
pub fn line(summary: &Summary<'_>) -> String {
    let mut parts = vec![paint(DIM, &plain(&summary.ts))];
    match summary.code() {
        Some(code) => parts.push(paint(CODE, &plain(code))),
        None => parts.push(format!("({})", name(summary))),
    }
    parts.extend(summary.tool().map(plain));
    parts.extend(summary.client().map(|client| format!("by {}", plain(client))));
    if let (Some(origin), Some(outcome)) = (summary.origin(), summary.outcome()) {
        parts.push(format!("{}/{}", plain(origin), plain(outcome)));
    }
    parts.extend(summary.incident().map(plain));
    parts.extend(summary.message().map(|message| paint(DIM, &plain(message))));
    parts.join("  ") + "\n"
}

/// The name of a record that is not a failure.
fn name(summary: &Summary<'_>) -> String {
    plain(summary.name.as_deref().unwrap_or(&summary.kind))
}
