//! `alerts replay`: failures in, the pages that they raise out.

use std::time::Duration;

use faultwire_contract::{Alerts, Origin};
use serde::{Deserialize, Serialize};
use serde_json::Number;

use crate::args::AlertsCommand;
use crate::edge::Line;
use crate::problem::Problem;
use crate::{Done, edge, resolve};

/// The longest line with an event.
const LONGEST_LINE: usize = 1024 * 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Event {
    t: Number,
    client: String,
    code: String,
    origin: Option<Origin>,
}

#[derive(Serialize)]
struct Page<'a> {
    t: &'a Number,
    level: &'a str,
    client: &'a str,
    code: &'a str,
    count: usize,
}

pub fn run(command: &AlertsCommand) -> Result<Done, Problem> {
    let AlertsCommand::Replay { contract, capacity } = command;
    let contract = resolve::contract(&contract.contract)?;
    let mut alerts = Alerts::new(&contract, *capacity);
    edge::lines(LONGEST_LINE, |number, line| {
        let bad =
            |what: String, help: &str| Problem::bad(&format!("stdin, line {number}"), what, help);
        let Line::Whole(line) = line else {
            let what = format!("the line is longer than {LONGEST_LINE} bytes");
            return Err(bad(what, "write one event per line"));
        };
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        // Serde would also read the struct from a list.
        let object = line.trim_ascii().strip_prefix(b"{").map(|_| &line[..]);
        let event: Event = serde_json::from_slice(object.unwrap_or_default()).map_err(|e| {
            bad(format!("not a valid event: {e}"), r#"write {"t":SECONDS,"client":"…","code":"…"}"#)
        })?;
        let t = seconds(&event.t)
            .ok_or_else(|| bad(format!("\"t\" is {}", event.t), "use seconds, 0 or more"))?;
        let Some(page) = alerts.observe(t, &event.client, &event.code, event.origin) else {
            let what = format!("{} has no code {:?}", contract.name, event.code);
            let near = contract.nearest_code(&event.code);
            let help = near.map_or_else(
                || format!("`faultwire contract show {}` lists its codes", contract.name),
                |n| format!("did you mean {n:?}?"),
            );
            return Err(bad(what, &help));
        };
        let Some(page) = page else { return Ok(()) };
        let page = Page {
            t: &event.t,
            level: page.level,
            client: &event.client,
            code: &event.code,
            count: page.count,
        };
        let mut json = serde_json::to_vec(&page).map_err(|e| Problem::Output(e.into()))?;
        json.push(b'\n');
        edge::print(&json)
    })?;
    if alerts.forgotten() > 0 {
        let n = alerts.forgotten();
        edge::complain(&format!(
            "note: {n} pairs of client and code were forgotten early; raise --capacity\n"
        ));
    }
    Ok(Done::Fine)
}

/// Whole microseconds, so that the window's edges are exact.
fn seconds(t: &Number) -> Option<Duration> {
    if let Some(whole) = t.as_u64() {
        return Some(Duration::from_secs(whole));
    }
    let seconds = t.as_f64().and_then(|s| Duration::try_from_secs_f64(s).ok())?;
    let micros = (seconds.as_nanos() + 500) / 1000;
    u64::try_from(micros).ok().map(Duration::from_micros)
}
