//! Checks of arguments that may take long, made before any lock is taken: whoever waits for the
//! server's input would wait for them, too.

use std::collections::HashMap;
use std::sync::Arc;

use faultwire_contract::Line;
use serde_json::value::RawValue;

use super::Link;
use crate::call::{Call, Stage};
use crate::failing::Failing;
use crate::guard::scope::Kind;
use crate::link::Phase;
use crate::party::Party;
use crate::request::ToolCall;
use crate::tools::Tool;
use crate::wire;

/// What a check found.
pub(crate) struct Examined {
    tool: Arc<Tool>,
    arguments: Option<Box<str>>,
    failing: Option<Failing>,
}

impl Examined {
    /// What was found, if it was found of these arguments and this tool.
    pub(super) fn of(self, tool: &Tool, arguments: Option<&str>) -> Result<Option<Failing>, ()> {
        let is_same =
            std::ptr::eq(Arc::as_ptr(&self.tool), tool) && self.arguments.as_deref() == arguments;
        if is_same { Ok(self.failing) } else { Err(()) }
    }
}

impl Link {
    /// Checks a call's arguments on a thread of its own if that may take long, one call of a
    /// server at a time.
    pub(crate) async fn examine(
        self: &Arc<Self>,
        party: &Party,
        seen: &Line<'_>,
    ) -> Option<Examined> {
        if seen.method.as_deref() != Some(wire::TOOLS_CALL) {
            return None;
        }
        let params = ToolCall::read(seen.params)?;
        let tool = self.tools().get(&params.name).cloned()?;
        let arguments = params.arguments.map(RawValue::get);
        if tool.is_quick(arguments.map_or(0, str::len)) || !party.may_use(Kind::Tool, &params.name)
        {
            return None;
        }
        let alone = Arc::clone(&self.examining).acquire_owned().await.ok()?;
        let (link, name) = (Arc::clone(self), params.name.into_owned());
        let arguments: Option<Box<str>> = arguments.map(Into::into);
        let examined = tokio::task::spawn_blocking(move || {
            let failing = link.unfit(&name, &tool, arguments.as_deref());
            drop(alone);
            Examined { tool, arguments, failing }
        });
        examined.await.ok()
    }

    /// Checks the arguments of the calls that wait for the server or for its list.
    pub(super) fn examine_held(&self) -> HashMap<String, Option<Examined>> {
        let held: Vec<(String, String, Option<Box<str>>)> = {
            let mut state = self.state();
            if state.phase != Phase::Up || state.listing.is_some() {
                return HashMap::new();
            }
            let held = state.calls.iter_mut().filter(|call| is_held(call));
            held.filter_map(|call| {
                Some((call.id().to_owned(), call.tool()?.to_owned(), arguments(call)))
            })
            .collect()
        };
        let examine = |(id, name, arguments): (String, String, Option<Box<str>>)| {
            let tool = self.tools().get(&name).cloned();
            let examined = tool.map(|tool| {
                let failing = self.unfit(&name, &tool, arguments.as_deref());
                Examined { tool, arguments, failing }
            });
            (id, examined)
        };
        held.into_iter().map(examine).collect()
    }
}

/// Whether a call's arguments have still to be checked.
pub(super) fn is_held(call: &Call) -> bool {
    call.stage == Stage::Held && call.attempt == 1 && call.tool().is_some()
}

/// A call's arguments, as text.
pub(super) fn arguments(call: &Call) -> Option<Box<str>> {
    call.story().arguments.map(|arguments| arguments.to_string().into())
}
