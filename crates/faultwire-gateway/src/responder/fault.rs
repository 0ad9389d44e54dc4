//! Making the fault of a failure: what is known of session and call is added to what was reported.

use faultwire_contract::{Caller, Condition, Fault, Meta, Report, Safety};

use crate::call::Call;
use crate::call::ClientContext;
use crate::edge;
use crate::method::Method;
use crate::request::RequestDetails;

/// Makes the fault of a failing call, as it stands now.
pub(crate) fn fault(
    client: &ClientContext,
    call: &Call,
    mut report: Box<Report>,
    details: &RequestDetails,
) -> Fault {
    let elapsed = edge::now().saturating_duration_since(call.since);
    dress(&mut report, client, u64::try_from(elapsed.as_millis()).ok(), details);
    // A client can call anything a tool, its token included.
    let redactor = client.contract().redactor();
    let named = |tool| redactor.redact_credentials(tool).into_owned();
    report.tool = report.tool.or_else(|| call.tool().map(named));
    report.trace = report.trace.or_else(|| call.trace.as_deref().map(str::to_owned));
    report.method.get_or_insert_with(|| call.method.name().to_owned());
    // Only tools have effects.
    let is_safe = || call.method != Method::ToolsCall || call.facts.safety != Safety::Unknown;
    report.repeatable.get_or_insert_with(is_safe);
    accepted(client, report, &client.caller().sent_raw(call.params()))
}

/// Adds what is known of session and call. An envelope that a server made itself may know better.
pub(super) fn dress(
    report: &mut Report,
    client: &ClientContext,
    elapsed_ms: Option<u64>,
    details: &RequestDetails,
) {
    let said = std::mem::replace(&mut report.session, client.session().clone());
    let session = &mut report.session;
    let better = [
        (&mut session.id, said.id),
        (&mut session.role, said.role),
        (&mut session.workspace_root, said.workspace_root),
        (&mut session.phase, said.phase),
        (&mut session.plan_hash, said.plan_hash),
    ];
    for (known, said) in better {
        // An empty text means that there is no value.
        *known = said.or(known.take()).filter(|text| !text.is_empty());
    }
    let (said, ours) = (std::mem::take(&mut report.meta), &client.settings.meta);
    report.meta = Meta {
        tool_version: said.tool_version.or_else(|| ours.tool_version.clone()),
        elapsed_ms: said.elapsed_ms.or(elapsed_ms),
        mode: said.mode.or_else(|| ours.mode.clone()),
        approval_mode: said.approval_mode.or(ours.approval_mode),
    };
    details.tell(report);
    if let Some(name) = &client.name {
        report.session.client = Some(name.clone());
    }
}

pub(super) fn accepted(
    client: &ClientContext,
    mut report: Box<Report>,
    caller: &Caller<'_>,
) -> Fault {
    let settings = &client.settings;
    // A code of another contract, which was replaced meanwhile, has its like in this one.
    if settings.contract.code(&report.code).is_none()
        && let Some(condition) = report.condition
    {
        settings.contract.code_for(condition, None).id.clone_into(&mut report.code);
        (report.retry, report.retry_after_ms, report.status) = (None, None, None);
    }
    let (contract, stamp) = (&settings.contract, edge::stamp(settings.show_stack));
    if let (None, Some(trace), Some(digest)) = (&report.incident, &report.trace, &client.digest) {
        // Who names a trace must not choose the id of another client's incident with it (X3).
        report.incident = Some(format!("{}_{digest}", stamp.incident(Some(trace))));
    }
    let plain = || Report {
        origin: Some(Condition::Internal.origin()),
        outcome: Some(Condition::Internal.outcome()),
        ..Report::new(&contract.fallback().id)
    };
    Fault::for_caller(contract, report, &stamp, caller)
        .or_else(|_| Fault::for_caller(contract, plain(), &stamp, caller))
        .unwrap_or_else(|e| unreachable!("the contract's own fallback is refused: {e}"))
}
