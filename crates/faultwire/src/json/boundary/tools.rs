//! What the boundary knows of the server's tools, and of the session that calls them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use faultwire_contract::{Condition, Contract, Hints, SessionCall, SessionState, nearest};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::call::Call;
use super::settings::Settings;
use crate::arguments::{Misfit, Schema};
use crate::json::error::{Error, ErrorKind};
use crate::output::{Mismatch, OutputSchema};

/// The tools that are known.
pub(super) struct Tools {
    contract: Arc<Contract>,
    known: Mutex<HashMap<String, Arc<Tool>>>,
}

/// A listed tool.
pub(super) struct Tool {
    pub read_only: Option<bool>,
    /// Calling it twice does no harm, as its annotations have it (A7).
    pub repeatable: bool,
    input: Lazy<Schema>,
    output: Option<Lazy<OutputSchema>>,
}

/// A schema that is compiled when it is needed.
struct Lazy<T> {
    text: Box<str>,
    compiled: OnceLock<T>,
}

impl<T> Lazy<T> {
    fn of(text: &RawValue) -> Self {
        Self { text: text.get().into(), compiled: OnceLock::new() }
    }

    fn get(&self, compile: impl FnOnce(&str) -> T) -> &T {
        self.compiled.get_or_init(|| compile(&self.text))
    }
}

/// A session of a client: whether it was begun, and whether it is locked (K12).
#[derive(Default)]
pub struct Standing(Mutex<State>);

#[derive(Default)]
struct State {
    session: SessionState,
    /// How many were begun.
    begun: u64,
}

impl Standing {
    fn with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How many sessions were begun: the `turn` of a call that comes now.
    #[must_use]
    pub fn turn(&self) -> u64 {
        self.with(|state| state.begun)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    name: String,
    input_schema: Option<Box<RawValue>>,
    output_schema: Option<Box<RawValue>>,
    #[serde(default)]
    annotations: Option<Annotations>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Annotations {
    read_only_hint: Option<bool>,
    idempotent_hint: Option<bool>,
}

impl Tools {
    pub(super) fn new(contract: &Arc<Contract>) -> Self {
        Self { contract: Arc::clone(contract), known: Mutex::default() }
    }

    /// Learns a page of the list; tools that were known before stay.
    pub(super) fn learn(&self, list: &str) -> Result<(), Error> {
        #[derive(Deserialize)]
        struct List {
            tools: Vec<Listed>,
        }
        let list: List = serde_json::from_str(list).map_err(|e| {
            let what = format!("not a list of tools: {e}");
            Error::new(ErrorKind::Input, what, r#"give the result of tools/list: {"tools":[…]}"#)
        })?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for listed in list.tools {
            let hints = listed.annotations.unwrap_or_default();
            let tool = Tool {
                read_only: hints.read_only_hint,
                repeatable: hints.read_only_hint == Some(true)
                    || hints.idempotent_hint == Some(true),
                input: listed.input_schema.as_deref().map_or_else(
                    || Lazy { text: "{}".into(), compiled: OnceLock::new() },
                    Lazy::of,
                ),
                output: listed.output_schema.as_deref().filter(|s| s.get() != "null").map(Lazy::of),
            };
            known.insert(listed.name, Arc::new(tool));
        }
        Ok(())
    }

    pub(super) fn get(&self, name: &str) -> Option<Arc<Tool>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// The tool that may have been meant by an unknown name.
    pub(super) fn nearest(&self, name: &str) -> Option<String> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        nearest(name, known.keys().map(String::as_str)).map(str::to_owned)
    }

    /// Why the session's state does not allow a call, if it does not. Only servers that have the
    /// tool that begins a session have sessions.
    pub(super) fn out_of_turn(
        &self,
        call: &Call,
        standing: &Standing,
        settings: &Settings,
    ) -> Option<(Condition, String)> {
        let rules = self.contract.session.as_ref()?;
        self.get(&rules.begin)?;
        let tool = call.tool.as_deref()?;
        let root = call.session.workspace_root.as_ref();
        let arguments = call.arguments();
        let call = SessionCall {
            tool,
            arguments: arguments.as_ref(),
            read_only: self.get(tool).is_some_and(|tool| tool.read_only == Some(true)),
            workspace_root: root.or(settings.session.workspace_root.as_ref()).map(String::as_str),
        };
        let condition = rules.judge(standing.with(|state| state.session), &call).err()?;
        let message = match condition {
            Condition::NotReady => format!("There is no session; call {} first", rules.begin),
            _ => "The session is locked after a failure; end it or begin a new one".to_owned(),
        };
        Some((condition, message))
    }

    pub(super) fn after_success(&self, call: &Call, standing: &Standing) {
        if let (Some(rules), Some(tool)) = (&self.contract.session, &call.tool) {
            standing.with(|state| {
                state.session = rules.after_success(state.session, tool);
                state.begun += u64::from(*tool == rules.begin);
            });
        }
    }

    /// A call failed with this code. One of a session that is over locks no other.
    pub(super) fn after_failure(&self, call: &Call, code: &str, standing: &Standing) {
        if let (Some(rules), Some(code)) = (&self.contract.session, self.contract.code(code)) {
            standing.with(|state| {
                if call.turn.is_none_or(|turn| turn == state.begun) {
                    state.session = rules.after_failure(state.session, code);
                }
            });
        }
    }
}

impl Tool {
    pub(super) fn has_output_schema(&self) -> bool {
        self.output.is_some()
    }

    fn schema(&self, name: &str) -> &Schema {
        self.input.get(|text| Schema::compile(name, Some(text)))
    }

    /// What is wrong with the arguments of a call.
    pub(super) fn misfit(&self, name: &str, call: &Call) -> Option<Misfit> {
        self.schema(name).misfit(call.arguments.as_deref().map(RawValue::get))
    }

    /// What the schema knows about arguments that only the handler found fault with.
    pub(super) fn hints(&self, name: &str, call: &Call, said: &str) -> Hints {
        self.schema(name).hints_for(call.arguments().as_ref(), said)
    }

    /// How a result differs from the tool's output schema.
    pub(super) fn mismatch(&self, name: &str, result: &str) -> Option<Mismatch> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Result<'a> {
            #[serde(borrow, default)]
            structured_content: Option<&'a RawValue>,
            #[serde(default)]
            result_type: Option<String>,
        }
        let output = self.output.as_ref()?;
        let result: Result<'_> = serde_json::from_str(result).ok()?;
        // A question for more input is not what the tool promised.
        if result.result_type.is_some_and(|kind| kind != "complete") {
            return None;
        }
        let schema = output.get(|text| OutputSchema::compile(name, text));
        schema.mismatch(result.structured_content.map(RawValue::get))
    }
}
