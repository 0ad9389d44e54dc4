//! Log lines on stderr.

use std::io::{self, IsTerminal, Write};

use faultwire_contract::shorten_home;

use crate::args::call_settings::LogLevel;
use crate::edge;
use crate::terminal::calm;

/// Starts logging to stderr; colour only on a terminal.
pub fn start(level: LogLevel) {
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
        // If stderr fails, there is no other place to report it.
        .log_internal_errors(false)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        .init();
}

/// Stderr for log lines; each write is a whole line. Home directories are shortened (U2).
struct Stderr;

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let text = shorten_home(&text, edge::home());
        io::stderr().lock().write_all(calm(&text).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().lock().flush()
    }
}
