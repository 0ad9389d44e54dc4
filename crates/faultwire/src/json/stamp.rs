//! The moment and the random number of a fault, where a test or a replay names them.

use faultwire_contract::{Contract, Stamp};
use serde::Deserialize;

use crate::edge;
use crate::json::error::{Error, ErrorKind};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    now_ms: i64,
    #[serde(default)]
    random: u64,
    #[serde(default)]
    show_stack: bool,
}

fn read(text: &str) -> Result<Stamp, Error> {
    let named: Named = serde_json::from_str(text).map_err(|e| {
        let help = r#"give {"now_ms":MILLISECONDS,"random":NUMBER}"#;
        Error::new(ErrorKind::Input, format!("not a valid stamp: {e}"), help)
    })?;
    let Named { now_ms, random, show_stack } = named;
    Ok(Stamp { now_ms, random, show_stack })
}

/// The stamp for faults of a contract: the one in the text, otherwise that of this moment.
pub fn stamp(contract: &Contract, text: Option<&str>) -> Result<Stamp, Error> {
    text.map_or_else(|| Ok(edge::stamp(contract)), read)
}

/// The same where no fault is made.
pub fn moment(text: Option<&str>) -> Result<Stamp, Error> {
    text.map_or_else(|| Ok(edge::moment()), read)
}
