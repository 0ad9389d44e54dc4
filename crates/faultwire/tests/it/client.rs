//! What a client makes of failures.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use faultwire::audit::{Log, Options};
use faultwire::client::{Reader, RetryContext, Retrying};
use faultwire::contract::{
    BUILTINS, CONTRACT_META, ENVELOPE_META, FailureClass, Fault, Profile, Reason, Report,
    ResultOptions, RetryClass, Safety, Stamp, Surface, TOOL_FAILURE_META,
};
use faultwire::{Boundary, owlclaw, workrail};
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::{ErrorData, ServerHandler, ServiceExt, tool, tool_handler, tool_router};
use serde_json::{Value, json};

use crate::support::Dir;

fn fault(contract: &Arc<faultwire::contract::Contract>, code: &str) -> Fault {
    Fault::new(contract, Report::new(code), &Stamp::default()).unwrap()
}

#[test]
fn a4_every_code_of_every_contract_is_read_in_each_form() {
    let reader = Reader::builtin();
    for builtin in &BUILTINS {
        let contract = builtin.contract();
        for code in contract.codes() {
            let fault = fault(&contract, &code.id);
            let result = fault.call_tool_result(Profile::default(), ResultOptions::default());
            let mut result: Value = serde_json::from_slice(&result).unwrap();
            let data: Value =
                serde_json::from_slice(&fault.envelope(Surface::Mcp, Profile::default())).unwrap();
            let error = json!({ "code": -32603, "message": "x", "data": data });
            let named = reader.result(&result).unwrap();
            result.as_object_mut().unwrap().remove("_meta");
            let body = fault.envelope(Surface::Http, Profile::default());
            let status = fault.status().max(400);
            let over_http = reader.http(status, None, &body).unwrap();
            let bare = reader.result(&result).unwrap();
            for told in [named, bare, reader.error(&error), over_http] {
                let place = format!("{} {}", builtin.name, code.id);
                assert_eq!(told.code(), Some(&*code.id), "{place}");
                assert_eq!(told.contract().unwrap().name, builtin.name, "{place}");
                let verdict = told
                    .verdict(&RetryContext { safety: Safety::ReadOnly, ..RetryContext::default() });
                let retryable = code.default_retry() != RetryClass::Never;
                assert_eq!(verdict.retry, retryable, "{place}");
                assert_eq!(verdict.action, code.action, "{place}");
                let read = told.report();
                assert_eq!(read.retry, Some(code.default_retry()), "{place}");
                let said = read.message.as_ref().is_none_or(|m| *m == code.message);
                assert!(said, "{place}: {read:?}");
            }
        }
    }
}

#[test]
fn o6_problem_details_and_their_header() {
    let reader = Reader::builtin();
    let contract = owlclaw::contract();
    let body =
        fault(contract, "governance.rate_limited").envelope(Surface::Http, Profile::default());
    let told = reader.http(429, Some("7"), &body).unwrap();
    let verdict = told.verdict(&RetryContext::default());
    assert_eq!((verdict.retry, verdict.delay), (true, Some(Duration::from_secs(7))));
    assert!(reader.http(200, None, &body).is_none(), "a success is no failure");
    let page = reader.http(502, Some("3"), b"<html>Bad gateway</html>").unwrap();
    assert_eq!(page.verdict(&RetryContext::default()).reason, Reason::NeverRetried);
}

#[test]
fn o6_what_nobody_knows_is_not_sent_again() {
    let reader = Reader::builtin();
    let newer = |category: &str, retryable: bool| {
        json!({ "isError": true, "content": [{ "type": "text", "text": json!({ "error": {
            "code": "governance.too_new", "message": "x", "category": category,
            "retryable": retryable, "incident_id": "inc_20260119_7" } }).to_string() }] })
    };
    let context = RetryContext { safety: Safety::ReadOnly, ..RetryContext::default() };
    let told = |result: &Value| reader.result(result).unwrap().verdict(&context);
    assert!(told(&newer("dependency", true)).retry, "its category is retried");
    assert!(!told(&newer("dependency", false)).retry, "it says no itself");
    assert!(!told(&newer("governance", true)).retry, "its category does not agree");
    let plain = json!({ "isError": true, "content": [{ "type": "text", "text": "boom" }] });
    assert_eq!(told(&plain).reason, Reason::NeverRetried);
    assert_eq!(told(&plain).code, None);
    let fine = json!({ "content": [{ "type": "text", "text": "all is well" }] });
    assert!(reader.result(&fine).is_none());
    // The protocol's own members beside an envelope.
    let mut data: Value = serde_json::from_slice(
        &fault(owlclaw::contract(), "protocol.unsupported_version")
            .envelope(Surface::Mcp, Profile::default()),
    )
    .unwrap();
    data["supported"] = json!(["2026-07-28"]);
    data["requested"] = json!("1900-01-01");
    let error = json!({ "code": -32022, "message": "x", "data": data });
    assert_eq!(reader.error(&error).code(), Some("protocol.unsupported_version"));
}

/// What a client learns of our results that knows none of the contracts.
#[test]
fn s5_every_code_is_read_by_a_client_that_knows_no_contract() {
    let nobody = Reader::new([]);
    for contract in BUILTINS.iter().map(faultwire::contract::Builtin::contract) {
        for code in contract.codes() {
            let place = format!("{} {}", contract.name, code.id);
            let fault = fault(&contract, &code.id);
            let options = ResultOptions { has_output_schema: true, modern: true };
            let result = fault.call_tool_result(Profile::default(), options);
            let mut result: Value = serde_json::from_slice(&result).unwrap();
            let told = nobody.result(&result).unwrap();
            let context = RetryContext { safety: Safety::Idempotent, ..RetryContext::default() };
            let verdict = told.verdict_at(&context, &Stamp::default());
            let Some(failure) = fault.tool_failure() else {
                assert_eq!((told.code(), verdict.retry), (None, false), "{place}");
                continue;
            };
            assert_eq!(told.code(), Some(&*code.id), "{place}");
            assert_eq!(told.tool_failure(), Some(&failure), "{place}");
            assert_eq!(verdict.retry, fault.retry().is_retryable(), "{place}");
            assert_eq!(Some(&*verdict.action), failure.agent_guidance.as_deref(), "{place}");
            assert_eq!(verdict.incident, fault.public().incident, "{place}");
            if let Some(delay) = fault.retry_after() {
                assert_eq!(verdict.delay, Some(delay), "{place}");
            }
            // Who knows the contract has the id, too, where its envelope has no place for one.
            let known = Reader::builtin().result(&result).unwrap();
            assert_eq!(known.contract().unwrap().name, contract.name, "{place}");
            assert_eq!(known.report().incident, fault.public().incident, "{place}");
            // The structured form is read where the text is another.
            result["content"][0]["text"] = json!("summarised by something in between");
            assert_eq!(
                Reader::builtin().result(&result).unwrap().contract().map(|c| &*c.name),
                Some(&*contract.name),
                "{place}"
            );
            assert!(
                result["_meta"][ENVELOPE_META].is_object()
                    && result["_meta"][CONTRACT_META].is_object()
            );
        }
    }
}

fn foreign(failure: &Value) -> Value {
    json!({ "content": [{ "type": "text", "text": "It is busy" }], "isError": true,
        "_meta": { TOOL_FAILURE_META: failure } })
}

/// What a server of other people says of its failure, and what is done about it.
#[test]
fn s5_a7_a_foreign_servers_tool_failure_is_obeyed_as_a_code_is() {
    const NOW: Stamp = Stamp { now_ms: 1_768_836_730_000, random: 0, show_stack: false };
    let reader = Reader::builtin();
    let verdict = |failure: &Value, safety| {
        reader
            .result(&foreign(failure))
            .unwrap()
            .verdict_at(&RetryContext { safety, ..RetryContext::default() }, &NOW)
    };
    let busy = |not_before: Value| {
        json!({ "class": "reliability", "code": "busy", "retryable": true, "correlationId": "7f3a",
            "retryNotBefore": not_before, "agentGuidance": "Try again in a minute." })
    };
    let in_two_seconds = busy(json!(NOW.now_ms + 2000));
    let told = verdict(&in_two_seconds, Safety::ReadOnly);
    assert_eq!((told.retry, told.delay), (true, Some(Duration::from_secs(2))));
    assert_eq!((told.code.as_deref(), told.contract), (Some("busy"), None));
    assert_eq!(told.incident.as_deref(), Some("7f3a"));
    assert_eq!(told.action, "Try again in a minute.");
    let told = reader.result(&foreign(&in_two_seconds)).unwrap();
    assert_eq!(told.tool_failure().unwrap().class, FailureClass::Reliability);
    assert_eq!(told.report().message.as_deref(), Some("It is busy"));

    // A claim is no proof that the tool did not run.
    assert_eq!(verdict(&in_two_seconds, Safety::Unknown).reason, Reason::MayHaveRun);
    assert!(verdict(&in_two_seconds, Safety::Idempotent).retry);
    let budget =
        RetryContext { safety: Safety::ReadOnly, budget: Some(0), ..RetryContext::default() };
    assert_eq!(told.verdict_at(&budget, &NOW).reason, Reason::BudgetSpent);

    // Without a moment the delays grow; a moment that is over is no delay.
    let growing = verdict(&busy(json!(null)), Safety::ReadOnly);
    assert_eq!((growing.retry, growing.max_delay), (true, Some(Duration::from_millis(500))));
    assert_eq!(verdict(&busy(json!(5)), Safety::ReadOnly).delay, Some(Duration::ZERO));

    // Nobody waits for ever, and nothing but a well-formed claim is believed.
    let day = 24 * 3600 * 1000;
    assert!(verdict(&busy(json!(NOW.now_ms + day)), Safety::ReadOnly).retry);
    let refused = [
        busy(json!(NOW.now_ms + day + 1)),
        busy(json!(i64::MAX)),
        busy(json!("soon")),
        json!({ "class": "reliability", "code": "busy", "retryable": "yes" }),
        json!({ "class": "governance", "code": "busy", "retryable": true }),
        json!({ "class": "capability", "code": "busy", "retryable": true }),
        json!({ "class": "unheard", "code": "busy", "retryable": true }),
        json!({ "code": "busy", "retryable": true }),
        json!([1, 2]),
        json!("reliability"),
    ];
    for failure in refused {
        let told = verdict(&failure, Safety::ReadOnly);
        assert_eq!((told.retry, told.reason), (false, Reason::NeverRetried), "{failure}");
        assert!(!told.action.is_empty());
    }

    // A success says nothing of a failure, and an envelope takes precedence.
    let mut fine = foreign(&in_two_seconds);
    fine["isError"] = json!(false);
    assert!(reader.result(&fine).is_none());
    let ours = fault(owlclaw::contract(), "internal.unexpected");
    let ours = ours.call_tool_result(Profile::default(), ResultOptions::default());
    let mut ours: Value = serde_json::from_slice(&ours).unwrap();
    ours["_meta"][TOOL_FAILURE_META] = in_two_seconds;
    let told = reader.result(&ours).unwrap();
    assert_eq!(told.code(), Some("internal.unexpected"));
    assert!(
        !told
            .verdict_at(&RetryContext { safety: Safety::ReadOnly, ..RetryContext::default() }, &NOW)
            .retry
    );
}

/// A delay for which an envelope has no place.
#[test]
fn s5_o6_the_moment_beside_an_envelope_is_waited_for() {
    let contract = faultwire::kaiza::contract();
    let now = Stamp { now_ms: 1_768_836_730_000, ..Stamp::default() };
    let report = Report { retry_after_ms: Some(1500), ..Report::new("FILE_READ_FAILED") };
    let fault = Fault::new(contract, report, &now).unwrap();
    let result = fault.call_tool_result(Profile::default(), ResultOptions::default());
    let told = Reader::builtin().result(&serde_json::from_slice(&result).unwrap()).unwrap();
    let context = RetryContext { safety: Safety::ReadOnly, ..RetryContext::default() };
    assert_eq!(told.verdict_at(&context, &now).delay, Some(Duration::from_millis(1500)));
}

/// A server that follows the proposal, and is not ours.
#[derive(Clone)]
struct Stranger {
    calls: Arc<AtomicU32>,
    tool_router: ToolRouter<Self>,
}

#[tool_router]
impl Stranger {
    #[tool(description = "Works at the third call")]
    async fn busy(&self) -> Result<CallToolResult, ErrorData> {
        let failure = json!({ "class": "reliability", "code": "busy", "retryable": true,
            "retryNotBefore": 1000, "correlationId": "7f3a" });
        let result = match self.calls.fetch_add(1, Ordering::Relaxed) {
            0 | 1 => foreign(&failure),
            _ => json!({ "content": [], "isError": false }),
        };
        Ok(serde_json::from_value(result).unwrap())
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Stranger {}

#[tokio::test]
async fn s5_a7_a_call_to_a_foreign_server_is_sent_again_only_where_that_is_safe() {
    for (safety, expected, failed) in [(Safety::Unknown, 1, true), (Safety::Idempotent, 3, false)] {
        let calls = Arc::new(AtomicU32::new(0));
        let server = Stranger { calls: Arc::clone(&calls), tool_router: Stranger::tool_router() };
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        tokio::spawn(async move { server.serve(theirs).await.unwrap().waiting().await });
        let client = ().serve(ours).await.unwrap();
        let retrying = Retrying::new(client.peer().clone(), Reader::builtin());
        let result = retrying.call_tool(CallToolRequestParams::new("busy"), safety).await.unwrap();
        assert_eq!(calls.load(Ordering::Relaxed), expected, "{safety:?}");
        assert_eq!(result.is_error == Some(true), failed, "{safety:?}");
    }
}

/// Counts how often it is called.
#[derive(Clone)]
struct Moody {
    calls: Arc<AtomicU32>,
    tool_router: ToolRouter<Self>,
}

#[tool_router]
impl Moody {
    #[tool(description = "Works at the third call")]
    async fn third(&self) -> Result<String, workrail::Failure> {
        match self.calls.fetch_add(1, Ordering::Relaxed) {
            0 | 1 => Err(workrail::token_session_locked().after(Duration::from_millis(40)).into()),
            _ => Ok("at last".to_owned()),
        }
    }

    #[tool(description = "Never works")]
    async fn never(&self) -> Result<String, workrail::Failure> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Err(workrail::not_found().into())
    }

    #[tool(description = "Never answers in time")]
    async fn slow(&self) -> Result<String, workrail::Failure> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Err(workrail::timeout().into())
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Moody {}

#[tokio::test]
async fn o6_a7_a_client_calls_again_only_as_the_failure_says() {
    let dir = Dir::new();
    let log = Log::open(dir.path(), Options::default()).unwrap();
    let calls = Arc::new(AtomicU32::new(0));
    let server = Moody { calls: Arc::clone(&calls), tool_router: Moody::tool_router() };
    let server = Boundary::<workrail::Code, _>::new(server, log);
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    tokio::spawn(async move { server.serve(theirs).await.unwrap().waiting().await });
    let client = ().serve(ours).await.unwrap();
    let retrying = Retrying::new(client.peer().clone(), Reader::builtin()).retries(4);
    // What is called, what is known of it, how often it is called, and how it ends.
    let rows = [
        ("third", Safety::ReadOnly, 3, false),
        ("never", Safety::ReadOnly, 1, true),
        ("slow", Safety::Unknown, 1, true),
        ("slow", Safety::Idempotent, 5, true),
    ];
    for (tool, safety, expected, failed) in rows {
        calls.store(0, Ordering::Relaxed);
        let since = std::time::Instant::now();
        let result = retrying.call_tool(CallToolRequestParams::new(tool), safety).await.unwrap();
        let waited = since.elapsed() >= Duration::from_millis(80);
        assert!(waited || tool != "third", "it waited twice, as long as it was told");
        assert_eq!(calls.load(Ordering::Relaxed), expected, "{tool} {safety:?}");
        assert_eq!(result.is_error == Some(true), failed, "{tool} {safety:?}");
    }
}
