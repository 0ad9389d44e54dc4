//! What each tool of a server needs and may answer (T6), collected from the code that registers it:
//! [`#[manifest]`](crate::manifest) is put on the `impl` block of the tools and `#[declare(…)]` on
//! each tool; the codes are those of the tool's return type.

use std::any::TypeId;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use faultwire_contract::{Contract, nearest};
use rmcp::model::Tool;
use serde::Serialize;
use serde::ser::SerializeMap;
use serde_json::Value;

use crate::edge;
use crate::failure::Failure;
use crate::own_codes;
use crate::set::{CodeSet, Listed};
use crate::typed::TypedCode;

pub use inventory;

/// The tools of a server.
///
/// ```
/// use faultwire::{Failure, Manifest, owlclaw};
/// use rmcp::{tool, tool_router};
///
/// struct Harbour;
///
/// faultwire::codes! { Reading of owlclaw { DependencyUnavailable } }
///
/// #[faultwire::manifest(requires(db))]
/// #[tool_router]
/// impl Harbour {
///     #[tool(description = "Lists the ships in the harbour")]
///     #[declare(category = "read", requires(db))]
///     async fn ships(&self) -> Result<String, Failure<Reading>> {
///         Err(owlclaw::dependency_unavailable().into())
///     }
/// }
///
/// let manifest = Manifest::of::<Harbour>();
/// assert!(manifest.declares("ships", "dependency.unavailable"));
/// assert!(!manifest.declares("ships", "auth.forbidden"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Manifest {
    contract: Option<&'static Arc<Contract>>,
    /// What a tool can need at all, in the order in which it was named.
    requirements: Vec<&'static str>,
    tools: BTreeMap<String, Entry>,
    mistakes: Vec<String>,
}

/// What one tool needs and may answer.
#[derive(Clone, Debug)]
struct Entry {
    facts: &'static Declared,
    codes: BTreeSet<&'static str>,
}

/// Some tools of a server, as the attribute found them.
#[doc(hidden)]
pub struct Part {
    pub server: fn() -> TypeId,
    pub server_name: &'static str,
    pub requirements: &'static [&'static str],
    pub tools: &'static [Declared],
}

/// What the attributes say of a tool.
#[doc(hidden)]
#[derive(Debug)]
pub struct Declared {
    pub tool: fn() -> Tool,
    pub category: &'static str,
    pub mutation: bool,
    pub requires: &'static [&'static str],
    /// All of the contract's if none is named.
    pub profiles: &'static [&'static str],
    pub codes: Listed,
    pub contract: fn() -> &'static Arc<Contract>,
}

inventory::collect!(Part);

/// A tool's type, which has its codes.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a tool in a manifest must return `Result<_, Failure<…>>`, not `{Self}`",
    label = "this type does not say which codes the tool may answer"
)]
pub trait Raises {
    type Set: CodeSet;
}

impl<T, S: CodeSet> Raises for Result<T, Failure<S>> {
    type Set = S;
}

/// The contract of the codes of a tool's type.
#[doc(hidden)]
#[must_use]
pub fn contract_of<R: Raises>() -> &'static Arc<Contract> {
    <R::Set as CodeSet>::Code::contract()
}

impl Manifest {
    /// Of this server: all `impl` blocks that have the attribute. Empty if none has.
    #[must_use]
    pub fn of<H: 'static>() -> Self {
        Self::of_server(TypeId::of::<H>())
    }

    fn of_server(server: TypeId) -> Self {
        let mut manifest = Self::default();
        for part in inventory::iter::<Part>.into_iter().filter(|part| (part.server)() == server) {
            for requirement in part.requirements {
                if !manifest.requirements.contains(requirement) {
                    manifest.requirements.push(requirement);
                }
            }
            for facts in part.tools {
                manifest.add(facts);
            }
        }
        manifest
    }

    fn add(&mut self, facts: &'static Declared) {
        let tool = (facts.tool)();
        let name = tool.name.to_string();
        let contract = (facts.contract)();
        let known = self.contract.get_or_insert(contract);
        if known.name != contract.name {
            let (one, other) = (&known.name, &contract.name);
            self.mistakes
                .push(format!("{name} uses contract {other}, but the other tools use {one}"));
        }
        for profile in facts.profiles {
            if !contract.profiles.iter().any(|known| known == profile) {
                let known = contract.profiles.join(", ");
                self.mistakes.push(format!("{name}: {profile:?} is not a profile of {known}"));
            }
        }
        let read_only = tool.annotations.as_ref().and_then(|hints| hints.read_only_hint);
        if facts.mutation && read_only == Some(true) {
            self.mistakes.push(format!(
                "{name} is a mutation, but its annotations say that it is read-only"
            ));
        }
        let entry = Entry { facts, codes: codes(contract, &facts.codes) };
        if self.tools.insert(name.clone(), entry).is_some() {
            self.mistakes.push(format!("{name} is registered twice"));
        }
    }

    /// Whether nothing is declared.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// Whether there is such a tool.
    #[must_use]
    pub fn has(&self, tool: &str) -> bool {
        self.tools.contains_key(tool)
    }

    /// The tool that may have been meant by a name that is not there.
    #[must_use]
    pub fn nearest(&self, tool: &str) -> Option<&str> {
        nearest(tool, self.tools.keys().map(String::as_str))
    }

    /// Whether this tool may answer with this code.
    #[must_use]
    pub fn declares(&self, tool: &str, code: &str) -> bool {
        self.tools.get(tool).is_some_and(|entry| entry.codes.contains(code))
    }

    /// As JSON, for people and for comparing: sorted, and the same every time.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut json = serde_json::to_string_pretty(self).unwrap_or_default();
        json.push('\n');
        json
    }

    /// What a committed file says otherwise.
    fn drift(&self, committed: Option<&str>) -> Option<String> {
        if let [first, ..] = &self.mistakes[..] {
            return Some(first.clone());
        }
        let json = self.to_json();
        let Some(committed) = committed else { return Some("the file does not exist".to_owned()) };
        if committed == json {
            return None;
        }
        Some(format!("the file does not match the tools{}", differences(committed, &json)))
    }
}

/// What two manifests have that the other lacks, tool by tool.
fn differences(committed: &str, now: &str) -> String {
    let (before, now) = (facts(committed), facts(now));
    let gone = before.difference(&now).map(|fact| ["\n- ", fact]);
    let new = now.difference(&before).map(|fact| ["\n+ ", fact]);
    gone.chain(new).take(20).flatten().collect()
}

/// Every fact of a manifest, with the name of its tool.
fn facts(manifest: &str) -> BTreeSet<String> {
    let manifest: Value = serde_json::from_str(manifest).unwrap_or_default();
    let tools = manifest["tools"].as_array().into_iter().flatten();
    let facts = tools.filter_map(Value::as_object).flat_map(|tool| {
        let name = &tool.get("name").and_then(Value::as_str).unwrap_or("?");
        let facts = tool.iter().flat_map(|(key, value)| match value {
            Value::Array(values) => values.iter().map(|one| (key, one)).collect(),
            one => vec![(key, one)],
        });
        facts.map(|(key, value)| format!("{name}: {key} {value}")).collect::<Vec<_>>()
    });
    let head = manifest.as_object().into_iter().flatten().filter(|(key, _)| *key != "tools");
    facts.chain(head.map(|(key, value)| format!("{key} {value}"))).collect()
}

/// All that a tool with these codes may answer: its own, and the boundary's.
fn codes(contract: &'static Contract, listed: &Listed) -> BTreeSet<&'static str> {
    let ids = contract.codes().iter().map(|code| code.id.as_str());
    let mut codes: BTreeSet<&str> = ids.filter(|id| listed.holds(id)).collect();
    codes.extend(own_codes::of(contract));
    codes
}

impl Serialize for Manifest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(contract) = self.contract {
            map.serialize_entry("contract", &contract.name)?;
            map.serialize_entry("contract_version", &contract.version)?;
        }
        let tools: Vec<_> =
            self.tools.iter().map(|(name, entry)| Row { name, entry, of: self }).collect();
        map.serialize_entry("tools", &tools)?;
        map.end()
    }
}

/// A tool, as it is serialized.
struct Row<'a> {
    name: &'a str,
    entry: &'a Entry,
    of: &'a Manifest,
}

impl Serialize for Row<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let facts = self.entry.facts;
        let all = self.of.contract.map(|contract| &contract.profiles[..]).unwrap_or_default();
        let in_profile = |profile: &&String| {
            facts.profiles.is_empty() || facts.profiles.contains(&profile.as_str())
        };
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", self.name)?;
        map.serialize_entry("category", facts.category)?;
        map.serialize_entry("mutation", &facts.mutation)?;
        for requirement in &self.of.requirements {
            let needs = facts.requires.contains(requirement);
            map.serialize_entry(&format!("requires_{requirement}"), &needs)?;
        }
        map.serialize_entry("profiles", &all.iter().filter(in_profile).collect::<Vec<_>>())?;
        map.serialize_entry("possible_error_codes", &self.entry.codes)?;
        map.end()
    }
}

/// Fails unless the committed manifest of a server matches its code (T6). Without the name of a
/// server, it checks the crate's only one.
///
/// ```standalone_crate
/// use faultwire::owlclaw::Failure;
/// use rmcp::{tool, tool_router};
///
/// struct Harbour;
///
/// #[faultwire::manifest]
/// #[tool_router]
/// impl Harbour {
///     #[tool(description = "Lists the ships in the harbour")]
///     #[declare(category = "read")]
///     async fn ships(&self) -> Result<String, Failure> {
///         Ok(String::new())
///     }
/// }
///
/// // In a test:
/// faultwire::assert_manifest!("tests/data/harbour.json");
/// faultwire::assert_manifest!(Harbour, "tests/data/harbour.json");
/// ```
///
/// The path is relative to the directory of the crate's `Cargo.toml`. Run the test with
/// `FAULTWIRE_UPDATE=1` to write the file.
#[macro_export]
macro_rules! assert_manifest {
    ($server:ty, $path:expr $(,)?) => {
        $crate::__manifest::assert(
            Ok($crate::Manifest::of::<$server>()),
            env!("CARGO_MANIFEST_DIR"),
            env!("CARGO_PKG_NAME"),
            $path,
        )
    };
    ($path:expr $(,)?) => {
        $crate::__manifest::assert(
            $crate::__manifest::only(),
            env!("CARGO_MANIFEST_DIR"),
            env!("CARGO_PKG_NAME"),
            $path,
        )
    };
}

/// The manifest of the one server that there is.
#[doc(hidden)]
pub fn only() -> Result<Manifest, String> {
    let servers: BTreeMap<TypeId, &str> = inventory::iter::<Part>
        .into_iter()
        .map(|part| ((part.server)(), part.server_name))
        .collect();
    let names: Vec<&str> = servers.values().copied().collect();
    match *servers.keys().collect::<Vec<_>>() {
        [only] => Ok(Manifest::of_server(*only)),
        [] => Err("no server in this crate has #[faultwire::manifest] on its tools".to_owned()),
        _ => Err(format!("name the manifest's server: one of {}", names.join(", "))),
    }
}

/// Compares, or writes the file.
#[doc(hidden)]
#[track_caller]
#[expect(clippy::panic, reason = "it is an assertion")]
pub fn assert(manifest: Result<Manifest, String>, root: &str, package: &str, path: &str) {
    let file = Path::new(root).join(path);
    if let Err(what) = manifest.and_then(|manifest| compare(&manifest, &file)) {
        panic!(
            "{path}: {what}\n\
             If that is what you want: FAULTWIRE_UPDATE=1 cargo test -p {package}"
        );
    }
}

fn compare(manifest: &Manifest, file: &Path) -> Result<(), String> {
    if manifest.is_empty() {
        return Err("this server declares no tools; put #[faultwire::manifest] on its impl block"
            .to_owned());
    }
    if edge::updates_manifests() && manifest.mistakes.is_empty() {
        return std::fs::write(file, manifest.to_json()).map_err(|e| e.to_string());
    }
    let committed = match std::fs::read_to_string(file) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(error.to_string()),
    };
    manifest.drift(committed.as_deref()).map_or(Ok(()), Err)
}
