//! The demo's output, for a terminal of any size.

use faultwire_contract::Contract;

use super::{Point, SCENES, Scene, Side};
use crate::style::{CODE, DIM, ERROR, GOOD, HEAD, paint, plain};

/// The width of the first column: what a scene shows.
const NAME: usize = 21;

/// The widths of the columns.
pub struct Screen {
    /// The sides without and with Faultwire.
    left: usize,
    right: usize,
    /// Whether there is space for a third line.
    is_tall: bool,
}

impl Screen {
    /// Without a terminal, everything is shown.
    pub fn of(terminal: Option<(usize, usize)>) -> Self {
        const LEFT: usize = 24;
        const RIGHT: usize = 65;
        let (width, height) = terminal.unwrap_or((NAME + LEFT + RIGHT, usize::MAX));
        let room = width.saturating_sub(NAME);
        let left = match room.checked_sub(LEFT + RIGHT) {
            Some(more) => LEFT + more / 3,
            None => (room / 3).max(14),
        };
        // With the heading, the closing and the prompt after it.
        let lines = 3 * SCENES.len() + 8;
        Self { left, right: room.saturating_sub(left).max(24), is_tall: height >= lines }
    }

    pub fn heading(&self, contract: &Contract) -> String {
        let (gap, left) = (if self.is_tall { "\n" } else { "" }, self.left);
        let title =
            format!("{:NAME$}{:left$}with, under the contract {}", "", "without", contract.name);
        format!(
            "One MCP server that fails, and what its client sees\n{gap}{}\n",
            paint(HEAD, &title)
        )
    }

    /// What the client sees on both sides.
    pub fn row(&self, scene: &Scene, without: &Side, with: &Side) -> String {
        let (left, right) = (self.left, self.right);
        let bad = if without.good { GOOD } else { ERROR };
        let good = if with.code.is_some() { CODE } else { GOOD };
        let (call, lines) = (format!("  {}", scene.tool), self.lines(scene, without, with));
        // Most calls are too quick to show their time.
        let is_slow = without.waited_ms >= 1000;
        let time = |side: &Side| if is_slow { waited(side) } else { String::new() };
        let mut row = format!(
            "{:NAME$}{bad}{:left$}{bad:#}{good}{}{good:#}\n\
             {DIM}{call:NAME$}{:left$}{DIM:#}{}\n",
            scene.shows,
            seen(scene, &without.saw, left - 2),
            cut(&outcome(with, &time(with)), right),
            time(without),
            lines.first().map(String::as_str).unwrap_or_default(),
        );
        for more in lines.iter().skip(1) {
            row += &format!("{:width$}{more}\n", "", width = NAME + left);
        }
        row
    }

    /// The server's words and what to do next, or the one that fits.
    fn lines(&self, scene: &Scene, without: &Side, with: &Side) -> Vec<String> {
        let right = self.right;
        let Some(next) = &with.next else {
            let same = with.saw == without.saw && with.good;
            return vec![if same { "the same bytes".to_owned() } else { String::new() }];
        };
        let words = seen(scene, &with.saw, right);
        let next = cut(&line(next), right);
        match scene.point {
            _ if self.is_tall => vec![words, next],
            Point::Words => vec![words],
            Point::Next => vec![next],
        }
    }

    pub fn closing(&self, log: &str, holds: bool) -> String {
        let gap = if self.is_tall { "\n" } else { "" };
        let claim = if holds {
            "No call hangs, no secret leaks, and every failure has a code and a record."
        } else {
            "Some calls were not answered or recorded as expected."
        };
        format!(
            "{gap}{claim}\n  \
             Do this for any server:  {HEAD}faultwire wrap -- CMD{HEAD:#}\n  \
             See what was recorded:   {HEAD}faultwire audit tail {log}{HEAD:#}\n"
        )
    }
}

/// What a server said, or the end of it if the decisive part is at the end.
fn seen(scene: &Scene, saw: &str, most: usize) -> String {
    match scene.point {
        Point::Words if !saw.starts_with('{') => end(saw, most),
        _ => cut(&line(saw), most),
    }
}

/// The code, whether to call again, and how long it took.
fn outcome(with: &Side, time: &str) -> String {
    let retry = with.retry.as_deref().map(|retry| format!("retry {retry}")).unwrap_or_default();
    let first = with.code.clone().unwrap_or_else(|| line(&with.saw));
    let all = [first.as_str(), &retry, time];
    all.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

fn waited(side: &Side) -> String {
    match side.waited_ms {
        ms @ 0..1000 => format!("{ms} ms"),
        ms => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
    }
}

/// A text on one line.
fn line(text: &str) -> String {
    let line = plain(&text.lines().collect::<Vec<_>>().join(" "));
    if line.is_empty() { "(an empty text)".to_owned() } else { line }
}

/// The beginning of a text.
fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

/// The end of a text.
fn end(text: &str, most: usize) -> String {
    let line = plain(text.lines().last().unwrap_or_default());
    let over = line.chars().count().saturating_sub(most - 1);
    if over <= 1 { line } else { ['…'].into_iter().chain(line.chars().skip(over)).collect() }
}
