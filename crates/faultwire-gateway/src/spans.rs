//! Spans: what each call was, for a collector of traces. They are made when a call has ended,
//! from what is known of it anyway, and sent in bundles by a thread of their own.

use std::fmt;
use std::time::{Duration, Instant};

use bytes::Bytes;
use faultwire_contract::Fault;
use hyper::{Request, Response};
use opentelemetry::trace::{SpanId, SpanKind, Status};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{
    BatchSpanProcessor, SpanData, SpanEvents, SpanLinks, SpanProcessor as _,
};
use tokio::runtime::Handle;

use crate::body::Body;
use crate::call::Call;
use crate::call::ClientContext;
use crate::edge;
use crate::endpoint::Endpoint;
use crate::http_client::{HttpsClient, https_client, next_data};
use crate::method::Method;
use crate::trace::Traced;

/// Where a collector of traces listens below its own URL.
const PATH: &str = "/v1/traces";
/// How long the last spans may take when the gateway ends.
const LAST_SPANS: Duration = Duration::from_secs(3);
/// How long the collector may take with a bundle.
const PATIENCE: Duration = Duration::from_secs(10);
/// How much is told of a name.
const LONGEST_NAME: usize = 256;
/// How much of a collector's answer is read.
const MOST_ANSWER: usize = 64 * 1024;

/// Takes spans and sends them on.
pub(crate) struct Spans {
    processor: BatchSpanProcessor,
    scope: InstrumentationScope,
}

impl Spans {
    /// Sends them to the collector at this URL.
    pub(crate) fn to(collector: &Endpoint, runtime: Handle) -> Result<Self, String> {
        let base = collector.url.to_string();
        let base = base.trim_end_matches('/');
        let url = if base.ends_with(PATH) { base.to_owned() } else { format!("{base}{PATH}") };
        let client = https_client(collector.trust.as_deref()).map_err(|e| e.to_string())?;
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Courier { client, runtime })
            .with_endpoint(url)
            .build()
            .map_err(|e| e.to_string())?;
        let mut processor = BatchSpanProcessor::builder(exporter).build();
        processor.set_resource(&Resource::builder().with_service_name("faultwire").build());
        let scope = InstrumentationScope::builder("faultwire")
            .with_version(env!("CARGO_PKG_VERSION"))
            .build();
        Ok(Self { processor, scope })
    }

    /// A call has ended: well, or with a fault, which may have a number of JSON-RPC.
    pub(crate) fn ended(
        &self,
        call: &Call,
        client: &ClientContext,
        failed: Option<(&Fault, Option<i64>)>,
    ) {
        let Some(traced) = call.traced.as_deref() else { return };
        let method = client.contract().redactor().redact_credentials(call.method.name());
        let method = short(&method);
        let mut attributes = vec![
            KeyValue::new("mcp.method.name", method.to_owned()),
            KeyValue::new(
                "jsonrpc.request.id",
                short(
                    &client
                        .contract()
                        .redactor()
                        .redact_credentials(call.client_id().trim_matches('"')),
                )
                .to_owned(),
            ),
            KeyValue::new("network.transport", "tcp"),
            KeyValue::new("network.protocol.name", "http"),
        ];
        let mut name = method.to_owned();
        if let Some(tool) = call.tool().filter(|_| call.method == Method::ToolsCall) {
            // A client can call anything a tool, its token included.
            let tool = client.contract().redactor().redact_credentials(tool);
            let tool = short(&tool);
            name = format!("{method} {tool}");
            attributes.push(KeyValue::new("gen_ai.operation.name", "execute_tool"));
            attributes.push(KeyValue::new("gen_ai.tool.name", tool.to_owned()));
        }
        if let Some(session) = &client.session().id {
            attributes.push(KeyValue::new("mcp.session.id", session.clone()));
        }
        if let Some((fault, number)) = failed {
            attributes.extend(of_fault(fault));
            let number = number.map(|number| number.to_string());
            attributes.extend(number.map(|n| KeyValue::new("rpc.response.status_code", n)));
        }
        let status =
            failed.map_or(Status::Unset, |(fault, _)| Status::error(fault.code().id.clone()));
        self.send(traced, name, Some(call.since), attributes, status);
    }

    /// Something was refused before it was a call.
    pub(crate) fn refused(&self, fault: &Fault, trace: Option<&str>) {
        let status = Status::error(fault.code().id.clone());
        self.send(&Traced::begin(trace), "refused".to_owned(), None, of_fault(fault), status);
    }

    fn send(
        &self,
        traced: &Traced,
        name: String,
        since: Option<Instant>,
        attributes: Vec<KeyValue>,
        status: Status,
    ) {
        if !traced.context.is_sampled() {
            return;
        }
        let took = since.map(|since| edge::now().saturating_duration_since(since));
        let end_time = edge::wall_clock();
        self.processor.on_end(SpanData {
            span_context: traced.context.clone(),
            parent_span_id: traced.parent,
            parent_span_is_remote: traced.parent != SpanId::INVALID,
            span_kind: SpanKind::Server,
            name: name.into(),
            start_time: end_time - took.unwrap_or_default(),
            end_time,
            attributes,
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status,
            instrumentation_scope: self.scope.clone(),
        });
    }

    /// Sends what there is, and ends. Not for a thread that serves clients: they send it.
    pub(crate) fn close(&self) {
        if let Err(error) = self.processor.shutdown_with_timeout(LAST_SPANS) {
            tracing::warn!(%error, "the last spans were not sent");
        }
    }
}

/// What clients call things may be as long as they like; a span need not.
fn short(name: &str) -> &str {
    &name[..name.floor_char_boundary(LONGEST_NAME)]
}

fn of_fault(fault: &Fault) -> Vec<KeyValue> {
    let mut attributes = vec![KeyValue::new("error.type", fault.code().id.clone())];
    if let Some(incident) = &fault.public().incident {
        attributes.push(KeyValue::new("faultwire.incident", incident.clone()));
    }
    attributes
}

/// Brings spans to the collector over the connections that the gateway has anyway.
struct Courier {
    client: HttpsClient,
    runtime: Handle,
}

impl fmt::Debug for Courier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Courier")
    }
}

#[async_trait::async_trait]
impl HttpClient for Courier {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        // The caller has no runtime and no timeout of its own.
        let bring = async move {
            let answer = client.request(request.map(Body::whole)).await?;
            let (head, mut body) = answer.into_parts();
            let mut read = Vec::new();
            while let Some(data) = next_data(&mut body).await {
                read.extend_from_slice(&data?);
                if read.len() > MOST_ANSWER {
                    return Err("its answer is too long".into());
                }
            }
            Ok::<_, HttpError>(Response::from_parts(head, Bytes::from(read)))
        };
        let sent = self.runtime.spawn(async { tokio::time::timeout(PATIENCE, bring).await });
        let answer = sent.await?.unwrap_or_else(|_| Err("it does not answer".into()));
        match &answer {
            Ok(answer) if !answer.status().is_success() => {
                tracing::warn!(status = %answer.status(), "the collector does not take spans");
            }
            Err(error) => tracing::warn!(%error, "spans cannot be sent to the collector"),
            Ok(_) => {}
        }
        answer
    }
}
