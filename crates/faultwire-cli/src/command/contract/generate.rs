//! `contract generate`: a module of typed codes for another language, from the same file.

mod names;
mod python;
mod row;
mod typescript;

use std::path::Path;

use faultwire_contract::{Contract, builtin};
use serde_json::json;

use crate::args::{GenerateArgs, Language};
use crate::problem::Problem;
use crate::{Done, edge, resolve};
use names::Names;

/// A contract and where the module finds it.
struct Source<'a> {
    contract: &'a Contract,
    /// The name of the file and its text, if it is not built in.
    file: Option<(&'a str, &'a str)>,
    /// The command that makes the module again.
    command: String,
    /// The module that has the classes of failures and contracts.
    runtime: &'a str,
    names: Vec<Names>,
}

pub fn run(args: &GenerateArgs, json: bool) -> Result<Done, Problem> {
    let name = args.contract.contract.as_str();
    let contract = resolve::contract(name)?;
    let is_module = |text: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "._-@/".contains(c))
    };
    if !is_module(&args.import) {
        let what = format!("{:?} is not the name of a module", args.import);
        return Err(Problem::bad("--import", what, "use a name such as faultwire or ../index.js"));
    }
    let text = if builtin(name).is_none() { edge::file(Path::new(name))? } else { String::new() };
    let file = Path::new(name).file_name().and_then(|file| file.to_str()).unwrap_or(name);
    let taken = match args.language {
        Language::Typescript => typescript::TAKEN,
        Language::Python => python::TAKEN,
    };
    let source = Source {
        contract: &contract,
        file: builtin(name).is_none().then_some((file, &*text)),
        command: format!("faultwire contract generate {} --contract {file}", args.language.name()),
        runtime: &args.import,
        names: Names::all(contract.codes(), args.language, taken).map_err(|what| {
            Problem::bad(name, what, "rename one of the codes before it is published")
        })?,
    };
    let module = match args.language {
        Language::Typescript => typescript::module(&source),
        Language::Python => python::module(&source),
    };
    match (&args.output, args.check) {
        (Some(path), true) => check(path, &module, &source.command, json),
        (Some(path), false) => {
            edge::write_file(path, &module, true).map_err(|e| {
                let place = path.display().to_string();
                Problem::bad(
                    &place,
                    format!("cannot write the file: {e}"),
                    "choose another --output",
                )
            })?;
            if json {
                edge::print(format!("{}\n", json!({ "path": path.to_string_lossy() })).as_bytes())?;
            } else {
                edge::show(&format!("Wrote {}\n", path.display()))?;
            }
            Ok(Done::Fine)
        }
        (None, _) => {
            edge::print(module.as_bytes())?;
            Ok(Done::Fine)
        }
    }
}

/// Compares the file with what would be written.
fn check(path: &Path, module: &str, command: &str, json: bool) -> Result<Done, Problem> {
    let written = edge::file(path)?;
    let is_current = written == *module;
    if json {
        let found = json!({ "path": path.to_string_lossy(), "current": is_current });
        edge::print(format!("{found}\n").as_bytes())?;
    } else if is_current {
        edge::show(&format!("{} is current\n", path.display()))?;
    } else {
        let line = written.lines().zip(module.lines()).take_while(|(a, b)| a == b).count() + 1;
        edge::show(&format!(
            "{}:{line} differs from the contract\nRun `{command} --output {}`\n",
            path.display(),
            path.display(),
        ))?;
    }
    Ok(if is_current { Done::Fine } else { Done::Findings })
}
