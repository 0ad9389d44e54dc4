//! Results of tools against the output schemas that they declare.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use faultwire_contract::{Condition, Origin, Outcome, Report};
use rmcp::ServerHandler;
use rmcp::model::{CallToolResult, JsonObject, Tool};

use crate::audit::Entry;
use crate::boundary::Boundary;
use crate::boundary::answer::FailedCall;
use crate::output::{Output, OutputSchema};
use crate::typed::TypedCode;

/// The first mismatches are all recorded, later ones only if their number is a power of two.
const MOST_RECORDED: u64 = 64;

/// A tool's schema, as declared and compiled.
type Compiled = (Arc<JsonObject>, Arc<OutputSchema>);

/// What all clones of a boundary share.
#[derive(Default)]
pub(super) struct Outputs {
    /// Schemas of tools, compiled at their first use.
    schemas: Mutex<HashMap<String, Compiled>>,
    /// How many results did not match.
    pub mismatched: AtomicU64,
}

impl Outputs {
    fn schema(&self, tool: &Tool) -> Option<Arc<OutputSchema>> {
        let declared = tool.output_schema.as_ref()?;
        let known = || self.schemas.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((text, schema)) = known().get(&*tool.name)
            && (Arc::ptr_eq(text, declared) || text == declared)
        {
            return Some(Arc::clone(schema));
        }
        let text = serde_json::to_string(declared).ok()?;
        let schema = Arc::new(OutputSchema::compile(&tool.name, &text));
        known().insert(tool.name.to_string(), (Arc::clone(declared), Arc::clone(&schema)));
        Some(schema)
    }
}

impl<C: TypedCode, H: ServerHandler> Boundary<C, H> {
    /// The failure that a success is because it does not match the tool's output schema, if that
    /// is enforced. Else a mismatch is recorded, and the success passes.
    pub(super) fn output_mismatch(
        &self,
        tool: Option<&Tool>,
        result: &CallToolResult,
    ) -> Option<FailedCall> {
        let mode = self.settings.output;
        let tool = tool.filter(|_| mode != Output::Off)?;
        let schema = self.outputs.schema(tool)?;
        let mismatch = schema.mismatch_of(result.structured_content.as_ref())?;
        let count = self.outputs.mismatched.fetch_add(1, Ordering::Relaxed) + 1;
        let contract = C::contract();
        if mode == Output::Enforce {
            let condition = Condition::UpstreamProtocol;
            let report = Report {
                condition: Some(condition),
                message: Some(mismatch.message(&tool.name)),
                details: Some(mismatch.details()),
                origin: Some(Origin::Upstream),
                outcome: Some(Outcome::Executed),
                ..Report::new(&contract.code_for(condition, None).id)
            };
            return Some(report.into());
        }
        if count <= MOST_RECORDED || count.is_power_of_two() {
            let tool = &*tool.name;
            tracing::warn!(count, tool, "the result does not match the tool's outputSchema");
            let facts = mismatch.facts(tool);
            // The success does not wait for it.
            let entry = Entry::event("output_mismatch", None, &facts, contract.redactor());
            drop(self.log.submit(entry));
        }
        None
    }
}
