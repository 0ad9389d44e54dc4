//! What a contract of one's own becomes, with a word on everything in it.
#![deny(missing_docs)]

faultwire::contract!(pub mod errors = "ferry.toml");

use std::time::Duration;

fn exhaustive(code: errors::Code) -> u8 {
    match code {
        errors::Code::Broken => 1,
        errors::Code::Full => 2,
    }
}

fn main() {
    assert_eq!(exhaustive(errors::Code::Full), 2);
    let failure: errors::Failure = errors::full().after(Duration::from_millis(5)).into();
    assert_eq!(failure.into_fault().retry_after(), Some(Duration::from_millis(5)));
}
