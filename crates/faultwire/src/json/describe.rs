//! Contracts and codes as JSON.

use faultwire_contract::{
    Code, Contract, FailureClass, Paging, RetryClass, Surface, ToolFailurePolicy,
};
use serde_json::{Map, Value, json};

/// Everything in a contract, as `faultwire contract show --json` prints it.
#[must_use]
pub fn describe(contract: &Contract) -> Value {
    let conditions: Map<String, Value> =
        contract.conditions().map(|(name, code)| (name, code.id.clone().into())).collect();
    let levels: Map<String, Value> = contract
        .levels
        .iter()
        .map(|level| {
            let paging = match level.paging {
                Paging::Every => json!({ "page": "every" }),
                Paging::Never => json!({ "page": "never" }),
                Paging::MoreThan { events, within } => {
                    json!({ "more_than": events, "within_s": within.as_secs() })
                }
            };
            (level.name.clone(), paging)
        })
        .collect();
    let kinds: Map<String, Value> = RetryClass::ALL
        .into_iter()
        .map(|class| (class.name().to_owned(), contract.retry.kind(class).into()))
        .collect();
    json!({
        "name": contract.name,
        "version": contract.version,
        "title": contract.title,
        "frozen": contract.frozen,
        "fallback": contract.fallback().id,
        "profiles": contract.profiles,
        "categories": contract.categories,
        "codes": contract.codes().iter().map(code).collect::<Vec<_>>(),
        "conditions": conditions,
        "alert": levels,
        "retry": {
            "kinds": kinds,
            "base_ms": contract.retry.backoff.base.as_millis(),
            "cap_ms": contract.retry.backoff.cap.as_millis(),
        },
        "text": {
            "message": if contract.text.canonical { "canonical" } else { "redacted" },
            "masks": contract.text.masks.names().collect::<Vec<_>>(),
            "message_bytes": contract.text.message_bytes,
            "suggestion_bytes": contract.text.suggestion_bytes,
            "details_bytes": contract.text.details_bytes,
            "details_depth": contract.text.details_depth,
            "cause_bytes": contract.text.cause_bytes,
            "stack_bytes": contract.text.stack_bytes,
            "envelope_bytes": contract.text.envelope_bytes,
        },
        "tool_failure": contract.tool_failure.as_ref().map(tool_failure_json),
        "surfaces": {
            "mcp": { "content_type": contract.content_type(Surface::Mcp) },
            "http": { "content_type": contract.content_type(Surface::Http) },
        },
        "success": contract.wraps_success(),
    })
}

fn tool_failure_json(policy: &ToolFailurePolicy) -> Value {
    let class =
        |(category, class): &(String, FailureClass)| (category.clone(), class.name().into());
    let classes: Map<String, Value> = policy.classes.iter().map(class).collect();
    let mut table = json!({ "class": classes });
    if let Some(warning) = &policy.maybe_executed {
        table["maybe_executed"] = warning.clone().into();
    }
    table
}

/// One level, or a table as in a contract file.
fn alert_json(code: &Code) -> Value {
    if code.alerts.is_empty() {
        return code.alert.clone().into();
    }
    let own = code.alerts.iter().map(|(origin, level)| (origin.name(), level));
    let all = std::iter::once(("any", &code.alert)).chain(own);
    all.map(|(key, level)| (key.to_owned(), Value::from(level.as_str())))
        .collect::<Map<_, _>>()
        .into()
}

/// A row of the contract. Retry and status are lists if the row has several, the default first.
#[must_use]
pub fn code(code: &Code) -> Value {
    let classes: Vec<&str> = code.retry.iter().map(|c| c.name()).collect();
    let mut row = json!({
        "id": code.id,
        "category": code.category,
        "retry": one_or_many(&classes),
        "retryable": code.default_retry().is_retryable(),
        "status": one_or_many(&code.status),
        "alert": alert_json(code),
        "message": code.message,
        "meaning": code.meaning,
        "action": code.action,
        "since": code.since,
    });
    let optional = [
        ("after_ms", code.after.map(|d| json!(d.as_millis()))),
        ("type", code.problem_type.as_ref().map(|t| json!(t))),
        ("mcp", code.mcp.as_ref().map(|m| json!(m))),
        ("keeps_data", code.keeps_data.then(|| json!(true))),
        ("outcome", code.outcome.map(|o| json!(o))),
        (
            "retired",
            code.retired.as_ref().map(|r| json!({ "since": r.since, "successor": r.successor })),
        ),
    ];
    for (key, value) in optional.into_iter().filter_map(|(key, value)| Some((key, value?))) {
        row[key] = value;
    }
    row
}

fn one_or_many<T: serde::Serialize>(list: &[T]) -> Value {
    match list {
        [one] => json!(one),
        many => json!(many),
    }
}
