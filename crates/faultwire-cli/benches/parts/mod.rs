//! A server that answers in microseconds, over stdio and over HTTP, for the benchmarks.
#![allow(dead_code, reason = "each benchmark uses some of it")]

use std::future::poll_fn;
use std::io::{self, BufRead, BufReader, Write};
use std::pin::Pin;

use http_body::Body as _;
use hyper::body::Incoming;
use hyper::server::conn::http1 as server;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::net::TcpListener;

const OK: &str = r#"{"content":[{"type":"text","text":"bench-ok"}],"isError":false}"#;
const FAIL: &str = r#"{"content":[{"type":"text","text":"upstream API rate limit reached, retry after 30 s"}],"isError":true}"#;
const HELLO: &str =
    r#"{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"b","version":"1"}}"#;
const SCHEMA: &str = r#"{"type":"object","properties":{"n":{"type":"integer"}}}"#;

/// The members that every server reads of a message.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: &'a str,
    #[serde(default)]
    params: Params<'a>,
}

#[derive(Default, Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    name: Option<&'a str>,
}

/// The reply to a line, if it is a request.
fn reply(line: &str) -> Option<String> {
    let tool = |name: &str| format!(r#"{{"name":"{name}","inputSchema":{SCHEMA}}}"#);
    let list;
    let message: Message<'_> = serde_json::from_str(line).ok()?;
    let result = match (message.method, message.params.name) {
        ("tools/call", Some("fail")) => FAIL,
        ("tools/call", _) => OK,
        ("tools/list", _) => {
            list = format!(r#"{{"tools":[{},{}]}}"#, tool("ok"), tool("fail"));
            &list
        }
        _ => HELLO,
    };
    let id = message.id?.get();
    Some(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}"))
}

/// A server with two tools, one that works and one that fails.
pub fn child() -> io::Result<()> {
    let mut input = BufReader::with_capacity(256 * 1024, io::stdin().lock());
    let (mut line, mut out) = (String::new(), Vec::new());
    while input.read_line(&mut line)? > 0 {
        if let Some(reply) = reply(&line) {
            writeln!(out, "{reply}")?;
        }
        line.clear();
        if input.buffer().is_empty() {
            io::stdout().write_all(&out)?;
            io::stdout().flush()?;
            out.clear();
        }
    }
    Ok(())
}

/// The same over HTTP, as servers do it: with a library, on one thread. It prints its port.
pub fn http_child() -> io::Result<()> {
    runtime()?.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("http://{}/mcp", listener.local_addr()?);
        loop {
            let (socket, _) = listener.accept().await?;
            socket.set_nodelay(true)?;
            let connection =
                server::Builder::new().serve_connection(TokioIo::new(socket), service_fn(answer));
            tokio::spawn(connection);
        }
    })
}

/// One thread for all connections, because a thread for each would dominate the measurement.
pub fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

async fn answer(request: Request<Incoming>) -> io::Result<Response<String>> {
    let method = request.method().clone();
    let body = read(request.into_body()).await?;
    let reply = reply(&body);
    let status = match (method, &reply) {
        (Method::GET, _) => 405,
        (_, Some(_)) => 200,
        (_, None) => 202,
    };
    let response = Response::builder()
        .status(status)
        .header("content-type", "application/json")
        .header("mcp-session-id", "b");
    response.body(reply.unwrap_or_default()).map_err(io::Error::other)
}

/// A whole body.
pub async fn read(mut body: Incoming) -> io::Result<String> {
    let mut all = Vec::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        if let Ok(data) = frame.map_err(io::Error::other)?.into_data() {
            all.extend_from_slice(&data);
        }
    }
    String::from_utf8(all).map_err(io::Error::other)
}

pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
