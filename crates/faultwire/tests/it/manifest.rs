//! What tools declare: as JSON, against a committed file, and in a boundary that runs.

use std::path::Path;
use std::process::Command;

use faultwire::audit::{Log, Options};
use faultwire::{Boundary, Failure, Manifest, Widen, assert_manifest, tuitbot};
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::model::{CallToolRequestParams, CallToolResult, ContentBlock};
use rmcp::service::{RoleClient, RunningService};
use rmcp::{ServerHandler, ServiceExt, tool, tool_handler, tool_router};
use serde_json::{Value, json};

use crate::support::Dir;

faultwire::codes! {
    /// What the platform may answer.
    pub Platform of tuitbot { XRateLimited, XApiError }
    /// What posting may end in.
    pub Posting of tuitbot: Platform { TweetTooLong }
}

#[derive(Clone)]
struct Bot {
    tool_router: ToolRouter<Self>,
}

#[faultwire::manifest(requires(x_client, llm, db))]
#[tool_router]
impl Bot {
    #[tool(description = "Posts")]
    #[declare(category = "write", mutation, requires(db, x_client), profiles(workflow))]
    async fn post(&self) -> Result<String, Failure<Posting>> {
        platform().widen()?;
        Ok("posted".to_owned())
    }

    #[tool(name = "ask", description = "Asks")]
    #[declare(category = "read")]
    async fn ask_the_platform(&self) -> Result<CallToolResult, Failure<Platform>> {
        // A text that a rule of the contract knows, past the types.
        Ok(CallToolResult::error(vec![ContentBlock::text("The account is suspended")]))
    }
}

fn platform() -> Result<(), Failure<Platform>> {
    Err(tuitbot::x_rate_limited().into())
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Bot {}

/// What every tool of this contract may answer.
const BOUNDARYS: [&str; 5] =
    ["db_error", "invalid_input", "serialization_error", "validation_error", "x_network_error"];

#[test]
fn t6_a_manifest_says_what_each_tool_needs_and_may_answer() {
    let codes = |own: &[&'static str]| {
        let mut codes = [own, &BOUNDARYS].concat();
        codes.sort_unstable();
        codes
    };
    let json = Manifest::of::<Bot>().to_json();
    let tools = json!({
        "contract": "tuitbot",
        "contract_version": "1.0.0",
        "tools": [
            {
                "name": "ask", "category": "read", "mutation": false,
                "requires_x_client": false, "requires_llm": false, "requires_db": false,
                "profiles": ["api", "workflow"],
                "possible_error_codes": codes(&["x_rate_limited", "x_api_error"]),
            },
            {
                "name": "post", "category": "write", "mutation": true,
                "requires_x_client": true, "requires_llm": false, "requires_db": true,
                "profiles": ["workflow"],
                "possible_error_codes": codes(&["x_rate_limited", "x_api_error", "tweet_too_long"]),
            },
        ],
    });
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), tools);
    assert_eq!(json, Manifest::of::<Bot>().to_json(), "it is the same every time");
    let keys =
        ["\"name\"", "\"category\"", "\"mutation\"", "\"requires_x_client\"", "\"profiles\""];
    let at: Vec<_> = keys.iter().map(|key| json.find(key).unwrap()).collect();
    assert!(at.is_sorted(), "{json}");
}

#[test]
fn s1_a_manifest_knows_the_nearest_tool() {
    let manifest = Manifest::of::<Bot>();
    assert_eq!((manifest.nearest("pots"), manifest.nearest("xyzzy")), (Some("post"), None));
}

#[test]
fn t6_a_committed_manifest_that_differs_or_is_missing_fails() {
    let dir = Dir::new();
    let path = dir.path().join("manifest.json");
    let missing = compared(&path, false).unwrap_err();
    assert!(missing.contains("the file does not exist"), "{missing}");
    assert!(missing.contains("FAULTWIRE_UPDATE=1 cargo test -p faultwire"), "{missing}");

    // The command writes it.
    compared(&path, true).unwrap();
    compared(&path, false).unwrap();
    let good = std::fs::read_to_string(&path).unwrap();
    assert_eq!(good, Manifest::of::<Bot>().to_json());

    // A code that another tool has, too, is missed where it belongs.
    std::fs::write(&path, good.replacen("\"x_api_error\"", "\"x_forbidden\"", 1)).unwrap();
    let drifted = compared(&path, false).unwrap_err();
    let what = "\n- ask: possible_error_codes \"x_forbidden\"\
                \n+ ask: possible_error_codes \"x_api_error\"\n";
    assert!(drifted.contains(what), "{drifted}");
    std::fs::write(&path, "no JSON").unwrap();
    assert!(compared(&path, false).unwrap_err().contains("\n+ contract \"tuitbot\""));

    let nobody = std::panic::catch_unwind(|| assert_manifest!(String, "nosuch.json")).unwrap_err();
    let nobody = nobody.downcast::<String>().unwrap();
    assert!(nobody.contains("this server declares no tools"), "{nobody}");
}

/// Runs this test binary again, as its user would who compares a manifest, or wants a new one.
fn compared(path: &Path, update: bool) -> Result<(), String> {
    let tests = std::env::current_exe().unwrap();
    let ran = Command::new(tests)
        .args(["--exact", "manifest::the_manifest_at_a_place", "--ignored"])
        .env("FAULTWIRE_UPDATE", if update { "1" } else { "0" })
        .env("MANIFEST", path)
        .output()
        .unwrap();
    let said = String::from_utf8(ran.stdout).unwrap() + &String::from_utf8(ran.stderr).unwrap();
    if ran.status.success() { Ok(()) } else { Err(said) }
}

#[test]
#[ignore = "another test runs it, with a place"]
fn the_manifest_at_a_place() {
    let path = std::env::var("MANIFEST").unwrap();
    assert_manifest!(Bot, path.as_str());
}

struct Pair {
    client: RunningService<RoleClient, ()>,
    boundary: Boundary<tuitbot::Code, Bot>,
    dir: Dir,
}

impl Pair {
    async fn start(is_strict: Option<bool>) -> Self {
        let dir = Dir::new();
        let log = Log::open(dir.path(), Options::default()).unwrap();
        let bot = Bot { tool_router: Bot::tool_router() };
        let boundary = Boundary::new(bot, log);
        let boundary = match is_strict {
            Some(is_strict) => boundary.strict(is_strict),
            None => boundary,
        };
        let server = boundary.clone();
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        tokio::spawn(async move { server.serve(theirs).await.unwrap().waiting().await });
        Self { client: ().serve(ours).await.unwrap(), boundary, dir }
    }

    async fn code(&self, tool: &'static str) -> Value {
        let told = self.client.call_tool(CallToolRequestParams::new(tool)).await.unwrap();
        told.structured_content.unwrap()["error"]["code"].clone()
    }
}

#[tokio::test]
async fn t6_an_undeclared_code_fails_where_tests_run_and_is_counted_elsewhere() {
    let (strict, lax) = ("serialization_error", "x_account_restricted");
    // Without a word it depends on how the server was built.
    let built = if cfg!(debug_assertions) { strict } else { lax };
    for (is_strict, code) in [(Some(true), strict), (Some(false), lax), (None, built)] {
        let pair = Pair::start(is_strict).await;
        assert_eq!(pair.code("ask").await, code);
        assert_eq!(pair.code("post").await, "x_rate_limited");
        assert_eq!(pair.code("nosuch").await, "not_found", "it is nobody's tool");
        assert_eq!(pair.boundary.undeclared(), 1);
        let records = pair.dir.records();
        let faults: Vec<_> = records.iter().filter(|record| record["type"] == "fault").collect();
        let marked: Vec<_> = faults.iter().map(|record| &record["call"]["undeclared"]).collect();
        assert_eq!(marked, [&json!(true), &Value::Null, &Value::Null]);
        assert_eq!(faults[0]["fault"]["code"], code);
        if code == strict {
            assert_eq!(faults[0]["call"]["upstream_code"], "x_account_restricted");
            let told = faults[0]["fault"]["message"].as_str().unwrap();
            assert_eq!(told, "ask answered x_account_restricted, which its manifest does not list");
        }
    }
}
