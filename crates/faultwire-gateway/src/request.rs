//! What is looked up in a request: at once the little that every call needs, the rest only when
//! it fails.

use std::borrow::Cow;

use faultwire_contract::{Report, peek};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::wire;

/// The params of `tools/call`.
#[derive(Deserialize)]
pub(crate) struct ToolCall<'a> {
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    #[serde(borrow, default)]
    pub arguments: Option<&'a RawValue>,
}

impl<'a> ToolCall<'a> {
    /// None when they name no tool.
    pub(crate) fn read(params: Option<&'a str>) -> Option<Self> {
        // A derived struct would also be read from a list.
        let params = params.filter(|raw| raw.starts_with('{'))?;
        serde_json::from_str(params).ok()
    }
}

/// A whole request, taken apart because something is wrong with it.
#[derive(Default)]
pub(crate) struct RequestDetails {
    pub arguments: Option<Value>,
    meta: Value,
    is_next_round: bool,
}

impl RequestDetails {
    /// Of a whole request.
    pub(crate) fn of(line: &[u8]) -> Self {
        Self::told_by(peek(line).params)
    }

    /// Of what it says beside its method.
    pub(crate) fn told_by(params: Option<&str>) -> Self {
        #[derive(Default, Deserialize)]
        struct Params<'a> {
            #[serde(borrow, default)]
            arguments: Option<&'a RawValue>,
            #[serde(borrow, default, rename = "_meta")]
            meta: Option<&'a RawValue>,
            #[serde(borrow, default, rename = "requestState")]
            state: Option<&'a RawValue>,
        }
        let params = params.filter(|raw| raw.starts_with('{'));
        let params: Params<'_> =
            params.and_then(|raw| serde_json::from_str(raw).ok()).unwrap_or_default();
        let read = |raw: &RawValue| serde_json::from_str(raw.get()).ok();
        Self {
            arguments: params.arguments.and_then(read),
            meta: params.meta.and_then(read).unwrap_or_default(),
            is_next_round: params.state.is_some(),
        }
    }

    /// Whether it goes on with what was answered before.
    pub(crate) fn is_next_round(&self) -> bool {
        self.is_next_round
    }

    /// Whether the request is of the modern era.
    pub(crate) fn is_modern(&self) -> bool {
        self.meta.get(wire::PROTOCOL_VERSION).is_some()
    }

    /// What `tools/list` must carry to be answered in the same era.
    pub(crate) fn era(&self) -> Option<Value> {
        let members = [wire::PROTOCOL_VERSION, wire::CLIENT_CAPABILITIES, wire::CLIENT_INFO];
        let kept =
            members.iter().filter_map(|m| Some(((*m).to_owned(), self.meta.get(m)?.clone())));
        self.is_modern().then(|| Value::Object(kept.collect()))
    }

    /// Puts what the client said of itself and of its plan into a report.
    pub(crate) fn tell(&self, report: &mut Report) {
        let text = |names: &[&str]| {
            names.iter().find_map(|name| self.meta.get(*name)?.as_str()).map(str::to_owned)
        };
        let session = &mut report.session;
        session.phase =
            text(&["dev.faultwire/phase", "phase_id", "phase"]).or(session.phase.take());
        session.plan_hash = text(&["dev.faultwire/plan_hash", "plan_hash", "planHash"])
            .or(session.plan_hash.take());
        session.client = self.client().or(session.client.take());
        let trace = text(&["traceparent"]).filter(|trace| wire::is_traceparent(trace));
        report.trace = trace.or(report.trace.take());
    }

    fn client(&self) -> Option<String> {
        named(self.meta.get(wire::CLIENT_INFO)?)
    }
}

/// The token under which the progress of a request is told.
pub(crate) fn progress_token(line: &str) -> Option<Value> {
    let line = peek(line.as_bytes());
    let meta: &RawValue = wire::member(line.params?, "_meta")?;
    wire::member(meta.get(), "progressToken")
}

/// `name/version` of a client or server.
pub(crate) fn named(info: &Value) -> Option<String> {
    let name = info.get("name")?.as_str()?;
    Some(match info.get("version").and_then(Value::as_str) {
        Some(version) => format!("{name}/{version}"),
        None => name.to_owned(),
    })
}
