//! `contract`: new, list, show, lint, diff, schema, generate.

pub mod generate;
pub mod new;

use faultwire::json::describe;
use faultwire_contract::compat::{self, Impact};
use faultwire_contract::{BUILTINS, Builtin, Code, SchemaOf, Surface, lint};
use serde_json::{Value, json};

use crate::args::{SchemaArgs, SchemaSurface};
use crate::problem::Problem;
use crate::style::{DIM, ERROR, GOOD, HEAD, HELP, WARN, paint, table};
use crate::{Done, edge, resolve};

pub fn list(json: bool) -> Result<Done, Problem> {
    let all: Vec<_> = BUILTINS.iter().map(Builtin::contract).collect();
    if json {
        let rows = all.iter().map(|c| {
            json!({ "name": c.name, "version": c.version, "title": c.title, "codes": c.codes().len(), "profiles": c.profiles })
        });
        edge::print(format!("{:#}\n", rows.collect::<Value>()).as_bytes())?;
        return Ok(Done::Fine);
    }
    let mut rows = vec![vec![
        "NAME".into(),
        "VERSION".into(),
        "CODES".into(),
        "PROFILES".into(),
        "TITLE".into(),
    ]];
    for c in &all {
        let profiles = if c.profiles.len() > 1 { c.profiles.join(", ") } else { "-".to_owned() };
        rows.push(vec![
            c.name.clone(),
            c.version.clone(),
            c.codes().len().to_string(),
            profiles,
            c.title.clone(),
        ]);
    }
    edge::show(&table(&rows))?;
    Ok(Done::Fine)
}

pub fn show(name: &str, json: bool) -> Result<Done, Problem> {
    let contract = resolve::contract(name)?;
    if json {
        edge::print(format!("{:#}\n", describe(&contract)).as_bytes())?;
        return Ok(Done::Fine);
    }
    let mut out = format!(
        "{} {}  {}\n\n",
        paint(HEAD, &contract.name),
        contract.version,
        paint(DIM, &contract.title),
    );
    let mut rows = vec![vec![
        "CODE".into(),
        "CATEGORY".into(),
        "RETRY".into(),
        "STATUS".into(),
        "ALERT".into(),
        "MESSAGE".into(),
    ]];
    for code in contract.codes() {
        let statuses: Vec<String> = code.status.iter().map(ToString::to_string).collect();
        let classes: Vec<&str> = code.retry.iter().map(|c| c.name()).collect();
        rows.push(vec![
            code.id.clone(),
            code.category.clone(),
            classes.join("|"),
            statuses.join("|"),
            alerts(code),
            code.message.clone(),
        ]);
    }
    out += &table(&rows);
    out.push('\n');
    let mut rows = vec![vec!["CONDITION".into(), "CODE".into()]];
    rows.extend(contract.conditions().map(|(name, code)| vec![name, code.id.clone()]));
    out += &table(&rows);
    if let Some(policy) = &contract.tool_failure {
        out.push('\n');
        let mut rows = vec![vec!["CATEGORY".into(), "CLASS".into()]];
        rows.extend(policy.classes.iter().map(|(c, class)| vec![c.clone(), class.name().into()]));
        out += &table(&rows);
    }
    out += &format!("\n`faultwire explain CODE -c {name}` explains each.\n");
    edge::show(&out)?;
    Ok(Done::Fine)
}

fn alerts(code: &Code) -> String {
    let own = code.alerts.iter().map(|(origin, level)| format!("|{}:{level}", origin.name()));
    std::iter::once(code.alert.clone()).chain(own).collect()
}

pub fn lint(names: &[String], json: bool) -> Result<Done, Problem> {
    let mut all = Vec::new();
    for name in names {
        match resolve::contract(name) {
            Ok(contract) => all
                .extend(lint::lint(&contract).into_iter().map(|f| (name, f.line, f.what, f.help))),
            Err(Problem::Contract(mistakes)) => {
                all.extend(mistakes.list.into_iter().map(|m| (name, m.line, m.what, m.help)));
            }
            Err(other) => return Err(other),
        }
    }
    if json {
        let rows = all.iter().map(|(file, line, what, help)| {
            json!({ "file": file, "line": line, "what": what, "help": help })
        });
        edge::print(format!("{:#}\n", rows.collect::<Value>()).as_bytes())?;
    } else {
        let mut out = String::new();
        for (file, line, what, help) in &all {
            let place = format!("{file}:{line}");
            out +=
                &format!("{}: {what}\n  {}: {help}\n", paint(ERROR, &place), paint(HELP, "help"));
        }
        out += &match all.len() {
            0 => format!("{}: {} checked\n", paint(GOOD, "fine"), names.join(", ")),
            1 => "1 finding\n".to_owned(),
            n => format!("{n} findings\n"),
        };
        edge::show(&out)?;
    }
    Ok(if all.is_empty() { Done::Fine } else { Done::Findings })
}

pub fn diff(old: &str, new: &str, json: bool) -> Result<Done, Problem> {
    let (old, new) = (resolve::contract(old)?, resolve::contract(new)?);
    let changes = compat::changes(&old, &new);
    let impact = compat::impact(&changes);
    if json {
        let rows: Vec<Value> =
            changes.iter().map(|c| json!({ "impact": c.impact.name(), "what": c.what })).collect();
        edge::print(
            format!("{:#}\n", json!({ "impact": impact.name(), "changes": rows })).as_bytes(),
        )?;
    } else {
        let style = |impact| match impact {
            Impact::Breaking => ERROR,
            Impact::Additive => WARN,
            Impact::None => DIM,
        };
        let mut out = format!("{}\n", paint(style(impact), impact.name()));
        for change in &changes {
            out += &format!(
                "  {}  {}\n",
                paint(style(change.impact), &format!("{:<8}", change.impact.name())),
                change.what
            );
        }
        edge::show(&out)?;
    }
    Ok(if impact == Impact::Breaking { Done::Findings } else { Done::Fine })
}

pub fn schema(args: &SchemaArgs) -> Result<Done, Problem> {
    let contract = resolve::contract(&args.contract)?;
    let profile = resolve::profile(&contract, args.profile.as_deref())?;
    let of = match args.surface {
        SchemaSurface::Mcp => SchemaOf::Surface(Surface::Mcp),
        SchemaSurface::Http => SchemaOf::Surface(Surface::Http),
        SchemaSurface::Result => SchemaOf::CallToolResult,
        SchemaSurface::Success => SchemaOf::Success,
    };
    let schema = contract.schema(of, profile).ok_or_else(|| {
        let what = "the contract has no envelope for successes";
        Problem::bad(&contract.name, what, "choose another --surface")
    })?;
    edge::print(format!("{schema:#}\n").as_bytes())?;
    Ok(Done::Fine)
}
