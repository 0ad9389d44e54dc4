//! What the boundary costs, in one run with and without it: a success through a real client and
//! server of rmcp, and building and rendering a failure compared with a hand-written error.
//!
//! `cargo bench -p faultwire --bench boundary [-- ROUNDS]`
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark")]
#![allow(clippy::disallowed_methods, clippy::cast_precision_loss, reason = "it measures time")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use faultwire::audit::{Log, Options};
use faultwire::contract::{Profile, Stamp, Surface};
use faultwire::{Boundary, owlclaw};
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::CallToolRequestParams;
use rmcp::service::{RoleClient, RunningService};
use rmcp::{ServerHandler, ServiceExt, tool, tool_handler, tool_router};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const CELL: Duration = Duration::from_millis(500);

#[derive(Clone)]
struct Server {
    tool_router: ToolRouter<Self>,
}

#[tool_router]
impl Server {
    #[tool(description = "Answers at once")]
    async fn ok(&self, Parameters(asked): Parameters<Asked>) -> String {
        format!("bench-ok {} {}", asked.name, asked.times)
    }
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Asked {
    name: String,
    times: u8,
}

/// The same envelope, written by hand.
#[derive(Serialize)]
struct ByHand<'a> {
    error: Members<'a>,
}

#[derive(Serialize)]
struct Members<'a> {
    code: &'a str,
    message: &'a str,
    category: &'a str,
    retryable: bool,
    incident_id: String,
    retry_after: u64,
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Server {}

async fn connect<S: ServerHandler>(server: S) -> RunningService<RoleClient, ()> {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    tokio::spawn(async move { server.serve(theirs).await.unwrap().waiting().await });
    ().serve(ours).await.unwrap()
}

/// The median of a call, in microseconds.
async fn call(client: &RunningService<RoleClient, ()>) -> f64 {
    let (mut times, until) = (Vec::new(), Instant::now() + CELL);
    while Instant::now() < until {
        let since = Instant::now();
        let Value::Object(arguments) = json!({ "name": "Ann", "times": 3 }) else { continue };
        let request = CallToolRequestParams::new("ok").with_arguments(arguments);
        let result = client.call_tool(request).await.unwrap();
        times.push(since.elapsed().as_secs_f64() * 1e6);
        assert_ne!(result.is_error, Some(true));
    }
    median(&mut times)
}

/// The median time of something short, in nanoseconds.
fn time(mut run: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..200)
        .map(|_| {
            let since = Instant::now();
            (0..500).for_each(|_| run());
            since.elapsed().as_secs_f64() * 1e9 / 500.0
        })
        .collect();
    median(&mut times)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let rounds = std::env::args().skip(1).find_map(|a| a.parse().ok()).unwrap_or(9);
    let dir = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("bench-boundary");
    let _ = std::fs::remove_dir_all(&dir);
    let log = Log::open(&dir, Options::default()).unwrap();
    let server = || Server { tool_router: Server::tool_router() };
    let bare = connect(server()).await;
    let guarded = connect(Boundary::<owlclaw::Code, _>::new(server(), log)).await;
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        without.push(call(&bare).await);
        with.push(call(&guarded).await);
    }
    let (without, with) = (median(&mut without), median(&mut with));
    println!("| a success through rmcp | p50 | × |\n|---|---|---|");
    println!("| without the boundary | {without:.1} µs | 1.00 |");
    println!("| with it | {with:.1} µs | {:.2} |\n", with / without);

    // Both fill in a given stamp.
    let stamp = Stamp { now_ms: 1_768_836_730_123, random: 7, show_stack: false };
    let message = "The exchange does not answer at the moment";
    let made = || {
        let failure: owlclaw::Failure = owlclaw::dependency_unavailable()
            .message(black_box(message))
            .after(Duration::from_secs(2))
            .into();
        let fault = failure.into_fault_at(&stamp);
        fault.envelope(Surface::Mcp, Profile::default())
    };
    let written = || {
        let error = Members {
            code: "dependency.unavailable",
            message: black_box(message),
            category: "dependency",
            retryable: true,
            incident_id: format!("inc_20260119_{:016x}", black_box(7)),
            retry_after: 2,
        };
        serde_json::to_vec(&ByHand { error }).unwrap()
    };
    let built = || {
        let error = json!({ "error": {
            "code": "dependency.unavailable",
            "message": black_box(message),
            "category": "dependency",
            "retryable": true,
            "incident_id": format!("inc_20260119_{:016x}", black_box(7)),
            "retry_after": 2,
        } });
        serde_json::to_vec(&error).unwrap()
    };
    assert!(made() == written() && made() == built(), "all write the same");
    let ours = time(|| drop(black_box(made())));
    let by_struct = time(|| drop(black_box(written())));
    let by_hand = time(|| drop(black_box(built())));
    println!("| a failure, made and rendered | time | × |\n|---|---|---|");
    println!("| by hand, `serde_json` | {by_hand:.0} ns | 1.00 |");
    println!("| by hand, a derived struct | {by_struct:.0} ns | {:.2} |", by_struct / by_hand);
    println!("| a typed failure, checked and redacted | {ours:.0} ns | {:.2} |", ours / by_hand);
    let _ = std::fs::remove_dir_all(&dir);
}
