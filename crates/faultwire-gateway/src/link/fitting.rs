//! Whether a call's arguments fit: its tool's schema, and what its head says.

use faultwire::arguments::{Misfit, Objection};
use faultwire_contract::{Condition, Outcome};
use hyper::header::HeaderMap;
use serde_json::Value;

use super::examined::arguments;
use super::{Examined, Link};
use crate::call::Call;
use crate::failing::Failing;
use crate::guard::mirror;
use crate::request::Story;
use crate::settings::Arguments;
use crate::sparse::Sparse;
use crate::tools::Tool;

static UNFIT: Sparse = Sparse::new();

impl Link {
    /// What is wrong with a call's arguments, if they are to be refused for it.
    pub(crate) fn misfit(&self, call: &Call, examined: Option<Examined>) -> Option<Failing> {
        let name = call.tool()?;
        let tool = self.tools().get(name).cloned();
        let arguments = arguments(call);
        let turn = call
            .party()
            .and_then(|party| self.out_of_turn(party, name, tool.as_deref(), arguments.as_deref()));
        if turn.is_some() {
            return turn;
        }
        let tool = tool?;
        self.refusal(call, name, &tool, arguments.as_deref(), examined)
    }

    /// The same for arguments that are still text.
    pub(crate) fn refusal(
        &self,
        call: &Call,
        name: &str,
        tool: &Tool,
        arguments: Option<&str>,
        examined: Option<Examined>,
    ) -> Option<Failing> {
        if let Some(failing) = self.two_minds(call, tool, arguments) {
            return Some(failing);
        }
        match examined.map(|examined| examined.of(tool, arguments)) {
            Some(Ok(found)) => found,
            Some(Err(())) | None => self.unfit(name, tool, arguments),
        }
    }

    /// What the tool's schema has against the arguments. This can take its time.
    pub(super) fn unfit(
        &self,
        name: &str,
        tool: &Tool,
        arguments: Option<&str>,
    ) -> Option<Failing> {
        let mode = self.settings().arguments;
        match tool.schema(name).objection(arguments, mode != Arguments::Off)? {
            Objection::Misfit(misfit) if mode == Arguments::Warn => {
                let message = misfit.message(name);
                UNFIT.note(|count| {
                    tracing::warn!(count, tool = name, ?message, "arguments do not fit the schema");
                });
                None
            }
            // A folded member is refused in every mode: the server may read another one than
            // was judged here.
            Objection::Folded(misfit) | Objection::Misfit(misfit) => {
                Some(self.invalid(name, &misfit))
            }
        }
    }

    fn invalid(&self, name: &str, misfit: &Misfit) -> Failing {
        let mut failing =
            Failing::finer(self.contract(), Condition::InvalidArguments, misfit.aspect())
                .saying(misfit.message(name))
                .outcome(Outcome::NotSent);
        failing.report.hints.missing = misfit.missing();
        failing.report.details = Some(misfit.details());
        failing.report.suggestion =
            Some(format!("Mend the arguments; tools/list has the schema of {name}"));
        failing
    }

    /// Whether head and body of a request say different things.
    fn two_minds(&self, call: &Call, tool: &Tool, arguments: Option<&str>) -> Option<Failing> {
        let head = call.head.as_ref()?;
        let declared = tool.mirrored();
        if declared.is_empty() {
            return None;
        }
        let arguments: Value = serde_json::from_str(arguments.unwrap_or("{}")).ok()?;
        let why = mirror::disagreement(declared, &arguments, head)?;
        let condition = Condition::VersionConflict;
        let failing = Failing::observed(self.contract(), condition);
        let failing = failing.saying(why).outcome(Outcome::NotSent);
        Some(Failing { rpc: Some(condition.rpc_code()), is_protocol: true, ..failing })
    }

    /// Puts those arguments of a call into a head that its tool wants there.
    pub(crate) fn repeat_arguments(&self, tool: &str, line: &[u8], headers: &mut HeaderMap) {
        let Some(tool) = self.tools().get(tool).cloned() else { return };
        if tool.mirrored().is_empty() {
            return;
        }
        if let Some(arguments) = Story::of(line).arguments {
            mirror::repeat(tool.mirrored(), &arguments, headers);
        }
    }
}
