//! What a client makes of failures.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use faultwire::audit::{Log, Options};
use faultwire::client::{Ask, Reader, Retrying};
use faultwire::contract::{
    BUILTINS, Fault, Profile, Reason, Report, ResultOptions, RetryClass, Safety, Stamp, Surface,
};
use faultwire::{Boundary, owlclaw, workrail};
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::model::CallToolRequestParams;
use rmcp::{ServerHandler, ServiceExt, tool, tool_handler, tool_router};
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
                let verdict = told.verdict(&Ask { safety: Safety::ReadOnly, ..Ask::default() });
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
    let verdict = told.verdict(&Ask::default());
    assert_eq!((verdict.retry, verdict.delay), (true, Some(Duration::from_secs(7))));
    assert!(reader.http(200, None, &body).is_none(), "a success is no failure");
    let page = reader.http(502, Some("3"), b"<html>Bad gateway</html>").unwrap();
    assert_eq!(page.verdict(&Ask::default()).reason, Reason::NeverRetried);
}

#[test]
fn o6_what_nobody_knows_is_not_sent_again() {
    let reader = Reader::builtin();
    let newer = |category: &str, retryable: bool| {
        json!({ "isError": true, "content": [{ "type": "text", "text": json!({ "error": {
            "code": "governance.too_new", "message": "x", "category": category,
            "retryable": retryable, "incident_id": "inc_20260119_7" } }).to_string() }] })
    };
    let ask = Ask { safety: Safety::ReadOnly, ..Ask::default() };
    let told = |result: &Value| reader.result(result).unwrap().verdict(&ask);
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
