//! Classification: whether a line is a failure does not depend on the contract, and every failure
//! is a fault of its contract that reads back with its code.
#![no_main]

use faultwire_contract::{BUILTINS, Fault, builtin, classify};
use libfuzzer_sys::fuzz_target;

mod round_trip;

fuzz_target!(|data: &[u8]| {
    let (mut successes, mut failures) = (Vec::new(), Vec::new());
    for known in &BUILTINS {
        let contract = builtin(known.name).expect("it is built in");
        let Some(failure) = classify(&contract, data) else {
            successes.push(known.name);
            continue;
        };
        // A contract knows its own envelopes even without `isError`; others see a success.
        if failure.envelope.is_none() {
            failures.push(known.name);
        }
        let fault = Fault::new(&contract, failure.report, &round_trip::STAMP);
        let fault = fault.unwrap_or_else(|e| panic!("{}: {e}", known.name));
        round_trip::check(&contract, &fault);
    }
    assert!(
        successes.is_empty() || failures.is_empty(),
        "a failure in {failures:?}, a success in {successes:?}",
    );
});
