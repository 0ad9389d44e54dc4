//! Passes a failure from its handler to the boundary around rmcp, because rmcp's results have no
//! place for what a client must not see.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::pin;

use faultwire_contract::{Fault, Profile, Report, ResultOptions, Surface};
use rmcp::ErrorData;
use rmcp::handler::server::tool::IntoCallToolResult;
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock, ErrorCode};

use crate::failure::Failure;
use crate::set::CodeSet;

thread_local! {
    /// The last failure of the running handler.
    static SAID: RefCell<Option<Said>> = const { RefCell::new(None) };
}

/// A handler's failure, and the text that rmcp got for it.
pub(super) struct Said {
    pub report: Box<Report>,
    pub text: String,
}

/// Runs a handler and collects the failure that it passes around rmcp.
pub(super) async fn heard<T>(handler: impl Future<Output = T>) -> (T, Option<Said>) {
    let mut handler = pin!(handler);
    let mut said = None;
    poll_fn(|context| {
        // Other handlers run on this thread, too; each has its own slot.
        let before = SAID.replace(said.take());
        let polled = handler.as_mut().poll(context);
        said = SAID.replace(before);
        polled.map(|value| (value, said.take()))
    })
    .await
}

impl<S: CodeSet> IntoCallToolResult for Failure<S> {
    /// The envelope, for servers without a boundary; with one, that makes a better one.
    fn into_call_tool_result(self) -> Result<CallToolResponse, ErrorData> {
        let (fault, envelope) = said(self);
        let options = ResultOptions { has_output_schema: false, modern: true };
        Ok(read(&fault.result_around(&envelope, options)).into())
    }
}

/// For requests that are not tool calls, such as `initialize`.
impl<S: CodeSet> From<Failure<S>> for ErrorData {
    fn from(failure: Failure<S>) -> Self {
        let (fault, envelope) = said(failure);
        let message = fault.public().message.clone().unwrap_or_default();
        let data = serde_json::from_slice(&envelope).ok();
        Self::new(ErrorCode::INTERNAL_ERROR, message, data)
    }
}

/// Says it past rmcp, and makes the envelope for rmcp.
fn said<S: CodeSet>(failure: Failure<S>) -> (Fault, Vec<u8>) {
    let report = Box::new(failure.report().clone());
    let fault = failure.into_fault();
    let envelope = fault.envelope(Surface::Mcp, Profile::default());
    let text = String::from_utf8_lossy(&envelope).into_owned();
    SAID.set(Some(Said { report, text }));
    (fault, envelope)
}

/// A result that was written by us.
pub(super) fn read(result: &[u8]) -> CallToolResult {
    serde_json::from_slice(result).unwrap_or_else(|_| {
        let text = String::from_utf8_lossy(result).into_owned();
        CallToolResult::error(vec![ContentBlock::text(text)])
    })
}
