//! Traces: what a collector gets to see of calls.

use std::collections::HashMap;
use std::io::{BufReader, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use serde_json::{Value, json};

use crate::serve::gateway::Gateway;
use crate::serve::http::read_request;
use crate::wrap::client::PATIENCE;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

/// A collector that speaks OTLP over HTTP.
struct Collector {
    url: String,
    spans: Receiver<Span>,
}

impl Collector {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (send, spans) = channel();
        std::thread::spawn(move || {
            for mut socket in listener.incoming().map_while(Result::ok) {
                let send = send.clone();
                std::thread::spawn(move || {
                    while let Some((head, body)) = read_request(&mut BufReader::new(&socket)) {
                        assert!(head.starts_with("POST /v1/traces "), "{head}");
                        let sent = ExportTraceServiceRequest::decode(&*body).unwrap();
                        let scopes = sent.resource_spans.into_iter().flat_map(|r| r.scope_spans);
                        for span in scopes.flat_map(|scope| scope.spans) {
                            let _ = send.send(span);
                        }
                        let taken = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                        socket.write_all(taken.as_bytes()).unwrap();
                    }
                });
            }
        });
        Self { url, spans }
    }

    /// The next span of a tool call.
    fn next_call(&self) -> Span {
        loop {
            let span = self.spans.recv_timeout(PATIENCE).expect("a span in time");
            if span.name.starts_with("tools/call") {
                return span;
            }
        }
    }
}

fn attributes(span: &Span) -> HashMap<&str, &str> {
    let pairs = span.attributes.iter().filter_map(|pair| {
        match pair.value.as_ref().and_then(|value| value.value.as_ref()) {
            Some(Any::StringValue(text)) => Some((pair.key.as_str(), text.as_str())),
            _ => None,
        }
    });
    pairs.collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn call(gateway: &Gateway, tool: &str, arguments: &Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments });
    gateway
        .modern(&json!("q1"), "tools/call", &params)
        .header("traceparent", &format!("00-{TRACE}-{PARENT}-01"))
        .send()
        .reply()
}

#[test]
fn o9_spans_carry_the_names_that_collectors_know() {
    let collector = Collector::start();
    let gateway = Gateway::demo(&["--otlp", &collector.url]);
    assert_eq!(call(&gateway, "echo", &json!({ "text": "x" }))["id"], "q1");
    let refused = call(&gateway, "missing_file", &json!({}));
    let envelope = &refused["result"]["structuredContent"];
    // Ending sends what is left.
    assert_eq!(gateway.end(), Some(0));

    let fine = collector.next_call();
    let told = attributes(&fine);
    assert_eq!(fine.name, "tools/call echo");
    assert_eq!((hex(&fine.trace_id), hex(&fine.parent_span_id)), (TRACE.into(), PARENT.into()));
    assert_eq!(fine.kind, 2, "the gateway is the server's side");
    assert_eq!(told["mcp.method.name"], "tools/call");
    assert_eq!(told["gen_ai.operation.name"], "execute_tool");
    assert_eq!(told["gen_ai.tool.name"], "echo");
    assert_eq!(told["jsonrpc.request.id"], "q1");
    assert_eq!(told["network.transport"], "tcp");
    assert!(!told.contains_key("error.type"), "{told:?}");
    assert!(fine.end_time_unix_nano > fine.start_time_unix_nano);

    let failed = collector.next_call();
    let told = attributes(&failed);
    let code = envelope.pointer("/error/code").or_else(|| envelope.get("code"));
    assert_eq!(Some(told["error.type"]), code.and_then(Value::as_str), "{refused}");
    assert!(told["faultwire.incident"].contains(TRACE), "{told:?}");
    assert_eq!(failed.status.unwrap().code, 2);
}

#[test]
fn o9_a_trace_goes_on_through_servers_behind_a_url() {
    let collector = Collector::start();
    let behind = Gateway::demo(&["--otlp", &collector.url]);
    let gateway = Gateway::before_url(&["--otlp", &collector.url], &behind.url());
    call(&gateway, "echo", &json!({ "text": "x" }));
    assert_eq!(gateway.end(), Some(0));
    assert_eq!(behind.end(), Some(0));
    let (outer, inner) = (collector.next_call(), collector.next_call());
    assert_eq!(hex(&outer.parent_span_id), PARENT);
    assert_eq!(inner.parent_span_id, outer.span_id);
    assert_eq!(hex(&inner.trace_id), TRACE);
}

#[test]
fn who_asks_not_to_be_traced_is_not() {
    let collector = Collector::start();
    let gateway = Gateway::demo(&["--otlp", &collector.url]);
    let params = json!({ "name": "echo", "arguments": { "text": "x" } });
    let silent = format!("00-{TRACE}-{PARENT}-00");
    gateway.modern(&json!(1), "tools/call", &params).header("traceparent", &silent).send();
    gateway.modern(&json!(2), "tools/call", &params).send();
    assert_eq!(gateway.end(), Some(0));
    assert_eq!(attributes(&collector.next_call())["jsonrpc.request.id"], "2");
}

#[test]
fn a_collector_that_is_not_there_stops_nobody() {
    let gateway = Gateway::demo(&["--otlp", "http://127.0.0.1:9"]);
    assert_eq!(call(&gateway, "echo", &json!({ "text": "x" }))["id"], "q1");
    assert_eq!(gateway.end(), Some(0));
}
