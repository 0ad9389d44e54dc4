//! What to check when a server cannot start: rules over its last output, in `rules/start.toml`.

use std::sync::LazyLock;

use crate::load::start::{Start, shared_starts};

/// The rules, compiled when the first server fails to start.
static SHARED: LazyLock<Vec<Start>> = LazyLock::new(|| {
    match shared_starts("rules/start.toml", include_str!("../rules/start.toml")) {
        Ok(rules) => rules,
        // The file is part of this build, and a test loads it.
        Err(mistakes) => panic!("the rules for failed starts do not load: {mistakes}"),
    }
});

/// What to check if a server exited with this output before its first answer: text of a built-in
/// rule, never of the output.
///
/// ```
/// use faultwire_contract::start_check;
///
/// let check = start_check("pull access denied for no/such, repository does not exist");
/// assert_eq!(check, Some("the name and tag of the Docker image, and that it can be pulled"));
/// assert_eq!(start_check("Segmentation fault"), None);
/// ```
#[must_use]
pub fn start_check(output: &str) -> Option<&'static str> {
    SHARED.iter().find(|rule| rule.text.is_match(output.as_bytes())).map(|rule| &*rule.check)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Usual outputs of launchers and runtimes, and a part of the advice for each.
    const PRINTED: [(&str, Option<&str>); 24] = [
        (
            "npm error code E404\nnpm error 404 Not Found - GET https://registry.example/x",
            Some("npm package's name"),
        ),
        (
            "npm ERR! code ETARGET\nnpm ERR! notarget No matching version found for x@9",
            Some("version of the npm"),
        ),
        ("npm error could not determine executable to run", Some("command of its own")),
        (
            "npm error code EBADENGINE\nnpm error engine Unsupported engine",
            Some("Node.js or Python"),
        ),
        (
            "npm error code EAI_AGAIN\nnpm error request to https://registry.example/x failed",
            Some("network"),
        ),
        ("ERROR: No matching distribution found for no-such-mcp", Some("Python package's name")),
        (
            "  × No solution found when resolving tool dependencies:\n  ╰─▶ Because x was not found in the package registry",
            Some("Python package's name"),
        ),
        ("An executable named `x` is not provided by package `y`.", Some("which command")),
        (
            "docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock.",
            Some("Docker is running"),
        ),
        (
            "Unable to find image 'no/such:latest' locally\ndocker: Error response from daemon: pull access denied for no/such",
            Some("Docker image"),
        ),
        ("Error response from daemon: manifest unknown: manifest unknown", Some("Docker image")),
        (
            "Traceback (most recent call last):\nModuleNotFoundError: No module named 'mcp.server.stdio'",
            Some("Python dependencies"),
        ),
        ("/usr/bin/python3: No module named mcp_server_x", Some("Python dependencies")),
        (
            "Error: Cannot find module '/srv/index.js'\n  code: 'MODULE_NOT_FOUND'",
            Some("Node.js dependencies"),
        ),
        ("Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'zod'", Some("Node.js dependencies")),
        (
            "python3: can't open file '/srv/x.py': [Errno 2] No such file or directory",
            Some("path of the server's file"),
        ),
        ("Error: BRAVE_API_KEY environment variable is required", Some("environment variables")),
        ("Missing GITHUB_TOKEN", Some("environment variables")),
        ("Please set your API key first", Some("environment variables")),
        (
            "usage: server [-h] --db-path DB\nserver: error: the following arguments are required: --db-path",
            Some("arguments of the server"),
        ),
        ("Error: listen EADDRINUSE: address already in use :::3000", Some("port")),
        ("sh: 1: mcp-server-x: not found", Some("on the PATH")),
        ("Segmentation fault", None),
        ("listening on stdio; the key was found and set", None),
    ];

    #[test]
    fn u6_the_usual_words_of_launchers_say_what_to_check() {
        for (printed, wanted) in PRINTED {
            let check = start_check(printed);
            let fits = match (check, wanted) {
                (Some(check), Some(wanted)) => check.contains(wanted),
                (check, wanted) => check == wanted,
            };
            assert!(fits, "{printed}: {check:?}");
        }
    }
}
