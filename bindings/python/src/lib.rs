//! The engine for Python. JSON goes in and out as text; the package's Python gives it types.
//!
//! Errors are raised as `EngineError` with a JSON object as its argument (`kind`, `what`, `file`,
//! `line`, `column`, `help`, `text`), of which the Python part makes its exceptions.

mod audit;
mod boundary;
mod contract;
mod error;
mod held;

use pyo3::prelude::*;

/// The module `faultwire._engine`.
#[pymodule]
mod _engine {
    #[pymodule_export]
    use crate::audit::AuditLog;
    #[pymodule_export]
    use crate::boundary::{Boundary, Standing};
    #[pymodule_export]
    use crate::contract::{Alerts, Contract, Fault, Reader, builtins, redact};
    #[pymodule_export]
    use crate::error::EngineError;
}
