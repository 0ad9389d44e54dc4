//! The edge: the clock, the environment, randomness, files and streams. No other module uses them.

use std::fs::File;
use std::io::{self, BufRead, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use faultwire_contract::{Contract, Stamp};

use faultwire_gateway::Streams;

use crate::problem::Problem;
use crate::terminal::calm;

/// The most bytes to read from stdin or from a file.
const LARGEST_INPUT: u64 = 64 * 1024 * 1024;

/// The time, a random number, and whether to show stack traces.
#[expect(clippy::disallowed_methods, reason = "this is the place that reads clock and environment")]
pub fn stamp(contract: &Contract) -> Stamp {
    Stamp {
        now_ms: now_ms(),
        random: random(),
        show_stack: contract.shows_stack(|variable| std::env::var(variable).ok()),
    }
}

/// Milliseconds since the epoch.
#[expect(clippy::disallowed_methods, reason = "this is the place that reads the clock")]
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// The current instant.
#[expect(clippy::disallowed_methods, reason = "this is the place that reads the clock")]
pub fn instant() -> Instant {
    Instant::now()
}

/// The default directory of audit logs, under the user's state directory.
#[expect(clippy::disallowed_methods, reason = "this is the place that reads the environment")]
pub fn audit_dir() -> PathBuf {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let state = absolute("XDG_STATE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
        .unwrap_or_default();
    state.join("faultwire/audit")
}

/// The user's home directory.
pub fn home() -> Option<&'static str> {
    static HOME: OnceLock<Option<String>> = OnceLock::new();
    HOME.get_or_init(|| variable("HOME").filter(|home| home.starts_with('/'))).as_deref()
}

/// A uniform random number. Without a source of randomness there is no jitter, which is harmless.
pub fn random() -> u64 {
    getrandom::u64().unwrap_or_default()
}

/// The client's side of a wrapped server: stdin and stdout, unbuffered.
pub fn streams() -> Result<Streams, Problem> {
    let input = io::stdin().as_fd().try_clone_to_owned().map_err(Problem::Input)?;
    let output = io::stdout().as_fd().try_clone_to_owned().map_err(Problem::Output)?;
    Ok(Streams { input: File::from(input), output: File::from(output) })
}

/// This program.
pub fn program() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| "faultwire".into())
}

/// The absolute path, whether or not the file exists.
pub fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Everything on stdin.
pub fn input() -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    io::stdin().lock().take(LARGEST_INPUT + 1).read_to_end(&mut bytes).map_err(Problem::Input)?;
    if bytes.len() as u64 > LARGEST_INPUT {
        let what = format!("the input is longer than {LARGEST_INPUT} bytes");
        return Err(Problem::bad("stdin", what, "send a shorter input"));
    }
    if bytes.starts_with("\u{feff}".as_bytes()) {
        let what = "the input begins with a byte order mark";
        return Err(Problem::bad("stdin", what, "send UTF-8 without a byte order mark"));
    }
    Ok(bytes)
}

/// One line of stdin.
pub enum Line {
    /// The line without its end.
    Whole(Vec<u8>),
    /// A line longer than the limit; it was skipped.
    TooLong,
}

/// Calls `each` with every line of stdin, numbered from 1. No line uses more memory than `limit`.
pub fn lines(
    limit: usize,
    mut each: impl FnMut(usize, Line) -> Result<(), Problem>,
) -> Result<(), Problem> {
    let mut stdin = io::stdin().lock();
    let mut number = 0;
    while let Some(line) = next_line(&mut stdin, limit).map_err(Problem::Input)? {
        number += 1;
        each(number, line)?;
    }
    Ok(())
}

fn next_line(input: &mut impl BufRead, limit: usize) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    let read =
        input.by_ref().take((limit as u64).saturating_add(1)).read_until(b'\n', &mut line)?;
    if read == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
        return Ok(Some(Line::Whole(line)));
    }
    if line.len() <= limit {
        return Ok(Some(Line::Whole(line)));
    }
    skip_line(input)?;
    Ok(Some(Line::TooLong))
}

fn skip_line(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let available = input.fill_buf()?;
        if available.is_empty() {
            return Ok(());
        }
        let end = available.iter().position(|b| *b == b'\n');
        let used = end.map_or(available.len(), |i| i + 1);
        input.consume(used);
        if end.is_some() {
            return Ok(());
        }
    }
}

/// An environment variable, if it is set.
#[expect(clippy::disallowed_methods, reason = "this is the place that reads the environment")]
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The names of the variables whose values satisfy a predicate.
pub fn variables_with(is_such: impl Fn(&str) -> bool) -> Vec<std::ffi::OsString> {
    let all = std::env::vars_os();
    all.filter(|(_, value)| is_such(&value.to_string_lossy())).map(|(name, _)| name).collect()
}

/// Keeps processes of the same user from reading this process's environment under `/proc`, because
/// servers are started without the secrets in it. Root can still read it.
pub fn hide_environment() {
    #[cfg(target_os = "linux")]
    if let Err(error) =
        rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
    {
        tracing::warn!(%error, "servers may be able to read this process's environment");
    }
}

/// The names of the environment variables that are settings of Faultwire.
pub fn own_variables() -> Vec<std::ffi::OsString> {
    let is_own = |name: &std::ffi::OsString| name.to_string_lossy().starts_with("FAULTWIRE_");
    std::env::vars_os().map(|(name, _)| name).filter(is_own).collect()
}

/// Prints a value as one line of JSON.
pub fn print_line(value: &impl serde::Serialize) -> Result<(), Problem> {
    let mut json = serde_json::to_vec(value).map_err(|e| Problem::Output(e.into()))?;
    json.push(b'\n');
    print(&json)
}

/// The text of a file.
pub fn file(path: &Path) -> Result<String, Problem> {
    let failed = |e| Problem::File(path.to_owned(), e);
    if is_named_pipe(path) {
        let what = "this is a named pipe, and reading it could block forever";
        return Err(Problem::bad(&path.display().to_string(), what, "name a regular file"));
    }
    let mut bytes = Vec::new();
    let opened = File::open(path).map_err(failed)?;
    opened.take(LARGEST_INPUT + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > LARGEST_INPUT {
        let what = format!("the file is longer than {LARGEST_INPUT} bytes");
        return Err(Problem::bad(&path.display().to_string(), what, "use a shorter file"));
    }
    String::from_utf8(bytes).map_err(|e| {
        let good = String::from_utf8_lossy(&e.as_bytes()[..e.utf8_error().valid_up_to()]);
        let line = good.matches('\n').count() + 1;
        let place = format!("{}:{line}", path.display());
        Problem::bad(&place, "the file is not valid UTF-8".to_owned(), "save the file as UTF-8")
    })
}

/// Writes a file that must not exist yet, unless it may be replaced.
pub fn write_file(path: &Path, text: &str, replace: bool) -> io::Result<()> {
    let mut options = File::options();
    options.write(true).create_new(!replace).create(replace).truncate(replace);
    options.open(path)?.write_all(text.as_bytes())
}

/// Whether a path is a named pipe. A pipe of a shell's process substitution does not count: it has
/// no path of its own, and always a writer.
fn is_named_pipe(path: &Path) -> bool {
    let is_pipe = path.metadata().is_ok_and(|found| found.file_type().is_fifo());
    let is_of_shell = path.starts_with("/dev/fd") || path.starts_with("/proc");
    is_pipe && !is_of_shell && path.canonicalize().is_ok()
}

/// The columns and lines of the terminal, if stdout is one.
pub fn terminal() -> Option<(usize, usize)> {
    let (width, height) = terminal_size::terminal_size_of(io::stdout())?;
    Some((width.0.into(), height.0.into()))
}

/// Writes bytes to stdout unchanged.
pub fn print(bytes: &[u8]) -> Result<(), Problem> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(Problem::Output)
}

/// Writes a text for people to stdout; colour only on a terminal.
pub fn show(text: &str) -> Result<(), Problem> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Problem::Output)
}

/// Writes an error to stderr. If that fails, there is no other place to report it.
pub fn complain(text: &str) {
    let _ = anstream::stderr().lock().write_all(calm(text).as_bytes());
}
