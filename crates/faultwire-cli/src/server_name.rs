//! The default name of a server: the distinctive part of its command.

use std::ffi::OsString;
use std::path::Path;

use crate::problem::Problem;

/// Programs that run other programs; their own names identify no server.
const RUNNERS: [&str; 15] = [
    "npx", "bunx", "pnpx", "uvx", "pipx", "uv", "run", "node", "bun", "deno", "python", "python3",
    "sh", "bash", "env",
];

/// A name that is valid as a directory's name.
pub fn of(command: &[OsString]) -> String {
    let words = command.iter().map(|word| word.to_string_lossy().into_owned());
    // Variables and scripts are not names, and may contain secrets.
    let is_word = |word: &String| {
        !word.starts_with('-') && !word.contains('=') && !word.contains(char::is_whitespace)
    };
    let distinctive = words.filter(is_word).find(|word| {
        let program = last_part(word);
        !RUNNERS.contains(&program.as_str())
    });
    let first = || command.first().map(|word| last_part(&word.to_string_lossy()));
    let name = distinctive.as_deref().map(last_part).or_else(first).unwrap_or_default();
    // A package may carry its version.
    let name = name.split('@').find(|part| !part.is_empty()).unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' };
    let name: String = name.chars().map(plain).take(64).collect();
    if name.is_empty() { "server".to_owned() } else { name }
}

/// Checks a name that the user chose, which becomes part of paths and of clients' settings.
pub fn given(name: &str, place: &str) -> Result<String, Problem> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if (1..=64).contains(&name.len()) && name.chars().all(plain) && !name.starts_with('.') {
        return Ok(name.to_owned());
    }
    let what = format!("{name:?} is not a valid server name");
    let help =
        "use 1 to 64 letters, digits, hyphens, underscores and dots, and do not begin with a dot";
    Err(Problem::bad(place, what, help))
}

fn last_part(word: &str) -> String {
    let path = Path::new(word);
    let part = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    // Only a script's extension is not part of its name.
    let script = path
        .extension()
        .is_some_and(|e| ["js", "mjs", "cjs", "py", "ts", "sh"].iter().any(|s| e == *s));
    if script { part } else { path.file_name().unwrap_or_default().to_string_lossy().into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_in_its_directory() {
        for good in ["files", "my.server-2", "A_b"] {
            assert_eq!(given(good, "--name").unwrap(), good);
        }
        for bad in ["", ".", "..", "../x", "/tmp/x", "a b", "a\nb", "ü", &"x".repeat(65)] {
            assert!(given(bad, "--name").is_err(), "{bad}");
        }
    }

    #[test]
    fn the_distinctive_part_of_a_command() {
        let cases = [
            ("npx -y @modelcontextprotocol/server-filesystem /data", "server-filesystem"),
            ("npx @modelcontextprotocol/server-memory@2026.1.0", "server-memory"),
            ("uvx mcp-server-git --repository .", "mcp-server-git"),
            ("python3 -m mcp_server_time", "mcp_server_time"),
            ("node build/index.js", "index"),
            ("/opt/tools/my.server --x", "my-server"),
            ("python3", "python3"),
            ("env GITHUB_TOKEN=ghp_1234 python3 srv.py", "srv"),
            ("docker run -e KEY=top image", "docker"),
            ("", "server"),
        ];
        for (command, name) in cases {
            let words: Vec<OsString> = command.split_whitespace().map(OsString::from).collect();
            assert_eq!(of(&words), name, "{command}");
        }
        let script = ["sh", "-c", "API_KEY=topsecret exec node server.js"].map(OsString::from);
        assert_eq!(of(&script), "sh");
    }
}
