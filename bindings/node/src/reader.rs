//! Failures of servers, as a client reads them.

use std::sync::Arc;

use faultwire::client::Reader;
use faultwire::json;
use napi_derive::napi;

use crate::contract::NativeContract;
use crate::error::{run, text};

/// Reads failures of some contracts.
#[napi]
pub struct NativeReader(Reader);

#[napi]
impl NativeReader {
    /// Of these contracts.
    #[napi(constructor)]
    pub fn new(contracts: Vec<&NativeContract>) -> Self {
        Self(Reader::new(contracts.iter().map(|contract| Arc::clone(&contract.0))))
    }

    /// Of all built-in contracts.
    #[napi(factory)]
    pub fn builtin() -> Self {
        Self(Reader::builtin())
    }

    /// What to do about a failing result or error; none for a success.
    #[napi]
    pub fn verdict(
        &self,
        reply: String,
        context: String,
        stamp: Option<String>,
    ) -> napi::Result<Option<String>> {
        run(|| {
            let Some(failure) = json::failure(&self.0, reply.as_bytes())? else { return Ok(None) };
            let context = json::retry_context(&context)?;
            let stamp = json::moment(stamp.as_deref())?;
            json::verdict(&failure, &context, &stamp).map(text).map(Some)
        })
    }
}
