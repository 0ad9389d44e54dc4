//! Which fact of a fault fills which slot.

use serde::Serialize;
use serde_json::value::RawValue;

use super::Fault;
use crate::report::Meta;
use crate::template::slot::Slot;
use crate::template::write::Fill;

impl Fill for Fault {
    fn fill(&self, slot: Slot, out: &mut Vec<u8>) -> bool {
        let (row, report, session) = (self.code(), &self.public, &self.public.session);
        match slot {
            Slot::Code => some(out, &row.id),
            Slot::Message => maybe(out, report.message.as_ref()),
            Slot::Title => some(out, &row.message),
            Slot::Category => some(out, &row.category),
            Slot::Action => some(out, &row.action),
            Slot::Alert => some(out, &row.alert),
            Slot::Status => some(out, &self.status),
            Slot::ProblemType => maybe(out, row.problem_type.as_ref()),
            Slot::Retryable => some(out, &self.retry.is_retryable()),
            Slot::RetryKind => some(out, self.contract.retry.kind(self.retry)),
            Slot::RetryAfterMs => maybe(out, self.delay.map(|d| d.as_millis()).as_ref()),
            Slot::RetryAfterS => maybe(out, self.delay.map(|d| d.as_secs()).as_ref()),
            Slot::Incident => maybe(out, report.incident.as_ref()),
            Slot::Timestamp => maybe(out, report.timestamp.as_ref()),
            Slot::Trace => maybe(out, report.trace.as_ref()),
            Slot::Condition => maybe(out, report.condition.as_ref()),
            Slot::Origin => maybe(out, report.origin.as_ref()),
            Slot::Outcome => maybe(out, report.outcome.as_ref()),
            Slot::Tool => maybe(out, report.tool.as_ref()),
            Slot::Method => maybe(out, report.method.as_ref()),
            Slot::Suggestion => maybe(out, report.suggestion.as_ref()),
            Slot::Details => maybe(out, report.details.as_ref()),
            Slot::Data => maybe(out, report.data.as_ref()),
            Slot::Cause => maybe(out, report.cause.as_ref()),
            Slot::Stack => maybe(out, report.stack.as_ref()),
            Slot::Invariant => maybe(out, report.invariant.as_ref()),
            Slot::RateLimitReset => maybe(out, report.rate_limit_reset.as_ref()),
            Slot::PolicyDecision => maybe(out, report.policy_decision.as_ref()),
            Slot::SessionId => maybe(out, session.id.as_ref()),
            Slot::SessionClient => maybe(out, session.client.as_ref()),
            Slot::SessionRole => maybe(out, session.role.as_ref()),
            Slot::SessionWorkspaceRoot => maybe(out, session.workspace_root.as_ref()),
            Slot::SessionPhase => maybe(out, session.phase.as_ref()),
            Slot::SessionPlanHash => maybe(out, session.plan_hash.as_ref()),
            Slot::MetaToolVersion
            | Slot::MetaElapsedMs
            | Slot::MetaMode
            | Slot::MetaApprovalMode => fill_meta(&report.meta, slot, out),
        }
    }
}

/// A success that is wrapped: the tool's data and the facts about the call.
pub(crate) struct Success<'a> {
    pub data: &'a RawValue,
    pub meta: &'a Meta,
}

impl Fill for Success<'_> {
    fn fill(&self, slot: Slot, out: &mut Vec<u8>) -> bool {
        if slot == Slot::Data {
            out.extend_from_slice(self.data.get().as_bytes());
            return true;
        }
        fill_meta(self.meta, slot, out)
    }
}

fn fill_meta(meta: &Meta, slot: Slot, out: &mut Vec<u8>) -> bool {
    match slot {
        Slot::MetaToolVersion => maybe(out, meta.tool_version.as_ref()),
        Slot::MetaElapsedMs => maybe(out, meta.elapsed_ms.as_ref()),
        Slot::MetaMode => maybe(out, meta.mode.as_ref()),
        Slot::MetaApprovalMode => maybe(out, meta.approval_mode.as_ref()),
        _ => false,
    }
}

fn maybe<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: Option<&T>) -> bool {
    value.is_some_and(|value| some(out, value))
}

/// Writing to memory cannot fail, and every fact is JSON.
fn some<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) -> bool {
    serde_json::to_writer(out, value).is_ok()
}
