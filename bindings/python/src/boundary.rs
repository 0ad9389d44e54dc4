//! The boundary of a server.

use std::sync::Arc;

use faultwire::json::{self, Answer, Call, Failed, Form, Judged};
use pyo3::prelude::*;

use crate::audit::{AuditLog, call_back};
use crate::contract::Contract;
use crate::error::{panicked, raised, run, text};
use crate::held::Held;

/// A boundary.
#[pyclass(frozen)]
pub struct Boundary(Held<json::Boundary>);

/// A session of a client.
#[pyclass(frozen)]
#[derive(Default)]
pub struct Standing(json::Standing);

#[pymethods]
impl Standing {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// How many sessions were begun: the `turn` of a call that comes now.
    #[getter]
    fn turn(&self) -> u64 {
        self.0.turn()
    }
}

#[pymethods]
impl Boundary {
    #[new]
    #[pyo3(signature = (contract, log, settings))]
    fn new(contract: &Contract, log: Option<&AuditLog>, settings: &str) -> PyResult<Self> {
        let log = log.map(|log| (*log.0).clone());
        run(|| Ok(Self(Held::new(json::Boundary::new(Arc::clone(&contract.0), log, settings)?))))
    }

    /// Keeps it for ever: in a forked process there is no thread that could close its log.
    fn leak(slf: Py<Self>) {
        std::mem::forget(slf);
    }

    /// Learns the result of `tools/list`.
    fn learn(&self, list: &str) -> PyResult<()> {
        run(|| self.0.learn(list))
    }

    /// Whether a tool is known.
    fn knows(&self, tool: &str) -> bool {
        self.0.knows(tool)
    }

    /// Whether a result certainly is a success that passes as it is.
    fn passes(&self, result: &str) -> PyResult<bool> {
        run(|| Ok(self.0.passes(result)))
    }

    /// Whether a call may not reach its handler; then `done(answer, error)` is called.
    fn refusal(
        &self,
        py: Python<'_>,
        call: &str,
        standing: &Standing,
        form: &str,
        done: Option<Py<PyAny>>,
    ) -> PyResult<Option<Answered>> {
        let (call, failed) = run(|| {
            let call = Call::read(call)?;
            let failed = self.0.refusal(&call, &standing.0);
            Ok((call, failed))
        })?;
        failed.map(|failed| self.answer(py, failed, &call, standing, form, done)).transpose()
    }

    /// What a handler returned: `None` for a success, a text to send instead, or a failure.
    fn returned(
        &self,
        py: Python<'_>,
        call: &str,
        standing: &Standing,
        result: &str,
        form: &str,
        done: Option<Py<PyAny>>,
    ) -> PyResult<Option<Answered>> {
        let (call, judged) = run(|| {
            let call = Call::read(call)?;
            let judged = self.0.returned(&call, &standing.0, result)?;
            Ok((call, judged))
        })?;
        Ok(match judged {
            Judged::Success => None,
            Judged::Wrapped(result) => Some((true, Some(text(result)))),
            Judged::Failed(failed) => Some(self.answer(py, failed, &call, standing, form, done)?),
        })
    }

    /// A handler failed: `how` is `threw`, `refused` or the name of a condition.
    #[expect(clippy::too_many_arguments, reason = "each is a part of one failure")]
    fn failed(
        &self,
        py: Python<'_>,
        call: &str,
        standing: &Standing,
        how: &str,
        what: &str,
        form: &str,
        done: Option<Py<PyAny>>,
    ) -> PyResult<Answered> {
        let (call, failed) = run(|| {
            let call = Call::read(call)?;
            let failed = self.0.failed(&call, how, what)?;
            Ok((call, failed))
        })?;
        self.answer(py, failed, &call, standing, form, done)
    }

    /// Records something that is no failure; nothing waits for it.
    fn event(&self, py: Python<'_>, name: &str, facts: &str) {
        let facts = serde_json::from_str(facts).unwrap_or_default();
        py.detach(|| self.0.event(name, &facts));
    }

    /// How many failures had a code that their tool does not declare.
    #[getter]
    fn undeclared(&self) -> u64 {
        self.0.undeclared()
    }

    /// How many successes did not match the output schema of their tool.
    #[getter]
    fn mismatched(&self) -> u64 {
        self.0.mismatched()
    }
}

/// Whether it is a success, and the text: none if the callback gets it.
type Answered = (bool, Option<String>);

impl Boundary {
    /// The answer: now, or through the callback when it is on disk.
    fn answer(
        &self,
        py: Python<'_>,
        failed: Failed,
        call: &Call,
        standing: &Standing,
        form: &str,
        done: Option<Py<PyAny>>,
    ) -> PyResult<Answered> {
        let form = run(|| Form::named(form))?;
        // The log's thread may wait for the interpreter while it holds what is needed here.
        let pending =
            py.detach(|| run(|| Ok(failed.pending(&self.0, call, &standing.0, form.surface()))))?;
        let Some(done) = done else {
            let made = py.detach(|| run(|| Ok(pending.wait().in_form(form))))?;
            return Ok((false, Some(made)));
        };
        // The log's thread calls back with the interpreter attached, which may be held here.
        py.detach(|| {
            pending.then(move |answer: Answer| {
                // A panic must not end the log's thread.
                match std::panic::catch_unwind(|| answer.in_form(form)) {
                    Ok(json) => call_back(&done, (Some(json), None::<PyErr>)),
                    Err(_) => call_back(&done, (None::<String>, Some(raised(&panicked())))),
                }
            });
        });
        Ok((false, None))
    }
}
