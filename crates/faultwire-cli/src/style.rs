//! Colours and columns of output for people.

use anstyle::{AnsiColor, Style};

/// A heading.
pub const HEAD: Style = Style::new().bold();
/// Secondary text.
pub const DIM: Style = Style::new().dimmed();
/// A code.
pub const CODE: Style = AnsiColor::Cyan.on_default().bold();
/// Success.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// A warning.
pub const WARN: Style = AnsiColor::Yellow.on_default();
/// An error.
pub const ERROR: Style = AnsiColor::Red.on_default().bold();
/// What to do about it.
pub const HELP: Style = AnsiColor::Cyan.on_default();

/// A style around a text.
pub fn paint(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// Rows in columns as wide as their longest cell; the first row is the heading.
pub fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |c: usize| rows.iter().filter_map(|r| r.get(c)).map(|s| s.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|c| width(c).unwrap_or(0)).collect();
    let mut out = String::new();
    for (i, row) in rows.iter().enumerate() {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        let line = cells.collect::<Vec<_>>().join("  ");
        let line = line.trim_end();
        out += &if i == 0 { paint(HEAD, line) } else { line.to_owned() };
        out.push('\n');
    }
    out
}

/// Text from outside, safe for a terminal: control characters are escaped.
pub fn plain(text: &str) -> String {
    let unsafe_for_terminals =
        |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let shown = |c: char| match c {
        c if unsafe_for_terminals(c) => c.escape_default().to_string(),
        c => c.to_string(),
    };
    text.chars().map(shown).collect()
}
