//! `alerts replay`: failures in, the pages that they raise out.

use faultwire::json::AlertReplay;

use crate::args::AlertsCommand;
use crate::edge::Line;
use crate::problem::Problem;
use crate::{Done, edge, resolve};

/// The longest line with an event.
const LONGEST_LINE: usize = 1024 * 1024;

pub fn run(command: &AlertsCommand) -> Result<Done, Problem> {
    let AlertsCommand::Replay { contract, capacity } = command;
    let contract = resolve::contract(&contract.contract)?;
    let mut alerts = AlertReplay::new(&contract, *capacity);
    edge::lines(LONGEST_LINE, |number, line| {
        let place = format!("stdin, line {number}");
        let Line::Whole(line) = line else {
            let what = format!("the line is longer than {LONGEST_LINE} bytes");
            return Err(Problem::bad(&place, what, "write one event per line"));
        };
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let Some(mut page) = alerts.observe(&line).map_err(|e| e.at(place))? else {
            return Ok(());
        };
        page.push(b'\n');
        edge::print(&page)
    })?;
    if alerts.forgotten() > 0 {
        let n = alerts.forgotten();
        edge::complain(&format!(
            "note: {n} pairs of client and code were forgotten early; raise --capacity\n"
        ));
    }
    Ok(Done::Fine)
}
