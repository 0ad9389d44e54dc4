//! Contracts.

use std::sync::Arc;

use faultwire::json::{self, Request, View};
use faultwire_contract::{Contract, DEFAULT_CAPACITY, Fault, details};
use napi_derive::napi;

use crate::error::{run, text};
use crate::fault::NativeFault;

/// A loaded contract.
#[napi]
pub struct NativeContract(pub(crate) Arc<Contract>);

#[napi]
impl NativeContract {
    /// A built-in contract.
    #[napi(factory)]
    pub fn builtin(name: String) -> napi::Result<Self> {
        run(|| json::builtin(&name).map(Self))
    }

    /// The contract in the text of a file.
    #[napi(factory)]
    pub fn load(file: String, source: String) -> napi::Result<Self> {
        run(|| json::load(&file, &source).map(Self))
    }

    /// Everything in it.
    #[napi]
    pub fn describe(&self) -> napi::Result<String> {
        run(|| Ok(json::describe(&self.0).to_string()))
    }

    /// The code of a violated invariant for which no other is named (K6).
    #[napi(getter)]
    pub fn invariant_code(&self) -> String {
        self.0.invariant().id.clone()
    }

    /// A fault of a report. What is wrong with its details, if they are not JSON, makes it an
    /// internal failure (W5).
    #[napi]
    pub fn fault(
        &self,
        report: String,
        stamp: Option<String>,
        unfit: Option<Vec<String>>,
    ) -> napi::Result<NativeFault> {
        run(|| {
            let stamp = json::stamp(&self.0, stamp.as_deref())?;
            let Some(unfit) = unfit else {
                return json::fault(&self.0, report, &stamp).map(NativeFault);
            };
            let report = details::settle(&self.0, json::report(report)?, Err(unfit));
            Ok(NativeFault(Fault::new(&self.0, report, &stamp)?))
        })
    }

    /// The report in an envelope.
    #[napi]
    pub fn decode(
        &self,
        envelope: String,
        surface: Option<String>,
        profile: Option<String>,
    ) -> napi::Result<String> {
        run(|| {
            let view = surface.as_deref().map(View::named).transpose()?;
            let report = json::read(&self.0, envelope.as_bytes(), view, profile.as_deref())?;
            json::text_of(&report)
        })
    }

    /// What a line of a server is.
    #[napi]
    pub fn classify(
        &self,
        line: &[u8],
        limit: u32,
        call: Option<String>,
        why: bool,
    ) -> napi::Result<String> {
        run(|| {
            let request = call.as_deref().map(Request::read).transpose()?.unwrap_or_default();
            let line = (line.len() <= limit as usize).then_some(line);
            json::classify(&self.0, line, limit as usize, &request, why).map(text)
        })
    }

    /// The text without what a client must not see.
    #[napi]
    pub fn redact(&self, source: String, keep: Vec<String>) -> napi::Result<String> {
        run(|| json::redact(&source, keep.iter().map(String::as_str), Some(&self.0)))
    }

    /// Whether and when to send a call again.
    #[napi]
    pub fn retry(
        &self,
        envelope: String,
        surface: Option<String>,
        context: String,
        stamp: Option<String>,
    ) -> napi::Result<String> {
        run(|| {
            let view = surface.as_deref().map(View::named).transpose()?;
            let context = json::retry_context(&context)?;
            let stamp = json::stamp(&self.0, stamp.as_deref())?;
            json::retry(&self.0, envelope.as_bytes(), view, &context, &stamp).map(text)
        })
    }
}

/// The text without what a client must not see, without rules of a contract.
#[napi]
pub fn redact(source: String, keep: Vec<String>) -> napi::Result<String> {
    run(|| json::redact(&source, keep.iter().map(String::as_str), None))
}

/// The names of the built-in contracts.
#[napi]
#[must_use]
pub fn builtins() -> Vec<String> {
    faultwire_contract::BUILTINS.iter().map(|builtin| builtin.name.to_owned()).collect()
}

/// Failures in the order of time, and the pages that they raise.
#[napi]
pub struct NativeAlerts(json::AlertReplay);

#[napi]
impl NativeAlerts {
    /// Under a contract.
    #[napi(constructor)]
    pub fn new(contract: &NativeContract, capacity: Option<u32>) -> Self {
        let capacity = capacity.map_or(DEFAULT_CAPACITY, |capacity| capacity as usize);
        Self(json::AlertReplay::new(&contract.0, capacity))
    }

    /// Takes an event; the page that it raises, if it raises one.
    #[napi]
    pub fn observe(&mut self, event: String) -> napi::Result<Option<String>> {
        run(|| Ok(self.0.observe(event.as_bytes())?.map(text)))
    }

    /// How many pairs of client and code were forgotten early.
    #[napi(getter)]
    pub fn forgotten(&self) -> f64 {
        self.0.forgotten() as f64
    }
}
