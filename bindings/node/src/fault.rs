//! Faults.

use faultwire::json::{self, Target, View};
use faultwire_contract::{Fault, ResultOptions};
use napi_derive::napi;

use crate::error::{run, text};

/// A fault.
#[napi]
pub struct NativeFault(pub(crate) Fault);

#[napi]
impl NativeFault {
    /// An envelope of it.
    #[napi]
    pub fn render(
        &self,
        surface: Option<String>,
        profile: Option<String>,
        has_output_schema: Option<bool>,
        modern: Option<bool>,
    ) -> napi::Result<String> {
        run(|| {
            let view = surface.as_deref().map(View::named).transpose()?.unwrap_or_default();
            let result = ResultOptions {
                has_output_schema: has_output_schema.unwrap_or(false),
                modern: modern.unwrap_or(false),
            };
            json::render(&self.0, &Target { view, profile, result }).map(text)
        })
    }

    /// Its report, safe for a client.
    #[napi]
    pub fn report(&self) -> napi::Result<String> {
        run(|| json::text_of(self.0.public()))
    }

    /// The HTTP status.
    #[napi(getter)]
    pub fn status(&self) -> u16 {
        self.0.status()
    }
}
