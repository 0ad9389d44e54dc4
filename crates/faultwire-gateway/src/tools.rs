//! The server's tools, as its list tells of them.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use faultwire::arguments::{Allowance, Schema};
use faultwire::output::OutputSchema;
use faultwire_contract::{Safety, nearest};
use hashbrown::HashMap;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::header_params::{self, HeaderParam};

/// More tools of one server are not kept.
const MOST_TOOLS: usize = 10_000;
/// Nor more text of names and schemas than this; a tool beyond it is kept without its schema.
const MOST_BYTES: usize = 8 * 1024 * 1024;

/// What is known of the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Known {
    /// It was not asked for yet, or has changed since.
    #[default]
    No,
    /// Some pages.
    Partly,
    /// All of it.
    Yes,
    /// The server does not tell.
    Never,
}

/// Tools by name.
pub(crate) type KnownTools = HashMap<Box<str>, Arc<ListedTool>>;

/// All tools.
#[derive(Default)]
pub(crate) struct Tools {
    by_name: KnownTools,
    pub known: Known,
    /// How often in a row a server ended while it was asked for them.
    deadly: u32,
    /// What their compiled schemas may take.
    allowance: Allowance,
    /// The same for the schemas of results, which must not crowd out those.
    of_outputs: Allowance,
    /// What is kept of their names and schemas.
    bytes: usize,
    /// Whether a warning said that there are too many.
    is_full: bool,
}

/// One tool.
pub(crate) struct ListedTool {
    pub facts: ToolFacts,
    /// Differs when anything in the list says something else of it.
    digest: u64,
    schema_text: Option<Box<str>>,
    schema: OnceLock<Schema>,
    allowance: Allowance,
    output_text: Option<Box<str>>,
    output: OnceLock<OutputSchema>,
    of_outputs: Allowance,
    header_params: OnceLock<Vec<HeaderParam>>,
}

/// What a failure of the tool needs to know of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToolFacts {
    /// The server has it in its list.
    pub is_listed: bool,
    pub has_output_schema: bool,
    /// Its `readOnlyHint`, where there is one.
    pub read_only: Option<bool>,
    pub safety: Safety,
}

impl Default for ToolFacts {
    fn default() -> Self {
        Self {
            is_listed: false,
            has_output_schema: false,
            read_only: None,
            safety: Safety::Unknown,
        }
    }
}

/// A page of the list.
pub(crate) struct Page {
    tools: Vec<(Box<str>, ListedTool)>,
    /// Where the next page begins.
    pub next: Option<String>,
}

impl Page {
    /// Reads the result of `tools/list`. Tools that make no sense are left out.
    pub(crate) fn read(result: &RawValue) -> Option<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Listed<'a> {
            #[serde(borrow)]
            tools: Vec<&'a RawValue>,
            #[serde(default)]
            next_cursor: Option<String>,
        }
        let listed: Listed<'_> = serde_json::from_str(result.get()).ok()?;
        let tools = listed.tools.iter().filter_map(|raw| ListedTool::read(raw)).collect();
        Some(Self { tools, next: listed.next_cursor })
    }
}

impl ListedTool {
    fn read(raw: &RawValue) -> Option<(Box<str>, Self)> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Described<'a> {
            name: Box<str>,
            #[serde(borrow, default)]
            input_schema: Option<&'a RawValue>,
            #[serde(borrow, default)]
            output_schema: Option<&'a RawValue>,
            #[serde(borrow, default)]
            annotations: Option<&'a RawValue>,
        }
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        struct Annotations {
            read_only_hint: Option<bool>,
            idempotent_hint: Option<bool>,
        }
        let tool: Described<'_> = serde_json::from_str(raw.get()).ok()?;
        let hints: Annotations = tool
            .annotations
            .and_then(|raw| serde_json::from_str(raw.get()).ok())
            .unwrap_or_default();
        let safety = match (hints.read_only_hint, hints.idempotent_hint) {
            (Some(true), _) => Safety::ReadOnly,
            (_, Some(true)) => Safety::Idempotent,
            _ => Safety::Unknown,
        };
        let has_output_schema = tool.output_schema.is_some();
        let read_only = hints.read_only_hint;
        let facts = ToolFacts { is_listed: true, has_output_schema, read_only, safety };
        let schema_text = tool.input_schema.map(|raw| raw.get().into());
        let output_text = tool.output_schema.map(|raw| raw.get().into());
        let mut digest = DefaultHasher::new();
        raw.get().hash(&mut digest);
        let digest = digest.finish();
        Some((
            tool.name,
            Self {
                facts,
                digest,
                schema_text,
                schema: OnceLock::new(),
                allowance: Allowance::default(),
                output_text,
                output: OnceLock::new(),
                of_outputs: Allowance::default(),
                header_params: OnceLock::new(),
            },
        ))
    }

    /// The schema of its arguments, compiled at its first use.
    pub(crate) fn schema(&self, name: &str) -> &Schema {
        self.schema.get_or_init(|| {
            Schema::compile_within(name, self.schema_text.as_deref(), &self.allowance)
        })
    }

    /// Whether a check of so long arguments takes next to no time. The first one compiles.
    pub(crate) fn is_quick(&self, length: usize) -> bool {
        self.schema.get().is_some_and(|schema| schema.is_quick(length))
    }

    /// The schema of its results, compiled at its first use.
    pub(crate) fn output(&self, name: &str) -> &OutputSchema {
        self.output.get_or_init(|| {
            OutputSchema::compile_within(name, self.output_text.as_deref(), &self.of_outputs)
        })
    }

    /// Whether a check of so long a result takes next to no time. The first one compiles.
    pub(crate) fn is_output_quick(&self, length: usize) -> bool {
        self.output.get().is_some_and(|schema| schema.is_quick(length))
    }

    fn bytes(&self) -> usize {
        let length = |text: &Option<Box<str>>| text.as_deref().map_or(0, str::len);
        length(&self.schema_text) + length(&self.output_text)
    }

    /// The arguments that the head of a request repeats.
    pub(crate) fn header_params(&self) -> &[HeaderParam] {
        let text = self.schema_text.as_deref();
        self.header_params.get_or_init(|| text.map(header_params::declared).unwrap_or_default())
    }
}

impl Tools {
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<ListedTool>> {
        self.by_name.get(name)
    }

    /// Whether the list has to be asked for before a call of the tool can be sent. In every mode: a
    /// member that folds to a declared property is always refused, a failure needs the tool's
    /// facts, and rules for sessions hold where the list has their tool.
    pub(crate) fn must_be_listed(&self, tool: &str) -> bool {
        match self.known {
            Known::No => true,
            Known::Partly => self.get(tool).is_none(),
            Known::Yes | Known::Never => false,
        }
    }

    /// All of them, as of now.
    pub(crate) fn all(&self) -> KnownTools {
        self.by_name.clone()
    }

    /// The names of all tools, if they are known.
    pub(crate) fn names(&self) -> Option<Vec<String>> {
        let names = self.by_name.keys().map(|name| String::from(&**name));
        (self.known == Known::Yes).then(|| names.collect())
    }

    /// What a failure of that tool needs to know.
    pub(crate) fn facts(&self, name: Option<&str>) -> ToolFacts {
        name.and_then(|name| self.get(name)).map(|tool| tool.facts).unwrap_or_default()
    }

    /// The tool that may have been meant.
    pub(crate) fn nearest(&self, name: &str) -> Option<&str> {
        if self.by_name.contains_key(name) {
            return None;
        }
        nearest(name, self.by_name.keys().map(|known| &**known))
    }

    /// Takes in a page. Tools that are as before keep their compiled schema.
    pub(crate) fn learn(&mut self, page: Page, first: bool) {
        let before = if first { std::mem::take(&mut self.by_name) } else { HashMap::new() };
        if first {
            self.bytes = 0;
        }
        for (name, tool) in page.tools {
            let same = before.get(&name).filter(|old| old.digest == tool.digest);
            let tool = match same {
                Some(same) => Arc::clone(same),
                None => Arc::new(self.within_bounds(&name, tool)),
            };
            self.keep(name, tool);
        }
        self.known = if page.next.is_some() { Known::Partly } else { Known::Yes };
        self.deadly = 0;
    }

    fn keep(&mut self, name: Box<str>, tool: Arc<ListedTool>) {
        if self.by_name.len() >= MOST_TOOLS && !self.by_name.contains_key(&name) {
            return self.warn("more tools than are kept; the rest is not checked");
        }
        self.bytes += name.len() + tool.bytes();
        if let Some(old) = self.by_name.get(&name) {
            self.bytes = self.bytes.saturating_sub(name.len() + old.bytes());
        }
        self.by_name.insert(name, tool);
    }

    /// A new tool, without its schemas if there is no more room for them. The one of its results
    /// goes first: arguments do more harm.
    fn within_bounds(&mut self, name: &str, tool: ListedTool) -> ListedTool {
        let (allowance, of_outputs) = (self.allowance.clone(), self.of_outputs.clone());
        let mut tool = ListedTool { allowance, of_outputs, ..tool };
        if !self.has_room_for(name, &tool) {
            self.warn("the schemas of all tools are too long together; the rest is not checked");
            tool.output_text = None;
        }
        if !self.has_room_for(name, &tool) {
            tool.schema_text = None;
        }
        tool
    }

    fn has_room_for(&self, name: &str, tool: &ListedTool) -> bool {
        self.bytes + name.len() + tool.bytes() <= MOST_BYTES
    }

    fn warn(&mut self, why: &'static str) {
        if !std::mem::replace(&mut self.is_full, true) {
            tracing::warn!(
                tools = MOST_TOOLS,
                bytes = MOST_BYTES,
                why,
                "the tool list is too large"
            );
        }
    }

    /// The server ended while it was asked for the list.
    pub(crate) fn died_of_it(&mut self) {
        self.deadly += 1;
        self.forget();
    }

    /// The list is another one now: what is known of it holds no more.
    pub(crate) fn forget(&mut self) {
        // Twice may be chance; to ask a third time would have no server for the calls.
        self.known = if self.deadly < 2 { Known::No } else { Known::Never };
    }

    /// Something that differs when the list does, in whichever order and pages it comes.
    pub(crate) fn digest(&self) -> Option<u64> {
        let all = self.by_name.values().fold(0u64, |sum, tool| sum.wrapping_add(tool.digest));
        (self.known == Known::Yes).then_some(all)
    }
}
