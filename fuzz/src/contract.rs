//! Contract files: any text is a list of mistakes with places inside the file, or a contract that
//! can be checked, described, compared with itself and used.
#![no_main]

use std::sync::Arc;

use faultwire_contract::{Contract, Fault, Report, SchemaOf, Surface, compat, lint};
use libfuzzer_sys::fuzz_target;

mod round_trip;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = str::from_utf8(data) else { return };
    let lines = text.split('\n').count();
    let contract = match Contract::load("fuzz.toml", text) {
        Ok(contract) => Arc::new(contract),
        Err(mistakes) => {
            assert!(!mistakes.list.is_empty());
            for mistake in &mistakes.list {
                assert!((1..=lines).contains(&mistake.line), "{mistakes}");
                assert!(mistake.column >= 1 && !mistake.what.is_empty(), "{mistakes}");
            }
            return;
        }
    };
    for finding in lint::lint(&contract) {
        assert!((1..=lines).contains(&finding.line), "{finding:?}");
    }
    assert_eq!(compat::changes(&contract, &contract), []);
    for (condition, code) in contract.conditions() {
        assert!(contract.code(&code.id).is_some(), "{condition}");
    }
    for profile in contract.all_profiles() {
        let surfaces = Surface::ALL.map(SchemaOf::Surface);
        for of in surfaces.into_iter().chain([SchemaOf::CallToolResult, SchemaOf::Success]) {
            let _ = contract.schema(of, profile);
        }
    }
    for code in contract.codes() {
        let fault = Fault::new(&contract, Report::new(&code.id), &round_trip::STAMP);
        round_trip::check(&contract, &fault.expect("a bare code is a fault"));
    }
});
