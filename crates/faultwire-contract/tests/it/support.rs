//! What the tests of every contract need.

use std::sync::Arc;

use faultwire_contract::{
    BUILTINS, Builtin, Contract, Fault, FaultError, Profile, Report, Stamp, Surface, builtin,
};
use serde_json::Value;

/// 2026-01-19T15:32:10.123Z and a fixed random number.
pub const STAMP: Stamp = Stamp { now_ms: 1_768_836_730_123, random: 7, show_stack: false };

/// The sixth contract.
pub fn harbour() -> Arc<Contract> {
    Arc::new(Contract::load("harbour.toml", include_str!("../data/harbour.toml")).unwrap())
}

/// The five and the sixth.
pub fn every_contract() -> Vec<Arc<Contract>> {
    BUILTINS.iter().map(Builtin::contract).chain([harbour()]).collect()
}

/// A report from its JSON form.
pub fn report(json: &str) -> Report {
    serde_json::from_str(json).unwrap()
}

/// A fault from a report's JSON form.
pub fn fault(contract: &str, json: &str) -> Result<Fault, FaultError> {
    Fault::new(&builtin(contract).unwrap(), report(json), &STAMP)
}

/// The envelope's bytes, as text.
pub fn envelope(contract: &str, json: &str) -> String {
    text(&fault(contract, json).unwrap(), Surface::Mcp, Profile::default())
}

/// The envelope as JSON.
pub fn envelope_json(contract: &str, json: &str) -> Value {
    serde_json::from_str(&envelope(contract, json)).unwrap()
}

pub fn text(fault: &Fault, surface: Surface, profile: Profile) -> String {
    String::from_utf8(fault.envelope(surface, profile)).unwrap()
}

/// The keys of an object, in order.
pub fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}
