//! Whatever a handler throws, as a client of rmcp hears it.

use std::marker::PhantomData;
use std::process::Command;
use std::time::Duration;

use faultwire::audit::{Log, Options};
use faultwire::client::{Reader, RetryContext};
use faultwire::contract::{Contract, Meta, Report, RetryClass, Safety, Session};
use faultwire::{Boundary, Failure, TypedCode, Unknown};
use faultwire::{context_resolve, kaiza, owlclaw, tuitbot, workrail};
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::tool::IntoCallToolResult;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolRequestParams, CallToolResponse, Tool};
use rmcp::service::{RequestContext, RoleClient, RoleServer, RunningService};
use rmcp::{ErrorData, ServerHandler, ServiceExt, tool, tool_handler, tool_router};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::Dir;

/// A client of a boundary, and its log.
struct Pair {
    client: RunningService<RoleClient, ()>,
    dir: Dir,
}

impl Pair {
    async fn start<C: TypedCode, H: ServerHandler>(
        handler: H,
        around: impl FnOnce(Boundary<C, H>) -> Boundary<C, H>,
    ) -> Self {
        let dir = Dir::new();
        let log = Log::open(dir.path(), Options::default()).unwrap();
        let server = around(Boundary::new(handler, log));
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        tokio::spawn(async move { server.serve(theirs).await.unwrap().waiting().await });
        Self { client: ().serve(ours).await.unwrap(), dir }
    }

    /// The whole result of a call that fails, as it stands on the wire.
    async fn fails(&self, tool: &str, arguments: Value) -> Value {
        let Value::Object(arguments) = arguments else { panic!("an object") };
        let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let result = self.client.call_tool(request).await.unwrap();
        let result = serde_json::to_value(result).unwrap();
        assert_eq!(result["isError"], true, "{tool}: {result}");
        result
    }

    async fn envelope(&self, tool: &str, arguments: Value) -> Value {
        self.fails(tool, arguments).await["structuredContent"].clone()
    }

    fn faults(&self) -> Vec<Value> {
        let is_fault = |record: &Value| record["type"] == "fault";
        self.dir.records().into_iter().filter(is_fault).collect()
    }
}

/// Fails with the code that it is called by.
#[derive(Clone)]
struct Raises<C>(PhantomData<fn() -> C>);

impl<C: TypedCode> ServerHandler for Raises<C> {
    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let report = Report {
            message: Some("It is so".to_owned()),
            suggestion: Some("Do something else".to_owned()),
            ..Report::new(&*request.name)
        };
        let failure = match Failure::<C>::from_report(report) {
            Ok(failure) => failure,
            Err(refused) => refused.into(),
        };
        failure.into_call_tool_result()
    }
}

async fn every_code_comes_back<C: TypedCode>() {
    let (reader, contract) = (Reader::builtin(), C::contract());
    let meta = Meta { tool_version: Some("1.0".into()), ..Meta::default() };
    let pair = Pair::start(Raises::<C>(PhantomData), |b: Boundary<C, _>| b.meta(meta)).await;
    for (at, code) in contract.codes().iter().enumerate() {
        let told = reader.result(&pair.fails(&code.id, json!({})).await).unwrap();
        assert_eq!(told.code(), Some(&*code.id));
        assert_eq!(told.contract().unwrap().name, contract.name);
        let verdict =
            told.verdict(&RetryContext { safety: Safety::ReadOnly, ..RetryContext::default() });
        assert_eq!(verdict.retry, code.default_retry() != RetryClass::Never, "{}", code.id);
        assert_eq!(verdict.action, code.action);
        // Whatever the envelope has a place for is what was recorded.
        let record = &pair.faults()[at]["fault"];
        let read = serde_json::to_value(told.report()).unwrap();
        for (key, value) in read.as_object().unwrap() {
            assert_eq!(Some(value), record.get(key), "{} {key}: {record}", code.id);
        }
    }
    let told = pair.fails("NO_SUCH_CODE", json!({})).await;
    let told = reader.result(&told).unwrap();
    assert_eq!(told.code(), Some(&*contract.fallback().id), "K3");
    let record = pair.faults().pop().unwrap().to_string();
    assert!(record.contains("NO_SUCH_CODE"), "K3: the refused code is named: {record}");
}

#[tokio::test]
async fn a4_k3_every_code_of_every_contract_comes_back_from_a_real_client() {
    every_code_comes_back::<kaiza::Code>().await;
    every_code_comes_back::<tuitbot::Code>().await;
    every_code_comes_back::<workrail::Code>().await;
    every_code_comes_back::<context_resolve::Code>().await;
    every_code_comes_back::<owlclaw::Code>().await;
}

/// More than any schema says: an even number.
#[derive(Deserialize)]
#[serde(try_from = "u8")]
struct Even(#[allow(dead_code, reason = "nobody wants to know which")] u8);

impl TryFrom<u8> for Even {
    type Error = String;

    fn try_from(n: u8) -> Result<Self, String> {
        if n.is_multiple_of(2) { Ok(Self(n)) } else { Err(format!("{n} is odd")) }
    }
}

impl schemars::JsonSchema for Even {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Even".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        u8::json_schema(generator)
    }
}

#[derive(Deserialize, schemars::JsonSchema)]
#[allow(dead_code, reason = "nobody wants to know which")]
struct Wish {
    number: Even,
}

#[derive(Clone)]
struct Thrower {
    tool_router: ToolRouter<Self>,
    has_lost_its_tools: bool,
}

#[tool_router]
impl Thrower {
    fn new() -> Self {
        Self { tool_router: Self::tool_router(), has_lost_its_tools: false }
    }

    #[tool(description = "Wants an even number")]
    async fn even(&self, _: Parameters<Wish>) -> String {
        "fine".to_owned()
    }

    #[tool(description = "Throws an error")]
    async fn error(&self) -> Result<String, kaiza::Failure> {
        Ok(std::fs::read_to_string("/nosuch/file")?)
    }

    #[tool(description = "Throws a text")]
    async fn text(&self) -> Result<String, kaiza::Failure> {
        Err(kaiza::Failure::from_unknown(Unknown::text("boom"), kaiza::Code::InvalidPath.into()))
    }

    #[tool(description = "Throws an object with a code that is registered")]
    async fn object(&self) -> Result<String, kaiza::Failure> {
        let thrown = json!({ "code": "PLAN_NOT_FOUND", "message": "No plan", "n": 1 });
        Err(kaiza::Failure::from_unknown(Unknown::value(thrown), kaiza::Code::InvalidPath.into()))
    }

    #[tool(description = "Throws an object with a code of its own, and without words")]
    async fn stranger(&self) -> Result<String, kaiza::Failure> {
        let thrown = json!({ "code": "ENOENT", "n": 1 });
        Err(kaiza::Failure::from_unknown(Unknown::value(thrown), Report::default()))
    }

    #[tool(description = "Panics")]
    async fn panics(&self) -> String {
        thrown_from_here()
    }

    #[tool(description = "Violates an invariant")]
    async fn invariant(&self) -> Result<String, kaiza::Failure> {
        let context = Report { cause: Some(json!("x")), ..Report::default() };
        Err(kaiza::Failure::invariant_violation("MANDATORY_DIAGNOSTICS", context))
    }

    #[tool(description = "Says that it can be retried, and it cannot")]
    async fn liar(&self) -> Result<String, tuitbot::Failure> {
        let mut failure = tuitbot::Failure::from(tuitbot::tweet_too_long());
        failure.report_mut().retry = Some(RetryClass::Backoff);
        Err(failure)
    }

    #[tool(description = "Tells details that are no JSON, before or after the rest")]
    async fn nan(&self, order: Parameters<Order>) -> Result<String, workrail::Failure> {
        let draft = workrail::token_session_locked();
        Err(if order.0.first {
            draft.details(&f64::NAN).message("Locked").after(Duration::from_secs(1)).into()
        } else {
            draft.after(Duration::from_secs(1)).message("Locked").details(&f64::NAN).into()
        })
    }
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Order {
    first: bool,
}

#[inline(never)]
fn thrown_from_here() -> String {
    panic!("at the disco")
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Thrower {
    fn get_tool(&self, name: &str) -> Option<Tool> {
        assert!(!self.has_lost_its_tools, "no tools");
        self.tool_router.get(name).cloned()
    }
}

#[tokio::test]
async fn k14_k7_k9_the_eight_subjects_through_a_client() {
    let session = Session {
        id: Some("s1".into()),
        role: Some("WINDSURF".into()),
        workspace_root: Some("/work".into()),
        phase: Some("P1".into()),
        plan_hash: Some("abc".into()),
        ..Session::default()
    };
    let pair = Pair::start::<kaiza::Code, _>(Thrower::new(), |b| b.session(session)).await;
    // 1 an error, 2 a text, 3 an object, a panic, 4 an invariant: what it is, and what it says.
    let words = kaiza::Code::InternalError.message();
    let rows = [
        ("error", "INTERNAL_ERROR", "No such file or directory (os error 2)"),
        ("text", "INVALID_PATH", "boom"),
        ("object", "PLAN_NOT_FOUND", "No plan"),
        ("stranger", "INTERNAL_ERROR", words),
        ("panics", "INTERNAL_ERROR", "at the disco"),
        ("invariant", "INVARIANT_VIOLATION", kaiza::Code::InvariantViolation.message()),
    ];
    for (at, (tool, code, says)) in rows.into_iter().enumerate() {
        let told = pair.envelope(tool, json!({})).await;
        assert_eq!((&told["error_code"], &told["human_message"]), (&json!(code), &json!(says)));
        // 5 the session, 6 phase and plan, 7 all eleven fields in their order.
        let keys: Vec<_> = told.as_object().unwrap().keys().map(String::as_str).collect();
        let all = [
            "error_code",
            "human_message",
            "role",
            "session_id",
            "workspace_root",
            "tool_name",
            "invariant_id",
            "phase_id",
            "plan_hash",
            "cause",
            "timestamp",
        ];
        assert_eq!(keys, all, "{tool}");
        let known = [
            ("role", "WINDSURF"),
            ("session_id", "s1"),
            ("workspace_root", "/work"),
            ("tool_name", tool),
            ("phase_id", "P1"),
            ("plan_hash", "abc"),
        ];
        for (key, value) in known {
            assert_eq!(told[key], value, "{tool}: {told}");
        }
        // 8 one record each, with the same facts (K10).
        let faults = pair.faults();
        assert_eq!(faults.len(), at + 1, "{tool}");
        let fault = &faults[at]["fault"];
        assert_eq!((&fault["code"], &fault["tool"]), (&json!(code), &json!(tool)));
        assert_eq!(fault["timestamp"], told["timestamp"]);
        assert_eq!(fault.get("cause").unwrap_or(&Value::Null), &told["cause"], "{tool}");
    }
}

#[tokio::test]
async fn t4_nobody_can_say_that_a_code_is_retried_when_it_is_not() {
    let pair = Pair::start::<tuitbot::Code, _>(Thrower::new(), |b| b).await;
    let told = pair.envelope("liar", json!({})).await;
    assert_ne!(told["error"]["code"], "tweet_too_long", "the failure is refused: {told}");
    assert_eq!(told["error"]["retryable"], false, "{told}");
}

#[tokio::test]
async fn w4_arguments_that_only_the_handler_refuses_have_issues_too() {
    let pair = Pair::start::<workrail::Code, _>(Thrower::new(), |b| b).await;
    for (number, says) in [(json!(300), "255"), (json!(7), "7 is odd")] {
        let told = pair.envelope("even", json!({ "number": number })).await;
        assert_eq!(told["code"], "VALIDATION_ERROR");
        let issues = told["details"]["validationIssues"].as_array().unwrap();
        assert_eq!(issues.len(), 1, "{told}");
        assert!(issues[0]["message"].as_str().unwrap().contains(says), "{told}");
        assert!(issues[0]["path"].is_string(), "{told}");
    }
}

#[tokio::test]
async fn w5_details_that_are_no_json_in_whichever_order_they_are_told() {
    let pair = Pair::start::<workrail::Code, _>(Thrower::new(), |b| b).await;
    for first in [true, false] {
        let told = pair.envelope("nan", json!({ "first": first })).await;
        assert_eq!(told["code"], "INTERNAL_ERROR", "{told}");
        assert_eq!(told["message"], "Error details validation failed");
        assert_eq!(told["details"]["originalError"], "Locked");
        assert!(told["details"]["validationErrors"][0].is_string(), "{told}");
    }
}

#[tokio::test]
async fn k9_what_the_boundary_asks_the_handler_may_panic_too() {
    let lost = Thrower { has_lost_its_tools: true, ..Thrower::new() };
    let pair = Pair::start::<owlclaw::Code, _>(lost, |b| {
        b.session_from(|_| panic!("there is no session"))
    })
    .await;
    let told = pair.envelope("even", json!({})).await;
    assert_eq!(told["error"]["code"], "internal.unexpected");
    assert_eq!(told["error"]["message"], "no tools");
    assert_eq!(pair.faults().len(), 1);
}

/// The environment of a process cannot be changed while it runs, so the test runs itself again.
#[tokio::test]
async fn k2_a_panic_shows_where_it_was_thrown_if_stacks_are_shown() {
    let name = "thrown::k2_a_panic_shows_where_it_was_thrown_if_stacks_are_shown";
    if std::env::var("DEBUG_STACK").is_err() {
        let again = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name])
            .env("DEBUG_STACK", "true")
            .output()
            .unwrap();
        assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stdout));
        return;
    }
    let pair = Pair::start::<kaiza::Code, _>(Thrower::new(), |b| b).await;
    let told = pair.envelope("panics", json!({})).await;
    let stack = told["stack_trace"].as_str().unwrap();
    assert!(stack.contains("thrown_from_here"), "{stack}");
    let typed = pair.envelope("text", json!({})).await;
    assert!(typed["stack_trace"].as_str().unwrap().contains("thrown"), "{typed}");
}

/// Two contracts of the same shape, told apart by name alone.
#[test]
fn the_contract_that_a_result_names_is_the_one_that_it_is_read_in() {
    let text = include_str!("../../../../contracts/context-resolve.toml");
    let other = text.replacen("name = \"context-resolve\"", "name = \"another\"", 1).replacen(
        "action = \"",
        "action = \"Otherwise: ",
        1,
    );
    let other = std::sync::Arc::new(Contract::load("another.toml", &other).unwrap());
    let reader = Reader::new([std::sync::Arc::clone(context_resolve::contract()), other]);
    let envelope = json!({ "error": { "code": context_resolve::Code::ALL[0].id(),
                                      "message": context_resolve::Code::ALL[0].message() } });
    for name in ["context-resolve", "another"] {
        let result = json!({
            "isError": true,
            "content": [{ "type": "text", "text": envelope.to_string() }],
            "_meta": { "dev.faultwire/contract": { "name": name, "version": "0.1.0" } },
        });
        assert_eq!(reader.result(&result).unwrap().contract().unwrap().name, name);
    }
}
