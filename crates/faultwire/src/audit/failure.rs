//! The record of a failure.
//!
//! It is written while a client waits, so its members are written directly and not with `serde`;
//! the bytes are the same.

use std::borrow::Cow;

use faultwire_contract::{
    Condition, Fault, Meta, Origin, Outcome, Report, RetryClass, Session, bound, quote,
};
use serde::Serialize;
use serde_json::{Error, Value};

use crate::audit::call::{Call, KEYED, PLAIN};
use crate::audit::hash::Hash;
use crate::audit::json_writer;

/// What is written of a failure.
pub(crate) struct FaultRecord<'a> {
    pub contract: &'a str,
    pub contract_version: &'a str,
    pub category: &'a str,
    pub alert: &'a str,
    pub fault: &'a Report,
    pub private: PrivateSide<'a>,
    pub call: &'a Call,
}

impl FaultRecord<'_> {
    /// Appends its members, and the brace that ends the line.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        out.extend_from_slice(br#""type":"fault""#);
        text(out, r#","contract":"#, Some(self.contract));
        text(out, r#","contract_version":"#, Some(self.contract_version));
        text(out, r#","category":"#, Some(self.category));
        text(out, r#","alert":"#, Some(self.alert));
        object(out, r#","fault":"#, |out| report(out, self.fault))?;
        if !self.private.is_empty() {
            any(out, r#","private":"#, Some(&self.private))?;
        }
        object(out, r#","call":"#, |out| call(out, self.call))?;
        out.push(b'}');
        Ok(())
    }
}

fn report(out: &mut Vec<u8>, report: &Report) -> Result<(), Error> {
    text(out, r#","code":"#, Some(&report.code));
    word(out, r#","condition":"#, report.condition.map(Condition::name));
    text(out, r#","message":"#, report.message.as_deref());
    text(out, r#","tool":"#, report.tool.as_deref());
    text(out, r#","method":"#, report.method.as_deref());
    word(out, r#","origin":"#, report.origin.map(Origin::name));
    word(out, r#","outcome":"#, report.outcome.map(Outcome::name));
    word(out, r#","retry":"#, report.retry.map(RetryClass::name));
    any(out, r#","retry_after_ms":"#, report.retry_after_ms.as_ref())?;
    any(out, r#","status":"#, report.status.as_ref())?;
    text(out, r#","next":"#, report.next.as_deref());
    text(out, r#","suggestion":"#, report.suggestion.as_deref());
    any(out, r#","details":"#, report.details.as_ref())?;
    any(out, r#","data":"#, report.data.as_ref())?;
    any(out, r#","cause":"#, report.cause.as_ref())?;
    text(out, r#","invariant":"#, report.invariant.as_deref());
    any(out, r#","rate_limit_reset":"#, report.rate_limit_reset.as_ref())?;
    text(out, r#","policy_decision":"#, report.policy_decision.as_deref());
    object(out, r#","session":"#, |out| session(out, &report.session))?;
    object(out, r#","meta":"#, |out| meta(out, &report.meta))?;
    text(out, r#","incident":"#, report.incident.as_deref());
    text(out, r#","timestamp":"#, report.timestamp.as_deref());
    text(out, r#","trace":"#, report.trace.as_deref());
    text(out, r#","stack":"#, report.stack.as_deref());
    Ok(())
}

#[expect(clippy::unnecessary_wraps, reason = "all that an object holds may fail")]
fn session(out: &mut Vec<u8>, session: &Session) -> Result<(), Error> {
    text(out, r#","id":"#, session.id.as_deref());
    text(out, r#","client":"#, session.client.as_deref());
    text(out, r#","role":"#, session.role.as_deref());
    text(out, r#","workspace_root":"#, session.workspace_root.as_deref());
    text(out, r#","phase":"#, session.phase.as_deref());
    text(out, r#","plan_hash":"#, session.plan_hash.as_deref());
    Ok(())
}

fn meta(out: &mut Vec<u8>, meta: &Meta) -> Result<(), Error> {
    text(out, r#","tool_version":"#, meta.tool_version.as_deref());
    any(out, r#","elapsed_ms":"#, meta.elapsed_ms.as_ref())?;
    text(out, r#","mode":"#, meta.mode.as_deref());
    any(out, r#","approval_mode":"#, meta.approval_mode.as_ref())
}

fn call(out: &mut Vec<u8>, call: &Call) -> Result<(), Error> {
    any(out, r#","request":"#, call.request.as_ref())?;
    text(out, r#","client":"#, call.client.as_deref());
    hash(out, r#","arguments":""#, KEYED, call.arguments.map(|keyed| keyed.0));
    any(out, r#","upstream_code":"#, call.upstream_code.as_ref())?;
    any(out, r#","undeclared":"#, call.undeclared.then_some(&true))?;
    any(out, r#","elapsed_ms":"#, call.elapsed_ms.as_ref())?;
    any(out, r#","attempt":"#, call.attempt.as_ref())?;
    hash(out, r#","envelope":""#, PLAIN, call.envelope.map(|digest| digest.0));
    text(out, r#","peer":"#, call.peer.as_deref());
    any(out, r#","refusals":"#, call.refusals.as_ref())
}

/// Writes members, each of which begins with a comma. Without members, nothing is written.
fn object(
    out: &mut Vec<u8>,
    lead: &str,
    members: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>,
) -> Result<(), Error> {
    let before = out.len();
    out.extend_from_slice(lead.as_bytes());
    let first = out.len();
    members(out)?;
    match out.get_mut(first) {
        Some(comma) => {
            *comma = b'{';
            out.push(b'}');
        }
        None => out.truncate(before),
    }
    Ok(())
}

fn text(out: &mut Vec<u8>, lead: &str, value: Option<&str>) {
    if let Some(value) = value {
        out.extend_from_slice(lead.as_bytes());
        quote(value, out);
    }
}

/// One of Faultwire's own words, which needs no escapes.
fn word(out: &mut Vec<u8>, lead: &str, value: Option<&str>) {
    if let Some(value) = value {
        out.extend_from_slice(lead.as_bytes());
        out.push(b'"');
        out.extend_from_slice(value.as_bytes());
        out.push(b'"');
    }
}

/// A hash; the lead already has the beginning of its text.
fn hash(out: &mut Vec<u8>, lead: &str, kind: &str, value: Option<Hash>) {
    if let Some(value) = value {
        out.extend_from_slice(lead.as_bytes());
        out.extend_from_slice(kind.as_bytes());
        out.extend_from_slice(&value.hex());
        out.push(b'"');
    }
}

fn any<T: Serialize>(out: &mut Vec<u8>, lead: &str, value: Option<&T>) -> Result<(), Error> {
    let Some(value) = value else { return Ok(()) };
    out.extend_from_slice(lead.as_bytes());
    json_writer::write(value, out)
}

/// The original texts, if they differ from those for the client. Credentials are removed; paths,
/// frames and addresses are kept, because they are needed to find the cause.
#[derive(Default, Serialize)]
pub(crate) struct PrivateSide<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stack: Option<Cow<'a, str>>,
}

impl<'a> PrivateSide<'a> {
    /// Of a fault; each part as long and as deep as this at most.
    pub fn of(fault: &'a Fault, max: usize, depth: usize) -> Self {
        let (private, public) = (fault.private(), fault.public());
        let redactor = fault.contract().redactor();
        let text = |given: Option<&'a str>, shown: Option<&str>| -> Option<Cow<'a, str>> {
            let given = given.filter(|g| Some(*g) != shown)?;
            let safe = redactor.redact_credentials(given);
            let cut = bound::cut(&safe, max);
            (Some(&*cut) != shown).then(|| Cow::Owned(cut.into_owned()))
        };
        let cause = private.cause().filter(|c| Some(*c) != public.cause.as_ref()).map(|c| {
            let shallow = bound::json_unredacted(c.clone(), depth, 2 * max);
            bound::json(redactor.redact_json_credentials(shallow), depth, max)
        });
        Self {
            message: text(private.message(), public.message.as_deref()),
            cause: cause.filter(|c| Some(c) != public.cause.as_ref()),
            stack: text(private.stack(), public.stack.as_deref()),
        }
    }

    fn is_empty(&self) -> bool {
        self.message.is_none() && self.cause.is_none() && self.stack.is_none()
    }
}

#[cfg(test)]
mod tests {
    use faultwire_contract::{Hints, Reset};
    use serde_json::json;

    use super::*;
    use crate::audit::call::{Digest, Fingerprint};

    /// A report with every member set. New members must be added here, too.
    fn whole() -> Report {
        let text = |text: &str| Some(text.to_owned());
        Report {
            code: "a\"code".into(),
            condition: Some(Condition::Timeout),
            message: text("line\none"),
            tool: text("tool"),
            method: text("tools/call"),
            origin: Some(Origin::Upstream),
            outcome: Some(Outcome::Executed),
            retry: Some(RetryClass::After),
            retry_after_ms: Some(u64::MAX),
            status: Some(503),
            next: text("call again"),
            // Both are consumed when a fault is made.
            hints: Hints::default(),
            repeatable: None,
            suggestion: text("wait"),
            details: Some(json!({"a": [1, null]})),
            data: Some(json!([u64::MAX])),
            cause: Some(json!("why")),
            invariant: text("one"),
            rate_limit_reset: Some(Reset::Epoch(17.into())),
            policy_decision: text("deny"),
            session: Session {
                id: text("s"),
                client: text("c"),
                role: text("r"),
                workspace_root: text("/w"),
                phase: text("p"),
                plan_hash: text("h"),
            },
            meta: Meta {
                tool_version: text("1"),
                elapsed_ms: Some(12),
                mode: text("m"),
                approval_mode: Some(false),
            },
            incident: text("inc_1"),
            timestamp: text("1970-01-01T00:00:00.000Z"),
            trace: text("t"),
            stack: text("at x"),
        }
    }

    fn whole_call() -> Call {
        Call {
            request: Some(json!("\u{7}")),
            client: Some("c".into()),
            arguments: Some(Fingerprint(Hash::of(b"1"))),
            upstream_code: Some(json!(-32000)),
            undeclared: true,
            elapsed_ms: Some(3),
            attempt: Some(2),
            envelope: Some(Digest::of(b"2")),
            peer: Some("198.51.100.7".into()),
            refusals: Some(4),
        }
    }

    fn written(fault: &Report, call: &Call, private: PrivateSide<'_>) -> String {
        let record = FaultRecord {
            contract: "some",
            contract_version: "1",
            category: "c",
            alert: "page",
            fault,
            private,
            call,
        };
        let mut out = b"{".to_vec();
        record.write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn by_serde(fault: &Report, call: &Call, private: Option<Value>) -> String {
        let mut members = format!(
            r#"{{"type":"fault","contract":"some","contract_version":"1","category":"c","alert":"page","fault":{}"#,
            exact(fault)
        );
        if let Some(private) = private {
            members += &format!(r#","private":{private}"#);
        }
        if !call.is_empty() {
            members += &format!(r#","call":{}"#, exact(call));
        }
        members + "}"
    }

    fn exact<T: Serialize>(value: &T) -> String {
        let mut out = Vec::new();
        json_writer::write(value, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn it_is_what_serde_writes() {
        let (report, call) = (whole(), whole_call());
        assert_eq!(written(&report, &call, PrivateSide::default()), by_serde(&report, &call, None));
        let private = PrivateSide { message: Some("m".into()), ..PrivateSide::default() };
        assert_eq!(
            written(&report, &call, private),
            by_serde(&report, &call, Some(json!({"message": "m"})))
        );
    }

    #[test]
    fn what_is_not_said_is_not_written() {
        let all = serde_json::to_value(whole()).unwrap();
        let members: Vec<_> = all.as_object().unwrap().keys().cloned().collect();
        for kept in members {
            let mut some = all.clone();
            some.as_object_mut().unwrap().retain(|name, _| *name == kept || name == "code");
            let report: Report = serde_json::from_value(some).unwrap();
            let call = Call { attempt: Some(1), ..Call::default() };
            assert_eq!(
                written(&report, &call, PrivateSide::default()),
                by_serde(&report, &call, None)
            );
        }
        let nothing = Call::default();
        let written = written(&Report::new("c"), &nothing, PrivateSide::default());
        assert_eq!(written, by_serde(&Report::new("c"), &nothing, None));
    }
}
