//! `explain`: one page about a code.

use std::sync::Arc;

use faultwire_contract::{
    BUILTINS, Builtin, Code, Contract, Fault, Level, Outcome, Paging, Profile, Report, RetryClass,
    Stamp, Surface, nearest,
};
use serde_json::{Value, json};

use crate::args::ExplainArgs;
use crate::problem::Problem;
use crate::style::{CODE, DIM, GOOD, HEAD, WARN, paint};
use crate::{Done, edge, resolve};

/// The time and incident of the example envelopes.
const EXAMPLE: Stamp = Stamp { now_ms: 1_768_836_730_123, random: 0x5eed, show_stack: false };

pub fn run(args: &ExplainArgs, json: bool) -> Result<Done, Problem> {
    let contracts = match &args.contract {
        Some(name) => vec![resolve::contract(name)?],
        None => BUILTINS.iter().map(Builtin::contract).collect(),
    };
    let found: Vec<(&Arc<Contract>, &Code)> = contracts
        .iter()
        .filter_map(|contract| {
            let same = |c: &&Code| c.id.eq_ignore_ascii_case(&args.code);
            Some((contract, contract.codes().iter().find(same)?))
        })
        .collect();
    if found.is_empty() {
        let what =
            args.contract.as_ref().map_or("no built-in contract has this code".to_owned(), |c| {
                format!("{c} has no such code")
            });
        let all = contracts.iter().flat_map(|c| c.codes().iter().map(|code| code.id.as_str()));
        let help = match nearest(&args.code, all) {
            Some(near) => format!("did you mean {near:?}?"),
            None => "`faultwire contract show NAME` lists the codes of a contract".to_owned(),
        };
        return Err(Problem::bad(&args.code, what, help));
    }
    if json {
        let pages: Vec<Value> =
            found.iter().map(|(contract, code)| page_json(contract, code)).collect();
        edge::print(
            format!("{:#}\n", if pages.len() == 1 { pages[0].clone() } else { pages.into() })
                .as_bytes(),
        )?;
    } else {
        let pages: Vec<String> =
            found.iter().map(|(contract, code)| page(contract, code)).collect();
        edge::show(&pages.join("\n"))?;
    }
    Ok(Done::Fine)
}

fn page_json(contract: &Arc<Contract>, code: &Code) -> Value {
    let mut page = faultwire::json::code(code);
    page["contract"] = json!({ "name": contract.name, "version": contract.version });
    page["conditions"] = conditions(contract, code).into();
    page["example"] =
        serde_json::from_slice(&example(contract, code, Surface::Mcp)).unwrap_or(Value::Null);
    page
}

fn page(contract: &Arc<Contract>, code: &Code) -> String {
    let mut out = format!(
        "{}  {}\n\n  {}\n",
        paint(CODE, &code.id),
        paint(DIM, &format!("{} {}, {}", contract.name, contract.version, code.category)),
        code.meaning,
    );
    if let Some(retired) = &code.retired {
        out += &format!("  Retired in {}; use {} instead.\n", retired.since, retired.successor);
    }
    out.push('\n');
    let mut fact = |name: &str, text: String| {
        out += &format!("  {}  {text}\n", paint(HEAD, &format!("{name:<13}")));
    };
    fact("Message", code.message.clone());
    for (i, line) in retry(contract, code).into_iter().enumerate() {
        fact(if i == 0 { "Retry" } else { "" }, line);
    }
    fact("What to do", code.action.clone());
    fact("HTTP status", statuses(code));
    fact("Alert", alert(contract, code));
    if let Some(outcome) = code.outcome {
        let ran = match outcome {
            Outcome::NotSent => "no",
            Outcome::MaybeExecuted => "maybe",
            Outcome::Executed => "yes",
        };
        fact("The tool ran", ran.to_owned());
    }
    if let Some(mcp) = &code.mcp {
        fact("In MCP", mcp.clone());
    }
    let seen = conditions(contract, code);
    if !seen.is_empty() {
        fact("Raised for", seen.join(", "));
    }
    fact("Since", code.since.clone());
    out += &format!("\n  {}\n", paint(HEAD, "Example"));
    let mcp = example(contract, code, Surface::Mcp);
    out += &indented(&mcp);
    let http = example(contract, code, Surface::Http);
    if http != mcp {
        let kind = contract.content_type(Surface::Http);
        out += &format!("\n  {}\n", paint(HEAD, &format!("Over HTTP ({kind})")));
        out += &indented(&http);
    }
    out
}

fn indented(json: &[u8]) -> String {
    let value: Value = serde_json::from_slice(json).unwrap_or(Value::Null);
    let lines: Vec<String> =
        format!("{value:#}").lines().map(|line| format!("    {line}\n")).collect();
    lines.concat()
}

/// One line for each class that a failure may have.
fn retry(contract: &Contract, code: &Code) -> Vec<String> {
    let one = |class: &RetryClass| match class {
        RetryClass::Never => paint(WARN, "never: the same call would fail again"),
        RetryClass::Immediate => paint(GOOD, "immediately"),
        RetryClass::After => {
            let ms = code.after.map(|d| d.as_millis()).unwrap_or_default();
            paint(GOOD, &format!("after the delay in the envelope, {ms} ms if it has none"))
        }
        RetryClass::Backoff => {
            let cap = contract.retry.backoff.cap.as_secs();
            let text = "yes: after the delay in the envelope, otherwise with growing delays up to";
            paint(GOOD, &format!("{text} {cap} s"))
        }
    };
    let mut lines: Vec<String> = code.retry.iter().map(one).collect();
    if let [default, others @ ..] = &mut lines[..]
        && !others.is_empty()
    {
        *default += ", unless the envelope says otherwise";
    }
    lines
}

fn statuses(code: &Code) -> String {
    let all: Vec<String> = code.status.iter().map(ToString::to_string).collect();
    all.join(" or ")
}

fn alert(contract: &Contract, code: &Code) -> String {
    let mut text = paging(contract, &code.alert);
    for same in code.alerts.chunk_by(|(_, one), (_, other)| one == other) {
        let origins: Vec<&str> = same.iter().map(|(origin, _)| origin.name()).collect();
        let level = paging(contract, &same[0].1);
        text += &format!("; for origin {}, {level}", origins.join(" or "));
    }
    text
}

fn paging(contract: &Contract, level: &str) -> String {
    let found = contract.levels.iter().find(|l| l.name == level);
    let when = match found {
        Some(Level { paging: Paging::Every, .. }) => "pages on every event".to_owned(),
        Some(Level { paging: Paging::MoreThan { events, within }, .. }) => {
            let window = within.as_secs();
            format!("pages when one client has more than {events} within {window} s")
        }
        Some(Level { paging: Paging::Never, .. }) | None => "never pages".to_owned(),
    };
    format!("{level}: {when}")
}

fn conditions(contract: &Contract, code: &Code) -> Vec<String> {
    contract.conditions().filter(|(_, c)| c.id == code.id).map(|(name, _)| name).collect()
}

/// The envelope of the contract's own test for the code, or of the bare code.
fn example(contract: &Arc<Contract>, code: &Code, surface: Surface) -> Vec<u8> {
    let own = contract.examples.iter().find(|e| e.code == code.id);
    let report = own
        .and_then(|e| serde_json::from_str(&e.fault).ok())
        .unwrap_or_else(|| Report { tool: Some("search".to_owned()), ..Report::new(&code.id) });
    let fault = Fault::new(contract, report, &EXAMPLE);
    fault.map(|fault| fault.envelope(surface, Profile::default())).unwrap_or_default()
}
