//! The codes that boundaries answer with themselves, whatever a tool declares (T6).

use std::collections::BTreeSet;

use faultwire_contract::{Condition, Contract};

/// What they answer for any tool.
const OWN: [Condition; 6] = [
    Condition::InvalidArguments,
    Condition::Timeout,
    Condition::Cancelled,
    Condition::Panic,
    Condition::AuditFailed,
    Condition::Internal,
];

/// The same where the contract has rules for sessions.
const OF_SESSIONS: [Condition; 2] = [Condition::NotReady, Condition::Locked];

/// The codes that a boundary may answer for any tool under this contract.
#[must_use]
pub fn of(contract: &Contract) -> BTreeSet<&str> {
    let of_sessions = OF_SESSIONS.iter().filter(|_| contract.session.is_some());
    let codes = OWN.iter().chain(of_sessions).flat_map(|seen| {
        let aspects = seen.aspects().iter().copied().map(Some);
        std::iter::once(None).chain(aspects).map(|aspect| &*contract.code_for(*seen, aspect).id)
    });
    codes.chain([&*contract.fallback().id]).collect()
}
