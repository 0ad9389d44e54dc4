//! A client of rmcp that calls again when, and only when, the failure says that it may.

use faultwire_contract::Safety;
use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::{Peer, RoleClient, ServiceError};
use serde_json::Value;

use crate::client::{Reader, RetryContext, ServerFailure};

/// The default number of retries of a call.
const RETRIES: u32 = 3;

/// Calls tools and follows the retry answers of their failures.
#[derive(Clone, Debug)]
pub struct Retrying {
    peer: Peer<RoleClient>,
    reader: Reader,
    retries: u32,
}

impl Retrying {
    /// Calls the tools of this server; its failures are read by `reader`.
    #[must_use]
    pub fn new(peer: Peer<RoleClient>, reader: Reader) -> Self {
        Self { peer, reader, retries: RETRIES }
    }

    /// How often one call may be sent again. Three times without it.
    #[must_use]
    pub fn retries(mut self, retries: u32) -> Self {
        self.retries = retries;
        self
    }

    /// Calls a tool until it answers, or its failure says that calling again is of no use. What is
    /// known of the tool decides whether a call that may have run is sent again.
    pub async fn call_tool(
        &self,
        request: CallToolRequestParams,
        safety: Safety,
    ) -> Result<CallToolResult, ServiceError> {
        let mut attempt = 1;
        loop {
            let answer = self.peer.call_tool(request.clone()).await;
            let Some(failure) = self.failure(&answer) else { return answer };
            let budget = Some(self.retries.saturating_sub(attempt - 1));
            let verdict = failure.verdict(&RetryContext { attempt, safety, budget });
            let Some(delay) = verdict.delay else { return answer };
            tokio::time::sleep(delay).await;
            attempt += 1;
        }
    }

    /// Reads an answer, if it is a failure.
    fn failure(&self, answer: &Result<CallToolResult, ServiceError>) -> Option<ServerFailure> {
        match answer {
            Ok(result) => {
                let value = serde_json::to_value(result).ok()?;
                self.reader.result(&value)
            }
            Err(ServiceError::McpError(error)) => {
                let value = serde_json::to_value(error).unwrap_or(Value::Null);
                Some(self.reader.error(&value))
            }
            // Failures of the connection itself have no contract.
            Err(_) => None,
        }
    }
}
