//! A bar for work that takes longer than a moment. It is on stderr, and only on a terminal.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::edge;

/// Shorter work shows no bar.
const PATIENCE: Duration = Duration::from_millis(700);

/// The progress of some work.
pub struct Progress {
    what: &'static str,
    total: u64,
    done: u64,
    begun: Instant,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Work over this many bytes.
    pub fn over_bytes(total: u64, what: &'static str) -> Self {
        Self { what, total, done: 0, begun: edge::instant(), bar: None }
    }

    /// Adds finished bytes.
    pub fn advance(&mut self, bytes: u64) {
        self.done += bytes;
        if self.bar.is_none() && edge::instant() - self.begun > PATIENCE {
            self.bar = Some(bar(self.total, self.what));
        }
        if let Some(bar) = &self.bar {
            bar.set_position(self.done);
        }
    }

    /// Ends the work and clears the bar.
    pub fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar(total: u64, what: &'static str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(10));
    let template = "{msg} [{bar:30}] {bytes}/{total_bytes} {bytes_per_sec}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.with_message(what)
}
