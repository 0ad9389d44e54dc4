//! What is counted. Labels are names from closed lists: codes of the contract, tools of the
//! server. A caller cannot make new ones.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use faultwire_contract::{Alerts, Contract, DEFAULT_CAPACITY, Fault, Origin};
use hashbrown::HashMap;
use memchr::memmem::Finder;
use metrics::{Counter, Histogram, Key, Label, Level, Metadata, Recorder};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusRecorder};
use parking_lot::{Mutex, RwLock};

use crate::edge;
use crate::guard::refusals::Noted;
use crate::recent::Recent;

/// The label of tools that the server does not tell of.
const UNKNOWN: &str = "(unknown)";
/// More tools than that share one label.
const MOST_TOOLS: usize = 256;
/// In seconds.
const BUCKETS: [f64; 12] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];
const SYNC_BUCKETS: [f64; 8] = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.01, 0.1, 1.0];
const METADATA: Metadata<'static> = Metadata::new("faultwire", Level::INFO, None);

const CALLS: &str = "faultwire_calls_total";
const DURATION: &str = "faultwire_call_duration_seconds";
const FAILURES: &str = "faultwire_failures_total";
const OUTPUT_MISMATCHES: &str = "faultwire_output_mismatch_total";
const REJECTED: &str = "faultwire_rejected_requests_total";
const REDACTIONS: &str = "faultwire_redactions_total";
const SYNC: &str = "faultwire_audit_sync_seconds";
const EVENTS: &str = "faultwire_events_total";
const RESTARTS: &str = "faultwire_restarts_total";
const PAGES: &str = "faultwire_alert_pages_total";

/// Everything that is counted.
pub(crate) struct Metrics {
    recorder: PrometheusRecorder,
    tools: RwLock<HashMap<Box<str>, Arc<OfTool>>>,
    sync: Histogram,
    alerts: Mutex<HashMap<String, Alerts>>,
    pub recent: Recent,
}

/// What is counted for each tool.
struct OfTool {
    label: Box<str>,
    succeeded: Counter,
    failed: Counter,
    duration: Histogram,
    /// No more than there are codes and origins, and mostly one or two.
    failures: Mutex<Vec<OfCode>>,
}

/// What is counted for each way in which a tool fails. To find a counter by its labels costs more
/// than all else that is counted.
struct OfCode {
    code: String,
    category: String,
    origin: Option<Origin>,
    count: Counter,
}

impl OfCode {
    fn is_of(&self, fault: &Fault) -> bool {
        let code = fault.code();
        (&self.code, &self.category) == (&code.id, &code.category)
            && self.origin == fault.public().origin
    }
}

impl Metrics {
    pub(crate) fn new() -> Result<Self, BuildError> {
        let recorder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Full(DURATION.to_owned()), &BUCKETS)?
            .set_buckets_for_metric(Matcher::Full(SYNC.to_owned()), &SYNC_BUCKETS)?
            .build_recorder();
        let described: [(&'static str, &'static str); 8] = [
            (CALLS, "Calls of tools, by tool and result."),
            (FAILURES, "Failures, by code, category, origin and tool."),
            (OUTPUT_MISMATCHES, "Results that do not match the tool's outputSchema, by tool."),
            (REJECTED, "Requests that were refused before they were calls, by code."),
            (REDACTIONS, "Passages that were taken out of texts for clients."),
            (EVENTS, "What happened beside the calls, such as servers that ended."),
            (RESTARTS, "Servers that were started again after they had ended."),
            (PAGES, "Pages that the contract's alert rules raised, by level."),
        ];
        for (name, text) in described {
            recorder.describe_counter(name.into(), None, text.into());
        }
        recorder.describe_histogram(DURATION.into(), None, "How long calls took.".into());
        recorder.describe_histogram(SYNC.into(), None, "How long failures took to disk.".into());
        let sync = recorder.register_histogram(&Key::from_static_name(SYNC), &METADATA);
        Ok(Self {
            recorder,
            tools: RwLock::default(),
            sync,
            alerts: Mutex::default(),
            recent: Recent::default(),
        })
    }

    /// A call went well.
    pub(crate) fn succeeded(&self, tool: &str, is_listed: impl Fn() -> bool, took: Duration) {
        let tool = self.tool(if self.is_known(tool) || is_listed() { tool } else { UNKNOWN });
        tool.succeeded.increment(1);
        tool.duration.record(took.as_secs_f64());
    }

    /// A call failed.
    pub(crate) fn failed(
        &self,
        fault: &Fault,
        tool: Option<&str>,
        is_listed: bool,
        took: Option<Duration>,
    ) {
        match tool {
            Some(tool) => {
                // A caller can name tools that there are none of.
                let known = is_listed || self.is_known(tool);
                let tool = self.tool(if known { tool } else { UNKNOWN });
                tool.failed.increment(1);
                if let Some(took) = took {
                    tool.duration.record(took.as_secs_f64());
                }
                self.count_failure(fault, &tool);
            }
            None => self.failures(fault, "").increment(1),
        }
        self.recent.add(fault);
        self.observe(fault);
    }

    /// A result does not match the schema that its tool declares: the tool is in the list.
    pub(crate) fn output_mismatch(&self, tool: &str) {
        let label = self.tool(tool).label.to_string();
        self.count(OUTPUT_MISMATCHES, vec![Label::new("tool", label)]);
    }

    fn count_failure(&self, fault: &Fault, tool: &OfTool) {
        let mut failures = tool.failures.lock();
        if let Some(known) = failures.iter().find(|known| known.is_of(fault)) {
            return known.count.increment(1);
        }
        let count = self.failures(fault, &tool.label);
        count.increment(1);
        let (code, origin) = (fault.code(), fault.public().origin);
        let (code, category) = (code.id.clone(), code.category.clone());
        failures.push(OfCode { code, category, origin, count });
    }

    /// The counter of such failures of a tool.
    fn failures(&self, fault: &Fault, tool: &str) -> Counter {
        let code = fault.code();
        let labels = vec![
            Label::new("code", code.id.clone()),
            Label::new("category", code.category.clone()),
            Label::new("origin", fault.public().origin.map_or("", Origin::name)),
            Label::new("tool", tool.to_owned()),
        ];
        self.recorder.register_counter(&Key::from_parts(FAILURES, labels), &METADATA)
    }

    /// A request was refused before it was a call.
    /// Where nothing is known of the client, its source is what an alert counts by (X4).
    pub(crate) fn rejected(&self, fault: &Fault, noted: Option<&Noted>) {
        self.count(REJECTED, vec![Label::new("code", fault.code().id.clone())]);
        if noted.is_none_or(|noted| noted.recorded.is_some()) {
            self.recent.add(fault);
        }
        match noted {
            Some(noted) => self.observe_source(fault.contract(), &noted.source.to_string()),
            None => self.observe(fault),
        }
    }

    pub(crate) fn redacted(&self, envelope: &[u8]) {
        static MARK: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new("[redacted"));
        let passages = MARK.find_iter(envelope).count() as u64;
        if passages > 0 {
            let key = Key::from_static_name(REDACTIONS);
            self.recorder.register_counter(&key, &METADATA).increment(passages);
        }
    }

    pub(crate) fn synced(&self, took: Duration) {
        self.sync.record(took.as_secs_f64());
    }

    /// A server was started again.
    pub(crate) fn restarted(&self) {
        self.count(RESTARTS, Vec::new());
    }

    pub(crate) fn event(&self, name: &'static str) {
        self.count(EVENTS, vec![Label::from_static_parts("event", name)]);
    }

    /// Everything, as Prometheus reads it, with what is true right now.
    pub(crate) fn page(&self, now: &[(&str, &str, u64)]) -> String {
        let mut page = self.recorder.handle().render();
        for (name, help, value) in now {
            page.push_str(&format!("# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}\n"));
        }
        page
    }

    fn count(&self, name: &'static str, labels: Vec<Label>) {
        self.recorder.register_counter(&Key::from_parts(name, labels), &METADATA).increment(1);
    }

    fn is_known(&self, tool: &str) -> bool {
        self.tools.read().contains_key(tool)
    }

    fn tool(&self, name: &str) -> Arc<OfTool> {
        let known = self.tools.read();
        if let Some(tool) = known.get(name) {
            return Arc::clone(tool);
        }
        let label = if known.len() < MOST_TOOLS { name } else { "(other)" };
        drop(known);
        let mut tools = self.tools.write();
        let label: Box<str> = label.into();
        Arc::clone(tools.entry(label.clone()).or_insert_with(|| Arc::new(self.of_tool(label))))
    }

    fn of_tool(&self, label: Box<str>) -> OfTool {
        let key = |name: &'static str, more: Option<&'static str>| {
            let mut labels = vec![Label::new("tool", label.to_string())];
            labels.extend(more.map(|result| Label::from_static_parts("result", result)));
            Key::from_parts(name, labels)
        };
        let counter = |result| self.recorder.register_counter(&key(CALLS, Some(result)), &METADATA);
        OfTool {
            succeeded: counter("success"),
            failed: counter("failure"),
            duration: self.recorder.register_histogram(&key(DURATION, None), &METADATA),
            failures: Mutex::default(),
            label,
        }
    }

    /// Has the contract's alert rules look at a failure (O7).
    fn observe(&self, fault: &Fault) {
        let (code, client) = (&fault.code().id, fault.public().session.client.as_deref());
        let (client, origin) = (client.unwrap_or_default(), fault.public().origin);
        self.with_alerts(fault.contract(), |alerts, now| {
            let page = alerts.observe(now, client, code, origin)??;
            tracing::error!(level = page.level, client, code, count = page.count, "page");
            Some(page.level.to_owned())
        });
    }

    /// The same for a refusal of an unknown client, whatever its code.
    fn observe_source(&self, contract: &Contract, source: &str) {
        self.with_alerts(contract, |alerts, now| {
            let page = alerts.observe_source(now, source)?;
            tracing::error!(level = page.level, source, count = page.count, "page: refusals");
            Some(page.level.to_owned())
        });
    }

    /// Counts the page of this level that the alert rules raise, if they do.
    fn with_alerts(
        &self,
        contract: &Contract,
        observe: impl FnOnce(&mut Alerts, Duration) -> Option<String>,
    ) {
        let mut all = self.alerts.lock();
        if !all.contains_key(&contract.name) {
            all.insert(contract.name.clone(), Alerts::new(contract, DEFAULT_CAPACITY));
        }
        let Some(alerts) = all.get_mut(&contract.name) else { return };
        let now = Duration::from_millis(edge::unix_ms());
        if let Some(level) = observe(alerts, now) {
            drop(all);
            self.count(PAGES, vec![Label::new("level", level)]);
        }
    }
}
