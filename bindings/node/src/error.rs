//! Errors on their way to JavaScript.

use std::panic::{AssertUnwindSafe, catch_unwind};

use faultwire::json::{Error, ErrorKind};
use napi::Status;

/// An error whose message is JSON.
pub fn thrown(error: Error) -> napi::Error {
    napi::Error::new(Status::GenericFailure, error.to_json())
}

/// Runs the engine; its errors and its panics are thrown.
pub fn run<T>(engine: impl FnOnce() -> Result<T, Error>) -> napi::Result<T> {
    catch_unwind(AssertUnwindSafe(engine)).unwrap_or_else(|_| Err(panicked())).map_err(thrown)
}

/// What is said of a panic. Its own message is on stderr.
pub fn panicked() -> Error {
    let help = "this is a bug; please report it with the message on stderr";
    Error::new(ErrorKind::Internal, "the engine panicked", help)
}

/// Text of an envelope or an answer. The engine writes UTF-8.
pub fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}
