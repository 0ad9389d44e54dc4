//! `completions`: a script for the shell.

use clap::CommandFactory;
use clap_complete::{Shell, generate};

use crate::args::Args;
use crate::problem::Problem;
use crate::{Done, edge};

pub fn run(shell: Shell) -> Result<Done, Problem> {
    let mut script = Vec::new();
    generate(shell, &mut Args::command(), "faultwire", &mut script);
    edge::print(&script)?;
    Ok(Done::Fine)
}
