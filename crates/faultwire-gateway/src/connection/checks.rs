//! Checks that may take long: of arguments before they are sent, of results before they pass. They
//! are made with no lock held.

use std::borrow::Cow;
use std::sync::Arc;

use faultwire_contract::Line;
use hashbrown::HashMap;

use super::Connection;
use crate::call::{ClientContext, Comparison};
use crate::edge;
use crate::guard::arguments;
use crate::guard::scope::Kind;
use crate::request::ToolCall;
use crate::session::{Checked, Incoming};
use crate::settings::Settings;
use crate::tools::ListedTool;
use crate::wire;

impl Connection {
    /// Checks the arguments of a call on this thread.
    pub(crate) fn check<'a>(&self, incoming: &Incoming<'a>) -> Option<Checked<'a>> {
        let params = incoming.tool_call()?;
        let tool = self.usable(incoming.context().client, params)?;
        Some(checked(&self.settings, &params.name, tool, arguments_of(params)))
    }

    /// Checks the arguments of a call; if that may take long, on a thread of its own, one call of
    /// a server at a time.
    pub(crate) async fn check_aside<'a>(
        self: &Arc<Self>,
        client: &ClientContext,
        seen: &Line<'a>,
    ) -> Option<Checked<'a>> {
        if seen.method.as_deref() != Some(wire::TOOLS_CALL) {
            return None;
        }
        let params = ToolCall::read(seen.params)?;
        let tool = self.usable(client, &params)?;
        let arguments = arguments_of(&params);
        if tool.is_quick(arguments.as_deref().map_or(0, str::len)) {
            return Some(checked(&self.settings, &params.name, tool, arguments));
        }
        let alone = Arc::clone(&self.checking).acquire_owned().await.ok()?;
        let (settings, name) = (Arc::clone(&self.settings), params.name.into_owned());
        let arguments = arguments.map(|arguments| Cow::Owned(arguments.into_owned()));
        let checking = tokio::task::spawn_blocking(move || {
            let checked = checked(&settings, &name, tool, arguments);
            drop(alone);
            checked
        });
        checking.await.ok()
    }

    /// The tool of a call, if it is listed and the client may use it.
    fn usable(&self, client: &ClientContext, params: &ToolCall<'_>) -> Option<Arc<ListedTool>> {
        self.tool(&params.name).filter(|_| client.may_use(Kind::Tool, &params.name))
    }

    /// Checks the arguments of the calls that wait for the server or for its list.
    pub(super) fn check_waiting(&self) -> HashMap<String, Checked<'static>> {
        let waiting = self.session().unchecked();
        if waiting.is_empty() {
            return HashMap::new();
        }
        edge::aside(|| waiting.into_iter().map(|call| call.check(&self.settings)).collect())
    }

    /// Makes a comparison on this thread.
    pub(crate) fn compare(&self, comparison: Comparison) {
        let id = comparison.id().to_owned();
        let compared = comparison.made();
        self.session().on_compared(&id, compared);
    }

    /// Makes it on a thread of its own, one of a server at a time. If that fails the result counts
    /// as compared.
    pub(crate) async fn compare_aside(self: &Arc<Self>, comparison: Comparison) {
        let Ok(alone) = Arc::clone(&self.checking).acquire_owned().await else { return };
        let connection = Arc::clone(self);
        let comparing = tokio::task::spawn_blocking(move || {
            connection.compare(comparison);
            drop(alone);
        });
        let _ = comparing.await;
    }
}

/// The arguments of a call, as they were written.
fn arguments_of<'a>(params: &ToolCall<'a>) -> Option<Cow<'a, str>> {
    params.arguments.map(|arguments| Cow::Borrowed(arguments.get()))
}

/// What the tool's schema says of them.
fn checked<'a>(
    settings: &Settings,
    name: &str,
    tool: Arc<ListedTool>,
    arguments: Option<Cow<'a, str>>,
) -> Checked<'a> {
    let objection = arguments::objection(settings, name, &tool, arguments.as_deref());
    Checked { tool, arguments, objection }
}
