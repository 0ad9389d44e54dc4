//! What a handler threw: a typed failure, an error of any kind, or a value.

use faultwire_contract::{Condition, Report, details};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::call::Call;
use super::{Boundary, Failed, line};
use crate::arguments::{Issue, Misfit};
use crate::json::error::{Error, ErrorKind};

/// Something that was thrown.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Thrown {
    /// A typed failure: a report whose code is the contract's.
    fault: Option<Box<Report>>,
    /// What the code around the handler knows of it: a code to fall back on, a phase, a plan.
    context: Report,
    message: Option<String>,
    name: Option<String>,
    code: Option<Value>,
    status: Option<Value>,
    cause: Option<Value>,
    stack: Option<String>,
    /// Arguments that a validator found fault with, one `{path, message}` each.
    issues: Option<Vec<RawIssue>>,
    /// Facts that the error carries for its reader.
    details: Option<Value>,
    /// Why the details of a typed failure are not JSON, if they are not (W5).
    unfit: Vec<String>,
    /// What was thrown, where it is no error.
    value: Option<Value>,
}

#[derive(Deserialize)]
struct RawIssue {
    #[serde(default)]
    path: Value,
    #[serde(default, alias = "msg")]
    message: String,
}

impl Thrown {
    pub(super) fn read(text: &str) -> Result<Self, Error> {
        serde_json::from_str(text).map_err(|e| {
            let help = r#"give an object, such as {"name":"Error","message":"…"}"#;
            Error::new(ErrorKind::Input, format!("not a valid error: {e}"), help)
        })
    }

    /// Whether its code comes from rules, and not from who threw it.
    pub(super) fn is_classified(&self) -> bool {
        self.fault.is_none() && self.issues.is_none()
    }

    /// The failure that it is (K7): its own code if it is registered, otherwise that of the
    /// context, then what the rules find, then the fallback.
    pub(super) fn failed(&self, boundary: &Boundary, call: &Call) -> Failed {
        let contract = boundary.contract();
        let (message, cause) = self.said();
        if let Some(fault) = &self.fault {
            let mut report = fault.clone();
            report.stack = report.stack.take().or_else(|| self.stack.clone());
            report.cause = report.cause.take().or_else(|| self.cause.clone());
            if !self.unfit.is_empty() {
                *report = details::settle(contract, *report, Err(self.unfit.clone()));
            }
            return report.into();
        }
        let registered = |id: &str| contract.code(id).map(|row| row.id.clone());
        let own = self.value_code().and_then(|code| registered(&code));
        let own = own.or_else(|| registered(&self.context.code));
        if let (None, Some(issues)) = (&own, &self.issues) {
            let tool = call.tool.as_deref().unwrap_or("the tool");
            // The tool's schema knows what may have been meant; what it has no words for is only
            // known to the validator.
            let known = call.tool.as_deref().and_then(|tool| boundary.tools.get(tool));
            let misfit = known.and_then(|known| known.misfit(tool, call));
            let misfit = misfit
                .unwrap_or_else(|| Misfit { issues: issues.iter().map(RawIssue::issue).collect() });
            let mut failed = boundary.misfit(tool, &misfit);
            failed.report.cause = cause;
            return failed;
        }
        let mut failed = match own {
            Some(code) => Box::new(Report::new(code)).into(),
            None => self.classified(boundary, call, message.as_deref()),
        };
        let context = &self.context;
        let report = &mut failed.report;
        let code = std::mem::take(&mut report.code);
        let delay = report.retry_after_ms;
        **report = Report {
            code,
            condition: context.condition.or(report.condition),
            origin: context.origin.or(report.origin),
            outcome: context.outcome.or(report.outcome),
            message: context.message.clone().or(message),
            cause: context.cause.clone().or(cause),
            stack: context.stack.clone().or_else(|| self.stack.clone()),
            details: context.details.clone().or_else(|| self.details.clone()),
            retry_after_ms: context.retry_after_ms.or(delay),
            hints: std::mem::take(&mut report.hints),
            ..context.clone()
        };
        failed
    }

    /// The failure that the words and codes of the error tell of, as if a server had sent them.
    fn classified(&self, boundary: &Boundary, call: &Call, message: Option<&str>) -> Failed {
        let facts: Map<String, Value> = [("code", &self.code), ("status", &self.status)]
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value.clone()?)))
            .chain(self.name.as_ref().map(|name| ("name".to_owned(), json!(name))))
            .collect();
        let text = message.unwrap_or_default();
        let reply = json!({ "isError": true, "content": [{ "type": "text", "text": text }],
                            "structuredContent": facts });
        let found = boundary.judge(call, &line("result", &reply.to_string()));
        let known = |failed: &Failed| failed.report.condition != Some(Condition::ToolError);
        let mut failed = found.filter(known).unwrap_or_else(|| {
            let fallback = &boundary.contract().fallback().id;
            let condition = Some(Condition::ToolError);
            Box::new(Report { condition, ..Report::new(fallback) }).into()
        });
        failed.report.details = None;
        failed.upstream_code.clone_from(&self.code);
        failed
    }

    fn value_code(&self) -> Option<String> {
        let member = |value: &Value, names: &[&str]| {
            names.iter().find_map(|name| value.get(*name)?.as_str()).map(str::to_owned)
        };
        let own = self.code.as_ref().and_then(Value::as_str).map(str::to_owned);
        own.or_else(|| member(self.value.as_ref()?, &["code", "error_code"]))
    }

    /// Its message and its cause (K4).
    fn said(&self) -> (Option<String>, Option<Value>) {
        let Some(value) = &self.value else {
            let mut cause =
                json!({ "message": self.message, "code": self.code, "name": self.name });
            if let Some(inner) = &self.cause {
                cause["cause"] = inner.clone();
            }
            let is_known = self.message.is_some() || self.name.is_some();
            return (self.message.clone(), is_known.then_some(cause));
        };
        let message = match value {
            Value::String(text) => Some(text.clone()),
            value => ["message", "human_message", "error"]
                .iter()
                .find_map(|name| value.get(*name)?.as_str())
                .map(str::to_owned),
        };
        (message, Some(value.clone()))
    }
}

impl RawIssue {
    fn issue(&self) -> Issue {
        let part = |part: &Value| match part {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let path = match &self.path {
            Value::Array(parts) => parts.iter().map(part).collect::<Vec<_>>().join("."),
            Value::Null => String::new(),
            other => part(other),
        };
        Issue::new(path, self.message.clone())
    }
}

/// The issues that a validator's message lists, as those of zod do.
pub(super) fn issues_in(said: &str) -> Option<Misfit> {
    let list = &said[said.find("[\n").or_else(|| said.find("[{"))?..=said.rfind(']')?];
    let issues: Vec<RawIssue> = serde_json::from_str(list).ok()?;
    let issues: Vec<Issue> = issues.iter().take(16).map(RawIssue::issue).collect();
    (!issues.is_empty() && issues.iter().all(|issue| !issue.message.is_empty()))
        .then_some(Misfit { issues })
}
