//! The boundary of a server.

use std::sync::Arc;

use faultwire::json::{Answer, Boundary, Call, Failed, Form, Judged, Standing};
use napi::bindgen_prelude::{Either, Env, Object};
use napi_derive::napi;

use crate::audit::NativeAuditLog;
use crate::contract::NativeContract;
use crate::error::{panicked, run, text, thrown};

/// A boundary.
#[napi]
pub struct NativeBoundary(Arc<Boundary>);

/// A session of a client.
#[napi]
#[derive(Default)]
pub struct NativeStanding(Standing);

#[napi]
impl NativeStanding {
    /// One that was not begun.
    #[napi(constructor)]
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many sessions were begun: the `turn` of a call that comes now.
    #[napi(getter)]
    pub fn turn(&self) -> f64 {
        self.0.turn() as f64
    }
}

#[napi]
impl NativeBoundary {
    /// Under a contract, with settings as JSON.
    #[napi(constructor)]
    pub fn new(
        contract: &NativeContract,
        log: Option<&NativeAuditLog>,
        settings: String,
    ) -> napi::Result<Self> {
        let log = log.map(|log| log.0.clone());
        run(|| Ok(Self(Arc::new(Boundary::new(Arc::clone(&contract.0), log, &settings)?))))
    }

    /// Learns the result of `tools/list`.
    #[napi]
    pub fn learn(&self, list: String) -> napi::Result<()> {
        run(|| self.0.learn(&list))
    }

    /// Whether a tool is known.
    #[napi]
    pub fn knows(&self, tool: String) -> bool {
        self.0.knows(&tool)
    }

    /// Whether a result certainly is a success that passes as it is.
    #[napi]
    pub fn passes(&self, result: String) -> napi::Result<bool> {
        run(|| Ok(self.0.passes(&result)))
    }

    /// The answer to a call that may not reach its handler; nothing if it may.
    #[napi(ts_return_type = "Promise<string> | null")]
    pub fn refusal<'env>(
        &self,
        env: &'env Env,
        call: String,
        standing: &NativeStanding,
        form: String,
    ) -> napi::Result<Option<Object<'env>>> {
        let (call, failed) = run(|| {
            let call = Call::read(&call)?;
            let failed = self.0.refusal(&call, &standing.0);
            Ok((call, failed))
        })?;
        failed.map(|failed| self.answer(env, failed, &call, standing, &form)).transpose()
    }

    /// The answer to a call whose handler returned this: nothing if it is a success, a text if
    /// that is sent instead, a promise of the answer if it is a failure.
    #[napi(ts_return_type = "Promise<string> | string | null")]
    pub fn returned<'env>(
        &self,
        env: &'env Env,
        call: String,
        standing: &NativeStanding,
        result: String,
        form: String,
    ) -> napi::Result<Option<Either<String, Object<'env>>>> {
        let (call, judged) = run(|| {
            let call = Call::read(&call)?;
            let judged = self.0.returned(&call, &standing.0, &result)?;
            Ok((call, judged))
        })?;
        Ok(match judged {
            Judged::Success => None,
            Judged::Wrapped(result) => Some(Either::A(text(result))),
            Judged::Failed(failed) => {
                Some(Either::B(self.answer(env, failed, &call, standing, &form)?))
            }
        })
    }

    /// The answer to a call whose handler failed: `how` is `threw` (with what was thrown),
    /// `refused` (with a JSON-RPC error), or the name of a condition (with words).
    #[napi(ts_return_type = "Promise<string>")]
    pub fn failed<'env>(
        &self,
        env: &'env Env,
        call: String,
        standing: &NativeStanding,
        how: String,
        what: String,
        form: String,
    ) -> napi::Result<Object<'env>> {
        let (call, failed) = run(|| {
            let call = Call::read(&call)?;
            let failed = self.0.failed(&call, &how, &what)?;
            Ok((call, failed))
        })?;
        self.answer(env, failed, &call, standing, &form)
    }

    fn answer<'env>(
        &self,
        env: &'env Env,
        failed: Failed,
        call: &Call,
        standing: &NativeStanding,
        form: &str,
    ) -> napi::Result<Object<'env>> {
        let (form, pending) = run(|| {
            let form = Form::named(form)?;
            Ok((form, failed.pending(&self.0, call, &standing.0, form.surface())))
        })?;
        let (deferred, promise) = env.create_deferred()?;
        pending.then(move |answer: Answer| {
            // This is the log's thread: a panic here must not end it.
            let made = std::panic::catch_unwind(|| answer.in_form(form));
            match made {
                Ok(json) => deferred.resolve(move |_| Ok(json)),
                Err(_) => deferred.reject(thrown(panicked())),
            }
        });
        Ok(promise)
    }

    /// Records a failure of a call, or of none, and waits until it is on disk: for a process that
    /// is about to end.
    #[napi]
    pub fn record(&self, call: String, how: String, what: String) -> napi::Result<()> {
        run(|| {
            let call = Call::read(&call)?;
            let failed = self.0.failed(&call, &how, &what)?;
            drop(failed.answer(&self.0, &call, &Standing::default()));
            Ok(())
        })
    }

    /// Records something that is no failure; nothing waits for it.
    #[napi]
    pub fn event(&self, name: String, facts: String) {
        let facts = serde_json::from_str(&facts).unwrap_or_default();
        self.0.event(&name, &facts);
    }

    /// Whether the contract has rules for sessions, which are asked before each call (K12).
    #[napi(getter)]
    pub fn has_sessions(&self) -> bool {
        self.0.contract().session.is_some()
    }

    /// How many failures had a code that their tool does not declare.
    #[napi(getter)]
    pub fn undeclared(&self) -> f64 {
        self.0.undeclared() as f64
    }

    /// How many successes did not match the output schema of their tool.
    #[napi(getter)]
    pub fn mismatched(&self) -> f64 {
        self.0.mismatched() as f64
    }
}
