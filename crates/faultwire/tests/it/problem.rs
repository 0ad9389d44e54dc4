//! A service made with axum, asked over a real socket.

use std::time::Duration;

use axum::routing::{get, post};
use axum::{Json, Router};
use faultwire::audit::{Log, Options};
use faultwire::contract::{Profile, Surface};
use faultwire::{ProblemLayer, TypedCode, kaiza, owlclaw};
use serde::Deserialize;
use serde_json::json;
use tokio::net::TcpListener;

use crate::http::{self, Answer};
use crate::support::Dir;

#[derive(Deserialize)]
struct Order {
    count: u8,
}

fn routes() -> Router {
    Router::new()
        .route("/fine", get(|| async { "fine" }))
        .route("/limited", get(limited))
        .route("/panics", get(panics))
        .route("/hangs", get(std::future::pending::<String>))
        .route("/order", post(|Json(order): Json<Order>| async move { order.count.to_string() }))
        .route(
            "/busy",
            get(|| async { (axum::http::StatusCode::TOO_MANY_REQUESTS, [("retry-after", "9")]) }),
        )
}

async fn limited() -> Result<String, owlclaw::Failure> {
    let wait = Duration::from_millis(2500);
    Err(owlclaw::governance_rate_limited().message("token=abcdef0123456789").after(wait).into())
}

async fn panics() -> String {
    panic!("at the disco")
}

struct Served {
    address: String,
    dir: Dir,
}

impl Served {
    async fn start<C: TypedCode>() -> Self {
        let dir = Dir::new();
        let log = Log::open(dir.path(), Options::default()).unwrap();
        let layer = ProblemLayer::<C>::new(log).deadline(Duration::from_millis(200));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move { axum::serve(listener, routes().layer(layer)).await });
        Self { address, dir }
    }

    async fn ask(&self, line: &str, body: &str) -> Answer {
        let trace = "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n";
        http::ask(&self.address, line, trace, body).await
    }

    fn records(&self) -> usize {
        let text = std::fs::read_to_string(self.dir.path().join("audit-log.jsonl")).unwrap();
        text.lines().filter(|line| line.contains(r#""type":"fault""#)).count()
    }
}

#[tokio::test]
async fn o2_o5_whatever_fails_is_problem_details_and_recorded() {
    let served = Served::start::<owlclaw::Code>().await;
    let fine = served.ask("GET /fine", "").await;
    assert_eq!((fine.status, &fine.body), (200, &json!("fine")));
    assert_eq!(served.ask("POST /order", r#"{"count":3}"#).await.body, json!(3));
    assert_eq!(served.records(), 0);
    let rows = [
        ("GET /limited", "", 429, "governance.rate_limited", Some("3")),
        ("GET /busy", "", 429, "governance.rate_limited", Some("9")),
        ("GET /panics", "", 500, "internal.unexpected", None),
        ("GET /hangs", "", 504, "runtime.timeout", None),
        ("POST /order", r#"{"count":"#, 400, "protocol.version_conflict", None),
        ("POST /order", r#"{"count":"many"}"#, 400, "protocol.version_conflict", None),
        ("GET /nosuch", "", 400, "protocol.unsupported_version", None),
        ("DELETE /fine", "", 400, "protocol.unsupported_version", None),
    ];
    for (at, (line, body, status, code, after)) in rows.into_iter().enumerate() {
        let answer = served.ask(line, body).await;
        assert_eq!(answer.status, status, "{line}: {}", answer.body);
        assert!(answer.head.contains("content-type: application/problem+json"), "{line}");
        assert_eq!(answer.body["code"], code, "{line}");
        assert_eq!(answer.body["status"], status, "{line}");
        let bytes = answer.body.to_string();
        let read = owlclaw::contract().read(Surface::Http, Profile::default(), bytes.as_bytes());
        // The incident is found by the trace, here as over MCP.
        assert!(read.unwrap().incident.unwrap().ends_with("4bf92f3577b34da6a3ce929d0e0e4736"));
        let header = answer.head.lines().find_map(|line| line.strip_prefix("retry-after: "));
        assert_eq!(header, after, "{line}");
        let allows = answer.head.contains("allow: get,head");
        assert_eq!(allows, line.starts_with("DELETE"), "{line}: {}", answer.head);
        assert!(!bytes.contains("abcdef0123456789"), "{line}");
        assert_eq!(served.records(), at + 1, "{line}: recorded before it was told");
    }
}

#[tokio::test]
async fn k1_a_contract_without_a_surface_for_http_has_its_one() {
    let served = Served::start::<kaiza::Code>().await;
    let answer = served.ask("GET /panics", "").await;
    assert_eq!(answer.body.as_object().unwrap().len(), 11, "{}", answer.body);
    assert_eq!(answer.body["human_message"], "at the disco");
}
