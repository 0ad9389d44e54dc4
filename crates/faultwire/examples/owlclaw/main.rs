//! OwlClaw as a server: one capability, both as an HTTP API and over MCP, with the same rules and
//! the same failures.
//!
//! `cargo run -p faultwire --example owlclaw --features axum,rmcp -- PORT CLIENTS SUPPLIER AUDIT`
//!
//! CLIENTS is a JSON file of tokens and what they are allowed; SUPPLIER is the URL that is asked
//! for prices. `POST /v1/quote` and `/mcp` are served on PORT.

mod clients;
mod quote;

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::post;
use axum::{Json, Router};
use faultwire::audit::{Log, Options};
use faultwire::owlclaw::{self as errors, Code, Failure};
use faultwire::{Boundary, ProblemLayer};
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{InitializeRequestParams, InitializeResult};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, ServerHandler, tool, tool_handler, tool_router};

use clients::Clients;
use quote::{Quote, Supplier, Wanted};

const DEADLINE: Duration = Duration::from_secs(2);
/// The protocol versions that can be asked for by header.
const PROTOCOLS: [&str; 3] = ["2025-06-18", "2025-11-25", "2026-07-28"];

/// The capability, for both protocols.
struct Capability {
    clients: Clients,
    supplier: Supplier,
}

impl Capability {
    async fn quote(&self, headers: &HeaderMap, wanted: &Wanted) -> Result<Quote, Failure> {
        let client = self.clients.who(bearer(headers))?;
        client.may("quote", wanted.version.as_deref())?;
        self.supplier.quote(wanted).await
    }
}

/// The token of a request.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    headers.get(AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")
}

/// Over HTTP.
async fn over_http(
    State(capability): State<Arc<Capability>>,
    headers: HeaderMap,
    Json(wanted): Json<Wanted>,
) -> Result<Json<Quote>, Failure> {
    capability.quote(&headers, &wanted).await.map(Json)
}

/// Who names a protocol by header can be told to take another one, whichever way it is asked.
async fn versioned(request: Request, next: Next) -> Result<Response, Failure> {
    let named = request.headers().get("mcp-protocol-version").and_then(|it| it.to_str().ok());
    if named.is_some_and(|named| !PROTOCOLS.contains(&named)) {
        let unsupported = errors::protocol_unsupported_version().status::<426>();
        return Err(unsupported.details(&supported(&PROTOCOLS)).into());
    }
    Ok(next.run(request).await)
}

/// Over MCP.
#[derive(Clone)]
struct OwlClaw {
    capability: Arc<Capability>,
    tool_router: ToolRouter<Self>,
}

#[tool_router]
impl OwlClaw {
    #[tool(description = "Says what it costs to ship a load", annotations(read_only_hint = true))]
    async fn quote(
        &self,
        Parameters(wanted): Parameters<Wanted>,
        context: RequestContext<RoleServer>,
    ) -> Result<String, Failure> {
        let quote = self.capability.quote(headers(&context)?, &wanted).await?;
        Ok(serde_json::to_string(&quote)?)
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for OwlClaw {
    /// Unknown clients do not get a session.
    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        self.capability.clients.who(bearer(headers(&context)?))?;
        context.peer.set_peer_info(request.clone());
        self.negotiate_initialize(&request)
    }
}

/// The headers that a request over MCP came with.
fn headers(context: &RequestContext<RoleServer>) -> Result<&HeaderMap, Failure> {
    let parts = context.extensions.get::<Parts>().map(|parts| &parts.headers);
    Ok(parts.ok_or_else(errors::internal_unexpected)?)
}

fn supported(versions: &[&str]) -> serde_json::Value {
    serde_json::json!({ "supported_versions": versions })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [port, clients, supplier, audit] = &arguments[..] else {
        return Err("usage: owlclaw PORT CLIENTS SUPPLIER AUDIT".into());
    };
    let log = Log::open(audit, Options::default())?;
    let clients = Clients::read(clients.as_ref())?;
    let capability = Arc::new(Capability { clients, supplier: Supplier::new(supplier)? });

    let api = Router::new()
        .route("/v1/quote", post(over_http))
        .with_state(Arc::clone(&capability))
        .layer(from_fn(versioned))
        .layer(ProblemLayer::<Code>::new(log.clone()).deadline(DEADLINE));
    let problems = ProblemLayer::<Code>::new(log.clone()).deadline(DEADLINE * 2);
    let server = OwlClaw { capability, tool_router: OwlClaw::tool_router() };
    let server = Boundary::<Code, _>::new(server, log).deadline(DEADLINE);
    let mcp = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default(),
    );
    // Failures before MCP are answered as HTTP; those of MCP are answered by the boundary first.
    let mcp = Router::new().nest_service("/mcp", mcp).layer(from_fn(versioned)).layer(problems);
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    writeln!(std::io::stdout(), "http://{}", listener.local_addr()?)?;
    axum::serve(listener, api.merge(mcp)).await?;
    Ok(())
}
