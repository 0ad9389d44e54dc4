//! `contract new`: a commented contract to start from.

use std::io;
use std::path::{Path, PathBuf};

use faultwire_contract::{Contract, builtin};
use serde_json::json;

use crate::args::NewArgs;
use crate::problem::Problem;
use crate::style::{HEAD, paint};
use crate::{Done, edge};

/// The contract that a new one starts as.
const TEMPLATE: &str = include_str!("../../../template/contract.toml");
/// The template's name for it.
const PLACEHOLDER: &str = "\"my-contract\"";

pub fn run(args: &NewArgs, json: bool) -> Result<Done, Problem> {
    let name = args.name.as_str();
    if !Contract::is_name(name) {
        let help = "use lower-case letters, digits and -";
        return Err(Problem::bad("NAME", format!("{name:?} is not a valid contract name"), help));
    }
    if builtin(name).is_some() {
        let what = format!("{name} is the name of a built-in contract");
        return Err(Problem::bad("NAME", what, "choose another name"));
    }
    let text = TEMPLATE.replacen(PLACEHOLDER, &format!("\"{name}\""), 1);
    let path = args.output.clone().unwrap_or_else(|| PathBuf::from(format!("{name}.toml")));
    if path == Path::new("-") {
        edge::print(text.as_bytes())?;
        return Ok(Done::Fine);
    }
    edge::write_file(&path, &text, args.force).map_err(|e| not_written(&path, &e))?;
    if json {
        edge::print(format!("{}\n", json!({ "path": path.to_string_lossy() })).as_bytes())?;
    } else {
        edge::show(&next_steps(&path))?;
    }
    Ok(Done::Fine)
}

fn not_written(path: &Path, error: &io::Error) -> Problem {
    let (what, help) = match error.kind() {
        io::ErrorKind::AlreadyExists => (
            "the file already exists".to_owned(),
            "choose another --output, or replace the file with --force",
        ),
        _ => (format!("cannot write the file: {error}"), "choose another --output"),
    };
    Problem::bad(&path.display().to_string(), what, help)
}

fn next_steps(path: &Path) -> String {
    let file = shell_word(path);
    let steps = [
        ("Check it after each change", format!("faultwire contract lint {file}")),
        (
            "See an envelope",
            format!("echo '{{\"code\":\"not_found\"}}' | faultwire render -c {file}"),
        ),
        ("Use it", format!("faultwire wrap --contract {file} -- CMD")),
    ];
    let shown = steps.map(|(what, command)| format!("  {what:28}{}\n", paint(HEAD, &command)));
    format!("Wrote {}\n{}", path.display(), shown.concat())
}

/// A path quoted as one word for a shell, and written so that `faultwire` reads it as a file.
fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    // A word without a dot or a slash could be the name of a built-in contract, or a flag.
    let text = if path.is_relative() && !text.contains(['/', '.']) || text.starts_with('-') {
        format!("./{text}")
    } else {
        text
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-');
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}
