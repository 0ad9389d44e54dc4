//! Why a reply was classified as it was: the evidence, what was masked, which rules were tried.

use serde::Serialize;
use serde_json::Value;

use super::context::{Answers, CallContext};
use super::evidence::{self, Evidence};
use super::peek::{Line, Message, peek};
use super::rule::{self, Shape};
use crate::contract::Contract;

/// What decided about a reply.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// How the failure was told.
    pub shape: &'static str,
    /// Codes by name, the most telling first.
    pub codes: Vec<String>,
    /// The JSON-RPC number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rpc: Option<i64>,
    /// The HTTP status, in the structured part or in its place in the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<i64>,
    /// What rules for kinds read: the text without the client's own words.
    pub text: String,
    /// What rules for prose read: no quotations, paths, URLs and code either.
    pub words: String,
    /// What prose rules do not read, and why.
    pub masked: Vec<Masked>,
    /// The rules that were tried, in order; the last one matched, if any did.
    pub tried: Vec<String>,
    /// Structured facts beside the words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facts: Option<Value>,
}

/// A stretch of the text that prose rules do not read.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Masked {
    /// `argument`, `quotation`, `path`, `url` or `code`.
    pub kind: &'static str,
    /// The stretch.
    pub text: String,
}

impl Line<'_> {
    /// Why the line is judged as it is; `None` for what is no reply of a server.
    #[must_use]
    pub fn explain(&self, contract: &Contract, context: &CallContext<'_>) -> Option<Explanation> {
        // Taken apart, a secret is no longer recognised: it goes before (X6).
        let known: Option<Value> = serde_json::from_str(self.text).ok();
        let safe = known.clone().map(|line| contract.redactor().redact_json_credentials(line));
        if safe != known {
            let safe = safe.unwrap_or_default().to_string();
            return peek(safe.as_bytes()).explanation(contract, context);
        }
        self.explanation(contract, context)
    }

    fn explanation(&self, contract: &Contract, context: &CallContext<'_>) -> Option<Explanation> {
        let mut evidence = match &self.message {
            Message::Error(raw) => evidence::of_error(raw),
            Message::Result(result) if context.answers == Answers::ToolCall => {
                let shape = if result.is_error { Shape::ToolError } else { Shape::SoftFailure };
                evidence::of_result(result, shape)
            }
            _ => return None,
        };
        evidence.settle(context);
        Some(explanation(contract, evidence))
    }
}

fn explanation(contract: &Contract, evidence: Evidence) -> Explanation {
    let own = contract.rules.iter().filter(|rule| !rule.when.generic);
    let mut tried = Vec::new();
    let shared = rule::all_shared().iter().filter(|rule| !rule.weak || evidence.is_short());
    for rule in own.chain(shared) {
        tried.push(rule.name.clone());
        if rule.when.matches(&evidence) {
            break;
        }
    }
    let views = evidence.views();
    let redact = |text: &str| contract.redactor().redact_credentials(text).into_owned();
    Explanation {
        shape: evidence.shape.name(),
        rpc: evidence.rpc,
        status: evidence.status,
        text: redact(&views.said),
        words: redact(&views.words),
        masked: views
            .masked()
            .map(|(text, kind)| Masked { kind: kind.name(), text: redact(text) })
            .collect(),
        tried,
        facts: evidence.facts.clone().map(|f| contract.redactor().redact_json_credentials(f)),
        codes: evidence.codes,
    }
}
