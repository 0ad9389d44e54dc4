//! Which fact of a fault fills which slot.

use serde::Serialize;
use serde_json::value::RawValue;

use super::Fault;
use crate::json_escape::quote;
use crate::report::Meta;
use crate::template::slot::Slot;
use crate::template::write::Fill;

impl Fill for Fault {
    fn fill(&self, slot: Slot, out: &mut Vec<u8>) -> bool {
        let (row, report, session) = (self.code(), &self.public, &self.public.session);
        match slot {
            Slot::Code => text(out, Some(&row.id)),
            Slot::Message => text(out, report.message.as_deref()),
            Slot::Title => text(out, Some(&row.message)),
            Slot::Category => text(out, Some(&row.category)),
            Slot::Action => text(out, Some(&row.action)),
            Slot::Alert => text(out, Some(row.alert_of(report.origin))),
            Slot::Next => text(out, Some(report.next.as_deref().unwrap_or(&row.action))),
            Slot::Status => some(out, &self.status),
            Slot::ProblemType => text(out, row.problem_type.as_deref()),
            Slot::Retryable => some(out, &self.retry.is_retryable()),
            Slot::RetryKind => some(out, self.contract.retry.kind(self.retry)),
            Slot::RetryAfterMs => maybe(out, self.delay.map(|d| d.as_millis()).as_ref()),
            Slot::RetryAfterS => maybe(out, self.delay.map(|d| d.as_secs()).as_ref()),
            Slot::Incident => text(out, report.incident.as_deref()),
            Slot::Timestamp => text(out, report.timestamp.as_deref()),
            Slot::Trace => text(out, report.trace.as_deref()),
            Slot::Condition => maybe(out, report.condition.as_ref()),
            Slot::Origin => maybe(out, report.origin.as_ref()),
            Slot::Outcome => maybe(out, report.outcome.as_ref()),
            Slot::Tool => text(out, report.tool.as_deref()),
            Slot::Method => text(out, report.method.as_deref()),
            Slot::Suggestion => text(out, report.suggestion.as_deref()),
            Slot::Details => maybe(out, report.details.as_ref()),
            Slot::Data => maybe(out, report.data.as_ref()),
            Slot::Cause => maybe(out, report.cause.as_ref()),
            Slot::Stack => text(out, report.stack.as_deref()),
            Slot::Invariant => text(out, report.invariant.as_deref()),
            Slot::RateLimitReset => maybe(out, report.rate_limit_reset.as_ref()),
            Slot::PolicyDecision => maybe(out, report.policy_decision.as_ref()),
            Slot::SessionId => text(out, session.id.as_deref()),
            Slot::SessionClient => text(out, session.client.as_deref()),
            Slot::SessionRole => text(out, session.role.as_deref()),
            Slot::SessionWorkspaceRoot => text(out, session.workspace_root.as_deref()),
            Slot::SessionPhase => text(out, session.phase.as_deref()),
            Slot::SessionPlanHash => text(out, session.plan_hash.as_deref()),
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
        Slot::MetaToolVersion => text(out, meta.tool_version.as_deref()),
        Slot::MetaElapsedMs => maybe(out, meta.elapsed_ms.as_ref()),
        Slot::MetaMode => maybe(out, meta.mode.as_ref()),
        Slot::MetaApprovalMode => maybe(out, meta.approval_mode.as_ref()),
        _ => false,
    }
}

fn text(out: &mut Vec<u8>, text: Option<&str>) -> bool {
    text.map(|text| quote(text, out)).is_some()
}

fn maybe<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: Option<&T>) -> bool {
    value.is_some_and(|value| some(out, value))
}

/// Writing to memory cannot fail, and every fact is JSON.
fn some<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) -> bool {
    serde_json::to_writer(out, value).is_ok()
}
