//! The audit log. A caller that waits for the disk does not hold the interpreter.

use faultwire::audit::{Entry, Log, Receipt};
use faultwire::json;
use pyo3::prelude::*;

use crate::contract::Fault;
use crate::error::{raised, run};
use crate::held::Held;

/// An open audit log.
#[pyclass(frozen)]
pub struct AuditLog(pub(crate) Held<Log>);

#[pymethods]
impl AuditLog {
    /// Opens the log in a directory.
    #[staticmethod]
    fn open(py: Python<'_>, directory: &str, options: &str) -> PyResult<Self> {
        py.detach(|| run(|| json::open_log(directory, options).map(|log| Self(Held::new(log)))))
    }

    /// Records a fault and waits until it is on disk.
    fn append(&self, py: Python<'_>, fault: &Fault, call: &str) -> PyResult<Option<u64>> {
        let entry = run(|| json::entry(&self.0, &fault.0, call))?;
        py.detach(|| run(|| Ok(self.0.append(entry)?.seq)))
    }

    /// The same in the background: calls `done(seq, error)` on the log's thread.
    fn submit(&self, py: Python<'_>, fault: &Fault, call: &str, done: Py<PyAny>) -> PyResult<()> {
        let entry = run(|| json::entry(&self.0, &fault.0, call))?;
        py.detach(|| self.send(entry, done));
        Ok(())
    }

    /// Records something that is no failure.
    fn event(&self, py: Python<'_>, name: &str, facts: &str) -> PyResult<Option<u64>> {
        let entry = run(|| json::event(name, facts))?;
        py.detach(|| run(|| Ok(self.0.append(entry)?.seq)))
    }

    /// The same in the background.
    fn submit_event(
        &self,
        py: Python<'_>,
        name: &str,
        facts: &str,
        done: Py<PyAny>,
    ) -> PyResult<()> {
        let entry = run(|| json::event(name, facts))?;
        py.detach(|| self.send(entry, done));
        Ok(())
    }

    /// Keeps it open for ever: in a forked process there is no thread that could close it.
    fn leak(slf: Py<Self>) {
        std::mem::forget(slf);
    }

    /// The record's members for a fault, without its place in the log.
    fn entry(&self, fault: &Fault, call: &str) -> PyResult<String> {
        // As an entry it is the end of a line.
        run(|| Ok(format!("{{{}", json::entry(&self.0, &fault.0, call)?.as_str())))
    }

    /// The log's id.
    #[getter]
    fn id(&self) -> String {
        self.0.id().to_owned()
    }

    /// Waits for everything, and lets go of the files.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| run(|| self.0.close().map_err(Into::into)))
    }
}

impl AuditLog {
    fn send(&self, entry: Entry, done: Py<PyAny>) {
        self.0.submit(entry).then(move |receipt| {
            let (seq, error) = match receipt {
                Ok(Receipt { seq }) => (seq, None),
                Err(why) => (None, Some(raised(&why.into()))),
            };
            call_back(&done, (seq, error));
        });
    }
}

/// Calls a function of Python from the log's thread. Its own error is reported as unraisable.
pub fn call_back<A>(done: &Py<PyAny>, arguments: A)
where
    A: for<'py> pyo3::call::PyCallArgs<'py>,
{
    // This fails while the interpreter ends; no caller waits then.
    Python::try_attach(|py| {
        if let Err(error) = done.call1(py, arguments) {
            error.write_unraisable(py, Some(done.bind(py)));
        }
    });
}
