//! The snippet to paste into a client's settings.

use std::path::Path;

use serde_json::{Value, json};

use crate::args::wrap::{Client, WrapArgs};
use crate::edge;
use crate::problem::Problem;

/// The settings of a client that runs this command.
pub fn of(client: Client, name: &str, args: &WrapArgs) -> Result<String, Problem> {
    let program = edge::program().to_string_lossy().into_owned();
    let words = words(args)?;
    let json = match client {
        Client::Claude | Client::Cursor => {
            json!({ "mcpServers": { name: { "command": program, "args": words } } })
        }
        Client::Vscode => {
            json!({ "servers": { name: { "type": "stdio", "command": program, "args": words } } })
        }
        Client::Codex => {
            let (program, words) = (Value::from(program), Value::from(words));
            let name = Value::from(name);
            let toml = format!("[mcp_servers.{name}]\ncommand = {program}\nargs = {words}\n");
            // TOML accepts JSON's strings, except for this character.
            return Ok(toml.replace('\u{7f}', "\\u007f"));
        }
    };
    Ok(format!("{json:#}\n"))
}

/// The arguments of this command, without `--print-config`.
fn words(args: &WrapArgs) -> Result<Vec<String>, Problem> {
    let call_settings = &args.call_settings;
    let mut words = vec!["wrap".to_owned()];
    let mut flag = |name: &str, value: Option<String>| {
        words.extend(value.into_iter().flat_map(|value| [format!("--{name}"), value]));
    };
    let path = |path: &std::path::PathBuf| edge::absolute(path).to_string_lossy().into_owned();
    let is_file = |name: &String| name.contains(['/', '\\', '.']);
    flag(
        "contract",
        call_settings.contract.clone().map(|c| if is_file(&c) { path(&c.into()) } else { c }),
    );
    flag("profile", call_settings.profile.clone());
    flag("config", call_settings.config.as_ref().map(path));
    flag("timeout", call_settings.timeout.map(|t| format!("{}ms", t.as_millis())));
    flag("max-timeout", call_settings.max_timeout.map(|t| format!("{}ms", t.as_millis())));
    for (tool, timeout) in &call_settings.tool_timeout {
        flag("tool-timeout", Some(format!("{tool}={}ms", timeout.as_millis())));
    }
    flag("arguments", call_settings.arguments.map(name_of));
    flag("output", call_settings.output.map(name_of));
    flag("soft-failures", call_settings.soft_failures.map(name_of));
    flag("retry", call_settings.retry.map(|times| times.to_string()));
    flag("audit", call_settings.audit.as_ref().map(path));
    flag("name", args.name.clone());
    flag("log", call_settings.log.map(name_of));
    words.push("--".to_owned());
    for (at, word) in args.command.iter().enumerate() {
        // The client's working directory is unknown.
        let is_relative = at == 0 && Path::new(word).components().count() > 1;
        let whole = if is_relative { edge::absolute(Path::new(word)) } else { word.into() };
        let word = whole.to_str().ok_or_else(|| {
            Problem::bad(
                "CMD",
                "an argument is not valid UTF-8",
                "client settings only allow UTF-8",
            )
        })?;
        words.push(word.to_owned());
    }
    Ok(words)
}

fn name_of<T: clap::ValueEnum + Copy>(value: T) -> String {
    value.to_possible_value().map(|v| v.get_name().to_owned()).unwrap_or_default()
}
