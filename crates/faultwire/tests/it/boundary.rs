//! The boundary around a server made with rmcp, driven by the client of rmcp.

use std::sync::Arc;
use std::time::Duration;

use faultwire::audit::{Log, Options};
use faultwire::contract::{Meta, Profile, Session, Surface, TOOL_FAILURE_META};
use faultwire::output::Output;
use faultwire::{Boundary, ResultExt, TypedCode, kaiza, owlclaw, standard, tuitbot, workrail};
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::tool::IntoCallToolResult;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResponse, CallToolResult, ClientRequest,
    CustomRequest, ListPromptsResult, PaginatedRequestParams, Tool,
};
use rmcp::service::{
    PeerRequestOptions, RequestContext, RoleClient, RoleServer, RunningService, ServiceError,
};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, ServerHandler, ServiceExt, tool, tool_handler, tool_router};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::http;
use crate::support::Dir;

#[derive(Clone)]
struct Server {
    tool_router: ToolRouter<Self>,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Greeting {
    name: String,
    #[serde(default)]
    times: u8,
}

#[tool_router]
impl Server {
    fn new() -> Self {
        Self { tool_router: Self::tool_router() }
    }

    #[tool(description = "Greets")]
    async fn greet(&self, Parameters(greeting): Parameters<Greeting>) -> String {
        vec![format!("Hello {}", greeting.name); usize::from(greeting.times.max(1))].join("\n")
    }

    #[tool(description = "Fails with a code")]
    async fn locked(&self) -> Result<String, workrail::Failure> {
        Err(workrail::token_session_locked()
            .message("Somebody else works on it; password=hunter2")
            .after(Duration::from_millis(1500))
            .into())
    }

    #[tool(description = "Fails with an error underneath")]
    async fn read(&self) -> Result<String, kaiza::Failure> {
        std::fs::read_to_string("/nosuch/file").fault(kaiza::Code::FileReadFailed)
    }

    #[tool(description = "Fails as rmcp has it")]
    async fn raw(&self) -> Result<String, ErrorData> {
        Err(ErrorData::internal_error("the disk is full", None))
    }

    #[tool(description = "Fails with a text")]
    async fn text(&self) -> Result<String, String> {
        Err("connection refused".to_owned())
    }

    #[tool(description = "Says that it failed, as a success")]
    async fn soft(&self) -> String {
        json!({ "ok": false, "error": "no such thing" }).to_string()
    }

    #[tool(description = "Panics")]
    async fn panics(&self) -> String {
        tokio::task::yield_now().await;
        panic!("at {}", "/home/ann/secret.rs")
    }

    #[tool(description = "Has another tool fail, and fails in its own way")]
    async fn swallows(&self) -> Result<String, String> {
        let swallowed = self.locked().await.unwrap_err().into_call_tool_result();
        assert!(swallowed.is_ok());
        Err("something of my own".to_owned())
    }

    #[tool(description = "Never answers")]
    async fn hangs(&self) -> String {
        std::future::pending().await
    }

    #[tool(description = "Never finds what it reads", annotations(read_only_hint = true))]
    async fn reads_for_ever(&self) -> String {
        std::future::pending().await
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Server {
    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let error = std::io::Error::other("disk on fire");
        Err(owlclaw::Failure::from(owlclaw::dependency_unavailable().cause(&error)).into())
    }
}

/// A client, and the log of its server.
struct Pair {
    client: RunningService<RoleClient, ()>,
    log: Log,
    dir: Dir,
}

impl Pair {
    async fn start<C: TypedCode>(
        around: impl FnOnce(Boundary<C, Server>) -> Boundary<C, Server>,
    ) -> Self {
        let dir = Dir::new();
        let log = Log::open(dir.path(), Options::default()).unwrap();
        let server = around(Boundary::new(Server::new(), log.clone()));
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        tokio::spawn(async move { server.serve(theirs).await.unwrap().waiting().await });
        Self { client: ().serve(ours).await.unwrap(), log, dir }
    }

    async fn call(&self, tool: &'static str, arguments: Value) -> CallToolResult {
        let Value::Object(arguments) = arguments else { panic!("an object") };
        let request = CallToolRequestParams::new(tool).with_arguments(arguments);
        self.client.call_tool(request).await.unwrap()
    }

    /// The envelope that a call fails with.
    async fn fails<C: TypedCode>(&self, tool: &'static str, arguments: Value) -> Value {
        let result = self.call(tool, arguments).await;
        assert_eq!(result.is_error, Some(true), "{tool}: {result:?}");
        let text = &result.content[0].as_text().unwrap().text;
        C::contract().read_any(Surface::Mcp, text.as_bytes()).unwrap();
        let envelope: Value = serde_json::from_str(text).unwrap();
        assert_eq!(result.structured_content.as_ref(), Some(&envelope), "{tool}");
        let meta = serde_json::to_value(&result.meta).unwrap();
        assert_eq!(meta["dev.faultwire/contract"]["name"], C::contract().name, "{tool}");
        // S5: in every contract that does not forbid it.
        let failure = meta.get(TOOL_FAILURE_META);
        assert_eq!(failure.is_some(), C::contract().tool_failure.is_some(), "{tool}");
        envelope
    }

    /// What was recorded, the newest last.
    fn records(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.dir.path().join("audit-log.jsonl")).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        lines.filter(|record: &Value| record["type"] == "fault").collect()
    }
}

#[tokio::test]
async fn s4_s5_the_results_of_the_boundary_are_classified() {
    let pair = Pair::start::<standard::Code>(|b| b.deadline(Duration::from_millis(200))).await;
    let rows = [
        ("panics", "reliability", "internal", false),
        ("hangs", "reliability", "timeout", true),
        ("nosuch", "capability", "unknown_tool", false),
    ];
    for (tool, class, code, retryable) in rows {
        let result = pair.call(tool, json!({})).await;
        let failure = &serde_json::to_value(&result.meta).unwrap()[TOOL_FAILURE_META];
        let told = result.structured_content.unwrap()["error"].take();
        assert_eq!(failure["class"], class, "{failure}");
        assert_eq!(failure["code"], code, "{failure}");
        assert_eq!(failure["retryable"], retryable, "{failure}");
        assert_eq!(failure["correlationId"], told["incident_id"], "{failure}");
        assert_eq!(failure["agentGuidance"], told["next"], "{failure}");
        let warns = failure["agentGuidance"].as_str().unwrap().contains("may have run");
        assert_eq!(warns, tool != "nosuch", "{failure}");
    }
}

#[tokio::test]
async fn k9_k13_whatever_a_handler_does_is_one_envelope_and_recorded() {
    let pair = Pair::start::<owlclaw::Code>(|b| b.deadline(Duration::from_millis(200))).await;
    let greeted = pair.call("greet", json!({ "name": "Ann" })).await;
    assert_eq!(greeted.content[0].as_text().unwrap().text, "Hello Ann");
    assert_eq!(pair.records().len(), 0, "a success is nobody's business");
    let rows = [
        ("raw", "internal.unexpected"),
        ("text", "dependency.unavailable"),
        ("soft", "internal.unexpected"),
        ("panics", "internal.unexpected"),
        ("hangs", "runtime.timeout"),
        ("nosuch", "protocol.version_conflict"),
    ];
    for (at, (tool, code)) in rows.into_iter().enumerate() {
        let told = pair.fails::<owlclaw::Code>(tool, json!({})).await;
        assert_eq!(told["error"]["code"], code, "{tool}: {told}");
        let records = pair.records();
        assert_eq!(records.len(), at + 1, "{tool}: recorded before it was told");
        assert_eq!(records[at]["fault"]["incident"], told["error"]["incident_id"], "{tool}");
        assert_eq!(records[at]["fault"]["tool"], tool);
        assert_eq!(records[at]["call"]["request"], json!(at + 1 + 1), "{tool}");
    }
    // A panic is told, and the path in it is not.
    let told = pair.fails::<owlclaw::Code>("panics", json!({})).await.to_string();
    assert!(told.contains("at ") && !told.contains("ann"), "{told}");
    // The server is still there.
    assert_eq!(pair.call("greet", json!({ "name": "Bob" })).await.is_error, Some(false));
}

#[tokio::test]
async fn u2_what_the_client_sent_stays_and_the_record_shortens_home_directories() {
    let pair = Pair::start::<standard::Code>(|b| b).await;
    for (sent, shown) in [
        (json!({ "of": "ann" }), "[redacted:path]"),
        (json!({ "of": ["/home/ann"] }), "/home/ann/secret.rs"),
    ] {
        let told = pair.fails::<standard::Code>("panics", sent).await.to_string();
        assert!(told.contains(&format!("at {shown}")), "{told}");
        let record = pair.records().pop().unwrap().to_string();
        assert!(record.contains("at ~/secret.rs") && !record.contains("/home/ann"), "{record}");
    }
}

#[tokio::test]
async fn s4_only_a_tool_that_reads_may_be_called_again_after_a_timeout() {
    let pair = Pair::start::<standard::Code>(|b| b.deadline(Duration::from_millis(200))).await;
    let writes = pair.fails::<standard::Code>("hangs", json!({})).await["error"].take();
    let reads = pair.fails::<standard::Code>("reads_for_ever", json!({})).await["error"].take();
    assert_eq!((&writes["code"], &reads["code"]), (&json!("timeout"), &json!("timeout")));
    assert!(writes["next"].as_str().unwrap().starts_with("The tool may have run"), "{writes}");
    assert!(reads["next"].as_str().unwrap().starts_with("Call again"), "{reads}");
    let told = pair.fails::<standard::Code>("greet", json!({})).await["error"].take();
    assert_eq!(told["next"], "Add name, then call again.", "{told}");
}

#[tokio::test]
async fn s1_next_names_the_property_that_was_meant() {
    let pair = Pair::start::<standard::Code>(|b| b).await;
    let sent = json!({ "nmae": "a" });
    let told = pair.fails::<standard::Code>("greet", sent).await["error"].take();
    assert_eq!(told["next"], "Use name if you meant that, then call again.", "{told}");
}

#[tokio::test]
async fn w2_w4_w8_typed_failures_and_bad_arguments() {
    let pair = Pair::start::<workrail::Code>(|b| b).await;
    let told = pair.fails::<workrail::Code>("locked", json!({})).await;
    assert_eq!(told["code"], "TOKEN_SESSION_LOCKED");
    assert_eq!(told["retry"], json!({ "kind": "retryable_after_ms", "afterMs": 1500 }));
    assert!(!told.to_string().contains("hunter2"), "{told}");
    // What a tool swallowed is not told in its name.
    let own = pair.fails::<workrail::Code>("swallows", json!({})).await;
    assert_eq!(own["code"], "INTERNAL_ERROR", "{own}");
    assert_eq!(own["message"], "something of my own");
    let rows = [
        (json!({}), "name", "Required"),
        (json!({ "name": 7 }), "name", "string"),
        (json!({ "name": "a", "times": 900 }), "times", "255"),
    ];
    for (arguments, path, words) in rows {
        let told = pair.fails::<workrail::Code>("greet", arguments).await;
        assert_eq!(told["code"], "VALIDATION_ERROR");
        let issue = &told["details"]["validationIssues"][0];
        assert_eq!(issue["path"], path, "{told}");
        assert!(issue["message"].as_str().unwrap().contains(words), "{told}");
    }
}

#[tokio::test]
async fn k1_k9_all_eleven_fields_with_what_the_boundary_knows() {
    let session = Session {
        role: Some("WINDSURF".into()),
        workspace_root: Some("/work".into()),
        ..Session::default()
    };
    let pair = Pair::start::<kaiza::Code>(|b| b.session(session)).await;
    let told = pair.fails::<kaiza::Code>("read", json!({})).await;
    assert_eq!(told.as_object().unwrap().len(), 11);
    assert_eq!(told["error_code"], "FILE_READ_FAILED");
    assert_eq!(told["tool_name"], "read");
    assert_eq!(told["role"], "WINDSURF");
    assert_eq!(told["workspace_root"], "/work");
    assert_eq!(told["cause"]["code"], "NotFound");
}

#[tokio::test]
async fn t1_t5_successes_are_wrapped_where_the_contract_wraps_them() {
    let contract = tuitbot::contract();
    let profile = contract.profile("workflow").unwrap();
    let meta = Meta {
        tool_version: Some("1.0".into()),
        mode: Some("autopilot".into()),
        approval_mode: Some(false),
        ..Meta::default()
    };
    let pair = Pair::start::<tuitbot::Code>(|b| b.profile(profile).meta(meta)).await;
    let result = pair.call("greet", json!({ "name": "Ann" })).await;
    let told = result.structured_content.unwrap();
    assert_eq!((&told["success"], &told["data"]), (&json!(true), &json!("Hello Ann")));
    assert_eq!(told["meta"]["mode"], "autopilot");
    assert_eq!(told["meta"]["approval_mode"], false);
    assert!(told["meta"]["elapsed_ms"].is_u64(), "{told}");
    let failed = pair.call("raw", json!({})).await;
    let (_, read) = contract
        .read_any(Surface::Mcp, failed.content[0].as_text().unwrap().text.as_bytes())
        .unwrap();
    assert_eq!(read, profile, "the boundary's own failures have the profile's fields, too");
    assert_ne!(read, Profile::default());
}

#[tokio::test]
async fn requests_that_rmcp_cannot_read_and_methods_that_nobody_knows() {
    let pair = Pair::start::<owlclaw::Code>(|b| b).await;
    let ask = |method: &str, params: Value| {
        let request = CustomRequest::new(method.to_owned(), Some(params));
        pair.client.send_request(ClientRequest::CustomRequest(request))
    };
    let told = ask("tools/call", json!({ "arguments": 7 })).await.unwrap();
    let told = serde_json::to_value(told).unwrap();
    assert_eq!(told["isError"], true, "{told}");
    assert_eq!(told["structuredContent"]["error"]["code"], "protocol.version_conflict");
    let Err(ServiceError::McpError(error)) = ask("no/such", json!({})).await else {
        panic!("it is an error of JSON-RPC")
    };
    assert_eq!(error.code.0, -32601);
    assert_eq!(error.data.unwrap()["error"]["code"], "protocol.unsupported_version");
    assert_eq!(pair.records().len(), 2);
}

#[tokio::test]
async fn k10_what_cannot_be_recorded_is_told_as_that() {
    let pair = Pair::start::<kaiza::Code>(|b| b).await;
    pair.log.close().unwrap();
    let told = pair.fails::<kaiza::Code>("read", json!({})).await;
    assert_eq!(told["error_code"], "AUDIT_LOG_FAILED", "{told}");
}

#[tokio::test]
async fn a_call_that_its_client_takes_back_is_recorded_as_that() {
    let pair = Pair::start::<owlclaw::Code>(|b| b).await;
    let request = CallToolRequest::new(CallToolRequestParams::new("hangs"));
    let request = ClientRequest::CallToolRequest(request);
    let options = PeerRequestOptions::no_options();
    let call = pair.client.send_cancellable_request(request, options).await.unwrap();
    // What comes after it is answered, so it was heard.
    pair.call("greet", json!({ "name": "Ann" })).await;
    call.cancel(None).await.unwrap();
    let until = tokio::time::Instant::now() + Duration::from_secs(10);
    while pair.records().is_empty() {
        assert!(tokio::time::Instant::now() < until, "nothing was recorded");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(pair.records()[0]["fault"]["condition"], "cancelled");
}

#[tokio::test]
async fn k9_a8_both_eras_over_streamable_http() {
    let dir = Dir::new();
    let log = Log::open(dir.path(), Options::default()).unwrap();
    let factory = move || Ok(Boundary::<owlclaw::Code, _>::new(Server::new(), log.clone()));
    let sessions = Arc::new(LocalSessionManager::default());
    let service =
        StreamableHttpService::new(factory, sessions, StreamableHttpServerConfig::default());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let app = axum::Router::new().nest_service("/mcp", service);
    tokio::spawn(async move { axum::serve(listener, app).await });
    let takes = "accept: application/json, text/event-stream\r\n";

    // Modern: the request stands for itself.
    let call = |tool: &str, meta: Value| {
        json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call",
                "params": { "name": tool, "arguments": {}, "_meta": meta } })
        .to_string()
    };
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                       "io.modelcontextprotocol/clientCapabilities": {},
                       "io.modelcontextprotocol/clientInfo": { "name": "t", "version": "1" } });
    for (tool, code) in [("panics", "internal.unexpected"), ("text", "dependency.unavailable")] {
        let headers = format!(
            "{takes}mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: {tool}\r\n"
        );
        let answer = http::ask(&address, "POST /mcp", &headers, &call(tool, meta.clone())).await;
        let result = &answer.body["result"];
        assert_eq!(result["resultType"], "complete", "{}", answer.body);
        assert_eq!(result["structuredContent"]["error"]["code"], code, "{}", answer.body);
    }

    // Legacy: a session comes first.
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "t", "version": "1" } } });
    let begun = timeout(http::ask(&address, "POST /mcp", takes, &hello.to_string())).await;
    let session = begun.header("mcp-session-id").expect("a session").to_owned();
    let headers =
        format!("{takes}mcp-session-id: {session}\r\nmcp-protocol-version: 2025-11-25\r\n");
    let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    timeout(http::ask(&address, "POST /mcp", &headers, ready)).await;
    let answer =
        timeout(http::ask(&address, "POST /mcp", &headers, &call("panics", json!({})))).await;
    let result = &answer.body["result"];
    assert_eq!(result["structuredContent"]["error"]["code"], "internal.unexpected");
    assert!(result.get("resultType").is_none(), "{}", answer.body);
}

async fn timeout<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("in time")
}

#[tokio::test]
async fn k9_a_typed_failure_of_any_request_keeps_what_its_client_must_not_see() {
    let pair = Pair::start::<owlclaw::Code>(|boundary| boundary).await;
    let told = pair.client.list_prompts(None).await.unwrap_err();
    let ServiceError::McpError(told) = told else { panic!("{told:?}") };
    let data = told.data.unwrap();
    assert_eq!(data["error"]["code"], "dependency.unavailable");
    assert!(!data.to_string().contains("disk on fire"), "{data}");
    let record = pair.records().pop().unwrap();
    assert_eq!(record["fault"]["cause"]["message"], "disk on fire", "{record}");
    assert_eq!(record["fault"]["method"], "prompts/list");
}

/// What a tool gives back, whatever it declares.
#[derive(Clone)]
struct Loose {
    schema: Value,
}

impl ServerHandler for Loose {
    fn get_tool(&self, name: &str) -> Option<Tool> {
        let Value::Object(schema) = self.schema.clone() else { panic!("an object") };
        let tool = Tool::new(name.to_owned(), "Returns its arguments", serde_json::Map::new());
        Some(if name == "plain" { tool } else { tool.with_raw_output_schema(Arc::new(schema)) })
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let given = Value::Object(request.arguments.unwrap_or_default());
        Ok(serde_json::from_value::<CallToolResult>(given).unwrap().into())
    }
}

/// A client of [`Loose`], and its log.
async fn loose(output: Option<Output>, schema: Value) -> (RunningService<RoleClient, ()>, Dir) {
    let dir = Dir::new();
    let log = Log::open(dir.path(), Options::default()).unwrap();
    let mut server = Boundary::<standard::Code, _>::new(Loose { schema }, log);
    if let Some(output) = output {
        server = server.output(output);
    }
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    tokio::spawn(async move { server.serve(theirs).await.unwrap().waiting().await });
    (().serve(ours).await.unwrap(), dir)
}

async fn returns(
    client: &RunningService<RoleClient, ()>,
    tool: &'static str,
    result: &Value,
) -> Value {
    let Value::Object(result) = result.clone() else { panic!("an object") };
    let request = CallToolRequestParams::new(tool).with_arguments(result);
    let told = client.send_request(CallToolRequest::new(request).into()).await.unwrap();
    let mut told = serde_json::to_value(&told).unwrap();
    told.as_object_mut().unwrap().remove("resultType");
    told
}

fn records_of(dir: &Dir, kind: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(dir.path().join("audit-log.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.filter(|record: &Value| record["type"] == kind).collect()
}

fn counted() -> Value {
    json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] })
}

#[tokio::test]
async fn a8_a_result_that_does_not_match_its_output_schema_passes_and_is_recorded() {
    let (client, dir) = loose(None, counted()).await;
    let fine = json!({ "content": [], "structuredContent": { "n": 1 }, "isError": false });
    let wrong = json!({ "content": [], "structuredContent": { "n": "hunter2" }, "isError": false });
    let none = json!({ "content": [], "isError": false });
    for result in [&fine, &wrong, &none] {
        assert_eq!(returns(&client, "count", result).await, *result);
        assert_eq!(returns(&client, "plain", result).await, *result, "no schema");
    }
    let expected = [
        json!({ "path": "n", "message": "The value is not of type \"integer\"" }),
        json!({ "path": "", "message": "structuredContent is missing" }),
    ];
    let until = tokio::time::Instant::now() + Duration::from_secs(5);
    while records_of(&dir, "event").len() < 2 && tokio::time::Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let events = records_of(&dir, "event");
    assert_eq!(events.len(), 2, "{events:?}");
    for (event, issue) in events.iter().zip(expected) {
        assert_eq!(event["name"], "output_mismatch");
        assert_eq!(event["facts"], json!({ "tool": "count", "issues": [issue], "count": 1 }));
    }
    assert!(records_of(&dir, "fault").is_empty());
}

#[tokio::test]
async fn s5_an_enforced_output_schema_makes_a_mismatch_the_servers_failure() {
    let (client, dir) = loose(Some(Output::Enforce), counted()).await;
    let fine = json!({ "content": [], "structuredContent": { "n": 1 }, "isError": false });
    assert_eq!(returns(&client, "count", &fine).await, fine);
    let wrong = json!({ "content": [], "structuredContent": { "n": "x" }, "isError": false });
    let told = returns(&client, "count", &wrong).await;
    assert_eq!(told["isError"], true, "{told}");
    assert!(told.get("structuredContent").is_none(), "{told}");
    let envelope: Value =
        serde_json::from_str(told["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(envelope["error"]["code"], "bad_response");
    assert_eq!(envelope["error"]["details"]["validationIssues"][0]["path"], "n");
    let record = &records_of(&dir, "fault")[0];
    assert_eq!(record["fault"]["condition"], "upstream_protocol");
    assert_eq!(record["fault"]["origin"], "upstream");
    assert_eq!(record["fault"]["outcome"], "executed");
    // A failure is no success, whatever stands beside it.
    let failed = json!({ "content": [{ "type": "text", "text": "no" }], "isError": true });
    let told = returns(&client, "count", &failed).await;
    assert!(!told.to_string().contains("bad_response"), "{told}");
}

#[tokio::test]
async fn an_output_schema_that_is_off_or_cannot_be_used_checks_nothing() {
    let wrong = json!({ "content": [], "structuredContent": { "n": "x" }, "isError": false });
    let none = json!({ "content": [], "isError": false });
    for (output, schema) in [
        (Output::Off, counted()),
        (Output::Enforce, json!({ "type": 5 })),
        (Output::Enforce, json!({ "$ref": "https://example.invalid/far" })),
    ] {
        let (client, dir) = loose(Some(output), schema).await;
        for result in [&wrong, &none] {
            assert_eq!(returns(&client, "count", result).await, *result);
        }
        assert!(records_of(&dir, "event").is_empty());
    }
}
