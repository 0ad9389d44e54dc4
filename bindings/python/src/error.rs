//! Errors on their way to Python.

use std::panic::{AssertUnwindSafe, catch_unwind};

use faultwire::json::{Error, ErrorKind};
use pyo3::PyErr;
use pyo3::exceptions::PyException;

pyo3::create_exception!(_engine, EngineError, PyException, "An error of the engine, as JSON.");

/// An error whose argument is JSON.
pub fn raised(error: &Error) -> PyErr {
    EngineError::new_err(error.to_json())
}

/// Runs the engine; its errors and its panics are raised.
pub fn run<T>(engine: impl FnOnce() -> Result<T, Error>) -> Result<T, PyErr> {
    catch_unwind(AssertUnwindSafe(engine))
        .unwrap_or_else(|_| Err(panicked()))
        .map_err(|error| raised(&error))
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
