//! OwlClaw: all nine rows of the matrix, over HTTP and over MCP, with one meaning.

use std::collections::BTreeSet;
use std::process::Stdio;

use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use faultwire::owlclaw::Code;
use rmcp::ServiceExt;
use rmcp::model::{CallToolRequestParams, RequestMetaObject};
use rmcp::service::{RoleClient, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};

use crate::examples::{program, text};
use crate::http;
use crate::support::Dir;

/// What a supplier says, by the tons: some it does not like.
async fn price(Path(tons): Path<u32>) -> Response {
    match tons {
        66 => std::future::pending().await,
        67 => "a lot".into_response(),
        68 => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        69 => "NaN".into_response(),
        70 => "-4".into_response(),
        tons => (f64::from(tons) * 12.5).to_string().into_response(),
    }
}

struct OwlClaw {
    /// Without the scheme.
    address: String,
    _process: Child,
    dir: Dir,
}

impl OwlClaw {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let supplier = format!("http://{}", listener.local_addr().unwrap());
        let routes = Router::new().route("/{tons}", get(price));
        tokio::spawn(async move { axum::serve(listener, routes).await });
        let dir = Dir::new();
        let client = |capabilities: &[&str], per_minute: u32, budget: u32| {
            json!({ "version": "v1", "capabilities": capabilities,
                    "per_minute": per_minute, "budget": budget })
        };
        let clients = json!({
            "good": client(&["quote"], 1000, 1000),
            "other": client(&["chat"], 1000, 1000),
            "hasty-http": client(&["quote"], 1, 1000),
            "hasty-mcp": client(&["quote"], 1, 1000),
            "poor-http": client(&["quote"], 1000, 1),
            "poor-mcp": client(&["quote"], 1000, 1),
        });
        dir.write("clients.json", clients.to_string().as_bytes());
        let path = |name: &str| dir.path().join(name).display().to_string();
        let mut process = Command::new(program("owlclaw"))
            .args(["0", &path("clients.json"), &supplier, &path("audit")])
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|e| panic!("owlclaw: {e}; cargo build --examples builds it"));
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let url = lines.next_line().await.unwrap().unwrap();
        let address = url.strip_prefix("http://").unwrap().to_owned();
        Self { address, _process: process, dir }
    }

    async fn over_http(&self, token: &str, extra: &str, wanted: &Value) -> http::Answer {
        let headers = format!("authorization: Bearer {token}\r\n{extra}");
        http::ask(&self.address, "POST /v1/quote", &headers, &wanted.to_string()).await
    }

    async fn client(&self, token: &str) -> Result<RunningService<RoleClient, ()>, String> {
        let url = format!("http://{}/mcp", self.address);
        let config = StreamableHttpClientTransportConfig::with_uri(url).auth_header(token);
        let transport = StreamableHttpClientTransport::from_config(config);
        ().serve(transport).await.map_err(|error| error.to_string())
    }

    async fn over_mcp(&self, token: &str, trace: &str, wanted: &Value) -> Value {
        let client = self.client(token).await.unwrap();
        let Value::Object(arguments) = wanted.clone() else { panic!("{wanted}") };
        let mut request = CallToolRequestParams::new("quote").with_arguments(arguments);
        let mut meta = RequestMetaObject::default();
        meta.0.insert("traceparent".to_owned(), trace.into());
        request.meta = Some(meta);
        let result = client.call_tool(request).await.unwrap();
        serde_json::from_str(text(&result)).unwrap()
    }
}

fn trace(number: usize) -> String {
    format!("00-{number:032x}-00f067aa0ba902b7-01")
}

#[tokio::test]
async fn o1_o2_o3_o4_o5_nine_rows_on_both_surfaces() {
    let it = OwlClaw::start().await;
    let wanted = |tons: u32| json!({ "tons": tons });
    let good = it.over_http("good", "", &wanted(2)).await;
    assert_eq!((good.status, good.body), (200, json!({ "tons": 2, "price": 25.0 })));
    let good = it.over_mcp("good", &trace(1), &wanted(2)).await;
    assert_eq!(good, json!({ "tons": 2, "price": 25.0 }));
    for hasty in ["hasty", "poor"] {
        it.over_http(&format!("{hasty}-http"), "", &wanted(1)).await;
        it.over_mcp(&format!("{hasty}-mcp"), &trace(2), &wanted(1)).await;
    }

    let v9 = json!({ "tons": 1, "version": "v9" });
    let v2 = json!({ "tons": 1, "version": "v2" });
    let rows = [
        ("protocol.unsupported_version", 400, ["good", "good"], v9),
        ("protocol.version_conflict", 400, ["good", "good"], v2),
        ("governance.rate_limited", 429, ["hasty-http", "hasty-mcp"], wanted(1)),
        ("governance.budget_exceeded", 403, ["poor-http", "poor-mcp"], wanted(1)),
        ("auth.forbidden", 403, ["other", "other"], wanted(1)),
        ("runtime.timeout", 504, ["good", "good"], wanted(66)),
        ("dependency.unavailable", 503, ["good", "good"], wanted(68)),
        ("internal.unexpected", 500, ["good", "good"], wanted(67)),
    ];
    let mut seen = BTreeSet::new();
    for (number, (code, status, [http, mcp], wanted)) in rows.into_iter().enumerate() {
        let trace = trace(number + 16);
        let header = format!("traceparent: {trace}\r\n");
        let api = it.over_http(http, &header, &wanted).await;
        assert_eq!((&api.body["code"], api.status), (&json!(code), status), "{}", api.body);
        assert_eq!(api.body["status"], status);
        assert_eq!(api.header("content-type"), Some("application/problem+json"), "O2");
        let told = it.over_mcp(mcp, &trace, &wanted).await;
        let row = Code::from_id(code).unwrap();
        for key in ["code", "category", "retryable", "incident_id"] {
            assert_eq!(api.body[key], told["error"][key], "O5: {key} of {code}: {told}");
        }
        assert_eq!(told["error"]["category"], row.category());
        assert_eq!(told["error"]["retryable"], row.retry().is_retryable());
        let waits = api.header("retry-after").is_some();
        assert_eq!(waits, code == "governance.rate_limited", "{code}");
        assert_eq!(told["error"]["retry_after"].is_number(), waits, "{told}");
        seen.insert(code);
    }

    // Strangers: 401 over HTTP, no session over MCP.
    let trace = trace(99);
    let header = format!("traceparent: {trace}\r\n");
    let api = it.over_http("stranger", &header, &wanted(1)).await;
    assert_eq!((&api.body["code"], api.status), (&json!("auth.unauthorized"), 401));
    assert_eq!(api.header("www-authenticate"), Some("bearer"));
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "t", "version": "1" },
        "_meta": { "traceparent": trace } } });
    let takes = "accept: application/json, text/event-stream\r\n";
    let told = http::ask(&it.address, "POST /mcp", takes, &hello.to_string()).await;
    let error = &told.body["error"]["data"]["error"];
    let keys = ["code", "category", "retryable", "incident_id"];
    for key in keys {
        assert_eq!(api.body[key], error[key], "{}", told.body);
    }
    let modern = format!(
        "{takes}mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: quote\r\n"
    );
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "quote", "arguments": wanted(1), "_meta": {
            "traceparent": trace,
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {} } } });
    let told = http::ask(&it.address, "POST /mcp", &modern, &call.to_string()).await;
    let error = &told.body["result"]["structuredContent"]["error"];
    for key in keys {
        assert_eq!(api.body[key], error[key], "{}", told.body);
    }
    assert!(it.client("stranger").await.is_err());
    seen.insert("auth.unauthorized");
    assert_eq!(seen.len(), Code::ALL.len());

    // O4: who names a protocol is told that there are others.
    let ancient = "mcp-protocol-version: 1999-01-01\r\n";
    for path in ["POST /v1/quote", "POST /mcp"] {
        let named = http::ask(&it.address, path, ancient, &hello.to_string()).await;
        let told = (named.status, &named.body["code"]);
        assert_eq!(told, (426, &json!("protocol.unsupported_version")), "{path}");
    }
    // What never gets to be MCP has a code and a record, too.
    for headers in ["", "accept: application/json, text/event-stream\r\nmcp-session-id: nosuch\r\n"]
    {
        let lost = http::ask(&it.address, "POST /mcp", headers, r#"{"jsonrpc":"2.0"}"#).await;
        assert!(lost.body["incident_id"].is_string(), "{}", lost.body);
    }
    for tons in [67, 69, 70] {
        let bad = it.over_http("good", "", &wanted(tons)).await;
        assert_eq!(bad.body["code"], "internal.unexpected", "{tons}");
    }
    // A body that is none, and a path that is none, are told in the same way.
    let bad = http::ask(&it.address, "POST /v1/quote", "", "{").await;
    assert_eq!(bad.body["code"], "protocol.version_conflict");
    let lost = http::ask(&it.address, "GET /nosuch", "", "").await;
    assert!(lost.body["incident_id"].is_string(), "{}", lost.body);

    // Both surfaces write to one log.
    let log = std::fs::read_to_string(it.dir.path().join("audit/audit-log.jsonl")).unwrap();
    assert!(log.lines().filter(|line| line.contains("\"type\":\"fault\"")).count() >= 20);
}
