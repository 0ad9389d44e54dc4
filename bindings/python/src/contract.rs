//! Contracts, faults, and what a client reads of them.

use std::sync::{Arc, Mutex, PoisonError};

use faultwire::client;
use faultwire::json::{self, Request, Target, View};
use faultwire_contract::{DEFAULT_CAPACITY, ResultOptions};
use pyo3::prelude::*;

use crate::error::{run, text};

/// A loaded contract.
#[pyclass(frozen)]
pub struct Contract(pub(crate) Arc<faultwire_contract::Contract>);

#[pymethods]
impl Contract {
    /// A built-in contract.
    #[staticmethod]
    fn builtin(name: &str) -> PyResult<Self> {
        run(|| json::builtin(name).map(Self))
    }

    /// The contract in the text of a file.
    #[staticmethod]
    fn load(file: &str, source: &str) -> PyResult<Self> {
        run(|| json::load(file, source).map(Self))
    }

    /// Whether sessions must be begun (K12).
    #[getter]
    fn has_sessions(&self) -> bool {
        self.0.session.is_some()
    }

    /// Whether successes have an envelope, too (T1).
    #[getter]
    fn wraps_success(&self) -> bool {
        self.0.wraps_success()
    }

    /// The code of a violated invariant (K6).
    #[getter]
    fn invariant(&self) -> &str {
        &self.0.invariant().id
    }

    /// The codes that a boundary may answer for any tool (T6).
    #[getter]
    fn own_codes(&self) -> Vec<&str> {
        json::own_codes(&self.0).into_iter().collect()
    }

    /// Whether stacks are shown; `variable` looks up environment variables (K2).
    fn shows_stack(&self, variable: &Bound<'_, PyAny>) -> bool {
        self.0.shows_stack(|name| variable.call1((name,)).ok()?.extract().ok())
    }

    /// The report of a failure whose details are not JSON (W5).
    fn without_details(&self, report: &str, why: Vec<String>) -> PyResult<String> {
        run(|| {
            let report = json::report(report)?;
            json::text_of(&faultwire_contract::details::settle(&self.0, report, Err(why)))
        })
    }

    /// Everything in it.
    fn describe(&self) -> PyResult<String> {
        run(|| Ok(json::describe(&self.0).to_string()))
    }

    /// A fault of a report.
    #[pyo3(signature = (report, stamp=None))]
    fn fault(&self, report: &str, stamp: Option<&str>) -> PyResult<Fault> {
        run(|| {
            let stamp = json::stamp(&self.0, stamp)?;
            json::fault(&self.0, report, &stamp).map(Fault)
        })
    }

    /// The report in an envelope.
    #[pyo3(signature = (envelope, surface=None, profile=None))]
    fn decode(
        &self,
        envelope: &[u8],
        surface: Option<&str>,
        profile: Option<&str>,
    ) -> PyResult<String> {
        run(|| {
            let view = surface.map(View::named).transpose()?;
            json::text_of(&json::read(&self.0, envelope, view, profile)?)
        })
    }

    /// What a line of a server is.
    #[pyo3(signature = (line, limit, call=None, why=false))]
    fn classify(
        &self,
        line: &[u8],
        limit: usize,
        call: Option<&str>,
        why: bool,
    ) -> PyResult<String> {
        run(|| {
            let request = call.map(Request::read).transpose()?.unwrap_or_default();
            let line = (line.len() <= limit).then_some(line);
            json::classify(&self.0, line, limit, &request, why).map(text)
        })
    }

    /// The text without what a client must not see.
    fn redact(&self, source: &str, keep: Vec<String>) -> PyResult<String> {
        run(|| json::redact(source, keep.iter().map(String::as_str), Some(&self.0)))
    }

    /// Whether and when to send a call again.
    #[pyo3(signature = (envelope, surface, context, stamp=None))]
    fn retry(
        &self,
        envelope: &[u8],
        surface: Option<&str>,
        context: &str,
        stamp: Option<&str>,
    ) -> PyResult<String> {
        run(|| {
            let view = surface.map(View::named).transpose()?;
            let context = json::retry_context(context)?;
            let stamp = json::stamp(&self.0, stamp)?;
            json::retry(&self.0, envelope, view, &context, &stamp).map(text)
        })
    }
}

/// A fault.
#[pyclass(frozen)]
pub struct Fault(pub(crate) faultwire_contract::Fault);

#[pymethods]
impl Fault {
    /// An envelope of it.
    #[pyo3(signature = (surface=None, profile=None, has_output_schema=false, modern=false))]
    fn render(
        &self,
        surface: Option<&str>,
        profile: Option<String>,
        has_output_schema: bool,
        modern: bool,
    ) -> PyResult<String> {
        run(|| {
            let view = surface.map(View::named).transpose()?.unwrap_or_default();
            let result = ResultOptions { has_output_schema, modern };
            json::render(&self.0, &Target { view, profile, result }).map(text)
        })
    }

    /// Its report, safe for a client.
    fn report(&self) -> PyResult<String> {
        run(|| json::text_of(self.0.public()))
    }

    /// The HTTP status.
    #[getter]
    fn status(&self) -> u16 {
        self.0.status()
    }
}

/// The text without what a client must not see, without rules of a contract.
#[pyfunction]
pub fn redact(source: &str, keep: Vec<String>) -> PyResult<String> {
    run(|| json::redact(source, keep.iter().map(String::as_str), None))
}

/// The names of the built-in contracts.
#[pyfunction]
#[must_use]
pub fn builtins() -> Vec<&'static str> {
    faultwire_contract::BUILTINS.iter().map(|builtin| builtin.name).collect()
}

/// Failures in the order of time, and the pages that they raise.
#[pyclass(frozen)]
pub struct Alerts(Mutex<json::AlertReplay>);

#[pymethods]
impl Alerts {
    #[new]
    #[pyo3(signature = (contract, capacity=None))]
    fn new(contract: &Contract, capacity: Option<usize>) -> Self {
        let capacity = capacity.unwrap_or(DEFAULT_CAPACITY);
        Self(Mutex::new(json::AlertReplay::new(&contract.0, capacity)))
    }

    /// Takes an event; the page that it raises, if it raises one.
    fn observe(&self, event: &str) -> PyResult<Option<String>> {
        let mut alerts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        run(|| Ok(alerts.observe(event.as_bytes())?.map(text)))
    }

    /// How many pairs of client and code were forgotten early.
    #[getter]
    fn forgotten(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).forgotten()
    }
}

/// Reads failures of some contracts.
#[pyclass(frozen)]
pub struct Reader(client::Reader);

#[pymethods]
impl Reader {
    #[new]
    fn new(contracts: Vec<PyRef<'_, Contract>>) -> Self {
        Self(client::Reader::new(contracts.iter().map(|contract| Arc::clone(&contract.0))))
    }

    /// Of all built-in contracts.
    #[staticmethod]
    fn builtin() -> Self {
        Self(client::Reader::builtin())
    }

    /// What to do about a failing result or error; none for a success.
    #[pyo3(signature = (reply, context, stamp=None))]
    fn verdict(&self, reply: &str, context: &str, stamp: Option<&str>) -> PyResult<Option<String>> {
        run(|| {
            let Some(failure) = json::failure(&self.0, reply.as_bytes())? else { return Ok(None) };
            let context = json::retry_context(context)?;
            let stamp = json::moment(stamp)?;
            json::verdict(&failure, &context, &stamp).map(text).map(Some)
        })
    }
}
