//! Compares each subject with hand-written code, in one run: `cargo bench`.
//!
//! `docs/benchmarks.md` has the figures and what they were measured on.

#![allow(
    clippy::unwrap_used,
    missing_docs,
    reason = "a benchmark that cannot go on should say where"
)]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use faultwire_contract::{
    CallContext, Contract, Fault, Profile, Redactor, Report, Stamp, Surface, builtin, classify,
    classify_call,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

const STAMP: Stamp = Stamp { now_ms: 1_768_836_730_123, random: 7, show_stack: false };

/// One contract's envelope as a hand-written struct.
trait ByHand: Serialize + for<'de> Deserialize<'de> {
    const CONTRACT: &'static str;
    const CODE: &'static str;
}

macro_rules! by_hand {
    ($name:ident, $contract:literal, $code:literal, { $($field:ident: $type:ty),+ $(,)? }) => {
        #[derive(Serialize, Deserialize)]
        struct $name { $( #[serde(skip_serializing_if = "skip", default)] $field: $type ),+ }

        impl ByHand for $name {
            const CONTRACT: &'static str = $contract;
            const CODE: &'static str = $code;
        }
    };
}

/// Only optional members without a value are skipped.
trait Skip {
    fn skip(&self) -> bool {
        false
    }
}

fn skip<T: Skip>(value: &T) -> bool {
    value.skip()
}

impl Skip for String {}
impl Skip for bool {}
impl Skip for u64 {}

impl Skip for Value {}
impl Skip for Nullable<String> {}
impl Skip for Nullable<Value> {}
impl<T> Skip for Option<T> {
    fn skip(&self) -> bool {
        self.is_none()
    }
}

/// A member that is written as `null` when there is nothing.
#[derive(Serialize, Deserialize, Default)]
#[serde(transparent)]
struct Nullable<T>(Option<T>);

by_hand!(Kaiza, "kaiza", "FILE_READ_FAILED", {
    error_code: String, human_message: String, role: Nullable<String>, session_id: Nullable<String>,
    workspace_root: Nullable<String>, tool_name: String, invariant_id: Nullable<String>,
    phase_id: Nullable<String>, plan_hash: Nullable<String>, cause: Nullable<Value>, timestamp: String,
    stack_trace: Option<String>,
});

#[derive(Serialize, Deserialize)]
struct TuitbotError {
    code: String,
    message: String,
    retryable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate_limit_reset: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy_decision: Option<String>,
}
#[derive(Serialize, Deserialize)]
struct TuitbotMeta {
    tool_version: String,
    elapsed_ms: u64,
}
impl Skip for TuitbotError {}
impl Skip for TuitbotMeta {}
by_hand!(Tuitbot, "tuitbot", "x_rate_limited", {
    success: bool, data: Nullable<Value>, error: Option<TuitbotError>, meta: Option<TuitbotMeta>,
});

#[derive(Serialize, Deserialize)]
struct WorkrailRetry {
    kind: String,
    #[serde(rename = "afterMs", skip_serializing_if = "Option::is_none")]
    after_ms: Option<u64>,
}
impl Skip for WorkrailRetry {}
by_hand!(Workrail, "workrail", "TOKEN_SESSION_LOCKED", {
    code: String, message: String, retry: Option<WorkrailRetry>, suggestion: Option<String>, details: Option<Value>,
});

#[derive(Serialize, Deserialize)]
struct ContextError {
    code: String,
    message: String,
}
impl Skip for ContextError {}
by_hand!(ContextResolve, "context-resolve", "cache_invalid", { error: Option<ContextError> });

#[derive(Serialize, Deserialize)]
struct OwlclawError {
    code: String,
    message: String,
    category: String,
    retryable: bool,
    incident_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<u64>,
}
by_hand!(Owlclaw, "owlclaw", "governance.rate_limited", { error: Option<OwlclawError> });

/// A typical failure: a message, a few facts, some details.
fn fault(contract: &Arc<Contract>, code: &str) -> Fault {
    let takes_delay = contract.code(code).is_some_and(|c| c.default_retry().takes_delay());
    let report: Report = serde_json::from_value(json!({
        "code": code,
        "message": "The upstream \"search\" did not take the call; it is busy until the window is over.",
        "tool": "search_documents",
        "suggestion": "Send fewer calls, or wait until the window is over.",
        "details": {"limit": 60, "window_s": 60, "client": "desktop"},
        "cause": {"message": "busy", "code": "E_BUSY", "name": "BusyError"},
        "session": {"id": "550e8400-e29b-41d4-a716-446655440000", "role": "WINDSURF", "workspace_root": "project", "phase": "PHASE_5A"},
        "meta": {"elapsed_ms": 12},
        "rate_limit_reset": "2026-02-26T10:00:00Z",
    }))
    .unwrap();
    let report = Report { retry_after_ms: takes_delay.then_some(2000), ..report };
    Fault::new(contract, report, &STAMP).unwrap()
}

fn write_and_read<T: ByHand>(c: &mut Criterion) {
    let contract = builtin(T::CONTRACT).unwrap();
    let fault = fault(&contract, T::CODE);
    let bytes = fault.envelope(Surface::Mcp, Profile::default());
    let by_hand: T = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(
        String::from_utf8_lossy(&serde_json::to_vec(&by_hand).unwrap()),
        String::from_utf8_lossy(&bytes),
        "the struct has the same shape"
    );

    let mut group = c.benchmark_group("render");
    group.bench_function(BenchmarkId::new("contract", T::CONTRACT), |b| {
        b.iter(|| black_box(&fault).envelope(Surface::Mcp, Profile::default()));
    });
    group.bench_function(BenchmarkId::new("by hand", T::CONTRACT), |b| {
        b.iter(|| serde_json::to_vec(black_box(&by_hand)).unwrap());
    });
    group.finish();

    let mut group = c.benchmark_group("decode");
    group.bench_function(BenchmarkId::new("contract", T::CONTRACT), |b| {
        b.iter(|| contract.read(Surface::Mcp, Profile::default(), black_box(&bytes)).unwrap());
    });
    group.bench_function(BenchmarkId::new("by hand", T::CONTRACT), |b| {
        b.iter(|| serde_json::from_slice::<T>(black_box(&bytes)).unwrap());
    });
    group.finish();
}

/// The least that any proxy does with a reply.
#[derive(Deserialize)]
struct RawPeek<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

fn reply(text: &str) -> String {
    json!({"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":text}],"isError":false}}).to_string()
}

const PROSE: &str = "The harbour lies in a wide bay, and the ships that come in at dusk are met by the pilot \
    boat near the old light. Version 2.4.1 of the timetable lists three lines; the author of the guide walks \
    from the market to the quay in ten minutes. ";

fn classifying(c: &mut Criterion) {
    let contract = builtin("owlclaw").unwrap();
    let prose = PROSE.repeat(4);
    let records = json!({"items": (0..14).map(|i| json!({"id": i, "name": "harbour", "open": true, "km": 1.5})).collect::<Vec<_>>()});
    let successes = [("prose", reply(&prose)), ("json", reply(&records.to_string()))];
    let mut group = c.benchmark_group("classify 1 KiB success");
    for (name, line) in &successes {
        assert!(classify(&contract, line.as_bytes()).is_none());
        assert!((900..1300).contains(&line.len()), "{}", line.len());
        group.throughput(Throughput::Bytes(line.len() as u64));
        group.bench_function(BenchmarkId::new("contract", name), |b| {
            b.iter(|| classify(&contract, black_box(line.as_bytes())));
        });
        group.bench_function(BenchmarkId::new("RawValue peek", name), |b| {
            b.iter(|| {
                let peek: RawPeek<'_> = serde_json::from_slice(black_box(line.as_bytes())).unwrap();
                (peek.id.is_some(), peek.result.is_some(), peek.error.is_some())
            });
        });
    }
    group.finish();

    let failure = json!({"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"ENOENT: no such file or directory, open '/tmp/x'"}],"isError":true}}).to_string();
    c.bench_function("classify a tool error", |b| {
        b.iter(|| classify(&contract, black_box(failure.as_bytes())));
    });
}

/// New failures, of calls with as many words: caches do not help, and the arguments are searched
/// for in the text.
fn classifying_uncached(c: &mut Criterion) {
    const MANY: usize = 4096;
    let contract = builtin("owlclaw").unwrap();
    let arguments =
        "Please note that the library closes at six on Fridays, returns go to the desk by the \
        stairs, and reading cards of 2025 are renewed for a year. "
            .repeat(7);
    let mut group = c.benchmark_group("classify an uncached 1 KiB failure");
    for (name, said) in [
        ("kind", "Error: ENOENT: no such file or directory, open '/srv/notes/plan.md'. "),
        ("prose", "The upstream service is temporarily unavailable, please try again later. "),
        ("unknown", "The harbour master did not let the ship in. "),
    ] {
        let line = |i: usize| {
            let text = format!("{i}: {said}{}", PROSE.repeat(4));
            let result = json!({"content":[{"type":"text","text":text}],"isError":true});
            json!({"jsonrpc":"2.0","id":7,"result":result}).to_string()
        };
        let lines: Vec<String> = (0..MANY).map(line).collect();
        let params =
            json!({"name":"read","arguments":{"path":"/srv/notes/plan.md","text":arguments}});
        let params = params.to_string();
        // It continues from sample to sample, so that no cached decision is used again.
        let mut next = (0..MANY).cycle();
        group.bench_function(BenchmarkId::new("with its call", name), |b| {
            b.iter(|| {
                let line = &lines[next.next().unwrap()];
                let context = CallContext {
                    params: Some(&params),
                    tool: Some("read"),
                    ..CallContext::default()
                };
                classify_call(&contract, black_box(line.as_bytes()), &context)
            });
        });
    }
    group.finish();
}

fn redacting(c: &mut Criterion) {
    let redactor = Redactor::default();
    let clean = PROSE.repeat(4);
    let log = "2026-01-19 worker-3 open '/srv/app/data/file.txt' failed: password=hunter2 at handler (/srv/app/index.js:10:5)\n";
    let varied: String = (0..900)
        .map(|i| {
            format!(
                "worker-{i} open '/srv/app/{i}/file.txt' failed: password=hunter{i} on 10.0.{}.7\n",
                i % 200
            )
        })
        .collect::<Vec<_>>()
        .concat();
    let texts = [
        ("1 KiB of clean prose", clean),
        ("64 KiB of clean prose", PROSE.repeat(300)[..65_536].to_owned()),
        ("64 KiB of a leaking log", log.repeat(600)[..65_536].to_owned()),
        ("64 KiB of a log whose lines differ", varied[..65_536].to_owned()),
        ("64 KiB of password=", "password=".repeat(8000)[..65_536].to_owned()),
        ("64 KiB of 'password':", "'password':".repeat(8000)[..65_536].to_owned()),
        ("64 KiB of password: token:", "password: token: ".repeat(4000)[..65_536].to_owned()),
        (
            "64 KiB of BEGIN PRIVATE KEY",
            "-----BEGIN PRIVATE KEY-----".repeat(3000)[..65_536].to_owned(),
        ),
        ("64 KiB of slashes", "/a".repeat(40_000)[..65_536].to_owned()),
        ("64 KiB of quotes", "\\\"".repeat(40_000)[..65_536].to_owned()),
        ("64 KiB of bearer", "bearer ".repeat(10_000)[..65_536].to_owned()),
        ("64 KiB of at", " at a.b(".repeat(10_000)[..65_536].to_owned()),
        ("64 KiB of escapes", "\u{1b}[31m".repeat(16_000)[..65_536].to_owned()),
    ];
    let mut group = c.benchmark_group("redact");
    for (name, text) in &texts {
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(*name, |b| b.iter(|| redactor.redact(black_box(text)).len()));
    }
    group.finish();
}

fn loading(c: &mut Criterion) {
    let mut group = c.benchmark_group("load");
    for builtin in &faultwire_contract::BUILTINS {
        group.bench_function(builtin.name, |b| {
            b.iter(|| Contract::load("x.toml", black_box(builtin.text)).unwrap());
        });
    }
    group.finish();
}

fn all(c: &mut Criterion) {
    write_and_read::<Kaiza>(c);
    write_and_read::<Tuitbot>(c);
    write_and_read::<Workrail>(c);
    write_and_read::<ContextResolve>(c);
    write_and_read::<Owlclaw>(c);
    classifying(c);
    classifying_uncached(c);
    redacting(c);
    loading(c);
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(50).warm_up_time(std::time::Duration::from_millis(500)).measurement_time(std::time::Duration::from_secs(2));
    targets = all
}
criterion_main!(benches);
