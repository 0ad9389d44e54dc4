//! Everything that is no MCP: health, and where to look.

use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};

use crate::front::http::Body;
use crate::front::http::answer::bare;
use crate::gateway::Gateway;

pub(crate) fn answer(gateway: &Gateway, request: &Request<Incoming>) -> Response<Body> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return bare(StatusCode::NOT_FOUND);
    }
    match request.uri().path() {
        "/healthz" => text("ok\n"),
        "/readyz" if gateway.is_closing() => {
            let mut answer = text("closing\n");
            *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            answer
        }
        "/readyz" => text("ready\n"),
        _ => bare(StatusCode::NOT_FOUND),
    }
}

fn text(text: &'static str) -> Response<Body> {
    let mut answer = Response::new(Body::whole(text));
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, plain);
    answer
}
