//! The audit log, with its options and facts as JSON.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use faultwire_contract::{Fault, Redactor};
use serde::Deserialize;
use serde_json::Value;

use crate::audit::{Call, Entry, Log, Options};
use crate::json::error::{Error, ErrorKind};

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Given {
    holder: Option<String>,
    segment_bytes: Option<u64>,
    segment_age_s: Option<u64>,
    checkpoint_every: Option<u64>,
    fail_open: bool,
    clock_ms: Option<i64>,
}

impl Default for Given {
    fn default() -> Self {
        Self {
            holder: None,
            segment_bytes: None,
            segment_age_s: None,
            checkpoint_every: None,
            fail_open: Options::default().fail_open,
            clock_ms: None,
        }
    }
}

/// The time of all logs of this process whose clock stands still, for tests.
static STANDING_CLOCK: AtomicI64 = AtomicI64::new(0);

fn standing_clock() -> i64 {
    STANDING_CLOCK.load(Ordering::Relaxed)
}

/// Opens the log in a directory, or begins one there. The options are an object of `holder`,
/// `segment_bytes`, `segment_age_s`, `checkpoint_every`, `fail_open`, and for tests `clock_ms`.
pub fn open_log(directory: &str, options: &str) -> Result<Log, Error> {
    let given: Given = serde_json::from_str(options).map_err(|e| {
        let help = "use holder, segment_bytes, segment_age_s, checkpoint_every, fail_open";
        Error::new(ErrorKind::Input, format!("not valid options of a log: {e}"), help)
    })?;
    let mut options = Options { fail_open: given.fail_open, ..Options::default() };
    options.holder = given.holder.unwrap_or(options.holder);
    options.segment_bytes = given.segment_bytes.unwrap_or(options.segment_bytes);
    options.segment_age = given.segment_age_s.map_or(options.segment_age, Duration::from_secs);
    options.checkpoint_every = given.checkpoint_every.unwrap_or(options.checkpoint_every);
    if let Some(now) = given.clock_ms {
        STANDING_CLOCK.store(now, Ordering::Relaxed);
        options.clock = standing_clock;
    }
    Ok(Log::open(directory, options)?)
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Facts {
    request: Option<Value>,
    client: Option<String>,
    arguments: Option<Value>,
    upstream_code: Option<Value>,
    elapsed_ms: Option<u64>,
    attempt: Option<u32>,
}

/// The record of a fault, with what is known of its call: `request`, `client`, `arguments` (of
/// which a keyed hash is recorded), `upstream_code`, `elapsed_ms`, `attempt`.
pub fn entry(log: &Log, fault: &Fault, call: &str) -> Result<Entry, Error> {
    let facts: Facts = serde_json::from_str(call).map_err(|e| {
        let help = "use request, client, arguments, upstream_code, elapsed_ms, attempt";
        Error::new(ErrorKind::Input, format!("not valid facts of a call: {e}"), help)
    })?;
    let call = Call {
        request: facts.request,
        client: facts.client,
        arguments: facts.arguments.as_ref().map(|arguments| log.fingerprint(arguments)),
        upstream_code: facts.upstream_code,
        elapsed_ms: facts.elapsed_ms,
        attempt: facts.attempt,
        ..Call::default()
    };
    Ok(Entry::fault(fault, &call))
}

/// The record of something that is no failure; the facts are any JSON.
pub fn event(name: &str, facts: &str) -> Result<Entry, Error> {
    let facts: Value = serde_json::from_str(facts).map_err(|e| {
        Error::new(ErrorKind::Input, format!("the facts are no JSON: {e}"), "give any JSON value")
    })?;
    Ok(Entry::event(name, None, &facts, &Redactor::default()))
}
