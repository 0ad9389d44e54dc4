//! Failures in the order of time, and the pages that they raise.

use std::sync::Arc;
use std::time::Duration;

use faultwire_contract::{Alerts, Contract, Origin};
use serde::{Deserialize, Serialize};
use serde_json::Number;

use crate::json::classify::written;
use crate::json::error::{Error, ErrorKind};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Event {
    t: Number,
    client: String,
    code: String,
    origin: Option<Origin>,
}

#[derive(Serialize)]
struct Page<'a> {
    t: &'a Number,
    level: &'a str,
    client: &'a str,
    code: &'a str,
    count: usize,
}

/// The alert engine of a contract, fed with events.
pub struct AlertReplay {
    contract: Arc<Contract>,
    alerts: Alerts,
}

impl AlertReplay {
    /// Remembers at least this many pairs of client and code.
    #[must_use]
    pub fn new(contract: &Arc<Contract>, capacity: usize) -> Self {
        Self { contract: Arc::clone(contract), alerts: Alerts::new(contract, capacity) }
    }

    /// Takes one event, `{"t":SECONDS,"client":"…","code":"…"}`, and returns the page that it
    /// raises, if it raises one.
    pub fn observe(&mut self, event: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let bad = |what: String, help: &str| Error::new(ErrorKind::Input, what, help);
        // Serde would also read the struct from a list.
        let object = event.trim_ascii().strip_prefix(b"{").map(|_| event);
        let event: Event = serde_json::from_slice(object.unwrap_or_default()).map_err(|e| {
            bad(format!("not a valid event: {e}"), r#"write {"t":SECONDS,"client":"…","code":"…"}"#)
        })?;
        let t = seconds(&event.t)
            .ok_or_else(|| bad(format!("\"t\" is {}", event.t), "use seconds, 0 or more"))?;
        let contract = &self.contract;
        let page = self.alerts.observe(t, &event.client, &event.code, event.origin);
        let page = page.ok_or_else(|| {
            let what = format!("{} has no code {:?}", contract.name, event.code);
            let help = contract.nearest_code(&event.code).map_or_else(
                || format!("`faultwire contract show {}` lists its codes", contract.name),
                |near| format!("did you mean {near:?}?"),
            );
            Error::new(ErrorKind::UnknownCode, what, help)
        })?;
        let page = page.map(|page| Page {
            t: &event.t,
            level: page.level,
            client: &event.client,
            code: &event.code,
            count: page.count,
        });
        page.as_ref().map(written).transpose()
    }

    /// How many pairs of client and code were forgotten early.
    #[must_use]
    pub fn forgotten(&self) -> u64 {
        self.alerts.forgotten()
    }
}

/// Whole microseconds, so that the window's edges are exact.
#[must_use]
pub fn seconds(t: &Number) -> Option<Duration> {
    if let Some(whole) = t.as_u64() {
        return Some(Duration::from_secs(whole));
    }
    let seconds = t.as_f64().and_then(|s| Duration::try_from_secs_f64(s).ok())?;
    let micros = (seconds.as_nanos() + 500) / 1000;
    u64::try_from(micros).ok().map(Duration::from_micros)
}
