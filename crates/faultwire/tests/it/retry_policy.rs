//! The retry policy, in front of a real service over a real socket.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::{Request, Response};
use axum::routing::any;
use faultwire::client::Reader;
use faultwire::{RetryPolicy, owlclaw};
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};

use crate::http;

#[tokio::test]
async fn o6_a7_requests_are_sent_again_only_as_the_failure_says() {
    let calls = Arc::new(AtomicU32::new(0));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let count = Arc::clone(&calls);
    let fail = move |failure: fn() -> owlclaw::Failure| {
        let count = Arc::clone(&count);
        any(move || async move {
            count.fetch_add(1, Ordering::Relaxed);
            failure()
        })
    };
    let app = Router::new()
        .route("/timeout", fail(|| owlclaw::runtime_timeout().after(Duration::ZERO).into()))
        .route("/later", fail(|| owlclaw::runtime_timeout().after(Duration::from_secs(1)).into()))
        .route("/forbidden", fail(|| owlclaw::auth_forbidden().into()));
    tokio::spawn(async move { axum::serve(listener, app).await });
    let ask = service_fn(move |request: Request<Bytes>| {
        let address = address.clone();
        async move {
            let line = format!("{} {}", request.method(), request.uri().path());
            let answer = http::ask(&address, &line, "", "").await;
            let after = answer.header("retry-after").unwrap_or_default().to_owned();
            let response = Response::builder().status(answer.status).header("retry-after", after);
            Ok::<_, std::convert::Infallible>(
                response.body(Bytes::from(answer.body.to_string())).unwrap(),
            )
        }
    });
    // Method, path, whether it says that it may be repeated, and how often it is sent.
    let rows = [
        ("GET", "/timeout", false, 3),
        ("DELETE", "/timeout", false, 3),
        ("POST", "/timeout", false, 1),
        ("POST", "/timeout", true, 3),
        ("GET", "/later", false, 3),
        ("GET", "/forbidden", true, 1),
    ];
    for (method, path, key, expected) in rows {
        calls.store(0, Ordering::Relaxed);
        let policy = RetryPolicy::new(Reader::builtin()).retries(2);
        let mut service = ServiceBuilder::new().retry(policy).service(ask.clone());
        let mut request = Request::builder().method(method).uri(path);
        if key {
            request = request.header("idempotency-key", "1");
        }
        let request = request.body(Bytes::new()).unwrap();
        let since = std::time::Instant::now();
        let response = service.ready().await.unwrap().call(request).await.unwrap();
        let waited = since.elapsed() >= Duration::from_secs(2);
        assert_eq!(waited, path == "/later", "it waits as long as it is told");
        assert!(response.status().as_u16() >= 400);
        assert_eq!(calls.load(Ordering::Relaxed), expected, "{method} {path} {key}");
    }
}
