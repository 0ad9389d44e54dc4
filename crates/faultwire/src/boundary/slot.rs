//! The way of a failure from its handler to the boundary, past rmcp, whose results have no place
//! for what a client must not see.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::pin;

use faultwire_contract::{Report, ResultOptions};
use rmcp::ErrorData;
use rmcp::handler::server::tool::IntoCallToolResult;
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock};

use crate::failure::Failure;
use crate::typed::TypedCode;

thread_local! {
    /// What the handler that runs now has returned.
    static SAID: RefCell<Option<Box<Report>>> = const { RefCell::new(None) };
}

/// Runs a handler, and hears what it says past rmcp.
pub(super) async fn heard<T>(handler: impl Future<Output = T>) -> (T, Option<Box<Report>>) {
    let mut handler = pin!(handler);
    poll_fn(|context| {
        // Others may have run on this thread since.
        drop(take());
        handler.as_mut().poll(context).map(|value| (value, take()))
    })
    .await
}

fn take() -> Option<Box<Report>> {
    SAID.with_borrow_mut(Option::take)
}

impl<C: TypedCode> IntoCallToolResult for Failure<C> {
    /// The envelope, for servers without a boundary; with one, that makes a better one.
    fn into_call_tool_result(self) -> Result<CallToolResponse, ErrorData> {
        let report = Box::new(self.report().clone());
        SAID.with_borrow_mut(|said| *said = Some(report));
        let fault = self.into_fault();
        let options = ResultOptions { has_output_schema: false, modern: true };
        let result = fault.call_tool_result(faultwire_contract::Profile::default(), options);
        Ok(read(&result).into())
    }
}

/// A result that was written by us.
pub(super) fn read(result: &[u8]) -> CallToolResult {
    serde_json::from_slice(result).unwrap_or_else(|_| {
        let text = String::from_utf8_lossy(result).into_owned();
        CallToolResult::error(vec![ContentBlock::text(text)])
    })
}
