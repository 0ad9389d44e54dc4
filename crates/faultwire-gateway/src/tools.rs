//! The server's tools, as its list tells of them.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use faultwire::arguments::Schema;
use faultwire_contract::{Safety, nearest};
use hashbrown::HashMap;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::guard::mirror::{self, Mirrored};

/// What is known of the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Known {
    /// Nobody asked yet, or it has changed since.
    #[default]
    No,
    /// Some pages.
    Partly,
    /// All of it.
    Yes,
    /// The server does not tell.
    Never,
}

/// All tools.
#[derive(Default)]
pub(crate) struct Tools {
    by_name: HashMap<Box<str>, Arc<Tool>>,
    pub known: Known,
    /// How often in a row a server ended while it was asked for them.
    deadly: u32,
}

/// One tool.
pub(crate) struct Tool {
    pub facts: ToolFacts,
    /// Differs when anything in the list says something else of it.
    digest: u64,
    schema_text: Option<Box<str>>,
    schema: OnceLock<Schema>,
    mirrored: OnceLock<Vec<Mirrored>>,
}

/// What a failure of the tool needs to know of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToolFacts {
    /// The server has it in its list.
    pub is_listed: bool,
    pub has_output_schema: bool,
    pub safety: Safety,
}

impl Default for ToolFacts {
    fn default() -> Self {
        Self { is_listed: false, has_output_schema: false, safety: Safety::Unknown }
    }
}

/// A page of the list.
pub(crate) struct Page {
    tools: Vec<(Box<str>, Tool)>,
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
        let tools = listed.tools.iter().filter_map(|raw| Tool::read(raw)).collect();
        Some(Self { tools, next: listed.next_cursor })
    }
}

impl Tool {
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
        let facts = ToolFacts { is_listed: true, has_output_schema, safety };
        let schema_text = tool.input_schema.map(|raw| raw.get().into());
        let mut digest = DefaultHasher::new();
        raw.get().hash(&mut digest);
        let digest = digest.finish();
        Some((
            tool.name,
            Self { facts, digest, schema_text, schema: OnceLock::new(), mirrored: OnceLock::new() },
        ))
    }

    /// The schema of its arguments, compiled at its first use.
    pub(crate) fn schema(&self, name: &str) -> &Schema {
        self.schema.get_or_init(|| Schema::compile(name, self.schema_text.as_deref()))
    }

    /// The arguments that the head of a request repeats.
    pub(crate) fn mirrored(&self) -> &[Mirrored] {
        let text = self.schema_text.as_deref();
        self.mirrored.get_or_init(|| text.map(mirror::declared).unwrap_or_default())
    }
}

impl Tools {
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<Tool>> {
        self.by_name.get(name)
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
        for (name, tool) in page.tools {
            let same = before.get(&name).filter(|old| old.digest == tool.digest);
            let tool = same.map_or_else(|| Arc::new(tool), Arc::clone);
            self.by_name.insert(name, tool);
        }
        self.known = if page.next.is_some() { Known::Partly } else { Known::Yes };
        self.deadly = 0;
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
