//! The edge: the clock, the environment, randomness, files and streams. Nothing else touches them.

use std::fs::File;
use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use faultwire_contract::{Contract, Stamp};

use faultwire_gateway::Streams;

use crate::args::treatment::LogLevel;
use crate::problem::Problem;
use crate::terminal::{Stderr, calm};

/// More is not read at once.
const LARGEST_INPUT: u64 = 64 * 1024 * 1024;

/// What only this machine knows at this moment.
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

/// A moment to measure from.
#[expect(clippy::disallowed_methods, reason = "this is the place that reads the clock")]
pub fn instant() -> Instant {
    Instant::now()
}

/// Where the audit log is when nobody says otherwise: with the user's other state.
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

/// A uniform random number. A machine without randomness gets no jitter, which does no harm.
pub fn random() -> u64 {
    getrandom::u64().unwrap_or_default()
}

/// The client's side of a wrapped server: stdin and stdout, unbuffered.
pub fn streams() -> Result<Streams, Problem> {
    let input = io::stdin().as_fd().try_clone_to_owned().map_err(Problem::Input)?;
    let output = io::stdout().as_fd().try_clone_to_owned().map_err(Problem::Output)?;
    Ok(Streams { input: File::from(input), output: File::from(output) })
}

/// Tells on stderr what goes on; colour only on a terminal.
pub fn tell(level: LogLevel) {
    let level = match level {
        LogLevel::Off => return,
        LogLevel::Error => tracing::Level::ERROR,
        LogLevel::Warn => tracing::Level::WARN,
        LogLevel::Info => tracing::Level::INFO,
        LogLevel::Debug => tracing::Level::DEBUG,
    };
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(|| Stderr)
        // When stderr is full or gone, there is nobody to tell that.
        .log_internal_errors(false)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        .init();
}

/// This program.
pub fn program() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| "faultwire".into())
}

/// The path from the root on, whether or not something is there.
pub fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Everything on stdin.
pub fn input() -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    io::stdin().lock().take(LARGEST_INPUT + 1).read_to_end(&mut bytes).map_err(Problem::Input)?;
    if bytes.len() as u64 > LARGEST_INPUT {
        return Err(Problem::bad("stdin", format!("more than {LARGEST_INPUT} bytes"), "send less"));
    }
    if bytes.starts_with("\u{feff}".as_bytes()) {
        let what = "it begins with a byte order mark";
        return Err(Problem::bad("stdin", what, "send UTF-8 without one"));
    }
    Ok(bytes)
}

/// One line of stdin.
pub enum Line {
    /// The line without its end.
    Whole(Vec<u8>),
    /// A line of more than the limit; it was read over.
    TooLong,
}

/// Calls `each` with every line of stdin, numbered from 1. No line takes more memory than `limit`.
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

/// The names of the variables whose value is such.
pub fn variables_with(is_such: impl Fn(&str) -> bool) -> Vec<std::ffi::OsString> {
    let all = std::env::vars_os();
    all.filter(|(_, value)| is_such(&value.to_string_lossy())).map(|(name, _)| name).collect()
}

/// Keeps processes of the same user from reading our environment under `/proc`: servers are
/// started without the secrets in it. Those of root can read it all the same.
pub fn hide_environment() {
    #[cfg(target_os = "linux")]
    if let Err(error) =
        rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
    {
        tracing::warn!(%error, "servers may be able to read this process's environment");
    }
}

/// The variables that are settings of ours, by name.
pub fn own_variables() -> Vec<std::ffi::OsString> {
    let is_own = |name: &std::ffi::OsString| name.to_string_lossy().starts_with("FAULTWIRE_");
    std::env::vars_os().map(|(name, _)| name).filter(is_own).collect()
}

/// The text of a file.
pub fn file(path: &Path) -> Result<String, Problem> {
    let failed = |e| Problem::File(path.to_owned(), e);
    if is_named_pipe(path) {
        let what = "it is a named pipe, and would be waited for until somebody writes to it";
        return Err(Problem::bad(&path.display().to_string(), what, "name a file"));
    }
    let mut bytes = Vec::new();
    let opened = File::open(path).map_err(failed)?;
    opened.take(LARGEST_INPUT + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > LARGEST_INPUT {
        let what = format!("more than {LARGEST_INPUT} bytes");
        return Err(Problem::bad(&path.display().to_string(), what, "name another file"));
    }
    String::from_utf8(bytes).map_err(|e| {
        let good = String::from_utf8_lossy(&e.as_bytes()[..e.utf8_error().valid_up_to()]);
        let line = good.matches('\n').count() + 1;
        let place = format!("{}:{line}", path.display());
        Problem::bad(&place, "not UTF-8".to_owned(), "save the file as UTF-8")
    })
}

/// A pipe that a shell made has no path of its own, and somebody who writes to it.
fn is_named_pipe(path: &Path) -> bool {
    let is_pipe = path.metadata().is_ok_and(|found| found.file_type().is_fifo());
    let is_of_shell = path.starts_with("/dev/fd") || path.starts_with("/proc");
    is_pipe && !is_of_shell && path.canonicalize().is_ok()
}

/// Columns and lines of the terminal that stdout is, if it is one.
pub fn terminal() -> Option<(usize, usize)> {
    let (width, height) = terminal_size::terminal_size_of(io::stdout())?;
    Some((width.0.into(), height.0.into()))
}

/// Writes bytes to stdout, as they are.
pub fn print(bytes: &[u8]) -> Result<(), Problem> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(Problem::Output)
}

/// Writes a text for people to stdout; colour only on a terminal.
pub fn show(text: &str) -> Result<(), Problem> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Problem::Output)
}

/// Writes a complaint to stderr. When even that fails there is nobody left to tell.
pub fn complain(text: &str) {
    let _ = anstream::stderr().lock().write_all(calm(text).as_bytes());
}
