//! What every fault must do (A4): render on each surface and in each profile, and read back the
//! same.

use std::sync::Arc;

use faultwire_contract::{Contract, Fault, Stamp, Surface};

/// Stacks are shown, so that they make the round trip, too.
pub const STAMP: Stamp = Stamp { now_ms: 1_768_836_730_123, random: 7, show_stack: true };

/// Writes, reads, writes again: the code, the retry class and the bytes stay the same.
pub fn check(contract: &Arc<Contract>, fault: &Fault) {
    for profile in contract.all_profiles() {
        for surface in Surface::ALL {
            let bytes = fault.envelope(surface, profile);
            let text = String::from_utf8(bytes.clone()).expect("an envelope is UTF-8");
            let read = contract.read(surface, profile, &bytes);
            let read = read.unwrap_or_else(|e| panic!("{}: {e}: {text}", contract.name));
            assert_eq!(read.code, fault.code().id);
            assert_eq!(read.retry, Some(fault.retry()), "{text}");
            let again = Fault::new(contract, read, &STAMP);
            let again = again.unwrap_or_else(|e| panic!("{}: {e}: {text}", contract.name));
            let rewritten = again.envelope(surface, profile);
            assert_eq!(String::from_utf8_lossy(&rewritten), text, "{}", contract.name);
        }
    }
}
