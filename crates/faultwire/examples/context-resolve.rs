//! Context Resolve v0 as a server: documents of a cache that fit a query, within a budget. The
//! same question has the same answer, byte for byte, whatever the number of threads.
//!
//! `cargo run -p faultwire --example context-resolve --features rmcp -- ROOT AUDIT [THREADS]`
//!
//! ROOT holds caches: directories with a `manifest.json` that names each document and its SHA-256.
//! Failures are recorded in AUDIT.

use std::io;
use std::path::{Component, Path, PathBuf};

use faultwire::audit::{Log, Options};
use faultwire::context_resolve::{self as errors, Code, Failure};
use faultwire::contract::Report;
use faultwire::{Boundary, ResultExt};
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::{ServerHandler, ServiceExt, tool, tool_handler, tool_router};
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};

/// What is asked.
#[derive(Deserialize, schemars::JsonSchema)]
struct Question {
    /// The cache, as a path below the root.
    cache: String,
    /// Words that the documents should have.
    query: String,
    /// How many bytes of documents are wanted at most.
    budget: i64,
}

#[derive(Deserialize)]
struct Manifest {
    documents: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    path: String,
    sha256: String,
}

/// A document that was read, and is what its hash says.
struct Document {
    path: String,
    text: String,
    score: usize,
}

#[derive(Clone)]
struct Resolver {
    root: PathBuf,
    threads: usize,
    tool_router: ToolRouter<Self>,
}

#[tool_router]
impl Resolver {
    fn new(root: PathBuf, threads: usize) -> Self {
        Self { root, threads, tool_router: Self::tool_router() }
    }

    #[tool(
        description = "Finds the documents of a cache that fit a query, within a budget of bytes"
    )]
    async fn resolve(&self, Parameters(question): Parameters<Question>) -> Result<String, Failure> {
        let words = words(&question.query)?;
        let budget = usize::try_from(question.budget).ok().filter(|budget| *budget > 0);
        let budget = budget.ok_or_else(errors::invalid_budget)?;
        let cache = self.cache(&question.cache)?;
        let manifest = manifest(&cache)?;
        let mut found = self.documents(&cache, &manifest, &words)?;
        found.retain(|document| document.score > 0);
        found.sort_by(|a, b| b.score.cmp(&a.score).then_with(|| a.path.cmp(&b.path)));
        let chosen = within(budget, found)?;
        let chosen: Vec<_> =
            chosen.iter().map(|d| json!({ "path": d.path, "text": d.text })).collect();
        Ok(json!({ "documents": chosen }).to_string())
    }

    /// The directory of a cache. What is not there, or leads outside, is missing (C5).
    fn cache(&self, name: &str) -> Result<PathBuf, Failure> {
        let missing = || Failure::from(errors::cache_missing());
        let unreachable = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => missing(),
            _ => errors::io_error().cause(&error).into(),
        };
        let plain = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        if name.is_empty() || !plain {
            return Err(missing());
        }
        let path = self.root.join(name).canonicalize().map_err(unreachable)?;
        let root = self.root.canonicalize().map_err(unreachable)?;
        if path.starts_with(&root) && path.is_dir() { Ok(path) } else { Err(missing()) }
    }

    /// All documents of the manifest, read and checked, in its order.
    fn documents(
        &self,
        cache: &Path,
        manifest: &Manifest,
        words: &[String],
    ) -> Result<Vec<Document>, Failure> {
        if self.threads == 0 {
            return Err(Failure::invariant_violation("SOMEBODY_READS", Report::default()));
        }
        let share = manifest.documents.len().div_ceil(self.threads).max(1);
        std::thread::scope(|scope| {
            let readers: Vec<_> = manifest
                .documents
                .chunks(share)
                .map(|entries| {
                    scope.spawn(move || entries.iter().map(|e| document(cache, e, words)).collect())
                })
                .collect();
            let mut all = Vec::new();
            for reader in readers {
                let read: Vec<Result<Document, Failure>> =
                    reader.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload));
                for document in read {
                    all.push(document?);
                }
            }
            Ok(all)
        })
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Resolver {}

/// The words of a query: at least one, and nothing but words.
fn words(query: &str) -> Result<Vec<String>, Failure> {
    let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
    let readable = query.chars().all(|c| !c.is_control());
    if words.is_empty() || !readable || query.len() > 1024 {
        return Err(errors::invalid_query().into());
    }
    Ok(words)
}

fn manifest(cache: &Path) -> Result<Manifest, Failure> {
    let text = read(&cache.join("manifest.json"))?;
    serde_json::from_slice(&text).fault(Code::CacheInvalid)
}

fn document(cache: &Path, entry: &Entry, words: &[String]) -> Result<Document, Failure> {
    let plain = Path::new(&entry.path).components().all(|p| matches!(p, Component::Normal(_)));
    if !plain {
        return Err(errors::cache_invalid().into());
    }
    let bytes = read(&cache.join(&entry.path))?;
    if data_encoding::HEXLOWER.encode(&Sha256::digest(&bytes)) != entry.sha256 {
        return Err(errors::cache_invalid().into());
    }
    let text = String::from_utf8(bytes).fault(Code::CacheInvalid)?;
    let lower = text.to_lowercase();
    let score = words.iter().map(|word| lower.matches(word.as_str()).count()).sum();
    Ok(Document { path: entry.path.clone(), text, score })
}

/// A file that belongs to the cache: without it the cache breaks its own rules; everything else
/// that goes wrong is the environment's (C5).
fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).fault_with(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory => {
            Failure::from(errors::cache_invalid().cause(&error))
        }
        _ => errors::io_error().cause(&error).into(),
    })
}

/// The best ones that fit. A budget that holds none of them does not suffice.
fn within(budget: usize, found: Vec<Document>) -> Result<Vec<Document>, Failure> {
    let some = !found.is_empty();
    let mut left = budget;
    let mut chosen = Vec::new();
    for document in found {
        if let Some(rest) = left.checked_sub(document.text.len()) {
            left = rest;
            chosen.push(document);
        }
    }
    if some && chosen.is_empty() {
        return Err(errors::invalid_budget().into());
    }
    Ok(chosen)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [root, audit, threads @ ..] = &arguments[..] else {
        return Err("usage: context-resolve ROOT AUDIT [THREADS]".into());
    };
    let threads = threads.first().map_or(Ok(2), |threads| threads.parse())?;
    let log = Log::open(audit, Options::default())?;
    let server = Boundary::<Code, _>::new(Resolver::new(root.into(), threads), log);
    server.serve(rmcp::transport::stdio()).await?.waiting().await?;
    Ok(())
}
