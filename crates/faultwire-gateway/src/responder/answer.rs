//! An answer to a failure, and the form in which it goes on the wire.

use std::sync::Arc;

use faultwire::audit;
use faultwire_contract::{Condition, Envelope, Fault, ResultOptions, Surface};
use serde_json::Value;

use crate::call::Call;
use crate::call::ClientContext;
use crate::client_sink::{ClientSink, FailedReply};
use crate::method::Method;
use crate::request::RequestDetails;
use crate::settings::Settings;
use crate::tools::ToolFacts;
use crate::{edge, wire};

/// An answer that may be sent once it is recorded.
pub(crate) struct Answer {
    pub to: Arc<dyn ClientSink>,
    pub client: Arc<ClientContext>,
    pub line: Vec<u8>,
    pub fault: Fault,
    pub id: Option<Box<str>>,
    pub form: Form,
}

impl Answer {
    pub(super) fn failed(&self) -> FailedReply<'_> {
        FailedReply { line: &self.line, fault: &self.fault, number: self.form.number() }
    }

    /// What the client gets for a failure that could not be written down (K10).
    pub(super) fn unrecorded(self, why: &audit::AuditFailed) -> Self {
        let settings = &self.client.settings;
        let stamp = edge::stamp(settings.show_stack);
        let Ok(fault) = why.instead_of(&self.fault, &stamp) else { return self };
        let envelope = fault.envelope_twice(self.form.surface(), settings.profile);
        let line = self.form.rendered(self.id.as_deref(), &fault, &envelope, None);
        Self { line, fault, ..self }
    }
}

/// How a failure is put on the wire.
#[derive(Clone, Copy)]
pub(crate) enum Form {
    Result(ResultOptions),
    Error(i64),
    /// The contract's HTTP surface, which is no JSON-RPC.
    Http,
}

impl Form {
    pub(super) fn surface(self) -> Surface {
        match self {
            Self::Result(_) | Self::Error(_) => Surface::Mcp,
            Self::Http => Surface::Http,
        }
    }

    pub(super) fn error(fault: &Fault, rpc: Option<i64>) -> Self {
        let observed = fault.public().condition.unwrap_or(Condition::Internal);
        Self::Error(rpc.unwrap_or_else(|| observed.rpc_code()))
    }

    pub(super) fn number(self) -> Option<i64> {
        match self {
            Self::Error(number) => Some(number),
            Self::Result(_) | Self::Http => None,
        }
    }

    /// Of a failed call.
    pub(super) fn of_call(
        settings: &Settings,
        call: &Call,
        fault: &Fault,
        rpc: Option<i64>,
        tool: ToolFacts,
        details: &RequestDetails,
    ) -> Self {
        if call.surface == Surface::Http {
            return Self::Http;
        }
        if call.method == Method::ToolsCall && settings.failures_as_results {
            let has_output_schema = tool.has_output_schema;
            return Self::Result(ResultOptions { has_output_schema, modern: details.is_modern() });
        }
        Self::error(fault, rpc)
    }

    /// The line, or the body, that says it.
    pub(super) fn rendered(
        self,
        id: Option<&str>,
        fault: &Fault,
        envelope: &Envelope,
        beside: Option<&Value>,
    ) -> Vec<u8> {
        let json = envelope.json();
        match (self, id) {
            (Self::Result(options), Some(id)) => {
                wire::result(id, |out| fault.write_result(envelope, options, out))
            }
            (Self::Error(number), id) => {
                let message = fault.public().message.as_deref().unwrap_or_default();
                match beside {
                    None => wire::error(id, number, message, json),
                    Some(beside) => wire::error(id, number, message, &wire::merged(json, beside)),
                }
            }
            (Self::Result(_), None) => wire::error(None, wire::INVALID_REQUEST, "", json),
            (Self::Http, _) => json.to_vec(),
        }
    }
}
