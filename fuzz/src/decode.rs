//! Envelopes: whatever bytes are read as one, the result is an error or a fault that renders and
//! reads back the same.
#![no_main]

use faultwire_contract::{BUILTINS, Fault, Surface, builtin};
use libfuzzer_sys::fuzz_target;

mod round_trip;

fuzz_target!(|data: &[u8]| {
    for known in &BUILTINS {
        let contract = builtin(known.name).expect("it is built in");
        for surface in Surface::ALL {
            for profile in contract.all_profiles() {
                let Ok(report) = contract.read(surface, profile, data) else { continue };
                let fault = Fault::new(&contract, report, &round_trip::STAMP);
                let fault = fault.unwrap_or_else(|e| panic!("{}: {e}", known.name));
                round_trip::check(&contract, &fault);
            }
        }
    }
});
