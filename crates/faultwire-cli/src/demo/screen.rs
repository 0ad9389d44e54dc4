//! What the demo shows, on a terminal of any size.

use faultwire_contract::Contract;

use super::{SCENES, Scene, Side};
use crate::style::{CODE, DIM, ERROR, GOOD, HEAD, paint, plain};

/// For what a scene shows.
const NAME: usize = 24;

/// How much fits.
pub struct Screen {
    /// For the side without Faultwire, and for the one with it.
    left: usize,
    right: usize,
    /// Whether there is room for a third line.
    is_tall: bool,
}

impl Screen {
    /// What is no terminal takes all of it.
    pub fn of(terminal: Option<(usize, usize)>) -> Self {
        const LEFT: usize = 28;
        const RIGHT: usize = 54;
        let (width, height) = terminal.unwrap_or((NAME + LEFT + RIGHT, usize::MAX));
        let room = width.saturating_sub(NAME);
        let left = match room.checked_sub(LEFT + RIGHT) {
            Some(more) => LEFT + more / 3,
            None => (room * 2 / 5).max(14),
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

    /// What was seen, what it cost, and what was said.
    pub fn row(&self, scene: &Scene, without: &Side, with: &Side) -> String {
        let (left, right) = (self.left, self.right);
        let seen = |side: &Side, most| match &side.code {
            // What leaks stands at the end of the text.
            None if scene.tool == "leak" => end(&side.saw, most),
            None => cut(&line(&side.saw), most),
            Some(code) => cut(code, most),
        };
        let bad = if without.good { GOOD } else { ERROR };
        let good = if with.code.is_some() { CODE } else { GOOD };
        let call = format!("  {}", scene.tool);
        let mut row = format!(
            "{:NAME$}{bad}{:left$}{bad:#}{good}{}{good:#}\n\
             {DIM}{call:NAME$}{:left$}{}{DIM:#}\n",
            scene.shows,
            seen(without, left - 2),
            seen(with, right),
            waited(without),
            self.cost(without, with),
        );
        if with.code.is_some() && self.is_tall {
            let said = cut(&line(with.saw.lines().last().unwrap_or_default()), right);
            row += &format!("{:width$}{said}\n", "", width = NAME + left);
        }
        row
    }

    fn cost(&self, without: &Side, with: &Side) -> String {
        let told = match (&with.retry, &with.logged) {
            (Some(retry), Some(incident)) => {
                let told = format!("{}, retry {retry}, ", waited(with));
                let fits = told.len() + incident.len() <= self.right;
                told + if fits { incident } else { "recorded" }
            }
            _ if with.saw == without.saw && with.good => {
                format!("{}, the same bytes", waited(with))
            }
            _ => waited(with),
        };
        cut(&told, self.right)
    }

    pub fn closing(&self, log: &str, holds: bool) -> String {
        let gap = if self.is_tall { "\n" } else { "" };
        let claim = if holds {
            "Nothing hangs, no secret gets out, every failure has a code and a record."
        } else {
            "Not every call was answered and recorded as it should be."
        };
        format!(
            "{gap}{claim}\n  \
             The same for any server:  {HEAD}faultwire wrap -- CMD{HEAD:#}\n  \
             What was recorded here:   {HEAD}faultwire audit tail {log}{HEAD:#}\n"
        )
    }
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
