//! Sessions that must be begun, and that lock, in a boundary of a server that declares its tools.

use std::time::Duration;

use faultwire::audit::{Log, Options};
use faultwire::contract::{Profile, Surface};
use faultwire::{Boundary, Failure, kaiza};
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::model::{CallToolRequestParams, CallToolResult, ContentBlock};
use rmcp::service::{RoleClient, RunningService};
use rmcp::{ServerHandler, ServiceExt, tool, tool_handler, tool_router};

use crate::support::Dir;

faultwire::codes! {
    Breaking of kaiza { PolicyViolation }
    Nothing of kaiza {}
}

#[derive(Clone)]
struct Server {
    tool_router: ToolRouter<Self>,
}

#[faultwire::manifest]
#[tool_router]
impl Server {
    #[tool(description = "Begins a session")]
    #[declare(category = "session")]
    async fn begin_session(&self) -> Result<String, Failure<Nothing>> {
        Ok("begun".to_owned())
    }

    #[tool(description = "Does something")]
    #[declare(category = "work")]
    async fn work(&self) -> Result<String, Failure<Nothing>> {
        Ok("done".to_owned())
    }

    #[tool(description = "Breaks a rule, after a while")]
    #[declare(category = "work")]
    async fn break_late(&self) -> Result<String, Failure<Breaking>> {
        tokio::time::sleep(Duration::from_millis(300)).await;
        Err(kaiza::policy_violation().into())
    }

    #[tool(description = "Breaks a rule that it does not declare")]
    #[declare(category = "work")]
    async fn break_silently(&self) -> Result<CallToolResult, Failure<Nothing>> {
        let envelope = Failure::<kaiza::Code>::from(kaiza::policy_violation()).into_fault();
        let surface = Surface::Mcp;
        let text = String::from_utf8(envelope.envelope(surface, Profile::default())).unwrap();
        Ok(CallToolResult::error(vec![ContentBlock::text(text)]))
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Server {}

struct Pair {
    client: RunningService<RoleClient, ()>,
    boundary: Boundary<kaiza::Code, Server>,
    _dir: Dir,
}

impl Pair {
    async fn start() -> Self {
        let dir = Dir::new();
        let log = Log::open(dir.path(), Options::default()).unwrap();
        let server = Server { tool_router: Server::tool_router() };
        let boundary = Boundary::new(server, log).strict(true);
        let server = boundary.clone();
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        tokio::spawn(async move { server.serve(theirs).await.unwrap().waiting().await });
        Self { client: ().serve(ours).await.unwrap(), boundary, _dir: dir }
    }

    /// The code of a call, or none.
    async fn code(&self, tool: &'static str) -> Option<String> {
        let told = self.client.call_tool(CallToolRequestParams::new(tool)).await.unwrap();
        let told = told.structured_content.unwrap_or_default();
        told["error_code"].as_str().map(str::to_owned)
    }
}

#[tokio::test]
async fn k12_what_sessions_answer_is_declared_by_nobody_and_by_all() {
    let pair = Pair::start().await;
    assert_eq!(pair.code("work").await.as_deref(), Some("SESSION_NOT_INITIALIZED"));
    assert_eq!(pair.code("begin_session").await, None);
    assert_eq!(pair.code("work").await, None);
    assert_eq!(pair.code("break_late").await.as_deref(), Some("POLICY_VIOLATION"));
    assert_eq!(pair.code("work").await.as_deref(), Some("SESSION_LOCKED"));
    assert_eq!(pair.boundary.undeclared(), 0);

    // What is told as something else breaks the rule all the same.
    assert_eq!(pair.code("begin_session").await, None);
    assert_eq!(pair.code("break_silently").await.as_deref(), Some("INTERNAL_ERROR"));
    assert_eq!(pair.boundary.undeclared(), 1);
    assert_eq!(pair.code("work").await.as_deref(), Some("SESSION_LOCKED"));
}

#[tokio::test]
async fn k12_a_session_that_is_over_locks_no_other() {
    let pair = Pair::start().await;
    assert_eq!(pair.code("begin_session").await, None);
    let (late, begun) = tokio::join!(pair.code("break_late"), async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        pair.code("begin_session").await
    });
    assert_eq!((late.as_deref(), begun), (Some("POLICY_VIOLATION"), None));
    assert_eq!(pair.code("work").await, None);
}
